// Which files a path in the config means: one, all of a directory, those that match a pattern, or a list.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// The files that `text` names, in order: a file; a directory, whose files those are that end as one of
/// `extensions` (all, if none does), but for names that start with '.' or '_'; a pattern of the shell
/// ("part-*.bin", "data_batch_{1,2}.bin"); or several of these with commas between them. What a directory or
/// a pattern gives is sorted by name. ":x" after an archive stays at the end of each. A file with such a
/// name is always taken as itself. Errors: DataError that names `key`, the config key or flag that `text` is
/// from, if there is no such file.
std::vector<std::string> list_files(const std::string& text, std::span<const std::string> extensions,
                                    const std::string& key);

/// The name "-", which stands for standard input where records to predict from are read: ByteStream opens it
/// once spool_standard_input() has made a file of it.
bool is_standard_input(const std::string& name);

/// list_files() for the file to predict from (--input), which may be standard input.
std::vector<std::string> list_input_files(const std::string& text, std::span<const std::string> extensions);

}  // namespace lockstep
