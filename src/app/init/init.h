// A data set as trainer init sees it, all of whose records are read once; and the config that it writes:
// chosen by rules from what the data is, each line with its reason.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/json.h"
#include "lockstep/config/command_line.h"
#include "lockstep/config/option.h"
#include "lockstep/data/inspect/inspect.h"
#include "lockstep/data/options.h"
#include "lockstep/data/text/texts.h"
#include "lockstep/data/windows/time_windows.h"
#include "lockstep/math/shape.h"
#include "lockstep/nn/loss.h"

namespace lockstep {

/// The values of the labels.
struct LabelFacts {
  std::string name = {};  ///< name in messages: "label 'churn'", "labels 'y.npy'"
  Index columns = 1;      ///< columns of a record's labels, or of those of a position
  Index positions = 0;    ///< above 0: each of so many positions of a record has its labels
  /// Different values with their counts, the most frequent first; empty if there are very many.
  std::vector<ValueCounts::Entry> values = {};
  Index texts = 0;           ///< values that are no numbers
  bool whole = false;        ///< all numbers are whole
  NumberStats numbers = {};  ///< statistics of the values that are numbers
  /// Any values may be classes: the file format numbers them by data.columns = ["NAME: categorical"].
  bool can_be_named = false;
};

/// Windows of time that the series of a table allow.
struct ForecastPlan {
  Index window = 0;
  Index horizon = 0;
  Season season = {};     ///< 0 positions: none
  double validation = 0;  ///< share of the records that the test set leaves
  double test = 0;        ///< share of all records; 0: no test set
  Index windows = 0;      ///< to train on, about
};

/// The choices of init for a text.
struct TextPlan {
  TextSummary summary = {};
  std::string tokens = {};  ///< data.tokens
  bool replaces = false;    ///< one token stands for those that training has not seen
  Index window = 0;
  double held = 0.1;  ///< share of the tokens that validate
  Index outputs = 0;
  Index batch = 1;
  Index steps = 0;
  Index every = 250;        ///< steps from one evaluation to the next
  std::string layers = {};  ///< "": a preset
  std::string reason = "a first answer in minutes; ten times as many give better texts";  ///< for `steps`
  std::string doubt = {};  ///< of what was measured

  Index training_tokens() const {
    return static_cast<Index>((1 - held) * static_cast<double>(summary.tokens));
  }
};

struct InitData {
  DataOptions options = {};  ///< data.train, data.train_labels, data.format and what was given
  std::string format = {};
  Index records = 0;
  Shape features = {};  ///< shape of the features as layers see them
  LabelFacts label = {};
  std::optional<TableInspection> table = {};   ///< inspection of a CSV file
  std::optional<ForecastPlan> forecast = {};   ///< of a table of series of time
  std::optional<TextPlan> text = {};           ///< of a text
  std::vector<NumberStats> numbers = {};       ///< of each feature, or channel, of what is no table
  std::optional<std::string> validation = {};  ///< found beside it, by name
  std::optional<std::string> test = {};
  std::string input = {};                ///< file for the first predictions
  std::vector<std::string> doubts = {};  ///< doubts that the user should look at

  /// Labels to learn: one of each record, or of each position that counts.
  Index label_count() const { return label.positions > 0 ? label.numbers.count : records; }
};

/// `options`: as given by flags; data.label also names the labels of arrays, which may be missing where they
/// are not needed. Errors: ConfigError, DataError.
InitData read_init_data(const std::string& path, const DataOptions& options, bool needs_labels = true);

nlohmann::ordered_json to_json(const NumberStats& numbers);

/// The data in which one of `words` stands where `path` has the word "train": "x_test.npy" for "x_train.npy".
/// Nothing if there is none.
std::optional<std::string> find_beside(const std::string& path, const std::vector<std::string>& words);
/// The labels of the records in `path`, which is a file or an array of one: "y_train.npy" for "x_train.npy".
std::optional<std::string> find_labels(const std::string& path);
/// Their lengths, likewise: "lengths_train.npy".
std::optional<std::string> find_lengths(const std::string& path);

inline const std::vector<std::string> kTestWords{"test", "testing", "t10k"};
inline const std::vector<std::string> kValidationWords{"validation", "valid", "val", "dev"};

/// With the column that --time names as data.time. Errors: ConfigError for flags of series without it.
DataOptions options_of_series(const DataOptions& options, const CommandLine& line);
/// Nothing without data.time. Errors: ConfigError, DataError.
std::optional<SeriesSummary> summarise_series_of(const TableInspection& table, const DataOptions& options);
/// The windows that fit the series of `table`, with data.window, data.horizon and data.season as they are
/// given. Errors: ConfigError naming what would fit.
ForecastPlan plan_forecast(const TableInspection& table, const WindowOptions& options);

/// Errors: ConfigError for options of records, which a text has not.
void refuse_for_text(const DataOptions& options);
/// Errors: ConfigError, DataError.
TextPlan plan_text(const DataOptions& options);
/// Chooses the model for so many minutes on all cores of this machine, whose speed it measures: the largest
/// that learns from 10 tokens for each of its weights; the best are 20 (Hoffmann et al. 2022).
void size_model(TextPlan& plan, const DataOptions& options, Index minutes);
/// The contents of a text, and how well counts alone predict it, as lines.
std::string describe_text(const std::string& path, const std::string& tokens, const TextSummary& summary);
nlohmann::ordered_json to_json(const TextSummary& summary);

/// The kind of thing to learn.
enum class TaskKind { kClasses, kBinary, kNumbers };

struct Task {
  TaskKind kind = TaskKind::kClasses;
  bool images = false;  ///< the records are images: the model has convolutions
  Index outputs = 1;
  bool named = false;                   ///< labels become classes by data.columns
  std::string yes = {};                 ///< of two classes the positive one
  std::string text = {};                ///< "two classes, No (73.5 %) and Yes (26.5 %)"
  std::optional<OutputForm> form = {};  ///< of train.loss, where that is given
};

/// The task that the labels suit, or the one that `wanted` names ("": none), or that the loss is for whose
/// `form` is given. Errors: ConfigError, DataError if the labels do not suit it, or are all equal.
Task choose_task(const InitData& data, const std::string& wanted, const std::optional<OutputForm>& form = {});

struct CommentedSetting {
  std::string key;
  std::string value;  ///< the value as TOML
  std::string comment = {};
};

/// A sentence about labels that cannot be scaled where they are and are learned slowly, or "".
std::string doubt_scale(const InitData& data, const Task& task);

/// `name`: of the run, for run.dir. `preset`: model.preset as given, or ""; "tabular" and "tabular_large"
/// have settings of data and training that suit them.
std::vector<CommentedSetting> choose_settings(const InitData& data, const Task& task, const std::string& name,
                                              std::string_view preset = {});

/// The settings with those that flags of `given` give, in place of the ones of the same meaning.
std::vector<CommentedSetting> with_flags(std::vector<CommentedSetting> settings, const Config& given);

/// `settings` in the order of the options, section by section, below `head`, the lines of a comment.
std::string to_toml(const std::vector<CommentedSetting>& settings, const std::vector<std::string>& head);

}  // namespace lockstep
