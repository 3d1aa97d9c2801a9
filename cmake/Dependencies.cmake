# System packages (names for Debian and Ubuntu are in scripts/setup) and LibTorch.
find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)  # at::parallel_for is a header template: serial in a unit built without it
# By flag, not by the compiler's own libgomp.so: at run time it is LibTorch's, where that brings one, and there must be one only.
set_target_properties(OpenMP::OpenMP_CXX PROPERTIES INTERFACE_LINK_LIBRARIES "" INTERFACE_LINK_OPTIONS "${OpenMP_CXX_FLAGS}")
find_package(CLI11 CONFIG REQUIRED)
find_package(fmt CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(tomlplusplus CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(SQLiteCpp CONFIG REQUIRED)
find_package(Boost 1.80 CONFIG REQUIRED)  # Process v2, Asio, Math: header only
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(ZLIB REQUIRED)
find_package(LibArchive REQUIRED)
find_package(CURL REQUIRED)
if(NOT TARGET LibArchive::LibArchive)
  add_library(LibArchive::LibArchive INTERFACE IMPORTED)
  target_link_libraries(LibArchive::LibArchive INTERFACE ${LibArchive_LIBRARIES})
  target_include_directories(LibArchive::LibArchive SYSTEM INTERFACE ${LibArchive_INCLUDE_DIRS})
endif()
include(LibTorchVersion)
find_package(LibTorch ${SPT_LIBTORCH_VERSION} REQUIRED)
message(STATUS "LibTorch ${LibTorch_VERSION} in ${LibTorch_ROOT_DIR}, CUDA: ${LibTorch_CUDA}")
# LibTorch's include folder holds headers of another fmt than the one that is linked: a folder before it leads to the right ones.
find_path(SPT_FMT_INCLUDE fmt/core.h REQUIRED)
set(SPT_FMT_FIRST ${CMAKE_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${SPT_FMT_FIRST})
file(CREATE_LINK ${SPT_FMT_INCLUDE}/fmt ${SPT_FMT_FIRST}/fmt SYMBOLIC)
