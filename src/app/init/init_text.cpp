#include <fmt/format.h>
#include <fmt/ranges.h>

#include "init.h"
#include "lockstep/base/text.h"

namespace lockstep {

TextPlan plan_text(const DataOptions& options) {
  constexpr Index kManyCharacters = 5000;
  constexpr Index kWindow = 64;
  constexpr Index kWindows = 200;  // that a short text has at least, if it can
  constexpr Index kShortest = 8;
  TextPlan plan{.tokens = options.text.tokens};
  plan.summary = summarise_text(options, plan.held);
  if (plan.tokens == "characters" && plan.summary.vocabulary > kManyCharacters) {
    DataOptions as_bytes = options;
    as_bytes.text.tokens = plan.tokens = "bytes";
    plan.summary = summarise_text(as_bytes, plan.held);
  }
  plan.replaces = plan.summary.unseen > 0 || options.text.unknown == "replace";
  plan.outputs = plan.summary.vocabulary + (plan.replaces && plan.tokens != "bytes" ? 1 : 0);
  plan.window = options.table.windows.window;
  if (plan.window > 0) return plan;
  plan.window = kWindow;
  while (plan.window > kShortest && plan.summary.tokens < kWindows * plan.window) plan.window /= 2;
  return plan;
}

std::string describe_text(const std::string& path, const std::string& tokens, const TextSummary& summary) {
  std::string text =
      fmt::format("{}: {}, {}, a vocabulary of {} ({})\n", path, plural(summary.tokens, "token"),
                  plural(summary.characters, "character"), with_commas(summary.vocabulary), tokens);
  text += fmt::format("  most frequent: {}\n", fmt::join(summary.frequent, ", "));
  if (summary.unseen > 0) {
    text += fmt::format("  {} of the last tenth, or rare ones, have no number: data.unknown = \"replace\"\n",
                        plural(summary.unseen, "token"));
  }
  if (summary.models.empty()) return text;
  text += fmt::format("\nWhat counts of the first {} tell of {} of the last tenth, to beat by a model:\n\n",
                      plural(summary.counted, "token"), plural(summary.measured, "token"));
  std::vector<std::vector<std::string>> rows{{"tokens before that count", "bits per character"}};
  for (const OrderModel& model : summary.models)
    rows.push_back({fmt::format("{}", model.order), fmt::format("{:.3f}", model.bits_per_character)});
  return text + text_table(rows, 0);
}

}  // namespace lockstep
