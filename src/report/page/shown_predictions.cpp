#include "lockstep/report/page/shown_predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"
#include "lockstep/report/tables/evaluation_tables.h"
#include "report/history/run_numbers.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxCurvePoints = 2000;

double rounded(double value) {
  constexpr double kDigits = 1e5;
  return std::round(kDigits * value) / kDigits;
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
            {"area", json_number(curve.area())}};
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

constexpr Index kMaxSide = 48;  // of a picture
constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string base64(const std::string& bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8U | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k > bytes.size() ? '=' : kBase64[(group >> (18U - 6U * k)) & 63U];
  }
  return text;
}

// The image, made smaller where it has more than 48 pixels on a side. Its numbers are taken from 0 (black) to
// 1 or, where some lie beyond, from the least to the greatest.
ShownPredictions::Picture picture_of(std::span<const Scalar> pixels, const ImageShape& from) {
  constexpr Index kMinSide = 4;  // less does not look like an image
  if (from.height < kMinSide || from.width < kMinSide || std::ssize(pixels) != from.size()) return {};
  const Index longer = std::max({from.height, from.width, kMaxSide});
  const Index height = std::max<Index>(1, from.height * kMaxSide / longer);
  const Index width = std::max<Index>(1, from.width * kMaxSide / longer);
  const Index channels = from.channels >= 3 ? 3 : 1;
  const auto [least, greatest] = std::ranges::minmax(pixels);
  const bool unit = least >= 0 && greatest <= 1;
  const Scalar shift = unit ? 0 : least;
  const Scalar range = unit ? 1 : std::max(greatest - least, Scalar{1e-30F});
  std::string bytes;
  for (Index i = 0; i < height * width * channels; ++i) {
    const Index y = i / channels / width * from.height / height;
    const Index x = i / channels % width * from.width / width;
    const Scalar share = (at(pixels, (y * from.width + x) * from.channels + i % channels) - shift) / range;
    const Scalar level = std::isfinite(share) ? std::clamp(share, Scalar{0}, Scalar{1}) : 0;
    bytes += static_cast<char>(static_cast<unsigned char>(std::lround(255 * level)));
  }
  return {.width = width, .height = height, .channels = channels, .pixels = base64(bytes)};
}

Json worst_json(const EvaluationDetails& details, const ShownRecord& shown) {
  Json json{{"loss", json_number(shown.record.loss)},
            {"record", shown.position},
            {"file", shown.file},
            {"target", shown.record.target},
            {"prediction", shown.record.prediction}};
  const std::optional<ImageShape> image = as_image(details.shape);
  const auto picture = image ? picture_of(shown.pixels, *image) : ShownPredictions::Picture{};
  if (!picture.pixels.empty()) json["picture"] = to_json(picture);
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

// No picture where sizes and bytes do not fit together, as in files of earlier programs.
ShownPredictions::Picture read_picture(const Json& json) {
  if (!json.is_object()) return {};
  ShownPredictions::Picture picture{.width = whole_number(json.at("width")),
                                    .height = whole_number(json.at("height")),
                                    .channels = whole_number(json.at("channels")),
                                    .pixels = json.at("pixels").get<std::string>()};
  const bool sized = std::clamp<Index>(picture.width, 1, kMaxSide) == picture.width &&
                     std::clamp<Index>(picture.height, 1, kMaxSide) == picture.height &&
                     (picture.channels == 1 || picture.channels == 3);
  const Index bytes = sized ? picture.width * picture.height * picture.channels : 0;
  const std::size_t end = picture.pixels.find_last_not_of('=') + 1;
  const bool coded = picture.pixels.find_first_not_of(kBase64) >= end &&
                     end == static_cast<std::size_t>((bytes * 4 + 2) / 3);
  if (!sized || !coded) picture.pixels.clear();
  return picture;
}

ShownPredictions::Worst read_worst(const Json& json) {
  const Json& loss = json.at("loss");
  return {.loss = loss.is_null() ? std::numeric_limits<double>::quiet_NaN() : loss.get<double>(),
          .record = json.at("record").get<double>(),
          .file = json.at("file").get<std::string>(),
          .target = json.at("target").get<std::string>(),
          .prediction = json.at("prediction").get<std::string>(),
          .picture = read_picture(json.value("picture", Json())),
          .cells = json.value("cells", std::vector<std::string>())};
}

}  // namespace

Json to_json(const ShownPredictions::Picture& picture) {
  return {{"width", picture.width},
          {"height", picture.height},
          {"channels", picture.channels},
          {"pixels", picture.pixels}};
}

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
