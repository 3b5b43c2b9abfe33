#include "predict_flags.h"

#include <fmt/format.h>

#include "lockstep/base/errors.h"
#include "lockstep/base/quoted.h"

namespace lockstep {
namespace {

void refuse_two(const PredictRequest& request) {
  if (request.top == 0 && !request.probabilities) return;
  if (request.top > 0 && request.probabilities) {
    throw ConfigError(
        "--proba writes the probabilities of all classes, --top those of a few: give one of them");
  }
  if (!request.threshold) return;
  throw ConfigError(
      fmt::format("--threshold decides which class is written, and {} writes no such class: give one of them",
                  request.top > 0 ? "--top" : "--proba"));
}

}  // namespace

PredictRequest parse_predict(const FrontEnd& front) {
  PredictRequest request{.keep = front.value("keep"), .probabilities = front.value("proba").has_value()};
  if (const std::optional<std::string> text = front.value("top")) {
    request.top = ValueType<Index>::parse(*text).value_or(0);
    if (request.top < 1) {
      throw ConfigError(
          fmt::format("--top: expected a number of classes, 1 or more, found {}", in_quotes(*text)));
    }
  }
  if (const std::optional<std::string> text = front.value("threshold")) {
    request.threshold = ValueType<double>::parse(*text);
    if (!request.threshold || *request.threshold < 0 || *request.threshold > 1) {
      throw ConfigError(
          fmt::format("--threshold: expected a probability from 0 to 1, found {}", in_quotes(*text)));
    }
  }
  refuse_two(request);
  return request;
}

}  // namespace lockstep
