// trainer compare: what differs between runs, and what came of it, from their directories alone.
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>

#include "app/commands.h"
#include "app/setup/outputs.h"
#include "lockstep/base/build_info.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/log.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/terminal.h"
#include "lockstep/base/text.h"
#include "lockstep/config/command_line.h"
#include "lockstep/report/history/metrics_history.h"
#include "lockstep/report/history/viewed_run.h"
#include "lockstep/report/page/report_page.h"
#include "lockstep/report/trace/trace.h"
#include "lockstep/train/storage/run_directory.h"
#include "read_run.h"
#include "run_views.h"

namespace lockstep {
namespace {

// trainer watch: runs as they are now, drawn again and again, from their directories alone.

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
class Screen : NoCopy {
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
    print_raw("\x1b[?1049h\x1b[?25l");  // the other screen, without a cursor
  }
  ~Screen() {
    print_raw("\x1b[?25h\x1b[?1049l");
    std::fflush(stdout);
    if (has_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }

  void draw(const std::vector<std::string>& lines) const {
    std::string text = "\x1b[H";  // to the first row
    for (std::size_t i = 0; i < lines.size(); ++i) text += (i > 0 ? "\r\n" : "") + lines[i] + "\x1b[K";
    print_raw(text + "\x1b[J");  // and nothing below
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

// The files of runs that are read stay as they are.
void check_outputs_of_runs(const CommandLine& line, const std::vector<std::filesystem::path>& runs) {
  std::vector<std::string> files;
  for (const std::filesystem::path& run : runs) add_files_of_run(files, {run});
  check_outputs(line, files);
}

std::vector<ViewedRun> read_runs_of(const CommandLine& line) {
  const std::vector<std::filesystem::path> runs = find_runs(line.operands);
  check_outputs_of_runs(line, runs);
  return read_runs(runs);
}

}  // namespace

int compare_command(const CommandLine& line) {
  std::vector<ViewedRun> runs = read_runs_of(line);
  sort_runs(runs, line.has("sort") ? line.text("sort") : "best");
  print_report(line, to_text(runs, line.has("all") ? kAllColumns : terminal_columns()));
  if (line.has("csv")) write_output(line.text("csv"), to_csv(runs));
  if (line.has("json")) write_output(line.text("json"), compared_json(runs));
  return 0;
}

// trainer export-metrics: metrics.jsonl of runs as CSV.

int export_metrics_command(const CommandLine& line) {
  error_if(line.has("format") && line.text("format") != "csv", "--format {}: export-metrics writes csv alone",
           in_quotes(line.text("format")));
  std::vector<std::filesystem::path> files;
  std::vector<std::string> names;
  const std::vector<std::filesystem::path> runs = find_runs(line.operands);
  check_outputs_of_runs(line, runs);
  for (const std::filesystem::path& directory : runs) {
    names.push_back(directory.lexically_normal().string());
    files.push_back(RunDirectory{directory}.metrics());
  }
  OutputFile file(line.text("output"));
  const auto faults = write_metrics_csv(files, names, [&](std::string_view text) { file.write(text); });
  file.commit();
  for (const std::string& fault : faults) log_warning("{}; the other lines were exported", fault);
  log_info("exported the metrics of {} to {}", plural(std::ssize(files), "run"),
           describe_output(line.text("output")));
  return 0;
}

// trainer report: a page that shows what runs did, or its numbers, from their directories alone.

int report_command(const CommandLine& line) {
  error_if(!line.has("output") && !line.has("json"),
           "trainer report needs --output FILE, for a page, or --json FILE, for its numbers");
  if (line.has("output")) require_feature("CHARTJS", "a page of trainer report");
  std::vector<ViewedRun> found = read_runs_of(line);
  sort_runs(found, "best");
  std::vector<PageRun> runs;
  for (ViewedRun& run : found) runs.push_back(read_page_run(run, {run.name}));
  const auto write = [&](const std::string& name, const std::string& text) {
    write_output(name, text);
    log_info("report of {}: {} ({})", plural(std::ssize(runs), "run"), describe_output(name),
             human_bytes(text.size()));
  };
  if (line.has("output")) write(line.text("output"), report_page(runs));
  if (line.has("json")) write(line.text("json"), report_json(runs) + "\n");
  return 0;
}

// trainer trace: a summary of the timeline of a run, or the file for a viewer, also of a run that was killed.

int trace_command(const CommandLine& line) {
  expect_run_exists(line.operands.front());
  const RunDirectory directory{line.operands.front()};
  std::error_code ignored;
  error_if(!std::filesystem::is_directory(directory.traces(), ignored),
           "{} has no timeline: it is recorded with --report.trace \"first 20, slowest 20 steps\"",
           in_quotes(line.operands.front()));
  if (line.has("output")) check_outputs_of_runs(line, {directory.root});
  if (!line.has("output")) {
    print_out("{}", summarise_trace(read_run_trace(directory)));
    return 0;
  }
  const WrittenTrace written = write_trace(directory, line.text("output"));
  log_info("timeline: {}: {} ({})", describe_trace(written.trace), describe_output(line.text("output")),
           human_bytes(written.bytes));
  return 0;
}

int watch_command(const CommandLine& line) {
  std::vector<ViewedRun> runs = read_runs_of(line);
  if (line.has("json")) {
    write_output(line.text("json"), to_json(runs));
    return 0;
  }
  if (line.has("once") || ::isatty(STDOUT_FILENO) == 0 || !rows_can_be_redrawn()) {
    ViewSize size{.columns = terminal_columns()};
    if (runs.size() > 1) size.rows = static_cast<int>(runs.size()) + 1;
    for (const std::string& text : watch_view(runs, size)) print_out("{}\n", text);
    return 0;
  }
  const Screen screen;
  do {
    const ViewSize size = terminal_size();
    std::vector<std::string> lines = watch_view(runs, {.columns = size.columns, .rows = size.rows - 1});
    lines.emplace_back("q: leave");
    screen.draw(lines);
    if (!screen.wait()) return 0;
    runs = read_runs(find_runs(line.operands));
  } while (asked_to_end == 0);
  return 0;
}

}  // namespace lockstep
