// An ONNX graph in the making. Nodes and constants get names that start with those of their layers.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/base/types.h"
#include "lockstep/data/table/values/notation.h"
#include "lockstep/data/table/values/schema.h"
#include "lockstep/math/shape.h"
#include "lockstep/nn/onnx_words.h"

namespace lockstep {

/// Name of the operations for machine learning, in nodes and in the list of what a file uses.
inline constexpr const char* kOnnxMlDomain = "ai.onnx.ml";

/// An input or an output of the graph, [N, dims].
struct OnnxValue {
  std::string name;
  Shape sample;
  onnx::TensorProto_DataType type = onnx::TensorProto::FLOAT;
  std::string help = {};       ///< for people
  bool any_positions = false;  ///< [N, T, ...]: any number of positions up to the first of its dims
};

class OnnxGraph final : public OnnxNodes {
 public:
  /// Borrows.
  explicit OnnxGraph(onnx::GraphProto& proto) : proto_(proto) {}

  /// The names that follow start with "PATH/".
  void begin_layer(const std::string& path) { path_ = path; }
  /// Inputs come before all else: they keep their names, whatever these are.
  void add_input(const OnnxValue& value);
  /// `name`, unless an input has it: then with underscores behind.
  std::string free_name(std::string name) const;
  std::string add(const std::string& op_type, const std::vector<std::string>& inputs,
                  const std::vector<OnnxAttribute>& attributes = {}, Index output = 0) override;
  /// A node of the operations for machine learning, ai.onnx.ml.
  std::string add_ml(const std::string& op_type, const std::vector<std::string>& inputs,
                     const std::vector<OnnxAttribute>& attributes);
  /// A node whose output is one of the graph, under its free_name(), which is given.
  std::string add_output(const OnnxValue& value, const std::string& op_type,
                         const std::vector<std::string>& inputs,
                         const std::vector<OnnxAttribute>& attributes = {});
  std::string add_number(double value) override;
  std::string add_list(const std::vector<Index>& values) override;
  /// A constant of one number (double), or of a list of numbers (double) or of texts.
  std::string add_double(double value);
  std::string add_doubles(const std::vector<double>& values);
  std::string add_texts(const std::vector<std::string>& values);
  /// A float for each position from 0 on, [N, positions]: 1 at that of `position`, [N, 1] of `type`, else 0.
  std::string add_one_hot(const std::string& position, onnx::TensorProto_DataType type, Index positions);
  /// The rows of `values`, [N, count], each in rising order.
  std::string add_sorted(const std::string& values, Index count);
  /// Numbers under the free_name() of `name`, which is given.
  std::string add_tensor(const std::string& name, const Shape& shape, std::span<const Scalar> values);
  /// The value as another type.
  std::string cast(const std::string& value, onnx::TensorProto_DataType type);

 private:
  std::string unused_name(const std::string& word);
  std::string add_constant(onnx::TensorProto_DataType type, const Shape& shape,
                           std::span<const std::byte> bytes);
  onnx::TensorProto& add_initializer(const std::string& name, onnx::TensorProto_DataType type,
                                     const Shape& shape);
  onnx::NodeProto& add_node(const std::string& op_type, const std::vector<std::string>& inputs,
                            const std::vector<OnnxAttribute>& attributes);

  onnx::GraphProto& proto_;
  std::string path_;
  std::set<std::string> inputs_;
  std::map<std::string, int> used_;
};

// The columns of a table as the inputs of a graph, and what makes features of them, as Encoder does.

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
