// The single predictions that a page shows: evaluation.json of a run directory. Written once, at the end of
// a run; read by trainer report.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/train/evaluation/evaluation_details.h"

namespace lockstep {

struct ShownPredictions {
  struct Curve {
    std::string name = {};  ///< name of the class
    double area = 0;        ///< under the ROC curve; NaN: not defined
    std::vector<double> threshold = {};
    std::vector<double> recall = {};
    std::vector<double> false_positive_rate = {};
    std::vector<double> precision = {};
  };
  struct Fit {
    std::vector<double> target = {};
    std::vector<double> prediction = {};
    double width = 0;  ///< see TargetFit
    std::vector<double> residuals = {};
  };
  /// An image of at most 48 pixels on a side.
  struct Picture {
    Index width = 0;
    Index height = 0;
    Index channels = 0;       ///< 1: grey; 3: red, green and blue
    std::string pixels = {};  ///< rows from the top, a byte a channel, in base64; "": there is no picture
  };
  struct Worst {
    double loss = 0;  ///< NaN: not finite
    double record = 0;
    std::string file = {};
    std::string target = {};
    std::string prediction = {};
    Picture picture = {};
    std::vector<std::string> cells = {};
  };

  std::string split = {};  ///< "": there are none
  double samples = 0;
  std::vector<Curve> curves = {};
  std::vector<Fit> fits = {};
  std::vector<std::string> columns = {};
  std::vector<Worst> worst = {};
};

nlohmann::ordered_json to_json(const ShownPredictions::Picture& picture);

/// evaluation.json. A curve has at most 2,000 points, those of several classes less.
std::string to_json(const EvaluationDetails& details);

/// Errors: DataError for a text that is no such file.
ShownPredictions read_shown_predictions(const std::string& json);

}  // namespace lockstep
