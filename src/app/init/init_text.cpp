#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

#include "init.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/data/text/vocabulary.h"
#include "lockstep/math/shape.h"
#include "lockstep/nn/model.h"
#include "lockstep/train/bench/bench.h"

namespace lockstep {

namespace {

constexpr Index kTextEpochs = 50;  // of a short text, at most

// Threads of other programs that want a core now: "3/412" in /proc/loadavg counts this one, too.
Index count_others() {
  std::string word;
  std::ifstream in("/proc/loadavg");
  for (int i = 0; i < 4; ++i) in >> word;
  return std::max<Index>(0, number_in<Index>(word.substr(0, word.find('/'))).value_or(1) - 1);
}

}  // namespace

void refuse_for_text(const DataOptions& options) {
  error_if(!options.table.label.empty(), "--label: the label of a text is its next token: leave it out");
  error_if(!options.train_lengths.empty(),
           "--lengths: records of a text have as many tokens each as --data.window says: leave it out");
  error_if(!options.table.windows.time.empty(), "--time names a column of a table, and a text has none");
}

TextPlan plan_text(const DataOptions& options) {
  constexpr Index kWindow = 64;
  constexpr Index kWindows = 200;  // that a short text has at least, if it can
  constexpr Index kShortest = 8;
  constexpr Index kFewest = 100;  // tokens, of which a tenth validates
  constexpr Index kBatch = 32;
  constexpr Index kSteps = 2000;
  TextPlan plan{.tokens = options.text.tokens};
  plan.summary = summarise_text(options, plan.held, kFewest);
  const bool may_replace = parse_token_rule(plan.tokens, "replace").replaces;
  plan.replaces = may_replace && (plan.summary.unseen > 0 || options.text.unknown == "replace");
  plan.outputs = plan.summary.vocabulary + (plan.replaces ? 1 : 0);
  plan.window = options.table.windows.window;
  if (plan.window == 0) {
    plan.window = kWindow;
    while (plan.window > kShortest && plan.summary.tokens < kWindows * plan.window) plan.window /= 2;
  }
  const Index windows = plan.training_tokens() / plan.window;
  plan.batch = std::clamp<Index>(windows / 8, 1, kBatch);
  plan.steps = std::clamp(kTextEpochs * windows / plan.batch, Index{20}, kSteps);
  return plan;
}

void size_model(TextPlan& plan, const DataOptions& options, Index minutes) {
  constexpr double kShare = 0.6;  // of the time; the loss, optimizer, exchange and evaluations take the rest
  std::vector<Index> others;
  const auto training = static_cast<double>(plan.training_tokens());
  using Size = std::pair<Index, Index>;
  for (const auto& [width, blocks] : {Size(64, 2), Size(128, 4), Size(192, 6), Size(256, 6), Size(384, 8)}) {
    TextPlan sized = plan;
    sized.layers = fmt::format(
        "embedding({0}, {1}, init=normal(0.02)) positions(learned, init=normal(0.02)) transformer({2}, {3}, "
        "causal=true) layer_norm dense({0}, bias=false, tie=0)",
        plan.outputs, width, blocks, width / 32);
    if (options.table.windows.window == 0) sized.window = std::min(width, plan.window * width / 64);
    const Model model({.layers = sized.layers}, SequenceShape{sized.window, 1}.shape());
    const Index rows = std::max<Index>(plan.batch / 8, 1);
    others.push_back(count_others());
    const double rate =
        kShare * static_cast<double>(count_cores() * rows * sized.window) / measure_pass(model, rows);
    others.push_back(count_others());
    const double tokens = std::min(60 * static_cast<double>(minutes) * rate, kTextEpochs * training);
    if (!plan.layers.empty() && tokens < 10 * static_cast<double>(model.layout().count())) break;
    sized.steps = std::max(Index{20}, static_cast<Index>(tokens) / (sized.batch * sized.window));
    const double times = std::clamp(0.45 * tokens / (plan.held / (1 - plan.held) * training), 1.0, 10.0);
    sized.every = static_cast<Index>(static_cast<double>(sized.steps) / times);
    const Index learnt = sized.steps * sized.batch * sized.window;
    sized.reason =
        fmt::format("{} tokens: {} at {} a second, {:.0f} % of what passes alone have reached here",
                    with_commas(learnt), human_seconds(static_cast<double>(learnt) / rate),
                    with_commas(static_cast<Index>(rate)), 100 * kShare);
    plan = sized;
  }
  std::ranges::sort(others);  // one that came and went does not count
  if (const Index busy = others[others.size() / 2]; busy > 0)
    plan.doubt = fmt::format("the speed: the machine is busy, {} of other programs want its {}",
                             plural(busy, "thread"), plural(count_cores(), "core"));
}

nlohmann::ordered_json to_json(const TextSummary& summary) {
  const bool is_text = summary.characters > 0;
  nlohmann::ordered_json json{{"tokens", summary.tokens}};
  if (is_text) json["characters"] = summary.characters;
  json.update({{"vocabulary", summary.vocabulary},
               {"unseen", summary.unseen},
               {"counted", summary.counted},
               {"measured", summary.measured},
               {is_text ? "bits_per_character" : "bits_per_token", summary.bits}});
  return json;
}

std::string describe_text(const std::string& path, const std::string& tokens, const TextSummary& summary) {
  const bool is_text = summary.characters > 0;
  std::string text = fmt::format("{}: {}, {}a vocabulary of {} ({})\n", path, plural(summary.tokens, "token"),
                                 is_text ? plural(summary.characters, "character") + ", " : "",
                                 with_commas(summary.vocabulary), tokens);
  if (summary.unseen > 0) {
    text += fmt::format("  {} of the last tenth, or rare ones, have no number: data.unknown = \"replace\"\n",
                        plural(summary.unseen, "token"));
  }
  if (summary.bits.empty()) return text;
  text += fmt::format(
      "\nCounts of the first {} predict {} of the last tenth with so many bits, which a model has to "
      "beat:\n\n",
      plural(summary.counted, "token"), plural(summary.measured, "token"));
  std::vector<std::vector<std::string>> rows{
      {"tokens before that count", is_text ? "bits per character" : "bits per token"}};
  for (const double bits : summary.bits)
    rows.push_back({fmt::format("{}", rows.size() - 1), fmt::format("{:.3f}", bits)});
  return text + text_table(rows, 0);
}

}  // namespace lockstep
