# Compiles text files into a library: spt_embed(<target> <symbol> <files>) makes
# `const std::vector<std::pair<std::string_view, std::string_view>>& <namespace>::<symbol>()` of (file stem, text).
function(spt_embed target namespace symbol)
  set(rows "")
  foreach(file ${ARGN})
    get_filename_component(stem ${file} NAME_WE)
    file(READ ${file} text)
    string(APPEND rows "    {\"${stem}\", R\"spt_embed(${text})spt_embed\"},\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  set(out ${CMAKE_BINARY_DIR}/embedded_${symbol}.cpp)
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT "#include <string_view>
#include <utility>
#include <vector>
namespace ${namespace} {
const std::vector<std::pair<std::string_view, std::string_view>>& ${symbol}() {
  static const std::vector<std::pair<std::string_view, std::string_view>> kFiles = {
${rows}  };
  return kFiles;
}
}  // namespace ${namespace}
")
  target_sources(${target} PRIVATE ${out})
endfunction()

file(GLOB recipe_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/protocols/recipes/*.toml)
spt_embed(spt_protocols spt::protocols recipe_files ${recipe_files})
file(GLOB matrix_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/matrices/*.toml)
spt_embed(spt_cli spt::cli matrix_files ${matrix_files})
