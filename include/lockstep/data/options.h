// Options of data. Defaults stand here and nowhere else.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/base/types.h"

namespace lockstep {

/// Which samples a replica gets: its own shard, or the whole data set in its own order.
enum class DataMode { kShard, kFull };

/// The treatment of the samples after the last full global batch of an epoch.
enum class Tail { kKeep, kDrop };

/// The storage of the training records: in memory, read as they are needed, or whichever data.memory_limit
/// allows.
enum class MemoryMode { kAuto, kLoad, kStream };

/// Which records a replica gets: a keyed choice, a run of neighbours, or every R-th.
enum class ShardOrder { kShuffled, kContiguous, kStrided };

/// Whether a replica keeps its shard for the whole run, gets another in each epoch, or a part of each batch
/// that a single replica would draw.
enum class Reshuffle { kShard, kGlobal, kBatch };

/// The unit that is streamed in one piece: a chunk of records, or a file.
enum class ShardBy { kAuto, kRecord, kFile };

/// The shape of a record of an array: as the array has it, which makes three dimensions an image; a vector;
/// an image; or a sequence of positions.
enum class RecordShape { kAuto, kRow, kImage, kSequence };

struct SyntheticOptions {
  Index rows = 0;
  Index validation_rows = 0;
  Index test_rows = 0;
  Index features = 16;
  Index classes = 2;
  double noise = 1.0;
};

/// Whether the first record of a file names its columns.
enum class Header { kAuto, kYes, kNo };

/// The treatment of a record that cannot be used.
enum class OnBadRecord { kFail, kSkip };

/// The scaling of the past of a label in a window, undone in its forecast.
enum class WindowScale {
  kNone,
  kLast,      ///< its last value
  kStandard,  ///< its mean, and its deviation divides
};

/// The stand-in for a time that a series lacks, and for a label that a record lacks.
enum class FillGaps {
  kNone,  ///< nothing: what is there is taken as it comes
  kLast,  ///< the record before it; it is never forecast
  kZero,  ///< the record before it, with labels of 0
};

/// How the records of a table become windows of time: at each origin the last `window` positions of a series
/// are what the next `horizon` positions of its labels are forecast from.
struct WindowOptions {
  std::string time = "";
  std::vector<std::string> series = {};
  Index window = 0;  ///< positions; 0: the records are no windows
  Index horizon = 0;
  Index stride = 1;
  std::vector<std::string> future = {};  ///< columns that are known ahead
  WindowScale scale = WindowScale::kNone;
  FillGaps fill = FillGaps::kNone;
  Index season = 0;  ///< positions; 0: none

  bool any() const { return window > 0; }
};

/// How tables (csv) are read and turned into numbers. Columns are known by their names; those of a file
/// without a header are c1, c2, ...
struct TableOptions {
  std::vector<std::string> label = {};
  std::vector<std::string> positive = {};  ///< the class that is yes, of each label or of all
  std::string weight = "";
  std::vector<std::string> numeric = {};
  std::vector<std::string> categorical = {};
  std::vector<std::string> ignore = {};
  std::vector<std::string> columns = {};  ///< "zip: hash(256)": what is special of a column
  std::string scale = "standard";
  std::string missing = "mean";
  std::string encode = "onehot";
  std::vector<std::string> missing_values = {
      "",        "NA",      "N/A",      "N/a",  "n/a",  "NaN",  "nan", "NAN",        "-NaN",
      "-nan",    "null",    "NULL",     "None", "<NA>", "#N/A", "#NA", "#N/A N/A",   "1.#IND",
      "-1.#IND", "1.#QNAN", "-1.#QNAN", "\\N",  ".",    "?",    "NaT", "0000-00-00", "0000-00-00 00:00:00"};
  bool fold_case = false;
  Index vocabulary = 1000;
  Header header = Header::kAuto;
  std::string separator = "auto";
  std::string decimal = ".";
  std::string thousands = "none";
  bool strict = false;
  bool quotes = true;
  std::string encoding = "auto";
  Index skip_lines = 0;
  OnBadRecord on_bad_record = OnBadRecord::kFail;
  double max_bad_share = 0.01;
  Index chunk_kib = 1024;
  WindowOptions windows = {};
};

/// How a text becomes a stream of tokens, windows of which are the records (texts.h).
struct TextOptions {
  std::string tokens =
      "characters";  ///< "bytes", "characters", "words(20000)"; "ids": arrays have their numbers
  std::string unknown = "refuse";  ///< the treatment of a token that training has not seen: refuse, replace
  std::string draw = "in turn";    ///< where windows begin: in turn, anywhere
  std::string cache = "";          ///< the directory of encoded texts
};

/// The most folds: the number of a fold is kept in 16 bits.
inline constexpr Index kMaxFolds = 1000;

/// The samples of the training set that data.validation names in place of a file, or data.test_part: a share
/// of them, or one of several folds.
///
///   part = share(S) | stratified(S) | time(COLUMN, S) | time(COLUMN, from = T [, to = T]) | group(COLUMN, S)
///        | fold(K/N [, by = way])
///   way  = record | class | time(COLUMN) | group(COLUMN) | column(COLUMN)
struct ValidationPart {
  enum class By { kRecord, kClass, kTime, kGroup, kColumn };

  By by = By::kRecord;
  std::string column = {};   ///< of a table, that kTime, kGroup and kColumn read
  double share = 0;          ///< of the samples, in (0, 1); 0: it is a fold, or has `from`
  std::string from = {};     ///< the first time of a span, as the column writes it; "": it is no span
  std::string to = {};       ///< the time that ends the span, outside of it; "": it has no end
  Index fold = 0;            ///< from 1 on
  Index folds = 0;           ///< 0: it is a share
  std::string setting = {};  ///< the key and the text that name it, for messages

  bool reads_column() const { return by != By::kRecord && by != By::kClass; }
};

/// Nothing if `text` names a file. `key`: whose value it is. Errors: ConfigError for a part with other
/// arguments.
std::optional<ValidationPart> parse_validation_part(std::string_view key, std::string_view text);
/// The text that means the part.
std::string to_string(const ValidationPart& part);

struct DataOptions {
  std::string format;
  std::string train;
  std::string train_labels;
  std::string train_weights;
  std::string train_lengths;
  std::string validation;
  std::string validation_labels;
  std::string validation_weights;
  std::string validation_lengths;
  std::string test;
  std::string test_labels;
  std::string test_weights;
  std::string test_lengths;
  std::string test_part;
  RecordShape record = RecordShape::kAuto;
  DataMode mode = DataMode::kShard;
  std::vector<double> mean = {0.0};
  std::vector<double> std = {1.0};
  std::string augment;
  Index prefetch = -1;  ///< -1: see steps_ahead()
  std::string raw_layout;
  MemoryMode memory = MemoryMode::kAuto;
  double memory_limit = 4;  ///< GiB
  Index shuffle_buffer = 16384;
  ShardOrder shard_order = ShardOrder::kShuffled;
  ShardBy shard_by = ShardBy::kAuto;
  Reshuffle reshuffle = Reshuffle::kShard;
  Index bucket_by_length = 0;  ///< batches; 0: none
  bool audit = false;
  std::string ignore_label = {};  ///< a number, or ""
  SyntheticOptions synthetic;
  TableOptions table;
  TextOptions text;

  bool has_validation() const { return !validation.empty() || synthetic.validation_rows > 0; }
};

/// The part that data.validation names; nothing if it is a file. Errors as above.
std::optional<ValidationPart> validation_part(const DataOptions& data);
/// The part that data.test_part names; nothing without it. Errors: ConfigError.
std::optional<ValidationPart> test_part(const DataOptions& data);

}  // namespace lockstep
