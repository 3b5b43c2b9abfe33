#include <fmt/format.h>

#include "init.h"
#include "lockstep/base/text.h"
#include "lockstep/data/format.h"

namespace lockstep {

bool is_text(const DataOptions& options) {
  return (!options.format.empty() || has_known_extension(options.train)) &&
         choose_format(options).name == "text";
}

TextPlan plan_text(const DataOptions& options) {
  constexpr Index kWindow = 64;
  constexpr Index kWindows = 200;  // that a short text has at least, if it can
  constexpr Index kShortest = 8;
  TextPlan plan{.tokens = options.text.tokens};
  plan.summary = summarise_text(options, plan.held);
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
  if (summary.unseen > 0) {
    text += fmt::format("  {} of the last tenth, or rare ones, have no number: data.unknown = \"replace\"\n",
                        plural(summary.unseen, "token"));
  }
  if (summary.bits.empty()) return text;
  text += fmt::format(
      "\nCounts of the first {} predict {} of the last tenth with so many bits, which a model has to "
      "beat:\n\n",
      plural(summary.counted, "token"), plural(summary.measured, "token"));
  std::vector<std::vector<std::string>> rows{{"tokens before that count", "bits per character"}};
  for (const double bits : summary.bits)
    rows.push_back({fmt::format("{}", rows.size() - 1), fmt::format("{:.3f}", bits)});
  return text + text_table(rows, 0);
}

}  // namespace lockstep
