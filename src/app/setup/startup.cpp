#include "startup.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "catalogs.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/log.h"
#include "lockstep/base/text.h"
#include "lockstep/comm/agree.h"
#include "lockstep/comm/checked_communicator.h"
#include "lockstep/comm/session.h"
#include "lockstep/config/toml.h"
#include "lockstep/report/live/run_output.h"

namespace lockstep {
namespace {

// Ranks by what they have, if they have not all the same: "ranks 0, 1 have A; rank 2 has B".
void refuse_if_different(Communicator& comm, const std::string& what, const std::string& mine,
                         const std::string& advice) {
  const std::vector<std::string> all = gather_texts(comm, mine);
  std::map<std::string, std::vector<std::size_t>> ranks_of;
  for (std::size_t rank = 0; rank < all.size(); ++rank) ranks_of[all[rank]].push_back(rank);
  if (ranks_of.size() == 1) return;
  std::string groups;
  for (const auto& [value, ranks] : ranks_of) {
    groups += fmt::format("{}{} {}: {}", groups.empty() ? "" : "; ", ranks.size() == 1 ? "rank" : "ranks",
                          fmt::join(ranks, ", "), value);
  }
  throw AgreedError(fmt::format("the ranks do not have the same {}: {}. {}", what, groups, advice),
                    kExitConfig);
}

std::string describe_sizes(std::span<const RecordSource* const> sources) {
  std::string text;
  for (const RecordSource* source : sources) {
    text += fmt::format("{}{} has {}", text.empty() ? "" : ", ", source->info().name, describe_size(*source));
  }
  return text;
}

constexpr std::size_t kMaxNotes = 100;  // wide tables have thousands of columns, each perhaps with a note

void add_lines(const std::string& text, std::vector<std::string>& lines) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
}

}  // namespace

ConfigText read_config_together(Communicator& comm, const std::string& file) {
  const ConfigText text =
      agree(comm, [&] { return comm.rank() == 0 && !file.empty() ? read_config_file(file) : ConfigText(); });
  return {.file = broadcast_text(comm, text.file), .text = broadcast_text(comm, text.text)};
}

std::string config_of_run(const CommandLine& line, const RunDirectory& run) {
  return line.has("config") ? line.text("config") : run.config().string();
}

void refuse_different_commands(Communicator& comm, const CommandLine& line) {
  const std::string what = line.has("model") ? "--model " + line.text("model") : "train";
  refuse_if_different(comm, "command",
                      fmt::format("{} {} --config '{}'", line.command, what, line.text("config")),
                      "Give all ranks the same.");
}

void refuse_differences(Communicator& comm, const Config& config) {
  refuse_if_different(comm, "config", fmt::format("hash {:016x}", config_hash(config, known_options())),
                      "Give all ranks the same flags.");
  const std::uint64_t program = agree(comm, [] { return hash_text(read_file("/proc/self/exe")); });
  refuse_if_different(comm, "program", fmt::format("hash {:016x}", program),
                      "Install the same build of trainer on all hosts.");
}

void refuse_different_data(Communicator& comm, std::span<const RecordSource* const> sources) {
  refuse_if_different(comm, "data", describe_sizes(sources), "Copy the same files to all hosts.");
}

std::string to_string(Bf16Support support) {
  constexpr const char* kNames[] = {"none", "emulated", "native"};  // as Bf16Support
  return kNames[static_cast<std::size_t>(support)];
}

std::string describe_precision(const Config& config) {
  if (config.model.precision == Precision::kFp32) return "fp32";
  return bf16_support() == Bf16Support::kNative ? "bf16" : "bf16, emulated";
}

void refuse_missing_precision(const Config& config) {
  if (config.model.precision == Precision::kFp32 || bf16_support() == Bf16Support::kNative) return;
  const bool can_emulate = bf16_support() == Bf16Support::kEmulated;
  error_if(
      !can_emulate || !config.debug.emulate_bf16,
      "train.precision is \"bf16\", which needs oneDNN and a CPU with avx512_core_bf16 or avx512_core_amx; "
      "here is {}: use --train.precision fp32{}",
      kernel_back_end(),
      can_emulate ? ", or for a test, slowly, --debug.emulate_bf16 true" : ", which any CPU has");
}

std::vector<std::pair<std::string, std::string>> build_facts() {
  return {{"MPI", mpi_library()},
          {"kernels", kernel_back_end()},
          {"bf16", to_string(bf16_support())},
          {"compiler", __VERSION__},
          {"collectives compared over the ranks before each call", kChecksCollectives ? "yes" : "no"}};
}

std::string describe_size(const RecordSource& source) {
  return fmt::format("{} rows in {} bytes", source.info().rows, source.info().source_bytes);
}

void log_notes(std::span<const RecordSource* const> sources, std::size_t shown) {
  for (const RecordSource* source : sources) {
    const std::vector<Note> notes = source->notes();
    std::vector<std::string> lines;
    for (const Note& note : std::span(notes).first(std::min(kMaxNotes, notes.size())))
      add_lines(note.text, lines);
    for (std::size_t i = 0; i < lines.size(); ++i)
      write_log(i < shown ? LogLevel::kInfo : LogLevel::kDebug, lines[i]);
    if (shown < lines.size())
      log_info("... and {} in log.txt, or with --plan full",
               plural(std::ssize(lines) - Index(shown), "more line"));
    if (notes.size() > kMaxNotes) {
      log_info("{}: {} like these", source->info().name,
               plural(std::ssize(notes) - Index(kMaxNotes), "more note"));
    }
    const std::vector<std::string> doubts = source->doubts();
    for (const std::string& doubt : std::span(doubts).first(std::min(kMaxNotes, doubts.size()))) {
      log_warning("{}: {}", source->info().name, doubt);
    }
    if (doubts.size() > kMaxNotes) {
      log_warning("{}: {} more warnings like these; 'trainer inspect' lists them", source->info().name,
                  doubts.size() - kMaxNotes);
    }
  }
}

std::string read_together(Communicator& comm, const std::filesystem::path& file) {
  return broadcast_text(comm, agree(comm, [&] {
                          return comm.rank() == 0 && is_there(file) ? read_file(file) : std::string();
                        }));
}

}  // namespace lockstep
