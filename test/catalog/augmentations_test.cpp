// What every augmentation must keep, whatever it does to an image.
#include "lockstep/data/loading/augmenter.h"
#include "support/seed.h"

namespace lockstep::augmentations_test {
namespace {

const std::vector<ImageShape> kShapes{{.height = 5, .width = 4},
                                      {.height = 4, .width = 7, .channels = 3},
                                      {.height = 8, .width = 8, .channels = 1}};

std::unique_ptr<Augmentation> make_example(const AugmentationEntry& entry, const ImageShape& shape) {
  const Term spec = parse_terms(entry.example).front();
  TermArguments arguments(spec);
  auto made = entry.make(arguments, shape);
  arguments.finish();
  return made;
}

std::vector<Scalar> random_image(const ImageShape& shape) {
  RandomStream random({.seed = test::seed(), .a = 1});
  std::vector<Scalar> image(static_cast<std::size_t>(shape.size()));
  for (Scalar& pixel : image) pixel = 1 + random.uniform();
  return image;
}

RandomStream stream(Index number) {
  return RandomStream(
      {.seed = test::seed(), .purpose = Purpose::kAugment, .a = static_cast<std::uint64_t>(number)});
}

TEST(Augmentations, EntriesDescribeThemselves) {
  std::set<std::string> names;
  for (const AugmentationEntry& entry : augmentation_catalog()) {
    SCOPED_TRACE(entry.name);
    EXPECT_TRUE(names.insert(entry.name).second);
    EXPECT_FALSE(entry.help.empty());
    EXPECT_TRUE(entry.signature.starts_with(entry.name));
    EXPECT_TRUE(entry.example.starts_with(entry.name));
  }
  EXPECT_GE(names.size(), 3U);
}

TEST(Augmentations, TheSameStreamGivesTheSamePictureAndAnotherAnother) {
  for (const AugmentationEntry& entry : augmentation_catalog()) {
    for (const ImageShape& shape : kShapes) {
      SCOPED_TRACE(entry.name);
      const auto augmentation = make_example(entry, shape);
      const std::vector<Scalar> original = random_image(shape);
      int changed = 0;
      for (Index number = 0; number < 50; ++number) {
        std::vector<Scalar> one = original;
        std::vector<Scalar> two = original;
        RandomStream random = stream(number);
        RandomStream again = stream(number);
        augmentation->apply(one, random);
        augmentation->apply(two, again);
        EXPECT_EQ(one, two);
        changed += one != original ? 1 : 0;
        EXPECT_TRUE(std::ranges::all_of(one, [](Scalar pixel) { return std::isfinite(pixel); }));
      }
      EXPECT_GT(changed, 25);
    }
  }
}

TEST(Augmentations, TouchNothingOutsideTheImage) {
  for (const AugmentationEntry& entry : augmentation_catalog()) {
    for (const ImageShape& shape : kShapes) {
      SCOPED_TRACE(entry.name);
      const auto augmentation = make_example(entry, shape);
      const auto size = static_cast<std::size_t>(shape.size());
      for (Index number = 0; number < 50; ++number) {
        std::vector<Scalar> memory(3 * size, -1);
        std::ranges::copy(random_image(shape), memory.begin() + shape.size());
        RandomStream random = stream(number);
        augmentation->apply(std::span(memory).subspan(size, size), random);
        EXPECT_EQ(std::count(memory.begin(), memory.begin() + shape.size(), -1), shape.size());
        EXPECT_EQ(std::count(memory.end() - shape.size(), memory.end(), -1), shape.size());
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::augmentations_test
