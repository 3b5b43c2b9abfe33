// trainer watch: runs as they are now, drawn again and again, from their directories alone.
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>

#include "app/commands.h"
#include "lockstep/base/print.h"
#include "lockstep/base/terminal.h"
#include "lockstep/config/command_line.h"
#include "lockstep/report/watch_view.h"
#include "run_description.h"

namespace lockstep {
namespace {

constexpr int kRedrawMilliseconds = 2000;

volatile std::sig_atomic_t asked_to_end = 0;

void end_later(int) {
  asked_to_end = 1;
}

ViewSize terminal_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {.columns = size.ws_col, .rows = size.ws_row};
}

// The whole terminal while it lives: keys come one by one, and what stood there comes back at the end. A
// signal to end interrupts waiting, so that the terminal is left as it was.
class Screen {
 public:
  Screen() {
    struct sigaction action {};
    action.sa_handler = end_later;  // without SA_RESTART: it interrupts poll()
    for (const int signal : {SIGTERM, SIGHUP, SIGINT}) ::sigaction(signal, &action, nullptr);
    struct sigaction resized {};
    resized.sa_handler = [](int) {};
    ::sigaction(SIGWINCH, &resized, nullptr);
    has_keys_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
    if (has_keys_) {
      termios keys = before_;
      keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    }
    print_out("\x1b[?1049h\x1b[?25l");  // the other screen, without a cursor
  }
  ~Screen() {
    print_out("\x1b[?25h\x1b[?1049l");
    std::fflush(stdout);
    if (has_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void draw(const std::vector<std::string>& lines) const {
    std::string text = "\x1b[H";  // to the first row
    for (std::size_t i = 0; i < lines.size(); ++i) text += (i > 0 ? "\r\n" : "") + lines[i] + "\x1b[K";
    print_out("{}\x1b[J", text);  // and nothing below
    std::fflush(stdout);
  }

  // False if the user wants to leave: q, Escape, the end of the input, or a signal.
  bool wait() const {
    constexpr char kEscape = '\x1b';
    pollfd input{.fd = has_keys_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};
    if (::poll(&input, 1, kRedrawMilliseconds) <= 0) return asked_to_end == 0;
    char key = 0;
    if (::read(STDIN_FILENO, &key, 1) <= 0) return false;
    return key != 'q' && key != 'Q' && key != kEscape;
  }

 private:
  termios before_{};
  bool has_keys_ = false;
};

void print_once(const std::vector<RunDescription>& runs) {
  ViewSize size{.columns = terminal_columns()};
  if (runs.size() > 1) size.rows = static_cast<int>(runs.size()) + 1;
  for (const std::string& text : watch_view(runs, size)) print_out("{}\n", text);
}

}  // namespace

int watch_command(const CommandLine& line) {
  std::vector<RunDescription> runs = describe_runs(line.runs);
  if (line.once || ::isatty(STDOUT_FILENO) == 0 || !rows_can_be_redrawn()) {
    print_once(runs);
    return 0;
  }
  const Screen screen;
  do {
    const ViewSize size = terminal_size();
    std::vector<std::string> lines = watch_view(runs, {.columns = size.columns, .rows = size.rows - 1});
    lines.emplace_back("q: leave");
    screen.draw(lines);
    if (!screen.wait()) return 0;
    runs = describe_runs(line.runs);
  } while (asked_to_end == 0);
  return 0;
}

}  // namespace lockstep
