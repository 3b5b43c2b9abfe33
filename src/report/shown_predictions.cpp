#include "lockstep/report/shown_predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "kept_points.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/report/evaluation_tables.h"
#include "picture.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxCurvePoints = 2000;

double rounded(double value) {
  constexpr double kDigits = 1e5;
  return std::round(kDigits * value) / kDigits;
}

Json number_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

// Precision swings, while the others only rise: it decides which points stay.
Json curve_json(const EvaluationDetails& details, const ThresholdCurve& curve) {
  std::vector<double> precision;
  for (const ThresholdPoint& point : curve.points) {
    const auto yes = static_cast<double>(point.true_positives + point.false_positives);
    precision.push_back(static_cast<double>(point.true_positives) / yes);
  }
  const std::size_t most = kMaxCurvePoints / std::max<std::size_t>(details.curves.size(), 1);
  Json json{{"class", class_name(details.classes, static_cast<std::size_t>(curve.of_class))},
            {"positives", curve.positives},
            {"negatives", curve.negatives},
            {"area", number_or_null(curve.area())}};
  for (const char* name : {"threshold", "recall", "false_positive_rate", "precision"})
    json[name] = Json::array();
  for (const std::size_t i : kept_points(precision, most)) {
    const ThresholdPoint& point = curve.points[i];
    const auto share = [](Index part, Index all) {
      return all > 0 ? rounded(static_cast<double>(part) / static_cast<double>(all)) : 0.0;
    };
    json["threshold"].push_back(rounded(point.threshold));
    json["recall"].push_back(share(point.true_positives, curve.positives));
    json["false_positive_rate"].push_back(share(point.false_positives, curve.negatives));
    json["precision"].push_back(rounded(precision[i]));
  }
  return json;
}

Json fit_json(const TargetFit& fit) {
  const auto short_form = [](double value) { return std::stod(fmt::format("{:.6g}", value)); };
  Json json{{"target", Json::array()},
            {"prediction", Json::array()},
            {"residual_width", fit.width},
            {"residuals", fit.residuals}};
  for (const auto& [target, prediction] : fit.sample) {
    json["target"].push_back(short_form(target));
    json["prediction"].push_back(short_form(prediction));
  }
  return json;
}

Json worst_json(const EvaluationDetails& details, const ShownRecord& shown) {
  Json json{{"loss", number_or_null(shown.record.loss)},
            {"record", shown.position},
            {"file", shown.file},
            {"target", shown.record.target},
            {"prediction", shown.record.prediction}};
  const std::optional<ImageShape> image = as_image(details.shape);
  const std::string picture = image && !shown.pixels.empty() ? picture_uri(shown.pixels, *image) : "";
  if (!picture.empty()) json["picture"] = picture;
  if (!shown.cells.empty()) json["cells"] = shown.cells;
  return json;
}

ShownPredictions::Curve read_curve(const Json& json) {
  const Json& area = json.at("area");
  ShownPredictions::Curve curve{
      .name = json.at("class").get<std::string>(),
      .area = area.is_null() ? std::numeric_limits<double>::quiet_NaN() : area.get<double>(),
      .threshold = json.at("threshold").get<std::vector<double>>(),
      .recall = json.at("recall").get<std::vector<double>>(),
      .false_positive_rate = json.at("false_positive_rate").get<std::vector<double>>(),
      .precision = json.at("precision").get<std::vector<double>>()};
  const std::size_t points = curve.threshold.size();
  if (curve.recall.size() != points || curve.false_positive_rate.size() != points ||
      curve.precision.size() != points)
    throw DataError("a curve has lists of different lengths");
  return curve;
}

ShownPredictions::Fit read_fit(const Json& json) {
  ShownPredictions::Fit fit{.target = json.at("target").get<std::vector<double>>(),
                            .prediction = json.at("prediction").get<std::vector<double>>(),
                            .width = json.at("residual_width").get<double>(),
                            .residuals = json.at("residuals").get<std::vector<double>>()};
  if (fit.target.size() != fit.prediction.size())
    throw DataError("targets and predictions are not equally many");
  return fit;
}

ShownPredictions::Worst read_worst(const Json& json) {
  const Json& loss = json.at("loss");
  ShownPredictions::Worst worst{
      .loss = loss.is_null() ? std::numeric_limits<double>::quiet_NaN() : loss.get<double>(),
      .record = json.at("record").get<double>(),
      .file = json.at("file").get<std::string>(),
      .target = json.at("target").get<std::string>(),
      .prediction = json.at("prediction").get<std::string>(),
      .picture = json.value("picture", std::string()),
      .cells = json.value("cells", std::vector<std::string>())};
  if (!is_picture_uri(worst.picture)) worst.picture.clear();
  return worst;
}

}  // namespace

std::string to_json(const EvaluationDetails& details) {
  Json json{{"split", to_string(details.split)}, {"samples", details.samples}};
  if (!details.curves.empty()) json["curves"] = Json::array();
  for (const ThresholdCurve& curve : details.curves) json["curves"].push_back(curve_json(details, curve));
  if (!details.fits.empty()) json["fits"] = Json::array();
  for (const TargetFit& fit : details.fits) json["fits"].push_back(fit_json(fit));
  if (!details.columns.empty()) json["columns"] = details.columns;
  json["worst"] = Json::array();
  for (const ShownRecord& record : details.worst) json["worst"].push_back(worst_json(details, record));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

ShownPredictions read_shown_predictions(const std::string& text) {
  const auto json = parse_json<Json>(text);
  if (!json.is_object()) throw DataError("it is no object");
  try {
    ShownPredictions shown{.split = json.at("split").get<std::string>(),
                           .samples = json.at("samples").get<double>(),
                           .columns = json.value("columns", std::vector<std::string>())};
    for (const Json& curve : json.value("curves", Json::array())) shown.curves.push_back(read_curve(curve));
    for (const Json& fit : json.value("fits", Json::array())) shown.fits.push_back(read_fit(fit));
    for (const Json& record : json.at("worst")) shown.worst.push_back(read_worst(record));
    return shown;
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("it has not the form of evaluation.json: {}", error.what()));
  }
}

}  // namespace lockstep
