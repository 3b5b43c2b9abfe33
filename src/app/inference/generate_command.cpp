// Generates text behind a prompt, and prints it token by token.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/setup/trained_model.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/log.h"
#include "lockstep/base/output_file.h"
#include "lockstep/base/terminal.h"
#include "lockstep/base/text.h"
#include "lockstep/base/timer.h"
#include "lockstep/data/text/vocabulary.h"
#include "lockstep/train/evaluation/next_token.h"

namespace lockstep {
namespace {

constexpr Range kAnyCount{0, Index{1} << 53};
constexpr Range kLengths{1, 1'000'000'001};
constexpr Range kSamples{1, 1001};

// `calibrated`: what the outputs of the model are divided by.
DrawOptions read_draw_options(const CommandLine& line, Scalar calibrated, Index tokens) {
  const DrawOptions defaults;
  return {
      .temperature =
          line.number("temperature", {0, 1000}, defaults.temperature) * static_cast<double>(calibrated),
      .top_k = line.count("top_k", kAnyCount, defaults.top_k),
      .top_p = line.number("top_p", {0, 1}, defaults.top_p),
      .seed = static_cast<std::uint64_t>(line.count("seed", kAnyCount, static_cast<Index>(defaults.seed))),
      .tokens = tokens};
}

// Errors: ConfigError, DataError for what the vocabulary has not.
std::vector<Index> read_prompt(const CommandLine& line, const Vocabulary& vocabulary) {
  const bool is_given = line.value("prompt").has_value();
  error_if(!is_given && ::isatty(STDIN_FILENO) != 0,
           "there is no prompt to continue: give it with --prompt, or on standard input");
  const std::string text =
      is_given ? line.text("prompt") : std::string(std::istreambuf_iterator<char>(std::cin), {});
  return vocabulary.encode(text, is_given ? "--prompt" : "standard input");
}

// Prints tokens as they come, unless standard output gets JSON. A token may be a part of a character, which
// waits for the rest.
class TokenPrinter : NoCopy {
 public:
  TokenPrinter(const Vocabulary& vocabulary, bool shows) : vocabulary_(vocabulary), shows_(shows) {}
  ~TokenPrinter() {
    if (shows_) print(waiting_ + "\n");
    flush_printed();  // before the log, which may go to the same file
  }

  void print(std::span<const Index> tokens) {
    if (!shows_) return;
    constexpr std::size_t kLongestCharacter = 4;
    if (vocabulary_.kind() == TokenKind::kIds && !std::exchange(is_first_, false)) waiting_ += ' ';
    waiting_ += vocabulary_.decode(tokens);
    std::size_t whole = 0;
    while (whole < waiting_.size()) {
      const std::size_t length = utf8_length(std::string_view(waiting_).substr(whole));
      if (length == 0 && waiting_.size() - whole < kLongestCharacter) break;
      whole += std::max<std::size_t>(length, 1);
    }
    print(waiting_.substr(0, whole));
    waiting_.erase(0, whole);
    flush_printed();
  }

 private:
  // A terminal gets what it can show, a file the bytes as they are.
  static void print(std::string_view text) {
    ::isatty(STDOUT_FILENO) != 0 ? print_text(text) : print_raw(text);
  }

  const Vocabulary& vocabulary_;
  bool shows_;
  bool is_first_ = true;
  std::string waiting_;
};

}  // namespace

int generate_command(const CommandLine& line) {
  const Index length = line.count("length", kLengths, 500);
  const Index samples = line.count("samples", kSamples, 1);
  const bool shows = line.text("json") != "-";
  const TrainedModel trained(open_finished_run(line));
  const auto learnt = read_vocabulary(trained.schema());
  error_if(
      !learnt,
      "'{}' has not learned from a text: trainer generate needs a run of data.format \"text\" (guide text)",
      line.text("model"));
  const Vocabulary& vocabulary = *learnt;
  const DrawOptions options = read_draw_options(line, trained.temperature(), vocabulary.size());
  TextGenerator texts(trained.run(), options, read_prompt(line, vocabulary), samples);
  texts.start(trained.values());
  const Stopwatch watch;
  {
    TokenPrinter first(vocabulary, shows);
    if (shows && samples > 1) print_out("--- 1 of {}\n", samples);
    first.print(texts.text(0));
    for (Index i = 0; i < length; ++i) {
      texts.add_token();
      first.print(std::span(texts.text(0)).last(1));
    }
  }
  nlohmann::ordered_json json{{"samples", nlohmann::ordered_json::array()}, {"tokens", length * samples}};
  for (Index i = 0; i < samples; ++i) {
    json["samples"].push_back(vocabulary.decode(texts.text(i)));
    if (i == 0) continue;
    if (shows) print_out("--- {} of {}\n", i + 1, samples);
    TokenPrinter(vocabulary, shows).print(texts.text(i));
  }
  const double seconds = watch.seconds();
  const double rate = static_cast<double>(length * samples) / std::max(seconds, 1e-9);
  json.update({{"seconds", seconds}, {"tokens_per_second", rate}});
  log_info("{} in {}, {} a second", plural(length * samples, "token"), human_seconds(seconds),
           with_commas(static_cast<Index>(rate)));
  if (line.has("json")) write_output(line.text("json"), indented(json));
  return 0;
}

}  // namespace lockstep
