#include "outputs.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "catalogs.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/terminal.h"
#include "lockstep/comm/agree.h"
#include "lockstep/data/inputs/byte_stream.h"
#include "lockstep/train/storage/run_directory.h"

namespace lockstep {
namespace {

void add_files(std::vector<std::string>& files, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) files.push_back(split_array_path(path).file);
}

// A file that cannot be found is not replaced; opening it says why.
void add_files(std::vector<std::string>& files, const std::string& named, const std::string& key) {
  try {
    if (!named.empty()) add_files(files, list_files(named, {}, key));
  } catch (const Error&) {
    return;
  }
}

std::vector<HyperParameter> hyperparameters(const Config& config) {
  std::vector<HyperParameter> parameters;
  for (const auto& [key, value] : result_options(config)) {
    if (config.given.contains(key)) parameters.push_back({key, value});
  }
  return parameters;
}

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

// A new file of which only this process knows.
class UnnamedFile : NoCopy {
 public:
  UnnamedFile() {
    std::error_code error;
    directory_ = std::filesystem::temp_directory_path(error);
    std::string name = (directory_ / "lockstep-input-XXXXXX").string();
    descriptor_ = error ? -1 : ::mkstemp(name.data());
    if (descriptor_ < 0) fail(error ? error.message() : std::strerror(errno));
    ::unlink(name.c_str());
  }
  ~UnnamedFile() { ::close(descriptor_); }

  void write(std::string_view bytes) {
    if (!write_all(descriptor_, bytes)) fail(std::strerror(errno));
  }
  void become_standard_input() {
    if (::dup2(descriptor_, STDIN_FILENO) < 0) fail(std::strerror(errno));
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw DataError(
        "cannot keep standard input in '{}': {}; TMPDIR names another directory, or write it to a file first",
        directory_.string(), reason);
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
    if (got < 0) throw DataError("cannot read standard input: {}", std::strerror(errno));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return static_cast<Index>(done);
}

}  // namespace

bool writes_to_standard_output(const CommandLine& line) {
  return line.command == "generate" || is_standard_output(line.text("output")) ||
         is_standard_output(line.text("json")) || is_standard_output(line.text("csv"));
}

void add_files_of_run(std::vector<std::string>& files, const RunDirectory& run) {
  const std::filesystem::path sweep = run.root.parent_path();  // if it is a trial
  for (const auto& file :
       {run.config(), run.record(), run.plan(), run.ranks(), run.log(), run.metrics(), run.summary(),
        run.evaluation(), run.importance(), run.schema(), run.rejects(), run.model(), run.lock(), run.id(),
        run.checkpointed(), sweep / "sweep.toml", sweep / "rows" / (run.root.filename().string() + ".json")})
    files.push_back(file.string());
  std::error_code none;
  for (const auto& trace : std::filesystem::directory_iterator(run.traces(), none))
    files.push_back(trace.path().string());
}

std::vector<std::string> files_read(const CommandLine& line) {
  std::vector<std::string> files{line.text("config"), line.text("from")};
  files.insert(files.end(), line.operands.begin(), line.operands.end());
  if (line.has("model")) add_files_of_run(files, {line.text("model")});
  add_files(files, line.text("lengths"), "--lengths");
  if (line.has("input")) add_files(files, list_input_files(line.text("input"), {}));
  return files;
}

std::vector<std::string> files_read(const CommandLine& line, const Config& config) {
  std::vector<std::string> files = files_read(line);
  files.push_back(config.train.init);
  const DataOptions& data = config.data;
  if (!validation_part(data)) add_files(files, data.validation, "data.validation");
  for (const auto* named : {&data.train, &data.train_labels, &data.train_weights, &data.train_lengths,
                            &data.validation_labels, &data.validation_weights, &data.validation_lengths,
                            &data.test, &data.test_labels, &data.test_weights, &data.test_lengths})
    add_files(files, *named, "data");
  return files;
}

void check_outputs(const CommandLine& line, const std::vector<std::string>& inputs) {
  const std::string output = line.text("output");
  const bool exported = line.command == "export";
  OutputRequest request{
      .flag = "", .name = "", .inputs = inputs, .overwrite = line.has("overwrite"), .binary = exported};
  const auto check = [&request](const std::string& flag, const std::string& name) {
    if (name.empty()) return;
    request.flag = flag;
    request.name = name;
    check_output(request);
  };
  check("--output", output);
  if (exported && !is_stream(output) && std::filesystem::exists(RunDirectory{line.text("model")}.schema())) {
    check("--output", schema_beside(output));
  }
  check("--json", line.text("json"));
  check("--csv", line.text("csv"));
}

std::string schema_beside(const std::string& output) {
  return output + ".schema.json";
}

void print_report(const CommandLine& line, const std::string& text) {
  if (writes_to_standard_output(line)) {
    std::fputs(printable_lines(text).c_str(), stderr);
  } else {
    print_text(text);
  }
}

Index tokens_of_sample(const Experiment& experiment) {
  return experiment.train->vocabulary() ? experiment.config.data.table.windows.window : 0;
}

RunOutputSettings output_settings(const Experiment& experiment, const RunPlan& plan) {
  const Config& config = experiment.config;
  RunOutputSettings settings{
      .directory = RunDirectory{config.run.dir},
      .progress = config.run.progress,
      .whole = plan.whole_run(),
      .shown = {.validation = experiment.validation != nullptr,
                .keeps_best = keeps_best(config),
                .every_line = config.run.log_every == 1,
                .tokens = tokens_of_sample(experiment)},
      .measure = experiment.deciding_measure(),
      .hyperparameters = std::nullopt,
      .tensors = catalog_names(experiment.model->layout().params),
      .average = [&plan](Index step) { return plan.is_averaged(step) ? plan.describe_average() : ""; }};
  if (config.report.tensorboard) settings.hyperparameters = hyperparameters(config);
  return settings;
}

void spool_standard_input(Communicator& comm) {
  std::optional<UnnamedFile> file;
  std::string piece(kPieceBytes, '\0');
  for (Index count = -1; count != 0;) {
    agree(comm, [&] {
      if (!file) file.emplace();
      if (comm.rank() == 0) count = read_piece(piece);
    });
    count = broadcast_value(comm, count);
    if (count > 0) comm.broadcast(as_buffer(std::span(piece).first(static_cast<std::size_t>(count))), 0);
    agree(comm, [&] { file->write(std::string_view(piece).substr(0, static_cast<std::size_t>(count))); });
  }
  agree(comm, [&] { file->become_standard_input(); });
}

}  // namespace lockstep
