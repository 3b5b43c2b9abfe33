#include "data_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "lockstep/base/file.h"
#include "lockstep/base/log.h"
#include "lockstep/comm/agree.h"

namespace lockstep {
namespace {

constexpr std::size_t kMaxNotes = 100;  // wide tables have thousands of columns, each perhaps with a note

void add_lines(const std::string& text, std::vector<std::string>& lines) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
}

}  // namespace

std::string describe_size(const RecordSource& source) {
  return fmt::format("{} rows in {} bytes", source.info().rows, source.info().source_bytes);
}

void log_notes(std::span<const RecordSource* const> sources, std::size_t shown) {
  for (const RecordSource* source : sources) {
    const std::vector<std::string> notes = source->notes();
    std::vector<std::string> lines;
    for (const std::string& note : std::span(notes).first(std::min(kMaxNotes, notes.size())))
      add_lines(note, lines);
    for (std::size_t i = 0; i < lines.size(); ++i)
      write_log(i < shown ? LogLevel::kInfo : LogLevel::kDebug, lines[i]);
    if (shown < lines.size())
      log_info("... and {} lines more in log.txt, or with --plan full", lines.size() - shown);
    if (notes.size() > kMaxNotes) {
      log_info("{}: {} more notes like these", source->info().name, notes.size() - kMaxNotes);
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

void log_doubts(const Communicator& comm, const Experiment& experiment, const RunPlan& plan) {
  if (comm.rank() != 0) return;
  for (const std::string& doubt : find_doubts(experiment.fit(*experiment.train), plan))
    log_warning("{}", doubt);
}

std::string list_rejects(std::span<const RecordSource* const> sources) {
  std::string text;
  for (const RecordSource* source : sources) {
    for (const std::string& reject : source->rejects()) text += reject + "\n";
  }
  return text;
}

std::string load_schema_together(Communicator& comm, const RunDirectory& directory) {
  std::string schema;
  agree(comm, [&] {
    if (comm.rank() == 0 && std::filesystem::exists(directory.schema())) {
      schema = read_file(directory.schema());
    }
  });
  return broadcast_text(comm, schema);
}

}  // namespace lockstep
