// Runs the case files of test/cases: each case is a test, which tells what it found otherwise by file and
// line. The words of a case stand in test/README.md.
#include <gtest/gtest-spi.h>
#include <zlib.h>

#include "app/init/init.h"
#include "app/setup/catalogs.h"
#include "lockstep/base/errors.h"
#include "lockstep/config/command_line.h"
#include "lockstep/data/table/sources/feature_columns.h"
#include "lockstep/data/text/vocabulary.h"
#include "lockstep/train/rank_peer_group.h"
#include "support/case_files.h"
#include "support/data_door.h"
#include "support/note.h"
#include "support/temporary_directory.h"
#include "support/thread_ranks.h"

namespace lockstep::test::cases_test {
namespace {

namespace fs = std::filesystem;

// Paths of a case are those of a directory of its own.
class WorkingDirectory {
 public:
  WorkingDirectory() { fs::current_path(directory_.path()); }
  WorkingDirectory(const WorkingDirectory&) = delete;
  WorkingDirectory& operator=(const WorkingDirectory&) = delete;
  ~WorkingDirectory() { fs::current_path(before_); }

 private:
  fs::path before_ = fs::current_path();
  TemporaryDirectory directory_;
};

template <class Range>
std::string joined(const Range& parts, const char* separator = " ") {
  return fmt::format("{}", fmt::join(parts, separator));
}

class Runner : public testing::Test {
 public:
  explicit Runner(Case given) : case_(std::move(given)) {}

  void TestBody() override {
    static const std::map<std::string, void (Runner::*)()> kWords{
        {"keys", &Runner::take_keys},           {"file", &Runner::write_file},
        {"table", &Runner::write_file},         {"sets", &Runner::expect_sets},
        {"records", &Runner::expect_records},   {"labels", &Runner::expect_labels},
        {"targets", &Runner::expect_targets},   {"schema", &Runner::expect_schema},
        {"says", &Runner::expect_words},        {"error", &Runner::expect_error},
        {"forecast", &Runner::expect_forecast}, {"naive", &Runner::expect_naive},
        {"inspect", &Runner::expect_inspected}, {"findings", &Runner::expect_findings},
        {"settings", &Runner::expect_settings}, {"values", &Runner::expect_values},
        {"encode", &Runner::expect_encoded}};
    for (const CaseSection& section : case_.sections) {
      now_ = &section;
      const auto word = kWords.find(section.word);
      try {
        if (word == kWords.end()) throw std::runtime_error("no word of a case: " + section.word);
        (this->*word->second)();
      } catch (const std::exception& error) {
        fail(section.line, error.what());
      }
    }
  }

 private:
  void fail(int line, const std::string& message) const {
    ADD_FAILURE_AT(case_.file.c_str(), line) << case_.name << ": " << message;
  }
  void expect(bool holds, int line, const std::string& found) const {
    if (!holds) fail(line, "found " + found);
  }
  // The text behind the word.
  void expect_rest(const std::string& found) const { expect(found == now_->rest, now_->line, found); }
  // The lines are parts of a text; "not: PART" is none.
  void expect_parts_of(const std::string& text) const {
    for (const CaseLine& line : now_->lines) {
      const bool absent = line.text.starts_with("not: ");
      const std::string part = line.text.substr(absent ? 5 : 0);
      if ((text.find(part) == std::string::npos) != absent)
        fail(line.line, fmt::format("'{}' is {}in: {}", part, absent ? "" : "not ", text));
    }
  }
  // Records in order, or those whose number stands before them: "13: 1 2 | 3".
  void expect_lines(const Texts& found) const {
    std::size_t next = 0;
    bool all = true;
    for (const CaseLine& line : now_->lines) {
      const std::size_t colon = line.text.find(": ");
      const bool chosen = colon != std::string::npos;
      if (chosen) next = std::stoull(line.text);
      all = all && !chosen;
      const std::string record = next < found.size() ? found[next] : "nothing";
      if (!says_same(line.text.substr(chosen ? colon + 2 : 0), record))
        fail(line.line, fmt::format("record {}: found {}", next, record));
      ++next;
    }
    if (all && next < found.size()) fail(now_->line, fmt::format("found {} records", found.size()));
  }
  // Lines "NAME a.b=VALUE ..." of columns in any order; "." is all of it, and "none" what is not there.
  void expect_members(const Json& json) const {
    for (const CaseLine& line : now_->lines) {
      Texts words = words_of(line.text);
      const Json name = words.front().front() == '"' ? Json::parse(words.front()) : Json(words.front());
      Json of = json;
      if (name != ".") {
        const Json columns = json.value("columns", Json::array());
        const auto column =
            std::ranges::find_if(columns, [&](const Json& c) { return c.at("name") == name; });
        of = column == columns.end() ? Json() : *column;
        expect(!of.is_null(), line.line, "no column " + name.dump());
      }
      for (std::size_t i = 1; i < words.size(); ++i) {
        const std::size_t equals = words[i].find('=');
        const Json found = member(of, words[i].substr(0, equals));
        const std::string wanted = words[i].substr(equals + 1);
        if (!says(wanted, found) && !(wanted == "none" && found.is_null()))
          fail(line.line, fmt::format("{}: found {}", words[i], found.is_null() ? of.dump() : found.dump()));
      }
    }
  }

  DataDoor door(PeerGroup& peers = alone()) const {
    std::string text;
    for (const auto& [key, value] : keys_) {
      if (!value.empty()) text += fmt::format("{} = {}\n", key, value);
    }
    Config config = load_config({}, {"run.toml", text}, known_options());
    if (config.data.train.empty()) config.data.train = first_file_;
    return {config.data, static_cast<std::uint64_t>(config.run.seed), peers};
  }
  const Opened& opened() {
    if (!opened_) {
      opened_ = door().open();
      const Opened known = door().open(opened_->schema);
      expect_same(known, "by the schema");
      if (known.schema != opened_->schema) fail(now_->line, "the schema becomes " + known.schema);
      if (!opened_->sets.train->vocabulary()) expect_same_on_ranks();
    }
    return *opened_;
  }
  // Whoever reads which block of the files: the same records, or the same error.
  void expect_same_on_ranks(const std::string& wanted = "") const {
    std::string found;
    try {
      run_thread_ranks(2, [&](Communicator& comm) {
        RankPeerGroup peers(comm);
        DataDoor blocks = door(peers);
        blocks.data.table.chunk_kib = 1;
        const Opened again = blocks.open();
        if (comm.rank() == 0 && wanted.empty()) expect_same(again, "on two ranks, by small blocks");
      });
    } catch (const Error& error) {
      found = error.what();
    }
    if (found.empty() != wanted.empty() || !found.ends_with(wanted))
      fail(now_->line, fmt::format("two ranks with small blocks say '{}', not {}", found, wanted));
  }
  void expect_same(const Opened& again, const char* how) const {
    for (const auto& [set, lines] : opened_->records) {
      const auto [one, other] = std::ranges::mismatch(lines, again.records.at(set), says_same);
      if (one != lines.end() || other != again.records.at(set).end())
        fail(now_->line, fmt::format("record {} of '{}' is another {}", one - lines.begin(), set, how));
    }
  }
  TableInspection& inspection() {
    if (!inspection_) {
      const DataOptions data = door().data;
      std::vector<FileSet> others;
      if (!data.validation.empty()) others.push_back({"the validation set", {data.validation}});
      if (!data.test.empty()) others.push_back({"the test set", {data.test}});
      inspection_ = inspect_table(
          {data.train, list_files(data.train, choose_format(data).extensions, "DATA")}, data.table, others);
      inspection_->series = summarise_series_of(*inspection_, data);
    }
    return *inspection_;
  }

  // The words of a case.

  void take_keys() {
    Texts lines = split_text(now_->rest, "; ");
    for (const CaseLine& line : now_->lines) lines.push_back(line.text);
    for (const std::string& line : lines) {
      const std::size_t equals = std::min(line.find('='), line.size() - 1);
      const std::string name = split_text(line.substr(0, equals), "=").front();
      keys_[(name.find('.') == std::string::npos ? "data." : "") + name] =
          split_text(line.substr(equals + 1), "\n").front();
    }
    forget();
  }
  void write_file() {
    const std::string name = now_->rest.empty() ? "t.csv" : now_->rest;
    const std::string content = content_of(*now_);
    if (first_file_.empty()) first_file_ = name;
    const bool packed = name.ends_with(".gz");
    gzFile file = gzopen(name.c_str(), packed ? "wb" : "wbT");  // T: as it is
    gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
    gzclose(file);
    forget();
  }
  void forget() {
    opened_.reset();
    inspection_.reset();
  }

  void expect_sets() {
    Texts found;
    for (const char* name : {"train", "validation", "test"}) {
      const auto set = opened().records.find(name);
      found.push_back(set == opened().records.end() ? "-" : std::to_string(set->second.size()));
    }
    expect_rest(joined(found));
  }
  // Of a set, or of a file to predict from: features, a bar, and the targets with the weight.
  void expect_records() {
    const std::string& set = now_->rest.empty() ? "train" : now_->rest;
    const auto found = opened().records.find(set);
    if (found != opened().records.end()) return expect_lines(found->second);
    expect_lines(lines_of(*door().open_input(set, opened().schema), alone()));
  }
  // The targets in the units of the labels.
  void expect_labels() {
    const std::vector<LabelScale> scales = read_label_scales(opened().schema);
    Texts found = opened().records.at("train");
    for (std::string& line : found) {
      Texts labels;
      for (const std::string& target : words_of(line.substr(line.find('|') + 2)))
        labels.push_back(fmt::format("{}", at(scales, std::ssize(labels)).undo(std::stod(target))));
      line = joined(labels);
    }
    expect_lines(found);
  }
  void expect_targets() {
    Texts names;
    for (const TargetLabel& label : read_target_labels(opened().schema)) {
      names.push_back(label.name);
      if (!label.classes.empty()) names.back() += fmt::format("({})", joined(label.classes, ","));
    }
    Texts wanted = words_of(now_->rest);
    for (const CaseLine& line : now_->lines)
      std::ranges::copy(words_of(line.text), std::back_inserter(wanted));
    expect(joined(names) == joined(wanted), now_->line, joined(names));
  }
  void expect_schema() { expect_members(Json::parse(opened().schema)); }
  // Each says its figures; how many different texts a column has is said of free texts alone.
  static Texts texts_of(const std::vector<Note>& notes) {
    Texts texts;
    for (const Note& note : notes) {
      if (note.figures.is_object() && !note.figures.contains("texts")) expect_told(note);
      texts.push_back(note.text);
    }
    return texts;
  }
  // What is told to people: doubts, notes, rejects or inspect; of the sets, or of a file to predict from.
  void expect_words() {
    Texts texts;
    const Texts of = words_of(now_->rest);
    std::unique_ptr<RecordSource> input;
    std::vector<const RecordSource*> sources;
    if (of.front() == "inspect") {
      texts = {to_text(inspection())};
    } else if (of.size() > 1) {
      input = door().open_input(of[1], opened().schema);
      sources = {input.get()};
    } else {
      sources = opened().sources();
    }
    for (const RecordSource* set : sources) {
      const Texts more = of.front() == "doubts"    ? set->doubts()
                         : of.front() == "rejects" ? set->rejects()
                                                   : texts_of(set->notes());
      texts.insert(texts.end(), more.begin(), more.end());
    }
    expect(!now_->lines.empty() || texts.empty(), now_->line, joined(texts, "\n"));
    expect_parts_of(joined(texts, "\n"));
  }
  // Its exit code, and where it arises: "inspect", "init", "forecast", a file to predict from, or a run.
  void expect_error() {
    const Texts words = words_of(now_->rest);
    const std::string where = words.size() > 1 ? words[1] : "";
    try {
      if (where == "inspect") {
        inspected();
      } else if (where == "init") {
        first_config();
      } else if (where == "forecast") {
        door().open_input(words.size() > 2 ? words[2] : "", opened().schema);
      } else if (where.empty()) {
        opened();
      } else {
        lines_of(*door().open_input(where, opened().schema), alone());
      }
      fail(now_->line, "there is no error");
    } catch (const Error& error) {
      expect(std::to_string(error.exit_code()) == words.front(), now_->line, error.what());
      expect_parts_of(error.what());
      if (where.empty() && error.exit_code() == kExitData) expect_same_on_ranks(error.what());
    }
  }

  // Lines "SERIES FEATURES > TIME, TIME" of the last windows.
  void expect_forecast() {
    const auto last = door().open_input(now_->rest, opened().schema);
    const WindowSource& windows = *last->as_windows();
    Texts found = lines_of(*last, alone());
    for (Index id = 0; id < std::ssize(found); ++id) {
      Texts times;
      for (Index step = 0; step < windows.windows().horizon; ++step)
        times.push_back(windows.time_of(id, step));
      at(found, id) =
          fmt::format("{} {} > {}", joined(windows.series_of(id)), at(found, id), joined(times, ", "));
    }
    expect_lines(found);
  }
  void expect_naive() {
    Texts found;
    for (const NaiveForecast& each : opened().sets.train->as_windows()->naive_forecasts())
      found.push_back(fmt::format("{} {} {}", each.absolute, each.squared, joined(each.by_step)));
    expect_lines(found);
  }

  // What an inspection says, as JSON.
  Json inspected() {
    if (const DataOptions data = door().data; data.format == "text") {
      const TextSummary text = summarise_text(data, 0.1);
      return {{"tokens", text.tokens},
              {"characters", text.characters},
              {"vocabulary", text.vocabulary},
              {"unseen", text.unseen},
              {"bits", text.bits}};
    }
    Json json = Json::parse(to_json(inspection()));
    if (const auto& found = inspection().series) {
      json["series"] = {{"count", found->series},  {"shortest", found->shortest},
                        {"median", found->median}, {"longest", found->longest},
                        {"first", found->first},   {"last", found->last},
                        {"step", found->step},     {"notes", texts_of(found->notes)}};
      json["series"]["seasons"] = Json::array();
      for (const Season& season : found->seasons) json["series"]["seasons"].push_back(season.positions);
    }
    return json;
  }
  void expect_inspected() { expect_members(inspected()); }
  // Lines "KIND COLUMN: PART | PART" of all findings in their order.
  void expect_findings() {
    Texts found;
    for (const Finding& each : inspection().findings)
      found.push_back(fmt::format("{}: {} {}", joined(words_of(to_string(each.kind) + " " + each.column)),
                                  each.text(), each.setting));
    const std::size_t count = now_->lines.size();
    for (std::size_t i = 0; i < count; ++i) {
      const CaseLine& line = now_->lines[i];
      const std::string text = i < found.size() ? found[i] : "nothing";
      const std::size_t colon = std::min(line.text.find(": "), line.text.size());
      bool same = text.starts_with(line.text.substr(0, colon) + ":");
      for (const std::string& part :
           split_text(line.text.substr(std::min(colon + 2, line.text.size())), " | "))
        same = same && text.find(part) != std::string::npos;
      expect(same, line.line, text);
    }
    for (std::size_t i = count; i < found.size(); ++i) fail(now_->line, "found " + found[i]);
  }
  std::string first_config() const {
    const InitData data = read_init_data(door().data.train, door().data);
    std::string all;
    for (const CommentedSetting& each : choose_settings(data, choose_task(data, ""), "run"))
      all += fmt::format("{} = {}\n", each.key, each.value);
    return all;
  }
  // Of the section that an inspection writes; "settings init": of a first config.
  void expect_settings() {
    expect_parts_of(now_->rest == "init" ? first_config() : data_section(inspection()));
  }
  // Lines "TEXT → VALUE": what a column of these words reads, a number, a date, "no" or "missing".
  void expect_values() {
    for (const CaseLine& line : now_->lines) {
      const Texts pair = split_text(line.text, "→");
      std::string wanted = pair.back();
      int hour = 0;
      int minute = 0;
      if (const std::optional<Index> days = days_of(wanted)) {
        std::sscanf(wanted.c_str() + 10, "T%2d:%2d", &hour, &minute);
        wanted = fmt::format("{}", static_cast<double>(*days) + (hour + minute / 60.0) / 24);
      }
      const std::string found = value_found(with_bytes(pair.front()));
      if (!says_same(wanted, found)) fail(line.line, fmt::format("{}: found {}", line.text, found));
    }
  }
  std::string value_found(const std::string& text) const {
    std::string quoted;
    for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
    std::ofstream("values.csv", std::ios::binary) << "x,y\n\"" << quoted << "\",1\n";
    DataDoor here = door();
    here.data.train = "values.csv";
    here.data.table.label = {"y"};
    here.data.table.columns = {"x: " + now_->rest};
    try {
      const Json column = Json::parse(here.open().schema).at("columns").at(0);
      return column.at("count") == 0 ? "missing" : column.at("min").dump();
    } catch (const DataError&) {
      return "no";
    }
  }
  // Lines "TEXT → NUMBERS": the tokens of a text.
  void expect_encoded() {
    const Vocabulary vocabulary(opened().schema);
    for (const CaseLine& line : now_->lines) {
      const std::size_t arrow = line.text.find(" → ");
      const std::string found = joined(vocabulary.encode(with_bytes(line.text.substr(0, arrow))));
      expect(found == line.text.substr(arrow + 5), line.line, found);
    }
  }

  Case case_;
  WorkingDirectory directory_;
  const CaseSection* now_ = nullptr;
  std::map<std::string, std::string> keys_;
  std::string first_file_;
  std::optional<Opened> opened_;
  std::optional<TableInspection> inspection_;
};

// Each case is a test of its case file: --file=NAME runs those of NAME.case.
const bool kAreRegistered = [] {
  Texts paths;
  for (const auto& entry : fs::directory_iterator(LOCKSTEP_TEST_DATA "/cases")) paths.push_back(entry.path());
  std::ranges::sort(paths);
  for (const std::string& path : paths) {
    for (const Case& each : read_cases(path)) {
      std::string name = each.name;
      for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
      testing::RegisterTest(fs::path(path).stem().c_str(), name.c_str(), nullptr, nullptr, each.file.c_str(),
                            each.line, [each]() -> Runner* { return new Runner(each); });
    }
  }
  return true;
}();

// Each line of this one says something else than what is there.
TEST(Cases, WhatIsOtherwiseIsToldByFileAndLine) {
  const TemporaryDirectory directory;
  const std::string path = directory / "wrong.case";
  std::ofstream(path) << R"(keys label = "y"
case wrong
table
  a,b,y
  1,2,0
  3,,1
keys scale = "none"
records
  1 2 | 1
sets 3 - -
targets z
schema
  a count=3
  nobody count=1
says notes
  an elephant
error 3
inspect
  b missing=0
findings
  leak a: such
settings
  encoding
values date(dmy)
  1.2.2024 → 2024-01-02
  x → 1
bird
)";
  testing::TestPartResultArray failures;
  {
    testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &failures);
    Runner(read_cases(path).front()).TestBody();
  }
  std::vector<int> lines;
  for (int i = 0; i < failures.size(); ++i) {
    EXPECT_EQ(failures.GetTestPartResult(i).file_name(), path);
    lines.push_back(failures.GetTestPartResult(i).line_number());
  }
  EXPECT_EQ(lines, (std::vector<int>{9, 8, 10, 11, 13, 14, 14, 16, 17, 19, 21, 23, 25, 26, 27}));
}

}  // namespace
}  // namespace lockstep::test::cases_test
