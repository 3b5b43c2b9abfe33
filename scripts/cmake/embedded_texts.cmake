# The guides and the texts of configs/texts as parts of the program: generated/embedded_texts.cpp. A text that holds )text"
# would end too early: none does.
file(GLOB text_files CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/configs ${PROJECT_SOURCE_DIR}/configs/guides/*.md
     ${PROJECT_SOURCE_DIR}/configs/texts/*)
set(texts "// Written by scripts/cmake/embedded_texts.cmake.\n#include \"lockstep/base/embedded_text.h\"\n\n#include <array>\n\n")
string(APPEND texts "namespace lockstep {\n\nstd::span<const EmbeddedText> embedded_texts() {\n  static const std::array kTexts{\n")
foreach(text_file IN LISTS text_files)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/configs/${text_file})
  file(READ configs/${text_file} text)
  string(APPEND texts "      EmbeddedText{\"${text_file}\", R\"text(${text})text\"},\n")
endforeach()
string(APPEND texts "  };\n  return kTexts;\n}\n\n}  // namespace lockstep\n")
set(embedded_texts_file ${PROJECT_BINARY_DIR}/generated/embedded_texts.cpp)
lockstep_write_if_changed("${embedded_texts_file}" "${texts}")

# The names of the combinations that are refused, for the compiler to know them (base/refusal_name.h).
file(STRINGS configs/texts/refusals.txt refusals REGEX "^[^ #]")
list(JOIN refusals "\",\n    \"" refusals)
set(names "// Written by scripts/cmake/embedded_texts.cmake.\n#pragma once\n\n#include <string_view>\n\nnamespace lockstep {\n\n")
string(APPEND names "inline constexpr std::string_view kRefusalNames[] = {\n    \"${refusals}\"};\n\n}  // namespace lockstep\n")
lockstep_write_if_changed("${PROJECT_BINARY_DIR}/generated/refusal_names.h" "${names}")
