// Reads a table as a run would, and once more with the schema that this has learned.
#pragma once

#include <cstdlib>
#include <string>

#include "data/table/sources/table_source.h"
#include "read_all.h"

namespace lockstep::fuzz {

inline void read_table(const std::string& path, const TableOptions& options) {
  const auto request = [&](const std::string& schema) {
    return TableRequest{
        .paths = {path}, .name = path, .options = options, .schema = schema, .peers = alone()};
  };
  const TableSource source(request(""));
  read_all(source);
  const TableSource again(request(source.schema()));
  // A file that a model reads may come without the lines above its table: what could be a record is one then.
  const bool same = again.info().rows == source.info().rows && again.schema() == source.schema();
  if (options.skip_lines == 0 && !same) std::abort();
  read_all(again);
}

}  // namespace lockstep::fuzz
