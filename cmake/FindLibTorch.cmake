# Finds LibTorch without running its own CMake config (which, for a CUDA build, insists on nvcc and a complete CUDA toolkit).
#
#   find_package(LibTorch 2.13 REQUIRED)
#
# Looks, in this order, in: LIBTORCH_ROOT (variable or environment: a folder with include/ and lib/, such as an unpacked libtorch zip,
# or a wheel's site-packages/torch; used or refused), CMAKE_PREFIX_PATH, <source>/.venv, $VIRTUAL_ENV, $CONDA_PREFIX, the python3 on the PATH, the system.
# One that is too old or incomplete is left for the next.
#
# Targets
#   LibTorch::headers  include folders and compile definitions only
#   LibTorch::cpu      + libtorch_cpu, libc10: enough to build and run everything; a program linked so can still load the CUDA half later
#   LibTorch::torch    LibTorch::cpu and, where this LibTorch has them, libtorch_cuda and libc10_cuda, kept in spite of --as-needed
#   LibTorch::cuda_headers  only if a full set of CUDA headers is there: for sources that include <ATen/cuda/...> (device-agnostic code does not)
# Variables
#   LibTorch_ROOT_DIR  LibTorch_INCLUDE_DIRS  LibTorch_LIBRARY_DIR  LibTorch_VERSION
#   LibTorch_CUDA (TRUE/FALSE)  LibTorch_CUDA_VERSION  LibTorch_CUDA_INCLUDE_DIRS  LibTorch_PYTHON (of the same venv, if any)
include(FindPackageHandleStandardArgs)

# --- candidates ----------------------------------------------------------------------------------------------------------------------
# A place that the environment named stays this build's, also when ninja configures again without that environment.
if(DEFINED ENV{LIBTORCH_ROOT})
  set(LIBTORCH_ROOT "$ENV{LIBTORCH_ROOT}" CACHE PATH "folder that holds LibTorch's include/ and lib/" FORCE)
endif()
# Version of the LibTorch whose include folder is given, or empty.
function(_lt_read_version include out)
  set(${out} "" PARENT_SCOPE)
  foreach(header torch/headeronly/version.h torch/csrc/api/include/torch/version.h)
    if(EXISTS "${include}/${header}")
      file(STRINGS "${include}/${header}" lines REGEX "#define TORCH_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
      string(REGEX REPLACE ".*MAJOR +([0-9]+).*MINOR +([0-9]+).*PATCH +([0-9]+).*" "\\1.\\2.\\3" version "${lines}")
      set(${out} "${version}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# Why the LibTorch in <folder> cannot be used; empty where it can. A folder whose installation was interrupted lacks files or libraries.
function(_lt_objection folder out)
  set(${out} "" PARENT_SCOPE)
  foreach(file lib/libc10.so lib/libtorch_cpu.so include/torch/csrc/api/include/torch/torch.h include/ATen/ATen.h)
    if(NOT EXISTS "${folder}/${file}")
      set(${out} "no ${file}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  _lt_read_version("${folder}/include" version)
  if(NOT version)
    set(${out} "no version header" PARENT_SCOPE)
    return()
  endif()
  if(LibTorch_FIND_VERSION AND version VERSION_LESS LibTorch_FIND_VERSION)
    set(${out} "version ${version} is older than ${LibTorch_FIND_VERSION}" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ldd "${folder}/lib/libtorch_cpu.so" OUTPUT_VARIABLE lines ERROR_QUIET)
  if(lines MATCHES "([^ \t\n]+) => not found")
    set(${out} "libtorch_cpu.so needs ${CMAKE_MATCH_1}, which is missing" PARENT_SCOPE)
  endif()
endfunction()

set(_lt_hints)
set(_lt_unfit)  # what was looked at and left, with the reason
if(LIBTORCH_ROOT)
  list(APPEND _lt_hints "${LIBTORCH_ROOT}")
elseif(NOT "$ENV{LIBTORCH_ROOT}" STREQUAL "")
  list(APPEND _lt_hints "$ENV{LIBTORCH_ROOT}")
else()
  set(_lt_candidates)
  foreach(_lt_env "${CMAKE_CURRENT_LIST_DIR}/../.venv" "$ENV{VIRTUAL_ENV}" "$ENV{CONDA_PREFIX}")
    if(_lt_env)
      get_filename_component(_lt_env "${_lt_env}" ABSOLUTE)
      if(EXISTS "${_lt_env}/.spt-incomplete")  # scripts/setup was interrupted there
        list(APPEND _lt_unfit "${_lt_env} (installation was interrupted)")
      else()
        file(GLOB _lt_found LIST_DIRECTORIES TRUE "${_lt_env}/lib/python3*/site-packages/torch")
        list(APPEND _lt_candidates ${_lt_found})
        if(EXISTS "${_lt_env}/lib/libc10.so")  # Conda's own libtorch
          list(APPEND _lt_candidates "${_lt_env}")
        endif()
      endif()
    endif()
  endforeach()
  unset(LibTorch_PYTHON3 CACHE)  # the PATH may have changed
  find_program(LibTorch_PYTHON3 NAMES python3 python)
  mark_as_advanced(LibTorch_PYTHON3)
  if(LibTorch_PYTHON3)  # finds the package's folder without importing it; from /, so that no ./torch is taken for it
    execute_process(
      COMMAND "${LibTorch_PYTHON3}" -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
      WORKING_DIRECTORY / OUTPUT_VARIABLE _lt_found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    list(APPEND _lt_candidates ${_lt_found})
  endif()
  foreach(_lt_folder ${_lt_candidates})
    _lt_objection("${_lt_folder}" _lt_reason)
    if(_lt_reason)
      list(APPEND _lt_unfit "${_lt_folder} (${_lt_reason})")
    else()
      list(APPEND _lt_hints "${_lt_folder}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES _lt_hints)
endif()

# A hint that moved must not leave the old place in the cache.
if(NOT "${_lt_hints}" STREQUAL "${LibTorch_LAST_HINTS}" OR NOT EXISTS "${LibTorch_C10_LIBRARY}")
  unset(LibTorch_C10_LIBRARY CACHE)
  set(LibTorch_LAST_HINTS "${_lt_hints}" CACHE INTERNAL "where LibTorch was searched last")
endif()
set(_lt_only)
if(LIBTORCH_ROOT OR NOT "$ENV{LIBTORCH_ROOT}" STREQUAL "")
  set(_lt_only NO_DEFAULT_PATH)  # a named place is used or refused, never replaced in silence
endif()
find_library(LibTorch_C10_LIBRARY c10 HINTS ${_lt_hints} PATH_SUFFIXES lib ${_lt_only})
mark_as_advanced(LibTorch_C10_LIBRARY)

# --- what is there -------------------------------------------------------------------------------------------------------------------
if(LibTorch_C10_LIBRARY)
  get_filename_component(LibTorch_LIBRARY_DIR "${LibTorch_C10_LIBRARY}" DIRECTORY)
  get_filename_component(LibTorch_ROOT_DIR "${LibTorch_LIBRARY_DIR}" DIRECTORY)
  if(NOT EXISTS "${LibTorch_ROOT_DIR}/include/c10" AND EXISTS "${LibTorch_ROOT_DIR}/../include/c10")  # lib/x86_64-linux-gnu
    get_filename_component(LibTorch_ROOT_DIR "${LibTorch_ROOT_DIR}" DIRECTORY)
  endif()
  set(_lt_include "${LibTorch_ROOT_DIR}/include")
  set(LibTorch_INCLUDE_DIRS "${_lt_include}" "${_lt_include}/torch/csrc/api/include")

  _lt_read_version("${_lt_include}" LibTorch_VERSION)

  set(LibTorch_CUDA FALSE)
  set(LibTorch_CUDA_VERSION "")
  if(EXISTS "${LibTorch_LIBRARY_DIR}/libtorch_cuda.so")
    # A wheel installed with --no-deps has this file but not cuDNN and the rest: then it serves as a CPU build.
    execute_process(COMMAND ldd "${LibTorch_LIBRARY_DIR}/libtorch_cuda.so" OUTPUT_VARIABLE _lt_lines ERROR_QUIET)
    string(REGEX MATCHALL "[^ \t\n]+ => not found" _lt_missing "${_lt_lines}")
    if(_lt_missing)
      list(REMOVE_DUPLICATES _lt_missing)
      message(STATUS "LibTorch: CUDA half left out, incomplete: ${_lt_missing}")
    else()
      set(LibTorch_CUDA TRUE)
    endif()
  endif()
  if(LibTorch_CUDA)
    if(EXISTS "${LibTorch_ROOT_DIR}/version.py")
      file(STRINGS "${LibTorch_ROOT_DIR}/version.py" _lt_lines REGEX "^cuda.*'[0-9.]+'")
      string(REGEX REPLACE ".*'([0-9.]+)'.*" "\\1" LibTorch_CUDA_VERSION "${_lt_lines}")
    endif()
  endif()

  # std::string layout: only builds of the pre-C++11 ABI (old zips, wheels before 2.6) lack these symbols.
  file(STRINGS "${LibTorch_C10_LIBRARY}" _lt_lines REGEX "NSt7__cxx11" LIMIT_COUNT 1)
  if(_lt_lines)
    set(_lt_abi 1)
  else()
    set(_lt_abi 0)
  endif()

  set(LibTorch_PYTHON "")
  if(LibTorch_ROOT_DIR MATCHES "(.*)/lib/python3[^/]*/site-packages/torch$")
    if(EXISTS "${CMAKE_MATCH_1}/bin/python3")
      set(LibTorch_PYTHON "${CMAKE_MATCH_1}/bin/python3")
    endif()
  endif()

  # <ATen/cuda/CUDAContext.h> needs all of these; the wheels that torch pulls in lack crt/ and nv/ (pip install nvidia-cuda-crt nvidia-cuda-cccl adds them).
  set(LibTorch_CUDA_INCLUDE_DIRS "")
  if(LibTorch_CUDA)
    get_filename_component(_lt_dir "${LibTorch_ROOT_DIR}" DIRECTORY)
    file(GLOB _lt_found LIST_DIRECTORIES TRUE "${_lt_dir}/nvidia/*/include")
    set(_lt_complete TRUE)
    foreach(_lt_header cuda_runtime_api.h crt/host_defines.h nv/target cublas_v2.h cusparse.h cusolverDn.h)
      set(_lt_have FALSE)
      foreach(_lt_dir ${_lt_found} "$ENV{CUDA_HOME}/include" /usr/local/cuda/include /usr/local/cuda/include/cccl)
        if(NOT _lt_have AND EXISTS "${_lt_dir}/${_lt_header}")
          list(APPEND LibTorch_CUDA_INCLUDE_DIRS "${_lt_dir}")
          set(_lt_have TRUE)
        endif()
      endforeach()
      if(NOT _lt_have)
        set(_lt_complete FALSE)
      endif()
    endforeach()
    if(NOT _lt_complete)
      set(LibTorch_CUDA_INCLUDE_DIRS "")
    endif()
    list(REMOVE_DUPLICATES LibTorch_CUDA_INCLUDE_DIRS)
  endif()
endif()

if(_lt_only)
  _lt_objection("${_lt_hints}" _lt_reason)
  if(_lt_reason)
    list(APPEND _lt_unfit "LIBTORCH_ROOT=${_lt_hints} (${_lt_reason})")
    unset(LibTorch_C10_LIBRARY CACHE)
    unset(LibTorch_C10_LIBRARY)
  endif()
endif()
list(JOIN _lt_unfit ", " _lt_unfit_text)
if(NOT _lt_unfit_text)
  set(_lt_unfit_text "nothing")
endif()
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIRS LibTorch_VERSION
  VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "Install it with scripts/setup, or give the folder that holds include/ and lib/ as -DLIBTORCH_ROOT=DIR. Looked at and left: ${_lt_unfit_text}.")

# --- targets -------------------------------------------------------------------------------------------------------------------------
function(_lt_shared name)
  add_library(LibTorch::${name} SHARED IMPORTED)
  set_target_properties(LibTorch::${name} PROPERTIES
    IMPORTED_LOCATION "${LibTorch_LIBRARY_DIR}/lib${name}.so" IMPORTED_SONAME "lib${name}.so")
endfunction()

if(LibTorch_FOUND AND NOT TARGET LibTorch::torch)
  find_package(Threads REQUIRED)
  add_library(LibTorch::headers INTERFACE IMPORTED)
  target_include_directories(LibTorch::headers SYSTEM INTERFACE ${LibTorch_INCLUDE_DIRS})
  target_compile_features(LibTorch::headers INTERFACE cxx_std_20)
  if(NOT _lt_abi)
    target_compile_definitions(LibTorch::headers INTERFACE _GLIBCXX_USE_CXX11_ABI=0)
  endif()

  _lt_shared(c10)
  _lt_shared(torch_cpu)
  add_library(LibTorch::cpu INTERFACE IMPORTED)
  target_link_libraries(LibTorch::cpu INTERFACE LibTorch::headers LibTorch::torch_cpu LibTorch::c10 Threads::Threads)

  add_library(LibTorch::torch INTERFACE IMPORTED)
  target_link_libraries(LibTorch::torch INTERFACE LibTorch::cpu)
  if(LibTorch_CUDA)
    # Nothing refers to these by symbol: CUDA registers itself when they are loaded. So the linker must not drop them.
    _lt_shared(torch_cuda)
    _lt_shared(c10_cuda)
    set(_lt_keep "-Wl,--push-state,--no-as-needed,${LibTorch_LIBRARY_DIR}/libtorch_cuda.so,${LibTorch_LIBRARY_DIR}/libc10_cuda.so,--pop-state")
    target_link_libraries(LibTorch::torch INTERFACE "${_lt_keep}" LibTorch::torch_cuda LibTorch::c10_cuda)
    if(LibTorch_CUDA_INCLUDE_DIRS)
      add_library(LibTorch::cuda_headers INTERFACE IMPORTED)
      target_include_directories(LibTorch::cuda_headers SYSTEM INTERFACE ${LibTorch_CUDA_INCLUDE_DIRS})
    endif()
  endif()
endif()
