#include "bench_file.h"

#include <fmt/format.h>

#include <cmath>

#include "lockstep/base/errors.h"
#include "lockstep/base/file.h"
#include "lockstep/base/json.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// Reads a bench report: each value that is asked for must be there and make sense.
class Reader {
 public:
  explicit Reader(const std::filesystem::path& path) : path_(path) {
    const std::string text = read_file(path);
    try {
      report_ = parse_json<Json>(text);
    } catch (const DataError& error) {
      fail(error.what());
    }
  }

  const Json& at(const Json& from, const char* key) const {
    if (!from.is_object() || !from.contains(key)) fail(fmt::format("it has no \"{}\"", key));
    return from[key];
  }
  const Json& at(const char* key) const { return at(report_, key); }

  double number(const Json& from, const char* key) const {
    const Json& value = at(from, key);
    const double number = value.is_number() ? value.get<double>() : -1;
    if (!std::isfinite(number) || number < 0) {
      fail(fmt::format("\"{}\" is {}, expected a number that is not negative", key, excerpt(value.dump())));
    }
    return number;
  }

  Index count(const Json& from, const char* key) const {
    const double value = number(from, key);
    if (value < 1 || value > 1e15 || value != std::floor(value)) {
      fail(fmt::format("\"{}\" is {}, expected a whole number above 0", key, excerpt(at(from, key).dump())));
    }
    return static_cast<Index>(value);
  }
  Index count(const char* key) const { return count(report_, key); }

  // The curve of the objects in a list; empty if all seconds are 0, which means not measured.
  TimeCurve curve(const char* list, const char* amount, const char* seconds) const {
    const Json& entries = at(list);
    std::vector<TimeCurve::Point> points;
    bool measured = false;
    for (const Json& entry : entries) {
      points.push_back({.amount = number(entry, amount), .seconds = number(entry, seconds)});
      measured |= points.back().seconds > 0;
      if (points.size() > 1 && points.back().amount <= points[points.size() - 2].amount) {
        fail(fmt::format("\"{}\" is not in ascending order of \"{}\"", list, amount));
      }
    }
    if (points.size() < 2)
      fail(fmt::format("\"{}\" has {} entries, expected at least two", list, points.size()));
    return measured ? TimeCurve(std::move(points)) : TimeCurve();
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(
        fmt::format("--from '{}': {}; expected what 'trainer bench --json' of this version writes",
                    path_.string(), what));
  }

 private:
  std::filesystem::path path_;
  Json report_;
};

// A sum reads what is added and what is added to, and writes; a copy is counted as read and written.
double add_bandwidth(const Reader& reader) {
  constexpr double kAccesses = 3;
  return reader.number(reader.at("machine"), "cache_bandwidth") / kAccesses;
}

}  // namespace

BenchFigures read_bench_file(const std::filesystem::path& path, const Model& model) {
  const Reader reader(path);
  const Json& step = reader.at("step");
  const double seconds = reader.number(step, "seconds");
  const auto part = [&](const char* key) { return seconds * reader.number(step, key); };
  const Index workers = reader.count(step, "workers");
  BenchFigures measured{
      .ranks = reader.count("ranks"),
      .hosts = reader.count("hosts"),
      .cores = reader.count("cores"),
      .parameters = reader.count("parameters"),
      .work = {.replicas = divide_up(reader.count(step, "replicas"), workers), .rows = reader.count("rows")},
      .accumulate = reader.count(step, "accumulate"),
      .threads = reader.count(step, "threads"),
      .step = {.data = part("data"),
               .forward = part("forward"),
               .backward = part("backward"),
               .optimizer = part("optimizer"),
               .waiting = part("waiting")},
      .stepped = reader.number(step, "stepped"),
      .pass = reader.curve("passes", "rows", "seconds"),
      .message = reader.curve("exchanges", "bytes", "message_seconds"),
      .shared = reader.curve("exchanges", "bytes", "shared_seconds"),
      .add_bandwidth = add_bandwidth(reader)};
  if (measured.pass.empty() || seconds == 0 || measured.stepped == 0) {
    reader.fail("a step or a pass takes no time in it");
  }
  const Index parameters = model.layout().count();
  if (measured.parameters != parameters) {
    throw ConfigError(fmt::format(
        "--from '{}' is of a model with {} parameters, but the config's has {}: run trainer bench with this "
        "config",
        path.string(), with_commas(measured.parameters), with_commas(parameters)));
  }
  const Json& found = reader.at("precision");
  const std::string precision = found.is_string() ? found.get<std::string>() : found.dump();
  if (precision.starts_with("bf16") != (model.precision() == Precision::kBf16)) {
    throw ConfigError(fmt::format(
        "--from '{}' was measured in {}, which is not the config's train.precision: run trainer bench with "
        "this config",
        path.string(), excerpt(precision)));
  }
  return measured;
}

}  // namespace lockstep
