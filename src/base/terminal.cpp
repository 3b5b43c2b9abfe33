#include "lockstep/base/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/process.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

constexpr int kUsualColumns = 80;
constexpr int kMinColumns = 20;

std::atomic<bool> live_output_stopped = false;
std::mutex live_row_mutex;
std::size_t live_row_width = 0;  // width of what is drawn now; 0: nothing

std::string parents_output() {
  return fmt::format("/proc/{}/fd/1", ::getppid());
}

// 0 if it is no terminal, or does not know.
int columns_of(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// The launcher gives its ranks terminals without a width; its own has one.
int columns_of_parent() {
  const int descriptor = ::open(parents_output().c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return 0;
  const int columns = columns_of(descriptor);
  ::close(descriptor);
  return columns;
}

void erase() {
  if (live_row_width == 0) return;
  print_raw(fmt::format("\r{:{}}\r", "", live_row_width));
  std::fflush(stdout);
  live_row_width = 0;
}

// Characters, each one column wide: bytes that do not go on a character of UTF-8.
int width_of(std::string_view text) {
  return static_cast<int>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

void wrap_line(std::string_view line, int columns, int used, int indent, std::string& wrapped) {
  bool fresh = true;  // no word of this row yet
  while (!line.empty()) {
    const std::size_t spaces = std::min(line.find_first_not_of(' '), line.size());
    const std::string_view word = line.substr(0, line.find(' ', spaces));
    if (!fresh && used + width_of(word) > columns) {
      wrapped.append("\n").append(static_cast<std::size_t>(indent), ' ').append(word.substr(spaces));
      used = indent + width_of(word.substr(spaces));
    } else {
      wrapped.append(word);
      used += width_of(word);
    }
    fresh = false;
    line.remove_prefix(word.size());
  }
}

bool has_colours(bool is_terminal) {
  if (!environment_text("NO_COLOR").value_or("").empty()) return false;
  const std::string forced = environment_text("CLICOLOR_FORCE").value_or("");
  if (!forced.empty() && forced != "0") return true;
  return is_terminal && rows_can_be_redrawn() && environment_text("CLICOLOR").value_or("") != "0";
}

int first_error = 0;

int launchers_output = -1;  // standard output, while another descriptor keeps what is printed

bool goes_to_a_file() {
  struct stat status {};
  return ::fstat(STDOUT_FILENO, &status) != 0 || S_ISREG(status.st_mode);
}

// Standard error is a pipe of the launcher's, which reads from it at once unless the machine is busy.
void wait_until_errors_are_read() {
  constexpr int kTries = 10'000;  // of a millisecond
  int unread = 0;
  for (int i = 0; i < kTries && ::ioctl(STDERR_FILENO, FIONREAD, &unread) == 0 && unread > 0; ++i)
    ::poll(nullptr, 0, 1);
}

bool copy_to(int descriptor) {
  std::array<char, 1 << 16> piece;
  if (::lseek(STDOUT_FILENO, 0, SEEK_SET) != 0) return false;
  for (;;) {
    const ssize_t got = ::read(STDOUT_FILENO, piece.data(), piece.size());
    if (got <= 0) return got == 0;
    if (!write_all(descriptor, {piece.data(), static_cast<std::size_t>(got)})) return false;
  }
}

void hand_on_kept() {
  if (launchers_output < 0) return;
  wait_until_errors_are_read();
  if (!copy_to(launchers_output) && first_error == 0) first_error = errno;
  ::dup2(launchers_output, STDOUT_FILENO);
  ::close(std::exchange(launchers_output, -1));
}

}  // namespace

void stop_live_output() {
  live_output_stopped = true;
}

bool output_is_live() {
  if (live_output_stopped) return false;
  if (::isatty(STDOUT_FILENO) == 0) return false;
  std::error_code error;
  const std::string parent = std::filesystem::read_symlink(parents_output(), error).string();
  return parent.starts_with("/dev/pts/") || parent.starts_with("/dev/tty");
}

bool rows_can_be_redrawn() {
  const std::string terminal = environment_text("TERM").value_or("");
  return !terminal.empty() && terminal != "dumb";
}

bool output_has_colours() {
  return has_colours(output_is_live());
}

bool errors_have_colours() {
  return has_colours(::isatty(STDERR_FILENO) != 0);
}

int terminal_columns() {
  int columns = columns_of(STDOUT_FILENO);
  if (columns == 0) columns = columns_of_parent();
  return columns == 0 ? kUsualColumns : std::max(columns, kMinColumns);
}

void draw_live_row(std::string_view text) {
  if (live_output_stopped) return;
  const std::lock_guard lock(live_row_mutex);
  print_raw(fmt::format("\r{:<{}}", text, live_row_width));
  std::fflush(stdout);
  live_row_width = std::max(text.size(), live_row_width);
}

void erase_live_row() {
  print_above_live_row([] {});
}

void print_above_live_row(const std::function<void()>& write) {
  const std::lock_guard lock(live_row_mutex);
  erase();
  write();
}

std::string wrap_lines(std::string_view text, int columns, int used, int indent) {
  std::string wrapped;
  for (;;) {
    const std::size_t end = text.find('\n');
    wrap_line(text.substr(0, end), columns, used, indent, wrapped);
    if (end == std::string_view::npos) return wrapped;
    wrapped += '\n';
    text.remove_prefix(end + 1);
    used = 0;
  }
}

std::string printable_lines(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of("\n\t"), text.size());
    shown += excerpt(text.substr(0, end), std::string_view::npos);
    if (end < text.size()) shown += text[end];
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return shown;
}

void print_text(std::string_view text) {
  print_raw(printable_lines(text));
}

void print_raw(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written && first_error == 0) first_error = errno;
}

void flush_printed() {
  if (std::fflush(stdout) != 0 && first_error == 0) first_error = errno;
}

void finish_printing() {
  flush_printed();
  hand_on_kept();
  if (first_error == 0) return;
  throw DataError("cannot write all to standard output: {}", std::strerror(first_error));
}

KeptOutput::KeptOutput() {
  if (!launched_rank() || goes_to_a_file() || output_is_live()) return;
  std::fflush(stdout);
  const int kept = ::memfd_create("printed", MFD_CLOEXEC);
  if (kept < 0) return;
  launchers_output = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
  if (launchers_output >= 0) ::dup2(kept, STDOUT_FILENO);
  ::close(kept);
}

KeptOutput::~KeptOutput() {
  flush_printed();
  hand_on_kept();
}

}  // namespace lockstep
