#include "lockstep/config/help.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "lockstep/config/toml.h"

namespace lockstep {
namespace {

constexpr std::string_view kUsage =
    R"(Trains a neural network on N ranks of a CPU cluster, with one meaning for every step.

Usage
  mpirun -np N trainer --config FILE         train
  trainer plan --config FILE --np 1,2,4,8    show what a step, an epoch and the run mean on that many ranks
  trainer plan --config FILE --nodes 64 --ranks-per-node 32 --latency 2us --bandwidth 25Gbit --from BENCH.json
                                             predict the time of a step, after what bench has measured here
  mpirun -np N trainer eval --model RUN      evaluate the weights of a run
  mpirun -np N trainer predict --model RUN --input DATA --output FILE.csv|FILE.npy   predict each row of DATA
  mpirun -np N trainer bench --config FILE --json BENCH.json    measure machine, layers, exchange and a step
  trainer export --model RUN --format npz --output FILE    write the model for other programs
  trainer inspect DATA --label NAME          show what a table (CSV) holds, and its [data] section

Flags
  --config FILE   the config, in TOML; configs/ has examples
  --np LIST       numbers of ranks for plan (default 1)
  --model RUN     directory of the run for eval, predict and export
  --init FILE     start from these weights (safetensors)
  --KEY VALUE     any option, such as --train.lr 0.1 or --data.mean 0.1,0.2: the last one wins over the file
  -h, --help      this page; --help-all (or trainer reference): every option; --version: the version
)";

// Of --help-all alone: the other page has to fit on a screen.
constexpr std::string_view kFlagsOfCommands =
    R"(
Flags of single commands
  --output FILE        of predict and export; - for standard output (predictions are CSV then)
  --overwrite          replace an --output or --json that exists
  --allow-nan          predict: no error where predictions are not finite numbers
  --nodes N            plan: nodes to predict the time of a step on
  --ranks-per-node N   of each (default 1)
  --cores-per-node N   that its ranks share (default: those of the machine that bench ran on)
  --latency TIME       of a message between nodes, such as 500ns, 2us or 0.1ms
  --bandwidth RATE     of a node's link, each way, such as 25Gbit, 100Mbit or 3GB
  --from FILE          what bench --json has measured
  --json FILE          of plan --nodes, bench and inspect: the same for programs; - for standard output
)";

constexpr std::string_view kExitCodes =
    R"(Exit codes: 0 done, 1 internal, 2 config, 3 data, 4 communication, 5 bad numbers, 6 stopped, 7 stalled
)";

constexpr std::array<std::string_view, 9> kMaxUsed{
    "run.dir",      "data.train",         "model.layers",   "train.optimizer",     "train.lr",
    "train.epochs", "train.global_batch", "train.replicas", "distribute.reduction"};

constexpr std::size_t kColumns = 110;

// `head` and then the words of `text`, in lines of at most kColumns; all of them start below the first.
std::string hanging_paragraph(std::string head, std::string_view text) {
  const std::size_t indent = head.size();
  std::size_t column = indent;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (column > indent && column + 1 + word.size() > kColumns) {
      head += "\n" + std::string(indent, ' ');
      column = indent;
    }
    if (column > indent) head += ' ';
    head += word;
    column += (column > indent ? 1 : 0) + word.size();
  }
  return head + "\n";
}

std::string option_paragraph(const Option& option, std::size_t width) {
  const std::string choices =
      option.choices.empty() ? "" : fmt::format("{}; ", fmt::join(option.choices, " | "));
  const std::string fallback = option.has_value() ? fmt::format("default {}", toml_value(option))
                                                  : fmt::format("if not given: {}", option.if_not_given);
  return hanging_paragraph(fmt::format("  --{:<{}}  ", option.key, width),
                           fmt::format("{} ({}{})", option.help, choices, fallback));
}

std::string option_paragraphs(std::span<const Option> options) {
  std::size_t width = 0;
  for (const Option& option : options) width = std::max(width, option.key.size());
  std::string paragraphs;
  for (const Option& option : options) paragraphs += option_paragraph(option, width);
  return paragraphs;
}

std::string_view section_title(std::string_view section) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kTitles{{
      {"run", "The run and its output"},
      {"data", "Samples"},
      {"model", "The model"},
      {"train", "Loss, optimizer, learning rate, length and batch"},
      {"eval", "Evaluation"},
      {"checkpoint", "Saving the run while it goes on"},
      {"distribute", "How the work is shared"},
      {"comm", "Ranks that do not come, or do not agree"},
      {"debug", "Faults on purpose, for tests"},
  }};
  for (const auto& [name, title] : kTitles) {
    if (name == section) return title;
  }
  return "";
}

// The options of one section follow each other.
template <class Visit>
void for_each_section(std::span<const Option> options, const Visit& visit) {
  for (std::size_t begin = 0; begin < options.size();) {
    std::size_t end = begin;
    while (end < options.size() && options[end].section() == options[begin].section()) ++end;
    visit(options[begin].section(), options.subspan(begin, end - begin));
    begin = end;
  }
}

}  // namespace

std::string short_help(std::span<const Option> options) {
  std::vector<Option> max_used;
  for (const std::string_view key : kMaxUsed) {
    const auto found = std::find_if(options.begin(), options.end(),
                                    [key](const Option& option) { return option.key == key; });
    if (found != options.end()) max_used.push_back(*found);
  }
  return fmt::format("{}\nThe most used options; --help-all shows all {}\n{}\n{}", kUsage, options.size(),
                     option_paragraphs(max_used), kExitCodes);
}

std::string full_help(std::span<const Option> options) {
  std::string help = fmt::format("{}{}\n{}", kUsage, kFlagsOfCommands, kExitCodes);
  for_each_section(options, [&help](std::string_view section, std::span<const Option> members) {
    help += fmt::format("\n[{}] {}\n{}", section, section_title(section), option_paragraphs(members));
  });
  return help;
}

std::string version_text(std::span<const std::string> build_facts) {
  std::string text = "lockstep " LOCKSTEP_VERSION "\n";
  for (const std::string& fact : build_facts) text += fact + "\n";
  return text;
}

std::string reference_markdown(std::span<const Option> options) {
  std::string markdown =
      "<!-- Written by the program: trainer reference > configs/REFERENCE.md -->\n\n# Options\n\n"
      "Each option is a key of the config file and a flag: `lr` in section `[train]` is `--train.lr`. The "
      "flag "
      "wins over\nthe file, the file over the default.\n";
  for_each_section(options, [&markdown](std::string_view section, std::span<const Option> members) {
    markdown += fmt::format("\n## [{}] {}\n\n| key | type | default | meaning |\n|---|---|---|---|\n",
                            section, section_title(section));
    for (const Option& option : members) {
      const std::string fallback =
          option.has_value() ? fmt::format("`{}`", toml_value(option)) : option.if_not_given;
      markdown +=
          fmt::format("| `{}` | {} | {} | {} |\n", option.key, option.expected, fallback, option.help);
    }
  });
  return markdown;
}

}  // namespace lockstep
