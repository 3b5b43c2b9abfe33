#include <utility>

#include "declare_sections.h"

namespace lockstep {
namespace {

bool is_streamed(const Config& config) {
  return config.data.memory != MemoryMode::kLoad;
}

void declare_weight_file(OptionList& list, std::string key, std::string& field) {
  list.option(
          std::move(key), field,
          "File of their weights, one number of 0 or more for each sample: the loss, its gradient and the "
          "metrics count a sample so many times")
      .if_not_given("each sample counts once")
      .on_resume(OnResume::kMayChange)
      .counterpart("data.weight");
}

void declare_table(OptionList& list, TableOptions& table) {
  list.option("data.label", table.label, "Columns of a table to learn; usually one")
      .counterpart("data.train_labels")
      .synonyms("target targets y label_column target_column label_col target_col class_column")
      .alias("label")
      .if_not_given("required by tables");
  list.option(
          "data.weight", table.weight,
          "Column of a table with the weights of its records, which are 0 or more: the "
          "loss, its gradient and the metrics count a record so many times; batch norm and the statistics of "
          "columns do not look at it")
      .counterpart("data.train_weights")
      .synonyms(
          "sample_weight sample_weights weight_column weight_col instance_weight",
          "Lockstep has data.weight (a column of a table) and data.train_weights (a file beside arrays)")
      .alias("weight")
      .if_not_given("each record counts once");
  list.option("data.numeric", table.numeric, "Columns of numbers")
      .if_not_given("inferred from all training data")
      .synonyms("numeric_features numerical_features numeric_columns numerical_columns num_cols");
  list.option("data.categorical", table.categorical, "Columns of categories")
      .if_not_given("inferred from all training data")
      .synonyms("categorical_features categorical_feature categorical_columns cat_features cat_cols");
  list.option("data.ignore", table.ignore, "Columns to leave out")
      .if_not_given(
          "those without any value, with one value only, or with texts that are hardly ever the same")
      .synonyms("ignore_column ignore_columns drop_columns");
  list.option("data.columns", table.columns,
              "What is special of a column, as in \"zip: categorical hash(256)\": numeric, categorical, "
              "ignore, number(decimal=comma, prefix=\"$\"), date(dmy, day, weekday), and the words of "
              "data.scale, data.missing and data.encode")
      .if_not_given("nothing")
      .example("zip: categorical hash(256),income: log");
  list.option(
          "data.scale", table.scale,
          "What is done to numbers x: standard ((x - mean) / deviation), minmax (to 0..1), log (standard, "
          "of sign(x) log(1 + abs(x))), robust (by median and quartiles, clipped smoothly), none; bins(N), "
          "alone or beside one of these: N features of a piecewise linear encoding between quantiles or, as "
          "bins(N, by=label), between the thresholds of a decision tree that learns the label from the "
          "column, leaf=32 records at least between two. Labels stay as they are unless data.columns says "
          "standard, minmax or log")
      .example("robust bins(32)")
      .synonyms("scaler standardize feature_scaling robust_scaler quantile_transformer n_bins");
  list.option("data.missing", table.missing,
              "What stands for a missing number: mean, or a number as in constant(0); a missing category is "
              "one of its own")
      .example("constant(0)");
  list.option("data.encode", table.encode,
              "What a category becomes: onehot (a feature for each value of the training data, and a first "
              "one for all others), index (one feature for an embedding; 0: others), hash(N) (N features)")
      .example("hash(64)")
      .synonyms("one_hot encoder");
  list.option("data.missing_values", table.missing_values, "Texts that stand for a missing value")
      .example("?,NA,unknown")
      .synonyms("na_values nan_values null_values");
  list.option("data.vocabulary", table.vocabulary,
              "Values of a column that are told apart: the most frequent; the rest count as others",
              between(1, kMaxWidth));
  list.option("data.header", table.header,
              "Whether the first record names the columns; auto: if none of its fields is a number. Columns "
              "without names are called c1, c2 and so on")
      .synonyms("has_header");
  list.choice("data.separator", table.separator,
              "What separates the fields; auto: tab for .tsv, else what the first record has most of",
              {"auto", ",", "tab", ";", "|", " "})
      .synonyms("sep delimiter delim field_delim");
  list.choice(
          "data.decimal", table.decimal,
          "What stands before the decimals of numbers, in all columns; of one column, data.columns says it",
          {".", ","})
      .synonyms("decimal_point decimal_separator dec");
  list.choice("data.thousands", table.thousands,
              "What stands between groups of three digits of numbers, in all columns",
              {"none", ",", ".", "space", "apostrophe"})
      .synonyms("thousands_separator");
  list.option(
      "data.strict", table.strict,
      "End the run where values may be misread (texts among numbers, codes, dates), instead of a warning");
  list.option(
          "data.encoding", table.encoding,
          "Encoding of tables as text, as iconv calls it: \"windows-1252\", \"latin1\", \"utf-16\"; auto: "
          "UTF-16 where a byte order mark says so, else UTF-8")
      .example("windows-1252")
      .synonyms("charset codec file_encoding");
  list.option("data.skip_lines", table.skip_lines,
              "Lines above the table (its header, if it has one) that are left out of each file, such as a "
              "title; a file that a model reads may come without them",
              between(0, 100'000))
      .synonyms("skiprows skip_first_lines header_lines");
  list.option(
      "data.quotes", table.quotes,
      "Fields may be in quotes, with line ends in them (RFC 4180); a quote elsewhere is a character, as all "
      "are with false");
  list.option("data.on_bad_record", table.on_bad_record,
              "What becomes of a record that cannot be used: the run ends, or goes on without it");
  list.option("data.max_bad_share", table.max_bad_share,
              "Share of the records of a data set that may be skipped", between(0, 1));
  list.option("data.chunk_kib", table.chunk_kib, "Text that is read at once, in KiB", between(1, 1 << 20));
}

}  // namespace

void declare_data(OptionList& list, DataOptions& data, const KnownNames& names) {
  list.begin_section(OnResume::kMustStay);
  list.choice("data.format", data.format, "Format of the data files", names.formats)
      .if_not_given("by the extension of data.train");
  list.option("data.train", data.train,
              "File of the training samples; or a directory, a pattern such as \"part-*.npy\", or several "
              "with commas between them")
      .if_not_given("required by files")
      .on_resume(OnResume::kMayChange)
      .counterpart("data.synthetic_rows")
      .most_used()
      .example("part-*.csv")
      .synonyms(
          "data data_path data_dir data_root dataset train_data training_data train_file train_path "
          "train_dir x_train data.path data.file data.files");
  list.option("data.train_labels", data.train_labels, "File of their labels")
      .if_not_given("none")
      .on_resume(OnResume::kMayChange)
      .counterpart("data.label")
      .synonyms("y_train train_targets");
  declare_weight_file(list, "data.train_weights", data.train_weights);
  list.option("data.validation", data.validation,
              "File of the samples evaluated during training; or a share of the training samples that is "
              "held back for it: stratified(0.1), as many of each class, time(COLUMN, 0.1), the last ones, "
              "or group(COLUMN, 0.1), all or none with one value of a column")
      .if_not_given("no validation")
      .example("group(customer, 0.1)")
      .on_resume(OnResume::kMayChange)
      .counterpart("data.synthetic_validation_rows")
      .synonyms("val val_data valid valid_data valid_sets validation_data val_path dev")
      .synonyms("stratified_split group_split time_split group_shuffle_split",
                "Lockstep has data.validation = \"stratified(0.1)\", \"group(COLUMN, 0.1)\" or "
                "\"time(COLUMN, 0.1)\"");
  list.option("data.validation_labels", data.validation_labels, "File of their labels")
      .if_not_given("none")
      .on_resume(OnResume::kMayChange)
      .counterpart("data.label");
  declare_weight_file(list, "data.validation_weights", data.validation_weights);
  list.option(
          "data.validation_share", data.validation_share,
          "Share of the training samples that are held back for validation, chosen by a hash of their number",
          from_to_below(0, 1))
      .synonyms("validation_split val_split val_size validation_fraction valid_fraction");
  list.option(
          "data.test", data.test,
          "File of the samples evaluated at the end; without a validation set also during training. No part "
          "of the training samples is taken for it")
      .if_not_given("no test")
      .on_resume(OnResume::kMayChange)
      .counterpart("data.synthetic_test_rows")
      .synonyms("test_data test_path test_file x_test");
  list.option("data.test_labels", data.test_labels, "File of their labels")
      .if_not_given("none")
      .on_resume(OnResume::kMayChange)
      .counterpart("data.label");
  declare_weight_file(list, "data.test_weights", data.test_weights);
  list.option("data.mode", data.mode,
              "shard: the replicas divide the samples; full: every replica walks all of them, so an epoch is "
              "as many times longer as there are replicas");
  list.option(
          "data.mean", data.mean,
          "Subtracted from each feature as read (bytes of IDX files are read as 0 to 1); one number for all "
          "features or one for each")
      .example("0.49,0.48,0.45")
      .synonyms(
          "normalize normalization",
          "Lockstep subtracts data.mean and divides by data.std; columns of tables are scaled by data.scale");
  list.option("data.std", data.std,
              "Divides each feature after the mean is subtracted; one number for all or one for each",
              above(0))
      .example("0.25,0.24,0.26");
  list.option("data.augment", data.augment,
              "Random changes of the training images, anew in each epoch, such as \"crop(4) flip "
              "cutout(8)\"; never in evaluation")
      .if_not_given("none")
      .example("crop(4) flip cutout(8)")
      .synonyms("augmentation augmentations data_augmentation transform transforms");
  list.option("data.prefetch", data.prefetch,
              "Steps of samples prepared ahead, on a thread of their own; 0: the threads that train prepare "
              "each step's themselves",
              between(0, 1000))
      .if_not_given(
          "8, or 0 where a rank is bound to no more cores than it has threads and samples are in memory")
      .on_resume(OnResume::kMayChange)
      .synonyms(
          "num_workers dataloader_num_workers workers prefetch_factor prefetch_buffer num_parallel_calls",
          "Lockstep prepares data.prefetch steps ahead on one thread; mpirun -np sets the number of ranks");
  list.option("data.memory", data.memory,
              "load: a rank holds the training samples that it needs; stream: it reads them as they are "
              "needed, in another order; auto: streams a training set larger than data.memory_limit");
  list.option("data.memory_limit", data.memory_limit,
              "GiB of memory that training samples may take on a rank when they are streamed",
              above_up_to(0, 1e6))
      .read_if("data.memory = \"stream\" or \"auto\"", is_streamed);
  list.option("data.shuffle_buffer", data.shuffle_buffer,
              "Samples that a replica mixes at a time when they are streamed", between(1, kMaxSamples))
      .read_if("data.memory = \"stream\" or \"auto\"", is_streamed)
      .synonyms("shuffle_buffer_size buffer_size");
  list.option(
          "data.shard_order", data.shard_order,
          "Which samples are a replica's in mode 'shard': a random choice (of single samples, or of "
          "pieces when they are streamed), a run of neighbours, or every R-th of R replicas (loaded only)")
      .synonyms("shuffle", "Lockstep shuffles in every epoch; data.shard_order and data.reshuffle say what");
  list.option("data.shard_by", data.shard_by,
              "Pieces in which samples are streamed: record (short runs of them), file, or auto (file, if "
              "there are at least four for each replica)")
      .read_if("data.memory = \"stream\" or \"auto\"", is_streamed);
  list.option(
          "data.audit", data.audit,
          "After each epoch, prove that each sample was used exactly as often as it should, and end the run "
          "if not")
      .on_resume(OnResume::kMayChange);
  list.option("data.reshuffle", data.reshuffle,
              "shard: a replica keeps its samples for the whole run; global: they are assigned anew in each "
              "epoch, so that every rank needs all of them");
  list.option(
          "data.raw_layout", data.raw_layout,
          "What a record of format 'raw' consists of, as \"label:u8 features:u8[32,32,3]\": features, label "
          "and skip, of the types u8 i8 u16 i16 u32 i32 u64 i64 f16 f32 f64 bool")
      .if_not_given("required by format 'raw'")
      .example("label:u8 features:u8[32,32,3]");
  SyntheticOptions& synthetic = data.synthetic;
  list.option("data.synthetic_rows", synthetic.rows, "Training samples to make up", between(1, kMaxSamples))
      .if_not_given("required by format 'synthetic'");
  list.option("data.synthetic_validation_rows", synthetic.validation_rows, "Validation samples to make up",
              between(0, kMaxSamples))
      .on_resume(OnResume::kMayChange);
  list.option("data.synthetic_test_rows", synthetic.test_rows, "Test samples to make up",
              between(0, kMaxSamples))
      .on_resume(OnResume::kMayChange);
  list.option("data.synthetic_features", synthetic.features, "Numbers in a made-up sample",
              between(1, kMaxWidth));
  list.option("data.synthetic_classes", synthetic.classes,
              "Classes of the made-up samples; 0: a real number as target", between(0, kMaxWidth));
  list.option("data.synthetic_noise", synthetic.noise,
              "Standard deviation of the made-up samples around the centre of their class", at_least(0));
  declare_table(list, data.table);
}

}  // namespace lockstep
