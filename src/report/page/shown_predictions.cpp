#include "lockstep/report/page/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "lockstep/base/errors.h"
#include "lockstep/base/json.h"
#include "lockstep/report/history/viewed_run.h"
#include "lockstep/report/tables/tables.h"
#include "page_parts.h"

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
  const bool named = curve.of_class < std::ssize(details.outputs);
  Json json{{"class", named ? at(details.outputs, curve.of_class)
                            : class_name(details.classes, static_cast<std::size_t>(curve.of_class))},
            {"positives", curve.positives},
            {"negatives", curve.negatives},
            {"area", json_number(curve.area)}};
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

double short_form(double value) {
  return std::stod(fmt::format("{:.6g}", value));
}

Json window_json(const ShownWindow& window) {
  Json json{{"name", window.name}, {"times", window.times}};
  const auto add = [&](const char* name, const std::vector<double>& values) {
    json[name] = Json::array();
    for (const double value : values) json[name].push_back(short_form(value));
  };
  add("past", window.past);
  add("truth", window.truth);
  add("forecast", window.forecast);
  if (window.low == window.high) return json;
  add("low", window.low);
  add("high", window.high);
  return json;
}

Json fit_json(const TargetFit& fit) {
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
// 1 or, where some lie beyond, from the least to the greatest. Null for what is no image.
Json picture_of(std::span<const Scalar> pixels, const ImageShape& from) {
  constexpr Index kMinSide = 4;  // less does not look like an image
  if (from.height < kMinSide || from.width < kMinSide || std::ssize(pixels) != from.size()) return nullptr;
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
  return {{"width", width}, {"height", height}, {"channels", channels}, {"pixels", base64(bytes)}};
}

Json worst_json(const EvaluationDetails& details, const ShownRecord& shown) {
  Json json{{"loss", json_number(shown.record.loss)},
            {"record", shown.position},
            {"file", shown.file},
            {"target", shown.record.target},
            {"prediction", shown.record.prediction}};
  const std::optional<ImageShape> image = as_image(details.shape);
  const Json picture = image ? picture_of(shown.pixels, *image) : Json();
  if (!picture.is_null()) json["picture"] = picture;
  if (!shown.cells.empty()) json["cells"] = shown.cells;
  if (shown.of_record) json["position"] = *shown.of_record;
  return json;
}

// The form of evaluation.json, see read_as().
constexpr const char* kForm =
    R"({"split": "", "samples": 0, "columns?": [""], "curves?": [{"class": "", "area": null,
  "recall": [0], "false_positive_rate": [0], "precision": [0]}], "fits?": [{"target": [0], "prediction": [0],
  "residual_width": null, "residuals+": [0]}], "worst": [{"record": 0, "file": "", "loss": null, "target": "", "prediction": "",
  "cells?": [""], "picture?": true, "position?": 0}], "windows?": [{"name": "", "times": [""], "past+": [0], "truth": [0],
  "forecast": [0], "low?": [0], "high?": [0]}]})";

// Null where sizes and bytes do not fit together.
Json read_picture(const Json& json) {
  const Index width = whole_number(json.at("width"));
  const Index height = whole_number(json.at("height"));
  const Index channels = whole_number(json.at("channels"));
  const auto pixels = json.at("pixels").get<std::string>();
  const bool sized = std::clamp<Index>(width, 1, kMaxSide) == width &&
                     std::clamp<Index>(height, 1, kMaxSide) == height && (channels == 1 || channels == 3);
  const Index bytes = sized ? width * height * channels : 0;
  const std::size_t end = pixels.find_last_not_of('=') + 1;
  const bool coded =
      pixels.find_first_not_of(kBase64) >= end && end == static_cast<std::size_t>((bytes * 4 + 2) / 3);
  if (!sized || !coded) return nullptr;
  return {{"width", width}, {"height", height}, {"channels", channels}, {"pixels", pixels}};
}

}  // namespace

Json read_as(const Json& form, const Json& json) {
  if (form.is_string()) return shown_json(json.get_ref<const std::string&>());
  if (form.is_number() || (form.is_null() && !json.is_null())) return shown_json(json.get<double>());
  if (!form.is_structured()) return json;
  Json read = form.is_array() ? Json::array() : Json::object();
  if (form.is_array()) {
    for (const Json& each : json.get_ref<const Json::array_t&>()) read.push_back(read_as(form[0], each));
    return read;
  }
  std::set<std::size_t> lengths;
  for (const auto& [key, part] : form.items()) {
    const std::string name = key.substr(0, key.find_first_of("?+"));
    const bool numbers = part.is_array() && part[0].is_number();
    const bool missing = key.ends_with('?') && !json.contains(name);
    if (!missing) read[name] = read_as(part, json.at(name));
    if (missing && part.is_array() && !numbers) read[name] = Json::array();
    if (!missing && numbers && !key.ends_with('+')) lengths.insert(read[name].size());
  }
  if (lengths.size() > 1) throw DataError("it has lists of different lengths");
  return read;
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
  for (const ShownWindow& window : details.windows) json["windows"].push_back(window_json(window));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json read_shown_predictions(const std::string& text) {
  const auto json = parse_json<Json>(text);
  if (!json.is_object()) throw DataError("it is no object");
  try {
    Json shown = read_as(Json::parse(kForm), json);
    for (Json& fit : shown["fits"]) fit["samples"] = fit["target"].size();
    for (Json& record : shown["worst"]) {
      if (!record.contains("picture")) continue;
      record["picture"] = read_picture(record["picture"]);
      if (record["picture"].is_null()) record.erase("picture");
    }
    return shown;
  } catch (const Json::exception& error) {
    throw DataError("it has not the form of evaluation.json: {}", error.what());
  }
}

}  // namespace lockstep
