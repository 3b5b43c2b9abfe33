// The single predictions that a page shows: evaluation.json of a run directory. Written once, at the end of
// a run; read by trainer report.
#pragma once

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
  struct Worst {
    double loss = 0;  ///< NaN: not finite
    double record = 0;
    std::string file = {};
    std::string target = {};
    std::string prediction = {};
    std::string picture = {};  ///< see picture_uri(); "" without one
    std::vector<std::string> cells = {};
  };

  std::string split = {};  ///< "": there are none
  double samples = 0;
  std::vector<Curve> curves = {};
  std::vector<Fit> fits = {};
  std::vector<std::string> columns = {};
  std::vector<Worst> worst = {};
};

/// evaluation.json. A curve has at most 2,000 points, those of several classes less.
std::string to_json(const EvaluationDetails& details);

/// Errors: DataError for a text that is no such file.
ShownPredictions read_shown_predictions(const std::string& json);

}  // namespace lockstep
