// The findings of importance for a terminal, as CSV and as JSON.
#pragma once

#include <string>
#include <vector>

#include "lockstep/train/evaluation/importance.h"

namespace lockstep {

struct ImportanceResult {
  std::string model;
  std::string set;      ///< "validation" or "test"
  std::string measure;  ///< "loss", "accuracy" or a metric
  Importance importance;
};

std::string to_text(const ImportanceResult& result);
std::string to_csv(const ImportanceResult& result);
std::string to_json(const ImportanceResult& result);

struct DependenceResult {
  std::string model;
  std::string set;
  Index samples = 0;
  std::string column;
  std::vector<std::string>
      outputs;  ///< what is predicted: "prediction", or "probability of yes" and the like
  std::vector<ColumnValue> grid;
  std::vector<std::vector<double>> means;  ///< a row for each value of the grid, a column for each output
};

std::string to_text(const DependenceResult& result);
std::string to_csv(const DependenceResult& result);
std::string to_json(const DependenceResult& result);

}  // namespace lockstep
