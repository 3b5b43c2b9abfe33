// configs/REFERENCE.md: the options, then what the catalogs hold.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/commands.h"
#include "app/setup/catalogs.h"
#include "help_topics.h"
#include "lockstep/base/catalog.h"
#include "lockstep/base/embedded_text.h"
#include "lockstep/base/terminal.h"
#include "lockstep/config/help.h"
#include "lockstep/data/format.h"
#include "lockstep/distributed/exchange/algorithm.h"
#include "lockstep/distributed/exchange/codec.h"
#include "lockstep/distributed/strategies/strategy.h"
#include "lockstep/nn/composite.h"
#include "lockstep/nn/layer.h"
#include "lockstep/nn/loss.h"
#include "lockstep/nn/preset.h"
#include "lockstep/optim/optimizer.h"
#include "lockstep/optim/schedule.h"
#include "lockstep/train/evaluation/metric.h"
#include "lockstep/train/plan/refusals.h"

namespace lockstep {
namespace {

// A section of entries that have a name, a sentence and the keys that they read.
template <class Entry>
void print_entries(std::string_view title, std::string_view chooser, std::span<const Entry> catalog) {
  print_out("\n## {} (`{}`)\n\n| name | meaning | reads |\n|---|---|---|\n", title, chooser);
  for (const Entry& entry : catalog) {
    std::vector<std::string> keys;
    for (const std::string& key : entry.options) keys.push_back("`" + key + "`");
    print_out("| `{}` | {} | {} |\n", entry.name, entry.help, fmt::join(keys, ", "));
  }
}

// A bar would end the cell of the table.
std::string escaped(std::string text) {
  for (std::size_t i = text.find('|'); i != std::string::npos; i = text.find('|', i + 2))
    text.insert(i, 1, '\\');
  return text;
}

void print_layers() {
  print_out("\n## Layers (`model.layers`)\n\n| layer | meaning |\n|---|---|\n");
  for (const LayerEntry& entry : layer_catalog()) print_out("| `{}` | {} |\n", entry.signature, entry.help);
  for (const CompositeEntry& entry : composite_catalog()) {
    print_out("| `{}` | {} |\n", escaped(entry.signature), entry.help);
  }
}

void print_presets() {
  print_out(
      "\n## Presets (`model.preset`)\n\nEach stands for a text of `model.layers`; `{{outputs}}` is "
      "`model.outputs`.\n");
  for (const PresetEntry& entry : preset_catalog()) {
    print_out("\n`{}`: {}\n\n```text\n{}\n```\n", entry.name, entry.help, entry.text);
  }
}

std::string describe_promises(const Promises& promises) {
  static const std::vector<TextEntry> kTexts = embedded_entries("texts/promises.txt");
  const auto text_of = [](std::string_view promise) {
    return find_entry(std::span(kTexts), "promise", promise).get("says");
  };
  std::vector<std::string> kept;
  for (const auto& [name, is_kept] :
       {std::pair{"same_bits", promises.same_bits}, std::pair{"same_bits_alone", promises.same_bits_alone},
        std::pair{"identical_replicas", promises.identical_replicas},
        std::pair{"one_copy_per_node", promises.one_copy_per_node},
        std::pair{"divides_optimizer_state", promises.divides_optimizer_state},
        std::pair{"exact_resume", promises.exact_resume}}) {
    if (is_kept) kept.push_back(text_of(name));
  }
  const std::string all = fmt::format("{}", fmt::join(kept, "; "));
  if (!promises.repeats_recorded_runs) return all;
  return fmt::format(fmt::runtime(text_of("repeats_recorded_runs")), all);
}

std::string_view to_words(TargetKind targets) {
  switch (targets) {
    case TargetKind::kClass:
      return "classes";
    case TargetKind::kBinary:
      return "binary";
    case TargetKind::kValue:
      return "values";
  }
  return "";
}

void print_metric_catalog() {
  print_out("\n## Metrics (`eval.metrics`)\n\n| name | meaning | targets |\n|---|---|---|\n");
  for (const MetricEntry& entry : metric_catalog()) {
    std::vector<std::string_view> targets;
    for (const TargetKind kind : entry.targets) targets.push_back(to_words(kind));
    print_out("| `{}` | {} | {} |\n", entry.name, escaped(entry.help), fmt::join(targets, ", "));
  }
}

// A tick for each promise; "sync" where it needs workers that take each step together.
void print_promises() {
  print_out(
      "| strategy | same bits on any number of ranks | same weights on all workers after each step | exact "
      "resume | optimizer state divided | one copy per node | choose it |\n|---|---|---|---|---|---|---|\n");
  for (const StrategyEntry& entry : strategy_catalog()) {
    const Promises& promises = entry.promises;
    const char* const kept = promises.repeats_recorded_runs ? "sync" : "✓";
    const auto tick = [kept](bool promised) { return promised ? kept : ""; };
    print_out("| `{}` | {} | {} | {} | {} | {} | {} |\n", entry.name,
              promises.same_bits_alone ? "own" : tick(promises.same_bits), tick(promises.identical_replicas),
              tick(promises.exact_resume), tick(promises.divides_optimizer_state),
              tick(promises.one_copy_per_node), entry.choose);
  }
  print_out(
      "\nBits and resume with ordered reduction. sync: not with asynchronous workers. own: not the bits of "
      "the others.\n\n");
}

void print_strategies() {
  print_out("\n## Strategies (`distribute.strategy`)\n\n");
  print_promises();
  print_out("| name | what it is | elsewhere | promises | choose it |\n|---|---|---|---|---|\n");
  for (const StrategyEntry& entry : strategy_catalog()) {
    print_out("| `{}` | {} | {} | {} | {} |\n", entry.name, entry.help, entry.elsewhere,
              describe_promises(entry.promises), entry.choose);
  }
}

void print_algorithms() {
  print_out("\n## Exchange algorithms (`distribute.algorithm`)\n\n");
  print_out("| name | how the sum gets to all ranks | with `reduction = \"ordered\"` |\n|---|---|---|\n");
  for (const AlgorithmEntry& entry : algorithm_catalog()) {
    print_out("| `{}` | {} | {} |\n", entry.name, entry.help,
              entry.keeps_order ? "the same bits as the others" : "refused");
  }
}

void print_refusals() {
  print_out("\n## What cannot be combined\n\n");
  print_out("Nothing is switched off silently: what stands here is refused, with the reason.\n\n");
  print_out("| combination | why, and what to do |\n|---|---|\n");
  for (const Refusal& row : refusals()) print_out("| {} | {} |\n", row.name, row.reason);
}

void print_catalogs() {
  print_layers();
  print_presets();
  print_entries("Losses", "train.loss", loss_catalog());
  print_entries("Optimizers", "train.optimizer", optimizer_catalog());
  print_entries("Schedules", "train.schedule", decay_catalog());
  print_entries("Data formats", "data.format", format_catalog());
  print_metric_catalog();
  print_entries("Compression", "distribute.compression", codec_catalog());
  print_strategies();
  print_algorithms();
  print_refusals();
}

}  // namespace

int reference_command(const CommandLine& line) {
  const ReferenceEntry& markdown = reference_catalog().front();
  const ReferenceEntry& chosen =
      line.has("format") ? find_entry(reference_catalog(), "format of the reference", line.text("format"))
                         : markdown;
  print_text(chosen.write(known_options(), names_with_guides()));
  if (&chosen == &markdown) print_catalogs();
  return 0;
}

}  // namespace lockstep
