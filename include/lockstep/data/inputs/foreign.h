// Files that other programs write and that no format reads.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// A file that another program writes and that no format reads: "a Parquet file: convert it with ..."; "" for
/// one that is none of those known. By the end of `path`, or by `start`, the first bytes of its content,
/// which may be left out.
std::string describe_foreign(const std::string& path, std::string_view start = {});
/// Whether the end of `path` is that of such a kind of file whose content tells what it is.
bool has_known_start(const std::string& path);

}  // namespace lockstep
