#include "standard_input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/base/atomic_file.h"
#include "lockstep/base/errors.h"
#include "lockstep/comm/agree.h"

namespace lockstep {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

// A new file of which only this process knows.
class UnnamedFile {
 public:
  UnnamedFile() {
    std::error_code error;
    directory_ = std::filesystem::temp_directory_path(error);
    std::string name = (directory_ / "lockstep-input-XXXXXX").string();
    descriptor_ = error ? -1 : ::mkstemp(name.data());
    if (descriptor_ < 0) fail(error ? error.message() : std::strerror(errno));
    ::unlink(name.c_str());
  }
  UnnamedFile(const UnnamedFile&) = delete;
  UnnamedFile& operator=(const UnnamedFile&) = delete;
  ~UnnamedFile() { ::close(descriptor_); }

  void write(std::string_view bytes) {
    if (!write_all(descriptor_, bytes)) fail(std::strerror(errno));
  }
  void become_standard_input() {
    if (::dup2(descriptor_, STDIN_FILENO) < 0) fail(std::strerror(errno));
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw DataError(fmt::format(
        "cannot keep standard input in '{}': {}; TMPDIR names another directory, or write it to a file first",
        directory_.string(), reason));
  }

  std::filesystem::path directory_;
  int descriptor_ = -1;
};

// Fills the piece, unless standard input ends before.
Index read_piece(std::string& piece) {
  std::size_t done = 0;
  while (done < piece.size()) {
    const ssize_t got = ::read(STDIN_FILENO, piece.data() + done, piece.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw DataError(fmt::format("cannot read standard input: {}", std::strerror(errno)));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<Index>(done);
}

}  // namespace

void spool_standard_input(Communicator& comm) {
  std::optional<UnnamedFile> file;
  std::string piece(kPieceBytes, '\0');
  for (Index count = -1; count != 0;) {
    agree(comm, [&] {
      if (!file) file.emplace();
      if (comm.rank() == 0) count = read_piece(piece);
    });
    comm.broadcast(as_buffer(std::span(&count, 1)), 0);
    if (count > 0) comm.broadcast(as_buffer(std::span(piece).first(static_cast<std::size_t>(count))), 0);
    agree(comm, [&] { file->write(std::string_view(piece).substr(0, static_cast<std::size_t>(count))); });
  }
  agree(comm, [&] { file->become_standard_input(); });
}

}  // namespace lockstep
