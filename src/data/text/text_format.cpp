// Texts, raw or packed with gzip, as windows of tokens.
#include "lockstep/data/formats/format.h"
#include "lockstep/data/kinds/kind.h"

namespace lockstep {
namespace {

std::unique_ptr<RecordSource> open_text(const OpenRequest& request) {
  DataOptions data = request.options;
  data.format = "text";
  if (request.input)
    return open_input(
        {.data = data, .input = *request.input, .schema = request.schema, .peers = request.peers});
  DataSets sets =
      open_sets({.data = data, .wanted = {request.split}, .schema = request.schema, .peers = request.peers});
  return std::move(*of_split(request.split, &sets.train, &sets.validation, &sets.test));
}

}  // namespace

FormatEntry text_format() {
  return {
      .name = "text",
      .help =
          "a text, raw or gzip, or several one behind the other: records are windows of data.window tokens, "
          "whose targets are the tokens after each; 'trainer init FILE' writes a config for one",
      .extensions = {".txt", ".txt.gz", ".md", ".md.gz", ".rst", ".rst.gz", ".tex", ".tex.gz"},
      .options = {"data.train", "data.validation", "data.test", "data.window", "data.tokens", "data.unknown",
                  "data.draw", "data.token_cache"},
      .open = open_text};
}

}  // namespace lockstep
