#include "lockstep/base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <utility>

#include "lockstep/base/errors.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStandardOutput = "/dev/stdout";
constexpr int kMaxLinks = 40;  // Linux follows no more of them

[[noreturn]] void fail_on_output(const char* doing, const std::string& name, int error) {
  const std::string what = is_standard_output(name) ? describe_output(name) : fmt::format("'{}'", name);
  throw DataError("cannot {} {}: {}", doing, what, std::strerror(error));
}

[[noreturn]] void refuse(const OutputRequest& request, const std::string& why) {
  throw ConfigError("{} '{}' {}", request.flag, request.name, why);
}

// The target of a symbolic link, also if nothing is there yet.
fs::path behind_links(fs::path path) {
  std::error_code error;
  for (int i = 0; i < kMaxLinks && fs::is_symlink(fs::symlink_status(path, error)); ++i) {
    const fs::path target = fs::read_symlink(path, error);
    if (error) break;  // opening it gives the reason
    path = path.parent_path() / target;
  }
  return path;
}

fs::file_type type_of(const std::string& name) {
  std::error_code ignored;
  return fs::status(name, ignored).type();
}

void refuse_inputs(const OutputRequest& request) {
  const fs::path output = is_standard_output(request.name) ? kStandardOutput : request.name;
  for (const std::string& input : request.inputs) {
    std::error_code ignored;  // set for files that do not exist
    if (!fs::equivalent(output, input, ignored)) continue;
    refuse(request, fmt::format("is the file '{}', which is read: name another one for the result", input));
  }
}

void refuse_existing(const OutputRequest& request, fs::file_type type) {
  if (request.overwrite) return;
  if (type == fs::file_type::block) {
    refuse(request, "is a block device, whose content would be lost; give --overwrite if that is meant");
  }
  refuse(request, "exists already: name another file, or give --overwrite to replace it");
}

// Finds at the start what writing would fail on only at the end of the work.
void check_directory(const std::string& name) {
  const fs::path parent = behind_links(name).parent_path();
  if (::access(parent.empty() ? "." : parent.c_str(), W_OK) != 0) fail_on_output("create", name, errno);
}

}  // namespace

bool is_standard_output(const std::string& name) {
  return name == "-" || name == kStandardOutput;
}

bool is_stream(const std::string& name) {
  if (is_standard_output(name)) return true;
  const fs::file_type type = type_of(name);
  return type == fs::file_type::fifo || type == fs::file_type::character || type == fs::file_type::block;
}

std::string describe_output(const std::string& name) {
  return is_standard_output(name) ? "standard output" : name;
}

void check_output(const OutputRequest& request) {
  refuse_inputs(request);
  if (is_standard_output(request.name)) {
    if (request.binary && ::isatty(STDOUT_FILENO) != 0) {
      refuse(request, "is a terminal, and the result is no text: name a file, or send it on with a pipe");
    }
    return;
  }
  switch (const fs::file_type type = type_of(request.name)) {
    case fs::file_type::directory:
    case fs::file_type::socket:
      refuse(request, fmt::format("is {}: name a file", describe_special(type)));
    case fs::file_type::fifo:
    case fs::file_type::character:
      return;
    case fs::file_type::not_found:
      return check_directory(request.name);
    case fs::file_type::block:
      return refuse_existing(request, type);
    default:
      refuse_existing(request, type);
      check_directory(request.name);
  }
}

OutputFile::OutputFile(const std::string& name) : name_(name) {
  if (!is_stream(name)) {
    file_.emplace(behind_links(name));
    return;
  }
  // A FIFO's reader that has gone away is an error of write(). That of standard output (`| head`) ends the
  // process without a word, as it ends other tools.
  if (!is_standard_output(name)) std::signal(SIGPIPE, SIG_IGN);
  stream_ = is_standard_output(name) ? ::dup(STDOUT_FILENO) : ::open(name.c_str(), O_WRONLY | O_CLOEXEC);
  if (stream_ < 0) fail_on_output("open", name_, errno);
}

OutputFile::~OutputFile() {
  if (stream_ >= 0) ::close(stream_);
}

void OutputFile::write(std::string_view bytes) {
  if (file_) {
    file_->write(bytes);
  } else if (!write_all(stream_, bytes)) {
    fail_on_output("write", name_, errno);
  }
  bytes_ += static_cast<std::int64_t>(bytes.size());
}

void OutputFile::commit() {
  if (file_) return file_->commit();
  if (::close(std::exchange(stream_, -1)) != 0) fail_on_output("close", name_, errno);
}

void write_output(const std::string& name, std::string_view text) {
  OutputFile file(name);
  file.write(text);
  file.commit();
}

}  // namespace lockstep
