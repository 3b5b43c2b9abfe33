# The page of `trainer report` as two texts of the program, before and after its numbers: generated/report_page.cpp. Without
# Chart.js it has no charts. A text that holds )part" would end too early: none does.
set(page_folder ${PROJECT_SOURCE_DIR}/src/report/page)
set(page_css ${page_folder}/page.css)
set(page_licence ${page_folder}/chart_licence.txt)
set(page_script ${page_folder}/charts.js ${page_folder}/story.js ${page_folder}/sections.js ${page_folder}/page.js)
set(page_charts "")
if(has_CHARTJS)
  set(page_charts ${CHARTJS_FILE})
endif()
file(READ ${page_folder}/page.html page)
string(FIND "${page}" "{{DATA}}" data_begin)
math(EXPR data_end "${data_begin} + 8")
string(SUBSTRING "${page}" 0 ${data_begin} page_before)
string(SUBSTRING "${page}" ${data_end} -1 page_after)
foreach(part IN ITEMS css licence charts script)
  set(text "")
  foreach(part_file IN LISTS page_${part})
    file(READ ${part_file} file_text)
    string(APPEND text "${file_text}")
  endforeach()
  string(TOUPPER ${part} part_name)
  string(REPLACE "{{${part_name}}}" "${text}" page_before "${page_before}")
  string(REPLACE "{{${part_name}}}" "${text}" page_after "${page_after}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page_${part}})
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page_folder}/page.html)
set(report_page_file ${PROJECT_BINARY_DIR}/generated/report_page.cpp)
lockstep_write_if_changed("${report_page_file}" "// Written by scripts/cmake/report_page.cmake.
#include \"report/page/page_parts.h\"

namespace lockstep {

const PageParts& page_parts() {
  using namespace std::string_view_literals;  // with their lengths: the compiler counts no long text
  static constexpr PageParts kParts{
      .before = R\"part(${page_before})part\"sv,
      .after = R\"part(${page_after})part\"sv,
  };
  return kParts;
}

}  // namespace lockstep
")
