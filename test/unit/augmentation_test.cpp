// What each augmentation does to the pixels, and that its random numbers belong to the sample.
#include "lockstep/base/catalog.h"
#include "lockstep/base/errors.h"
#include "lockstep/data/loading/augmenter.h"
#include "lockstep/data/loading/loader.h"
#include "support/error_text.h"
#include "support/prepared.h"
#include "support/seed.h"

namespace lockstep::augmentation_test {

using namespace test;
using Image = std::vector<Scalar>;

// Pixels 1, 2, 3, ... so that each is known wherever it goes, and no zero is one of them.
Image numbered(const ImageShape& shape) {
  Image image(static_cast<std::size_t>(shape.size()));
  std::iota(image.begin(), image.end(), Scalar{1});
  return image;
}

std::unique_ptr<Augmentation> make(const std::string& text, const ImageShape& shape) {
  const Term spec = parse_terms(text).front();
  TermArguments arguments(spec);
  auto made = find_entry(augmentation_catalog(), "augmentation", spec.name).make(arguments, shape);
  arguments.finish();
  return made;
}

Image changed(const Augmentation& augmentation, Image image, std::uint64_t stream) {
  RandomStream random({.seed = seed(), .purpose = Purpose::kAugment, .a = stream});
  augmentation.apply(image, random);
  return image;
}

TEST(Flip, ReversesTheColumnsAndKeepsTheChannels) {
  const ImageShape grey{.height = 2, .width = 3};
  EXPECT_EQ(changed(*make("flip(1)", grey), {1, 2, 3, 4, 5, 6}, 0), (Image{3, 2, 1, 6, 5, 4}));
  const ImageShape colour{.height = 2, .width = 2, .channels = 3};
  EXPECT_EQ(changed(*make("flip(1)", colour), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 0),
            (Image{4, 5, 6, 1, 2, 3, 10, 11, 12, 7, 8, 9}));
}

TEST(Flip, FlipsAsOftenAsItIsTold) {
  const ImageShape shape{.height = 1, .width = 2};
  for (const auto& [text, probability] :
       {std::pair("flip", 0.5), {"flip(0)", 0.0}, {"flip(0.2)", 0.2}, {"flip(probability=0.9)", 0.9}}) {
    const auto flip = make(text, shape);
    int flipped = 0;
    constexpr int kImages = 4000;
    for (int i = 0; i < kImages; ++i)
      flipped += changed(*flip, {1, 2}, static_cast<std::uint64_t>(i))[0] == 2 ? 1 : 0;
    const double deviation = std::sqrt(probability * (1 - probability) / kImages);
    EXPECT_NEAR(static_cast<double>(flipped) / kImages, probability, 5 * deviation) << text;
  }
}

// The image moved down and right, with zeros where it came from.
Image moved(const Image& image, const ImageShape& shape, Index down, Index right) {
  Image out(image.size(), 0);
  for (Index row = 0; row < shape.height; ++row)
    for (Index column = 0; column < shape.width; ++column) {
      if (row - down < 0 || row - down >= shape.height) continue;
      if (column - right < 0 || column - right >= shape.width) continue;
      for (Index channel = 0; channel < shape.channels; ++channel) {
        const Index to = (row * shape.width + column) * shape.channels + channel;
        at(out, to) = at(image, to - (down * shape.width + right) * shape.channels);
      }
    }
  return out;
}

TEST(Crop, MovesThePictureByEveryDistanceEquallyOften) {
  for (const ImageShape& shape :
       {ImageShape{.height = 3, .width = 5}, ImageShape{.height = 5, .width = 3, .channels = 3},
        ImageShape{.height = 4, .width = 4, .channels = 2}}) {
    const Image image = numbered(shape);
    const auto crop = make("crop(2)", shape);
    std::map<Image, int> left;
    for (Index down = -2; down <= 2; ++down)
      for (Index right = -2; right <= 2; ++right) left[moved(image, shape, down, right)] = 0;
    ASSERT_EQ(left.size(), 25U);
    for (std::uint64_t i = 0; i < 5000; ++i) {
      const auto found = left.find(changed(*crop, image, i));
      ASSERT_NE(found, left.end()) << "no moved image";
      ++found->second;
    }
    for (const auto& [window, count] : left) EXPECT_NEAR(count, 200, 5 * std::sqrt(200));
  }
}

TEST(Cutout, BlanksASquareAroundEveryPixelEquallyOften) {
  const ImageShape shape{.height = 4, .width = 5, .channels = 2};
  const Image image = numbered(shape);
  for (const Index size : {1, 2, 3, 4}) {
    const auto cutout = make("cutout(" + std::to_string(size) + ")", shape);
    std::map<Image, int> expected;  // how many centres give this image
    for (Index y = 0; y < shape.height; ++y)
      for (Index x = 0; x < shape.width; ++x) {
        Image cut = image;
        for (Index i = 0; i < shape.size(); ++i) {
          const Index row = i / shape.row_size() - (y - size / 2);
          const Index column = i % shape.row_size() / shape.channels - (x - size / 2);
          const Range inside{0, size};
          if (inside.contains(row) && inside.contains(column)) at(cut, i) = 0;
        }
        ++expected[cut];
      }
    std::map<Image, int> found;
    for (std::uint64_t i = 0; i < 4000; ++i) ++found[changed(*cutout, image, i)];
    EXPECT_EQ(found.size(), expected.size());
    for (const auto& [cut, centres] : expected) EXPECT_NEAR(found[cut], 200 * centres, 100 * centres);
  }
}

std::string augmenter_error(const std::string& text, const Shape& shape = {{4, 6}}) {
  return error_text<ConfigError>([&] { Augmenter(text, shape, 1); });
}

TEST(Augmenter, RefusesWhatCannotBe) {
  expect_parts(augmenter_error("flip", {{16}}), {"data.augment", "height x width", "16"});
  expect_parts(augmenter_error("flip", {{2, 3, 4, 5}}), {"2x3x4x5"});
  expect_parts(augmenter_error("flp"), {"unknown augmentation 'flp'", "'flip'"});
  expect_parts(augmenter_error("flip crop"), {"data.augment: 'crop': 'padding' is missing"});
  expect_parts(augmenter_error("crop(4"), {"data.augment, column 7", "')'"});
  expect_parts(augmenter_error(" "), {"data.augment is empty"});
  expect_parts(augmenter_error("crop(4)"), {"crop(4)", "padding", "4x6"});
  expect_parts(augmenter_error("cutout(5)"), {"cutout(5)", "size", "4x6"});
  expect_parts(augmenter_error("flip(1.5)"), {"flip(1.5)", "0 to 1"});
  expect_parts(augmenter_error("flip(0.5, 2)"), {"does not know", "'2'"});
  expect_parts(augmenter_error("cutout(2) flip"), {"'flip'", "write it first"});
  EXPECT_EQ(make_augmenter("", {{16}}, 1), nullptr);
}

TEST(Augmenter, NormalisesBetweenCropAndCutout) {
  // Without random numbers: the crop's border is black, so normalised to -2; the cutout is 0 in the end.
  const Augmenter augmenter("crop(2) cutout(3)", {{4, 4}}, 1);
  const Normaliser normaliser({1.0}, {0.5}, {{16}});
  std::set<Scalar> seen;
  for (Index id = 0; id < 50; ++id) {
    std::vector<Scalar> image(16, 7);
    Matrix x = as_matrix(std::span(image), 1, 16);
    augmenter.apply(x, {.ids = {&id, 1}}, normaliser);
    seen.insert(image.begin(), image.end());
  }
  EXPECT_EQ(seen, (std::set<Scalar>{-2, 0, 12}));
}

// Record `id` is an image of 5 x 4 pixels from 1000 id on.
class NumberedImages : public Records {
 public:
  Index rows() const override { return 0; }
  Index bytes() const override { return 0; }
  void gather(std::span<const Index> ids, Matrix& x, Matrix& targets) const override {
    for (Index row = 0; row < x.rows(); ++row) {
      const Index id = at(ids, row);
      for (Index i = 0; i < x.cols(); ++i) x(row, i) = static_cast<Scalar>(1000 * id + i);
      targets(row, 0) = static_cast<Scalar>(id);
    }
  }
};

// The epoch, the replica (in full mode) and the record, and how it came out.
using Seen = std::map<std::tuple<Index, Index, Index>, Image>;

struct Walks {
  DataMode mode = DataMode::kShard;
  Index replicas = 6, ranks = 1, prefetch = 2;
  std::string augment = "crop(2) flip cutout(2)";
};

// Three epochs of 31 records, by loaders that host the replicas of one rank each.
Seen load(const Walks& walks) {
  const NumberedImages records;
  const DatasetInfo info{.rows = 31, .features = {{5, 4}}, .target_columns = 1, .name = "images"};
  const auto sampler =
      make_sampler({.rows = 31, .replicas = walks.replicas, .global_batch = 12, .mode = walks.mode});
  const Normaliser identity({0.0}, {1.0}, {{20}});
  const auto augmenter = make_augmenter(walks.augment, info.features, 1);
  const Index steps = 3 * sampler->epoch().steps;
  Seen seen;
  for (Index rank = 0; rank < walks.ranks; ++rank) {
    const Range replicas = split_evenly(walks.replicas, walks.ranks, rank);
    Loader loader(records, info, *sampler, identity,
                  {.replicas = replicas,
                   .steps = {0, steps},
                   .prefetch = walks.prefetch,
                   .augmenter = augmenter.get()});
    for (Index step = 0; step < steps; ++step) {
      const StepBatch& batch = prepared(loader.next());
      for (Index replica = replicas.begin; replica < replicas.end; ++replica) {
        const ReplicaBatch& samples = at(batch.replicas, replica - replicas.begin);
        for (Index row = 0; row < samples.rows; ++row) {
          const Scalar* first = samples.features.data() + row * 20;
          const auto id = static_cast<Index>(samples.targets.data()[row]);
          const Index own = walks.mode == DataMode::kFull ? replica : 0;
          const bool fresh =
              seen.emplace(std::tuple(step / sampler->epoch().steps, own, id), Image(first, first + 20))
                  .second;
          EXPECT_TRUE(fresh);
        }
      }
    }
  }
  return seen;
}

TEST(Augmenter, ASampleIsAugmentedTheSameWayWhereverItIsLoaded) {
  for (const DataMode mode : {DataMode::kShard, DataMode::kFull}) {
    const Seen alone = load({.mode = mode});
    EXPECT_EQ(alone.size(), mode == DataMode::kFull ? 3U * 6 * 31 : 3U * 31);
    for (const Index ranks : {2, 3, 6}) EXPECT_EQ(load({.mode = mode, .ranks = ranks}), alone) << ranks;
    for (const Index prefetch : {0, 1, 9}) EXPECT_EQ(load({.mode = mode, .prefetch = prefetch}), alone);
  }
  // In shard mode the number of replicas decides who loads a sample, and nothing else.
  EXPECT_EQ(load({.replicas = 1}), load({.replicas = 4}));
}

TEST(Augmenter, EveryEpochAndEveryWalkHasItsOwnChanges) {
  const Seen seen = load({.mode = DataMode::kFull, .augment = "crop(3)"});
  const Seen shard = load({.mode = DataMode::kShard, .augment = "crop(3)"});
  int same_in_next_epoch = 0, same_in_next_replica = 0, same_for_next_record = 0;
  for (const auto& [key, image] : shard) {
    const auto& [epoch, none, id] = key;
    if (epoch < 2) same_in_next_epoch += image == shard.at({epoch + 1, 0, id}) ? 1 : 0;
    if (id == 30) continue;
    Image next = shard.at({epoch, 0, id + 1});
    for (Scalar& pixel : next) pixel = pixel == 0 ? 0 : pixel - 1000;
    same_for_next_record += image == next ? 1 : 0;
  }
  for (const auto& [key, image] : seen) {
    const auto& [epoch, replica, id] = key;
    if (replica < 5) same_in_next_replica += image == seen.at({epoch, replica + 1, id}) ? 1 : 0;
  }
  // One pair in 49 is the same by chance.
  EXPECT_LT(same_in_next_epoch, 62 / 5);
  EXPECT_LT(same_for_next_record, 90 / 5);
  EXPECT_LT(same_in_next_replica, 3 * 5 * 31 / 10);
}

}  // namespace lockstep::augmentation_test
