// The columns of a table as the inputs of a graph, and what makes features of them, as Encoder does.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph.h"
#include "lockstep/data/table/values/notation.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {

/// The input of a column, for whoever calls the graph.
struct ColumnInput {
  std::string name;
  onnx::TensorProto_DataType type = onnx::TensorProto::FLOAT;
  std::string help;        ///< one sentence
  Index positions = 1;     ///< values of a record: of a window those of its past, and what is known ahead
  bool as_is = true;       ///< it is what stands in the table, but for what no number shows: a sign, a unit
  std::string doubt = {};  ///< a reason why the graph computes less exactly than a prediction
};

/// "float", "double", "int64" or "string".
const char* to_string(onnx::TensorProto_DataType type);

/// One for each column that is a feature, in the order of the file; of windows the labels, whose past they
/// have, first.
std::vector<ColumnInput> column_inputs(const TableSchema& schema);

/// Adds an input [N, positions] for each of these, and gives the features of a record, float [N, features].
std::string add_table_inputs(OnnxGraph& graph, const TableSchema& schema);

// Places of a date in the cycles of the calendar, computed inside a graph.

/// Adds a float for each day of a leap year, [N, kDaysOfYear]: 1 for that of `days` as day_of_year() gives
/// it, else 0; NaN gives zeros.
std::string add_day_of_year(OnnxGraph& graph, const std::string& days);

/// Adds the sine and the cosine, two floats [N, 1], of kYear or a part after it, as cycle_of() gives them.
/// `days` is double [N, 1], as parse_date() gives it; NaN gives NaN.
std::pair<std::string, std::string> add_cycle(OnnxGraph& graph, const std::string& days, DatePart part);

}  // namespace lockstep
