// Made-up data of any size: each sample is a pure function of (seed, split, id), computed when it is asked
// for, so rows cost no memory. With classes, a sample is the centre of its class plus noise; without, its
// target is a linear function of its features plus noise. All splits of a run share the centres and the
// function.
#include <algorithm>
#include <cmath>

#include "lockstep/base/errors.h"
#include "lockstep/base/process.h"
#include "lockstep/base/random.h"
#include "lockstep/base/text.h"
#include "lockstep/data/formats/format.h"

namespace lockstep {
namespace {

// The first number of a stream's key: the samples of a split, or what all splits share. Never renumber.
enum class Stream : std::uint64_t { kTrain = 0, kValidation = 1, kTest = 2, kCentre = 3, kWeights = 4 };

RandomStream stream(std::uint64_t seed, Stream which, Index number) {
  return RandomStream({.seed = seed,
                       .purpose = Purpose::kSynthetic,
                       .a = static_cast<std::uint64_t>(which),
                       .b = static_cast<std::uint64_t>(number)});
}

Index rows_of(const SyntheticOptions& options, Split split) {
  return of_split(split, options.rows, options.validation_rows, options.test_rows);
}

// Errors: DataError if the targets cannot obey the rule.
void check_targets(const SyntheticOptions& options, const TargetRule& rule) {
  const Index classes = rule.classes;
  error_if<DataError>(classes > 0 && options.classes == 0,
                      "synthetic data with data.synthetic_classes = 0 has real numbers as targets, expected "
                      "a class below {}, the number of outputs of the model",
                      classes);
  error_if<DataError>(classes > 0 && options.classes > classes,
                      "synthetic data has classes up to {} (data.synthetic_classes = {}), expected a class "
                      "below {}, the number of outputs of the model",
                      options.classes - 1, options.classes, classes);
  error_if<DataError>((rule.non_negative && options.classes == 0) || rule.positive,
                      "synthetic data with data.synthetic_classes = {} has targets {}, expected {}",
                      options.classes, options.classes == 0 ? "below 0" : "of 0", rule.expected());
  error_if<DataError>(rule.unit_interval && options.classes != 2,
                      "synthetic data with data.synthetic_classes = {} has targets outside [0, 1], expected "
                      "2 classes for a loss on yes or no",
                      options.classes);
}

class SyntheticSource : public RecordSource {
 public:
  SyntheticSource(const SyntheticOptions& options, Split split, std::uint64_t seed)
      : options_(options),
        samples_(of_split(split, Stream::kTrain, Stream::kValidation, Stream::kTest)),
        seed_(seed) {
    info_.rows = rows_of(options, split);
    info_.features.dims = {options.features};
    info_.target_columns = 1;
    info_.name = "synthetic";
    chunks_ = {{.records = {0, info_.rows}}};
    const bool classifies = options.classes > 0;
    for (Index row = 0; row < std::max<Index>(options.classes, 1); ++row) {
      RandomStream numbers = stream(seed, classifies ? Stream::kCentre : Stream::kWeights, row);
      for (Index i = 0; i < options.features; ++i) shared_.push_back(numbers.normal());
    }
  }

  std::unique_ptr<ChunkReader> reader(const TargetRule& rule) const override {
    check_targets(options_, rule);
    return std::make_unique<ComputedReader>();
  }

  void unpack(std::span<const Index> ids, std::span<const std::byte* const>, Matrix& x,
              Matrix& targets) const override {
    for (Index row = 0; row < std::ssize(ids); ++row) {
      RandomStream numbers = stream(seed_, samples_, at(ids, row));
      const std::span<Scalar> features(x.data() + row * x.cols(), static_cast<std::size_t>(x.cols()));
      targets(row, 0) = options_.classes > 0 ? classified(numbers, features) : regressed(numbers, features);
    }
  }

 private:
  Scalar classified(RandomStream& numbers, std::span<Scalar> features) const {
    const auto label = static_cast<std::size_t>(numbers.below(options_.classes));
    const Scalar* centre = shared_.data() + label * features.size();
    const auto noise = static_cast<Scalar>(options_.noise);
    for (std::size_t i = 0; i < features.size(); ++i) features[i] = centre[i] + noise * numbers.normal();
    return static_cast<Scalar>(label);
  }

  Scalar regressed(RandomStream& numbers, std::span<Scalar> features) const {
    double sum = 0;
    for (std::size_t i = 0; i < features.size(); ++i) {
      features[i] = numbers.normal();
      sum += double{features[i]} * double{shared_[i]};
    }
    const double noise = options_.noise * double{numbers.normal()};
    return static_cast<Scalar>(sum / std::sqrt(static_cast<double>(features.size())) + noise);
  }

  SyntheticOptions options_;
  Stream samples_;
  std::uint64_t seed_;
  std::vector<Scalar> shared_;  // a row for the centre of each class, or one row of weights
};

// Synthetic data are equal on all ranks: there is nothing to agree on.
std::unique_ptr<RecordSource> open(const OpenRequest& request) {
  const SyntheticOptions& options = request.options.synthetic;
  const Split split = request.split;
  error_if(split == Split::kTrain && options.rows < 1,
           "data.synthetic_rows is {}: set it to the number of training samples to make", options.rows);
  error_if(options.features < 1 || options.classes < 0 || !(options.noise >= 0),
           "synthetic data cannot have {} features, {} classes and noise {}: expected at least 1, at least 0 "
           "(0: regression) and at least 0",
           options.features, options.classes, options.noise);
  const double centre_bytes = static_cast<double>(std::max<Index>(options.classes, 1)) *
                              static_cast<double>(options.features) * sizeof(Scalar);
  const MemoryLimit limit = memory_limit();
  error_if(centre_bytes > static_cast<double>(limit.bytes),
           "synthetic data of {} classes with {} features needs {} for their centres, but can have {} ({})",
           with_commas(options.classes), with_commas(options.features), human_bytes(centre_bytes),
           human_bytes(limit.bytes), limit.reason);
  if (rows_of(options, split) < 1) return nullptr;
  return std::make_unique<SyntheticSource>(options, split, request.seed);
}

}  // namespace

FormatEntry synthetic_format() {
  return {
      .name = "synthetic",
      .help =
          "random samples around one centre per class, or of a linear function with 0 classes; made on the "
          "fly, so any number of rows costs no memory",
      .extensions = {},
      .options = {"data.synthetic_rows", "data.synthetic_validation_rows", "data.synthetic_test_rows",
                  "data.synthetic_features", "data.synthetic_classes", "data.synthetic_noise"},
      .has_files = false,
      .open = open};
}

}  // namespace lockstep
