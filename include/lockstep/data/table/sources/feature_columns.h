// The columns of the data that features come from, and values of such a column as features: what a question
// about one column of a trained model needs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {

class RecordSource;

struct FeatureColumn {
  std::string name;                       ///< of a table, else the number of the feature
  Range features;                         ///< that it becomes; they follow each other
  std::optional<TableColumn> table = {};  ///< how it becomes them; nothing where it is the feature
};

/// The columns of a table in the order of their features. In windows a column has a feature for each
/// position.
std::vector<FeatureColumn> feature_columns_of(const TableSchema& schema);

/// In the order of the features. `schema`: that of the model; "" and that of libsvm files: each feature is a
/// column, called by its number, from 0 on or as the libsvm files count. Errors: DataError if the schema is
/// no such text, or has another number of features.
std::vector<FeatureColumn> feature_columns(const std::string& schema, Index features);

/// A value of a column, as people write it, and the features that it becomes.
struct ColumnValue {
  std::string text;
  std::vector<Scalar> features;
};

/// Values of a column, in order. Numbers and dates: those at `points` quantiles of `found` (its first feature
/// in each record; not empty), from the least to the greatest, each once; where there are no more different
/// ones, all of them. Categories: the most frequent of the training data. Errors: ConfigError for hashed
/// categories and dates without their day, which have no such order.
std::vector<ColumnValue> column_values(const FeatureColumn& column, std::vector<Scalar> found, Index points);

/// The value of a column, as people write it, that became these features: "Bachelors", "39", "2024-12-31"; ""
/// for what cannot be told from them, as a hashed category.
std::string value_text(const FeatureColumn& column, std::span<const Scalar> features);

// The labels of the training data as people know them: by name, and where they are categories, by their
// values.

struct TargetLabel {
  std::string name;
  std::vector<std::string> classes = {};  ///< by class number; empty: it is a number
};

/// One for each target, in the order in which a record has them: numbers come first, then categories. In
/// windows each position of the horizon is one: "sold+1", "sold+2", label after label.
std::vector<TargetLabel> target_labels(const TableSchema& schema);

/// The labels of opened data.
std::vector<TargetLabel> target_labels(const RecordSource& source);

/// Reads them from a saved schema; none from "". Errors: DataError.
std::vector<TargetLabel> read_target_labels(const std::string& json);

}  // namespace lockstep
