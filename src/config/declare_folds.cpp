#include "declare_sections.h"

namespace lockstep {
namespace {

bool is_divided(const Config& config) {
  return config.folds.fold > 0;
}

}  // namespace

void declare_folds(OptionList& list, FoldOptions& folds) {
  list.option(
          "data.folds", folds.folds,
          "Folds that the training samples are divided into; `trainer cv` trains with each as validation set",
          between(2, kMaxFolds))
      .if_not_given("none")
      .read_if("data.fold", is_divided)
      .synonyms("n_folds nfold n_splits k_folds num_folds cv_folds",
                "Lockstep calls it data.folds; trainer cv --folds 5 trains with each");
  list.option("data.fold", folds.fold, "The fold that is the validation set, counted from 1",
              between(1, kMaxFolds))
      .if_not_given("no fold is held back");
  list.choice("data.fold_by", folds.by,
              "How samples become folds: record (by chance), class (as many of each class in each), group "
              "(those with one value of a column together), time (each fold comes after those that it is "
              "trained on), or column (a column names the fold)",
              {"record", "class", "group", "time", "column"})
      .read_if("data.fold", is_divided)
      .synonyms("stratified stratify group_kfold time_series_split",
                "Lockstep calls it data.fold_by = \"class\", \"group\" or \"time\"");
  list.option(
          "data.fold_column", folds.column,
          "The column that data.fold_by group, time and column read, of a table; no feature, but for time")
      .if_not_given("none")
      .read_if("data.fold_by group, time or column",
               [](const Config& config) { return is_divided(config) && config.folds.reads_column(); })
      .synonyms("fold_col group_col groups time_col");
}

}  // namespace lockstep
