// configs/REFERENCE.md: the options, then what the catalogs hold.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/commands.h"
#include "app/setup/catalogs.h"
#include "help_topics.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/terminal.h"
#include "lockstep/config/help.h"
#include "lockstep/data/formats/format.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/exchange/codec.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/nn/composite.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/loss.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/train/evaluation/metric.h"
#include "lockstep/train/plan/run_plan.h"

namespace lockstep {
namespace {

std::string code(std::string_view name) {
  return fmt::format("`{}`", name);
}

// Entries that have a name, a sentence and the keys that they read.
template <class Entry>
CatalogTable entries(std::string_view title, std::string_view chooser, std::span<const Entry> catalog) {
  CatalogTable table{fmt::format("{} (`{}`)", title, chooser), {{"name", "meaning", "reads"}}};
  for (const Entry& entry : catalog) {
    std::vector<std::string> keys;
    for (const std::string& key : entry.options) keys.push_back(code(key));
    table.rows.push_back({code(entry.name), entry.help, fmt::format("{}", fmt::join(keys, ", "))});
  }
  return table;
}

CatalogTable layers() {
  CatalogTable table{"Layers (`model.layers`)", {{"layer", "meaning"}}};
  for (const LayerEntry& entry : layer_catalog()) table.rows.push_back({code(entry.signature), entry.help});
  for (const CompositeEntry& entry : composite_catalog())
    table.rows.push_back({code(entry.signature), entry.help});
  return table;
}

CatalogTable presets() {
  CatalogTable table{"Presets (`model.preset`)",
                     {{"name", "meaning", "`model.layers`, where {outputs} is `model.outputs`"}}};
  for (const PresetEntry& entry : preset_catalog())
    table.rows.push_back({code(entry.name), entry.help, code(entry.text)});
  return table;
}

CatalogTable metrics() {
  CatalogTable table{"Metrics (`eval.metrics`)", {{"name", "meaning", "targets"}}};
  for (const MetricEntry& entry : metric_catalog()) {
    constexpr std::string_view kKinds[] = {"classes", "binary", "values"};  // as TargetKind
    std::vector<std::string_view> targets;
    for (const TargetKind kind : entry.targets) targets.push_back(kKinds[static_cast<std::size_t>(kind)]);
    table.rows.push_back({code(entry.name), entry.help, fmt::format("{}", fmt::join(targets, ", "))});
  }
  return table;
}

CatalogTable strategies() {
  CatalogTable table{"Strategies (`distribute.strategy`)", {{"name", "what it is", "elsewhere"}}};
  for (const StrategyEntry& entry : strategy_catalog())
    table.rows.push_back({code(entry.name), entry.help, entry.elsewhere});
  return table;
}

// A tick for each promise; "sync" where it needs workers that take each step together.
CatalogTable promises() {
  CatalogTable table{
      "Promises of strategies, of bits and resume with ordered reduction (sync: not with "
      "asynchronous workers; own: not the bits of the others)",
      {{"strategy", "same bits on any number of ranks", "same weights on all workers after each step",
        "exact resume", "optimizer state divided", "one copy per node", "choose it"}}};
  for (const StrategyEntry& entry : strategy_catalog()) {
    const Promises& promises = entry.promises;
    const char* const kept = promises.repeats_recorded_runs ? "sync" : "✓";
    const auto tick = [kept](bool promised) { return promised ? kept : ""; };
    table.rows.push_back({code(entry.name), promises.same_bits_alone ? "own" : tick(promises.same_bits),
                          tick(promises.identical_replicas), tick(promises.exact_resume),
                          tick(promises.divides_optimizer_state), tick(promises.one_copy_per_node),
                          entry.choose});
  }
  return table;
}

CatalogTable algorithms() {
  CatalogTable table{"Exchange algorithms (`distribute.algorithm`)",
                     {{"name", "how the sum gets to all ranks", "with `reduction = \"ordered\"`"}}};
  for (const AlgorithmEntry& entry : algorithm_catalog()) {
    table.rows.push_back(
        {code(entry.name), entry.help, entry.keeps_order ? "the same bits as the others" : "refused"});
  }
  return table;
}

CatalogTable refused() {
  CatalogTable table{"What cannot be combined", {{"combination", "why it is refused, and what to do"}}};
  for (const Refusal& row : refusals()) table.rows.push_back({row.name, row.reason});
  return table;
}

// A line of a table; bars and line ends would end a cell.
std::string markdown_row(const Cells& cells) {
  std::string row;
  for (const std::string& cell : cells) {
    row += "| ";
    for (const char c : cell) row += c == '|' ? "\\|" : c == '\n' ? " " : std::string(1, c);
    row += ' ';
  }
  return row + "|\n";
}

}  // namespace

std::vector<CatalogTable> catalog_tables() {
  return {layers(),
          presets(),
          entries("Losses", "train.loss", loss_catalog()),
          entries("Optimizers", "train.optimizer", optimizer_catalog()),
          entries("Schedules", "train.schedule", decay_catalog()),
          entries("Data formats", "data.format", format_catalog()),
          metrics(),
          entries("Compression", "distribute.compression", codec_catalog()),
          strategies(),
          promises(),
          algorithms(),
          refused()};
}

int reference_command(const CommandLine& line) {
  const ReferenceEntry& markdown = reference_catalog().front();
  const ReferenceEntry& chosen =
      line.has("format") ? find_entry(reference_catalog(), "format of the reference", line.text("format"))
                         : markdown;
  print_text(chosen.write(known_options(), names_with_guides()));
  if (&chosen != &markdown) return 0;
  for (const CatalogTable& table : catalog_tables()) {
    print_out("\n## {}\n\n{}", table.title, markdown_row(table.rows.front()));
    for (std::size_t i = 0; i < table.rows.front().size(); ++i) print_text("|---");
    print_text("|\n");
    for (const Cells& cells : std::span(table.rows).subspan(1)) print_text(markdown_row(cells));
  }
  return 0;
}

}  // namespace lockstep
