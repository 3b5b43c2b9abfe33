#include "lockstep/base/random.h"

#include <Random123/philox.h>

#include "support/seed.h"

namespace lockstep::test::random_test {

using Words = std::vector<std::uint32_t>;

Words first_bits(const StreamKey& key, std::size_t count) {
  RandomStream stream(key);
  Words words(count);
  for (std::uint32_t& word : words) word = stream.bits();
  return words;
}

// The known answers that come with Random123 (kat_vectors, philox4x32 10).
TEST(Philox, GivesTheKnownAnswers) {
  const auto block = [](std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
    r123::Philox4x32 philox;
    const auto words = philox({{counter[0], counter[1], counter[2], counter[3]}},
                              r123::Philox4x32::key_type{{key[0], key[1]}});
    return Words(words.begin(), words.end());
  };
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(block({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(block({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(block({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// From an implementation of SplitMix64 and Philox in Python: these bits are part of every result that anyone
// has kept, and may never change.
TEST(RandomStream, KeepsItsBitsForEver) {
  const StreamKey key{.seed = 1, .purpose = Purpose::kShuffle, .a = 7, .b = (std::uint64_t{5} << 32) | 9};
  EXPECT_EQ(first_bits(key, 8), (Words{0x13cbce46, 0xecd1498a, 0x93121921, 0xcb2c90b7, 0x6dc42cce, 0x02816b5d,
                                       0x0787f6cc, 0xfe80bb81}));
}

TEST(RandomStream, ManyBitsAtATimeAreThoseOneAfterTheOther) {
  const StreamKey key{.seed = seed(), .purpose = Purpose::kDropout, .a = 5, .b = std::uint64_t{7} << 33};
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{127}, std::size_t{129}, std::size_t{1000}}) {
    Words words(count);
    fill_bits(key, words);
    EXPECT_EQ(words, first_bits(key, count)) << count;
  }
}

TEST(RandomStream, EveryPartOfTheKeyNamesAnotherStream) {
  const std::vector<StreamKey> keys{
      {.seed = 1, .purpose = Purpose::kShuffle, .a = 2, .b = 3},
      {.seed = 4, .purpose = Purpose::kShuffle, .a = 2, .b = 3},
      {.seed = 1, .purpose = Purpose::kShard, .a = 2, .b = 3},
      {.seed = 1, .purpose = Purpose::kShuffle, .a = 3, .b = 3},
      {.seed = 1, .purpose = Purpose::kShuffle, .a = 2, .b = 4},
      {.seed = 1, .purpose = Purpose::kShuffle, .a = 3, .b = 2},
      {.seed = 1, .purpose = Purpose::kShuffle, .a = 2, .b = std::uint64_t{3} << 32},
  };
  std::set<Words> streams;
  for (const StreamKey& key : keys) streams.insert(first_bits(key, 4));
  EXPECT_EQ(streams.size(), keys.size());
}

// The mean of the k-th powers of `count` draws.
template <class Draw>
double moment(int k, int count, const Draw& draw) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += std::pow(static_cast<double>(draw()), k);
  return sum / count;
}

// Fixed seeds, so these never fail by chance; each tolerance is about five standard deviations.
TEST(RandomStream, UniformHasItsMoments) {
  constexpr int kDraws = 200000;
  RandomStream stream({.seed = 11});
  const auto draw = [&] { return stream.uniform(); };
  EXPECT_NEAR(moment(1, kDraws, draw), 1.0 / 2, 0.0035);
  EXPECT_NEAR(moment(2, kDraws, draw), 1.0 / 3, 0.0035);
  EXPECT_NEAR(moment(5, kDraws, draw), 1.0 / 6, 0.0035);
  for (int i = 0; i < kDraws; ++i) {
    const float value = stream.uniform();
    ASSERT_TRUE(value >= 0 && value < 1) << value;
  }
}

TEST(RandomStream, WholeNumbersAreEquallyLikely) {
  RandomStream stream({.seed = 14});
  std::array<int, 7> drawn{};
  for (int i = 0; i < 70000; ++i) {
    const Index number = stream.below(7);
    ASSERT_TRUE(number >= 0 && number < 7);
    ++at(drawn, number);
  }
  for (const int count : drawn) EXPECT_NEAR(count, 10000, 500);
  EXPECT_EQ(stream.below(1), 0);
}

TEST(RandomStream, NormalHasItsMoments) {
  constexpr int kDraws = 200000;
  RandomStream stream({.seed = 12});
  const auto draw = [&] { return stream.normal(); };
  EXPECT_NEAR(moment(1, kDraws, draw), 0, 0.012);
  EXPECT_NEAR(moment(2, kDraws, draw), 1, 0.016);
  EXPECT_NEAR(moment(3, kDraws, draw), 0, 0.045);
  EXPECT_NEAR(moment(4, kDraws, draw), 3, 0.11);
}

TEST(RandomStream, NeighboursAreNotCorrelated) {
  constexpr int kPairs = 200000;
  RandomStream stream({.seed = 13});
  double uniform = 0, normal = 0;
  for (int i = 0; i < kPairs; ++i) {
    const double u = stream.uniform() - 0.5;
    uniform += u * (stream.uniform() - 0.5);
    const double n = stream.normal();
    normal += n * stream.normal();
  }
  EXPECT_NEAR(uniform / kPairs, 0, 0.001);
  EXPECT_NEAR(normal / kPairs, 0, 0.012);
}

void expect_bijection(Index size, const StreamKey& key) {
  const KeyedPermutation permutation(size, key);
  EXPECT_EQ(permutation.size(), size);
  std::vector<Index> images(static_cast<std::size_t>(size));
  std::iota(images.begin(), images.end(), Index{0});
  permutation.apply(images);
  std::vector<bool> seen(static_cast<std::size_t>(size));
  for (Index i = 0; i < size; ++i) {
    const Index image = at(images, i);
    ASSERT_EQ(permutation(i), image) << "size " << size;
    ASSERT_TRUE(image >= 0 && image < size) << "size " << size << ": " << i << " goes to " << image;
    ASSERT_FALSE(at(seen, image)) << "size " << size << ": two go to " << image;
    at(seen, image) = true;
    ASSERT_EQ(permutation.inverse(image), i) << "size " << size;
  }
  permutation.invert(images);
  EXPECT_TRUE(std::ranges::equal(images, std::views::iota(Index{0}, size))) << "size " << size;
}

TEST(KeyedPermutation, IsABijectionWithItsInverse) {
  for (Index size = 1; size <= 200; ++size)
    expect_bijection(size, {.seed = seed(), .purpose = Purpose::kShuffle, .a = 1});
  for (const Index size : {1023, 1024, 1025, 60000, 65537})
    expect_bijection(size, {.seed = seed(), .purpose = Purpose::kShuffle, .a = 2});
}

TEST(KeyedPermutation, WorksOnSizesThatNoMemoryHolds) {
  constexpr Index kSize = Index{650'000'000'000};
  const KeyedPermutation permutation(kSize, {.seed = seed()});
  for (Index i = 0; i < kSize; i += kSize / 1000 + 1) {
    const Index image = permutation(i);
    ASSERT_TRUE(image >= 0 && image < kSize);
    ASSERT_EQ(permutation.inverse(image), i);
  }
}

TEST(KeyedPermutation, EveryImageIsAboutEquallyLikely) {
  constexpr Index kSize = 10;
  constexpr int kKeys = 10000;
  for (Index position = 0; position < kSize; ++position) {
    std::array<int, kSize> counts{};
    for (std::uint64_t key = 0; key < kKeys; ++key)
      ++at(counts, KeyedPermutation(kSize, {.seed = 5, .purpose = Purpose::kShuffle, .a = key})(position));
    for (const int count : counts) EXPECT_NEAR(count, kKeys / kSize, 150) << "position " << position;
  }
}

}  // namespace lockstep::test::random_test
