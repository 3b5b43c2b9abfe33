#include "lockstep/data/augmenter.h"

#include <fmt/format.h>

#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/base/text.h"

namespace lockstep {
namespace {

ImageShape image_shape(const Shape& features) {
  if (const std::optional<ImageShape> image = as_image(features)) return *image;
  throw ConfigError(
      fmt::format("data.augment changes images, of the shape height x width or height x width x channels, "
                  "but the records have the shape {}; remove data.augment",
                  to_string(features)));
}

}  // namespace

Augmenter::Augmenter(std::string_view text, const Shape& features, std::uint64_t seed) : seed_(seed) {
  const ImageShape shape = image_shape(features);
  const TermsOption option{
      .key = "data.augment", .name = "an augmentation name", .example = "crop(4) flip cutout(8)"};
  for (const Term& spec : parse_terms(text, option)) add(spec, shape);
}

void Augmenter::add(const Term& spec, const ImageShape& shape) {
  const AugmentationEntry& entry = find_entry(augmentation_catalog(), "augmentation", spec.name);
  if (!entry.after_normalising && !after_.empty()) {
    throw ConfigError(
        fmt::format("data.augment: {} works on the image as read, but stands after one that works on the "
                    "normalised image; write it first",
                    in_quotes(spec.text)));
  }
  TermArguments arguments(spec);
  try {
    (entry.after_normalising ? after_ : before_).push_back(entry.make(arguments, shape));
    arguments.finish();
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("data.augment: {}: {}", in_quotes(spec.text), error.what()));
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

}  // namespace lockstep
