#include "lockstep/data/kinds/kind.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/hash.h"
#include "lockstep/base/text.h"
#include "lockstep/data/inputs/byte_stream.h"
#include "lockstep/data/loading/fingerprint.h"
#include "lockstep/math/shape.h"
#include "token_file.h"

namespace lockstep {
namespace {

// The windows of a span of an encoded text.
class TokenWindows final : public RecordSource {
 public:
  // The part of a text that becomes windows.
  struct Part {
    Range span;  // of its tokens; longer than a window
    Index window;
    bool targets = true;    // whether the token after a window belongs to it
    bool anywhere = false;  // windows begin anywhere
  };
  TokenWindows(EncodedText text, const Part& part)
      : text_(std::move(text)), span_(part.span), window_(part.window) {
    const Vocabulary& vocabulary = *text_.vocabulary;
    info_ = {.rows = (span_.size() - (part.targets ? 1 : 0)) / window_,
             .features = SequenceShape{.positions = window_, .channels = 1}.shape(),
             .target_columns = part.targets ? window_ : 0,
             .name = text_.name,
             .target_classes = vocabulary.size(),
             .target_text = fmt::format("the vocabulary ({})", to_string(vocabulary.kind())),
             .starts = part.anywhere ? span_.size() - window_ : 0};
    for (const std::string& path : text_.paths) info_.source_bytes += file_bytes(split_array_path(path).file);
    if (vocabulary.kind() != TokenKind::kIds && vocabulary.size() <= kMaxNames) {
      for (Index id = 0; id < vocabulary.size(); ++id)
        info_.class_names.push_back(excerpt(vocabulary.decode({&id, 1})));
    }
    chunks_ = {{.records = {0, info_.rows}}};
    fingerprint_ = {
        .kind = Fingerprint::kRecords,
        .parts = {id_hash(text_.tokens->hash(), span_.begin), id_hash(text_.tokens->hash(), span_.end)}};
  }

  std::string schema() const override { return text_.vocabulary->schema(); }
  std::shared_ptr<const Vocabulary> vocabulary() const override { return text_.vocabulary; }
  void add_note(Note note) { notes_.push_back(std::move(note)); }
  std::vector<Note> notes() const override { return notes_; }
  std::vector<std::string> files() const override { return text_.paths; }
  const Fingerprint* fingerprint() const override { return &fingerprint_; }

  std::unique_ptr<ChunkReader> reader(const TargetRule&) const override {
    return std::make_unique<ComputedReader>();
  }

  void unpack(std::span<const Index> ids, std::span<const std::byte* const>, Matrix& x,
              Matrix& targets) const override {
    for (Index row = 0; row < std::ssize(ids); ++row) {
      const Index id = at(ids, row);
      const Index begin = span_.begin + (id < info_.rows ? id * window_ : id - info_.rows);
      write(begin, x.data() + row * x.cols());
      if (info_.target_columns > 0) write(begin + 1, targets.data() + row * targets.cols());
    }
  }

 private:
  static constexpr Index kMaxNames = 1000;

  void write(Index begin, Scalar* to) const {
    text_.tokens->read(begin, {to, static_cast<std::size_t>(window_)});
  }

  EncodedText text_;
  Range span_;
  Index window_;
  std::vector<Note> notes_;
  Fingerprint fingerprint_;
};

// Errors: DataError if there is no window.
std::unique_ptr<RecordSource> text_windows_of(const EncodedText& text, Range span, Split split,
                                              const DataOptions& data) {
  const Index window = data.table.windows.window;
  error_if<DataError>(span.size() <= window,
                      "'{}': the {} set has {}, and a window of {} and the token after it needs {}: lower "
                      "data.window, or give more text",
                      text.name, set_name(split), plural(span.size(), "token"), window, window + 1);
  const bool anywhere = split == Split::kTrain && data.text.draw == "anywhere";
  auto windows = std::make_unique<TokenWindows>(
      text, TokenWindows::Part{.span = span, .window = window, .anywhere = anywhere});
  const Index rows = windows->info().rows;
  const Index left = span.size() - 1 - rows * window;
  if (split == Split::kTrain) {
    const Index outputs = text.vocabulary->size();
    windows->add_note(
        {.text = fmt::format("text: {}, a vocabulary of {} ({}), so the model ends with {} outputs",
                             plural(text.tokens->size(), "token"), with_commas(outputs), data.text.tokens,
                             with_commas(outputs)),
         .figures = {{"text", {{"tokens", text.tokens->size()}, {"vocabulary", outputs}}}}});
  }
  windows->add_note(
      {.text = fmt::format(
           "{} set: {} of '{}', {} of {}, {}", set_name(split), plural(span.size(), "token"), text.name,
           plural(rows, "window"), window,
           anywhere   ? "which begin anywhere, in each epoch elsewhere"
           : left > 0 ? fmt::format("one behind the other, the last {} left out", plural(left, "token"))
                      : "one behind the other"),
       .figures = {
           {"windows", {{"tokens", span.size()}, {"windows", rows}, {"left_out", anywhere ? 0 : left}}}}});
  return windows;
}

// *Collective.* Refuses data without a window. The vocabulary of the schema; null: there is none.
std::shared_ptr<const Vocabulary> check_text(const DataOptions& data, const std::string& schema,
                                             PeerGroup& peers) {
  std::shared_ptr<const Vocabulary> known;
  peers.agree([&] {
    error_if(data.table.windows.window <= 0,
             "data.window is missing: set it to the tokens of a record, as in data.window = 64: the model "
             "sees so many before the one that it predicts");
    if (!schema.empty()) known = std::make_shared<const Vocabulary>(schema);
  });
  return known;
}

// The sets are parts of the training text, the last of its tokens, and what other files hold.
DataSets open_texts(const SetsRequest& request) {
  PeerGroup& peers = request.peers;
  DataParts parts;
  peers.agree([&] { parts = parts_beside_files(request.data); });
  const DataOptions data = data_of_files(request.data, parts);
  std::shared_ptr<const Vocabulary> known = check_text(data, request.schema, peers);
  DataSets sets;
  if (request.wanted.contains(Split::kTrain)) {
    if (data.train.empty()) throw ConfigError("data.train is not set: name the text to train on");
    const EncodedText text = encode_text(data, data.train, "data.train", parts, known, peers);
    known = text.vocabulary;
    peers.agree([&] {
      sets.train = text_windows_of(text, text.train, Split::kTrain, data);
      if (parts.validation)
        sets.validation = text_windows_of(text, text.validation, Split::kValidation, data);
      if (parts.test) sets.test = text_windows_of(text, text.test, Split::kTest, data);
    });
  }
  for (const Split split : {Split::kValidation, Split::kTest}) {
    std::unique_ptr<RecordSource>& set = split == Split::kTest ? sets.test : sets.validation;
    const std::string& files = split == Split::kTest ? data.test : data.validation;
    if (set || files.empty() || !request.wanted.contains(split)) continue;
    const EncodedText text = encode_text(data, files, "data." + to_string(split), {}, known, peers);
    peers.agree([&] { set = text_windows_of(text, text.train, split, data); });
  }
  return sets;
}

std::unique_ptr<RecordSource> open_input_text(const InputRequest& request) {
  const DataOptions& data = request.data;
  PeerGroup& peers = request.peers;
  peers.agree([&] {
    error_if(is_standard_input(request.input),
             "--input -: a text is read from a file: give its path (trainer generate takes a prompt from "
             "standard input)");
  });
  const EncodedText text =
      encode_text(data, request.input, "--input", {}, check_text(data, request.schema, peers), peers);
  std::unique_ptr<RecordSource> source;
  peers.agree([&] {
    const Index window = data.table.windows.window;
    error_if<DataError>(text.tokens->size() < window,
                        "'{}' has {}, and a record of the model has {}: give a longer text", request.input,
                        plural(text.tokens->size(), "token"), window);
    source = std::make_unique<TokenWindows>(
        text, TokenWindows::Part{.span = text.train, .window = window, .targets = false});
  });
  return source;
}

}  // namespace

DataKind text_kind() {
  return {
      .name = "text",
      .is_of = [](const DataOptions& data) { return data.format == "text" || data.text.tokens == "ids"; },
      .has_tokens = true,
      .no_folds = "cv knows no texts: give data.validation = \"share(0.1)\", the last tokens, and train once",
      .refusals =
          [](const DataOptions& data) {
            const DataOptions defaults;
            return std::vector<KindRefusal>{
                {data.format == "text" && data.text.tokens == "ids", "data.tokens ids with a text"},
                {data.text.tokens == "ids" && data.record != RecordShape::kAuto, "data.record with tokens"},
                {data.text.draw == "anywhere" && data.audit, "data.audit with data.draw anywhere"},
                {data.memory == MemoryMode::kStream, "data.memory stream with tokens"},
                {!data.augment.empty(), "data.augment with tokens"},
                {data.mean != defaults.mean || data.std != defaults.std,
                 "data.mean or data.std with tokens"}};
          },
      .open = open_texts,
      .open_input = open_input_text};
}

}  // namespace lockstep
