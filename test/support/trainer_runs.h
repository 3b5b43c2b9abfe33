// What the tests of end_to_end have in common: they run the trainer, and look at its files and numbers.
#pragma once

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "support/error_text.h"
#include "support/small_experiment.h"
#include "support/temporary_directory.h"
#include "support/trainer_process.h"

namespace lockstep::test {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The lines of a metrics.jsonl; of a kind, if one is given.
inline std::vector<nlohmann::json> metric_lines(const std::string& path, const std::string& kind = "") {
  std::vector<nlohmann::json> found;
  for (const std::string& line : lines_of(read_file(path))) {
    auto json = parse_json<nlohmann::json>(line);
    if (kind.empty() || json.at("kind") == kind) found.push_back(std::move(json));
  }
  return found;
}

/// Trainings in a directory of their own, which have a config in common and flags of their own.
class TrainerRuns : public testing::Test {
 protected:
  explicit TrainerRuns(const std::string& config = "") { configure(config); }

  void configure(const std::string& config) const { write("run.toml", config); }
  std::string path(const std::string& name) const { return directory_ / name; }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }
  /// The words of a training in the directory `run`.
  std::string words(const std::string& run, const std::string& flags = "") const {
    return fmt::format("--config {} --run.progress plain --run.dir {} {}", path("run.toml"), path(run),
                       flags);
  }
  ProcessResult train(int ranks, const std::string& run, const std::string& flags = "") const {
    return run_trainer(ranks, words(run, flags));
  }
  nlohmann::json json_in(const std::string& name) const {
    return parse_json<nlohmann::json>(read_file(path(name)));
  }
  nlohmann::json summary_of(const std::string& run) const { return json_in(run + "/summary.json"); }
  /// That at the end of the run, without its time.
  nlohmann::json evaluation(const std::string& run) const {
    nlohmann::json found = summary_of(run)["evaluation"];
    found.erase("seconds");
    return found;
  }
  std::string model(const std::string& run) const { return read_file(path(run) + "/model.safetensors"); }
  /// The bytes of the model of a training that ends well.
  std::string trained(int ranks, const std::string& run, const std::string& flags = "") const {
    succeeded(train(ranks, run, flags));
    return model(run);
  }
  /// What `trainer predict` writes of a file; `output` is replaced.
  std::string predict(int ranks, const std::string& run, const std::string& input, const std::string& output,
                      const std::string& flags = "") const {
    succeed(ranks, fmt::format("predict --model {} --input {} --output {} --overwrite {}", path(run), input,
                               path(output), flags));
    return read_file(path(output));
  }

  TemporaryDirectory directory_;
};

}  // namespace lockstep::test
