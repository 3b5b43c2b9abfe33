#include "lockstep/data/loading/augmenter.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"
#include "lockstep/math/eigen_matrix.h"

namespace lockstep {
namespace {

void check_length(const char* key, std::size_t found, const Shape& features) {
  const bool has_channels = features.sequence || features.dims.size() == 3;
  const Index channels = has_channels ? features.dims.back() : features.size();
  const auto count = static_cast<Index>(found);
  if (count == 1 || count == features.size() || count == channels) return;
  throw ConfigError("{} has {} numbers, expected 1{} or {} (one for each feature)", key, found,
                    has_channels ? fmt::format(", {} (one for each channel)", channels) : "",
                    features.size());
}

}  // namespace

Augmenter::Augmenter(std::string_view text, const Shape& features, std::uint64_t seed) : seed_(seed) {
  const std::optional<ImageShape> shape = as_image(features);
  error_if(!shape,
           "data.augment changes images, of the shape height x width or height x width x channels, but the "
           "records have the shape {}; remove data.augment",
           to_string(features));
  const TermsOption option{
      .key = "data.augment", .name = "an augmentation name", .example = "crop(4) flip cutout(8)"};
  for (const Term& spec : parse_terms(text, option)) {
    const AugmentationEntry& entry = find_entry(augmentation_catalog(), "augmentation", spec.name);
    error_if(!entry.after_normalising && !after_.empty(),
             "data.augment: {} works on the image as read, but stands after one that works on the normalised "
             "image; write it first",
             in_quotes(spec.text));
    TermArguments arguments(spec);
    try {
      (entry.after_normalising ? after_ : before_).push_back(entry.make(arguments, *shape));
      arguments.finish();
    } catch (const ConfigError& error) {
      throw ConfigError("data.augment: {}: {}", in_quotes(spec.text), error.what());
    }
  }
}

void Augmenter::apply(Matrix& x, const BatchKey& key, const Normaliser& normaliser) const {
  for (Index row = 0; row < x.rows(); ++row) {
    RandomStream random({.seed = seed_,
                         .purpose = Purpose::kAugment,
                         .a = static_cast<std::uint64_t>(key.walk),
                         .b = static_cast<std::uint64_t>(at(key.ids, row))});
    Matrix image(x.data() + row * x.cols(), 1, x.cols());
    const std::span<Scalar> pixels(image.data(), static_cast<std::size_t>(x.cols()));
    for (const auto& augmentation : before_) augmentation->apply(pixels, random);
    normaliser.apply(image);
    for (const auto& augmentation : after_) augmentation->apply(pixels, random);
  }
}

std::unique_ptr<Augmenter> make_augmenter(std::string_view text, const Shape& features, std::uint64_t seed) {
  return text.empty() ? nullptr : std::make_unique<Augmenter>(text, features, seed);
}

Normaliser::Normaliser(const std::vector<double>& mean, const std::vector<double>& std,
                       const Shape& features) {
  check_length("data.mean", mean.size(), features);
  check_length("data.std", std.size(), features);
  for (const double value : mean) {
    error_if(!std::isfinite(value), "data.mean holds {}, expected finite numbers", value);
  }
  for (const double value : std) {
    if (value > 0 && std::isfinite(value)) continue;
    throw ConfigError("data.std holds {}, expected numbers above 0: use 1 for a feature that never changes",
                      value);
  }
  const std::size_t length =
      mean.size() == 1 && std.size() == 1 ? 1 : static_cast<std::size_t>(features.size());
  for (std::size_t i = 0; i < length; ++i) {
    mean_.push_back(static_cast<Scalar>(mean[i % mean.size()]));
    scale_.push_back(static_cast<Scalar>(1 / std[i % std.size()]));
  }
  identity_ = std::ranges::all_of(mean_, [](Scalar value) { return value == 0; }) &&
              std::ranges::all_of(scale_, [](Scalar value) { return value == 1; });
}

void Normaliser::apply(Matrix& x) const {
  if (identity_) return;
  if (mean_.size() == 1) {
    as_array(x) = (as_array(x) - mean_[0]) * scale_[0];
    return;
  }
  const ConstArray mean = as_array(std::span(mean_));
  const ConstArray scale = as_array(std::span(scale_));
  for (Index row = 0; row < x.rows(); ++row) {
    Array features(x.data() + row * x.cols(), x.cols());
    features = (features - mean) * scale;
  }
}

// One line for each file in augmentations/.
AugmentationEntry flip_entry();
AugmentationEntry crop_entry();
AugmentationEntry cutout_entry();

std::span<const AugmentationEntry> augmentation_catalog() {
  static const std::array kEntries{flip_entry(), crop_entry(), cutout_entry()};
  return kEntries;
}

}  // namespace lockstep
