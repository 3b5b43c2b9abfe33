#include "lockstep/distributed/exchange/codec.h"

#include "lockstep/base/aligned_buffer.h"
#include "lockstep/base/errors.h"
#include "lockstep/train/plan/run_plan.h"
#include "support/error_text.h"
#include "support/planned_run.h"
#include "support/seed.h"

namespace lockstep::codec_test {

constexpr Scalar kInfinity = std::numeric_limits<Scalar>::infinity();
constexpr Scalar kNaN = std::numeric_limits<Scalar>::quiet_NaN();

DistOptions options_of(const std::string& codec, double top_k = 0.25) {
  DistOptions options{.compression = codec, .top_k = top_k};
  return options;
}

std::vector<std::string> lossy_codecs() {
  std::vector<std::string> names;
  for (const CodecEntry& entry : codec_catalog()) {
    if (make_codec(options_of(entry.name)) != nullptr) names.push_back(entry.name);
  }
  return names;
}

// What arrives of these numbers.
std::vector<Scalar> sent(Codec& codec, const std::vector<Scalar>& values) {
  AlignedBuffer<std::byte> message(codec.bytes(std::ssize(values)));
  std::vector<Scalar> arrived(values.size());
  codec.encode(values, message.span());
  codec.add(message.span(), 1, arrived);
  return arrived;
}

std::vector<Scalar> sent(const std::string& codec, const std::vector<Scalar>& values, double top_k = 0.25) {
  return sent(*make_codec(options_of(codec, top_k)), values);
}

std::vector<Scalar> random_numbers(Index count, std::mt19937& random) {
  std::normal_distribution<Scalar> normal(0, 3);
  std::vector<Scalar> values(static_cast<std::size_t>(count));
  for (Scalar& value : values) value = normal(random);
  return values;
}

TEST(Codecs, Fp32NeedsNone) {
  EXPECT_EQ(DistOptions{}.compression, "fp32");
  EXPECT_EQ(make_codec({}), nullptr);
  EXPECT_THROW(make_codec(options_of("fp31")), ConfigError);
  EXPECT_EQ(lossy_codecs().size() + 1, codec_catalog().size());
}

TEST(Codecs, TheSizeFollowsFromTheCount) {
  EXPECT_EQ(make_codec(options_of("bf16"))->bytes(1001), 2002);
  EXPECT_EQ(make_codec(options_of("fp16"))->bytes(1001), 2006);  // with its scale
  EXPECT_EQ(make_codec(options_of("top_k", 0.01))->bytes(1001), 8 * 11);
  EXPECT_EQ(make_codec(options_of("top_k", 0.07))->bytes(100), 8 * 7);
  EXPECT_EQ(make_codec(options_of("top_k", 0.01))->bytes(3), 8);
  EXPECT_EQ(make_codec(options_of("top_k", 0.01))->bytes(0), 0);
  EXPECT_EQ(make_codec(options_of("top_k", 1))->bytes(5), 40);
  EXPECT_THROW(make_codec(options_of("top_k"))->bytes(Index{1} << 31), ConfigError);
}

// Whatever vector instructions make of the middle and the end of a message.
TEST(Codecs, EveryNumberIsRoundedByItself) {
  std::mt19937 random(test::seed());
  for (const std::string codec : {"bf16", "fp16"}) {
    const double precision = codec == "bf16" ? std::ldexp(1, -9) : std::ldexp(1, -12);
    for (const Index count : {0, 1, 2, 7, 8, 9, 31, 100, 1003}) {
      std::vector<Scalar> values = random_numbers(count, random);
      values.push_back(30);  // the same scale for all
      const std::vector<Scalar> arrived = sent(codec, values);
      for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_NEAR(arrived[i], values[i], 1.0001 * precision * 2 * std::abs(values[i])) << codec;
        EXPECT_EQ(arrived[i], sent(codec, {values[i], 30})[0]) << codec << " " << values[i];
        EXPECT_EQ(arrived[i], -sent(codec, {-values[i], 30})[0]) << codec << " " << values[i];
      }
      EXPECT_EQ(sent(codec, arrived), arrived) << codec;
    }
  }
}

TEST(Codecs, RoundingIsToTheNearestAndTiesGoToTheEven) {
  const auto expect_rounded = [](const std::string& codec, Scalar ulp) {
    for (const Scalar sign : {1.0F, -1.0F}) {
      for (const auto& [ulps, rounded] : {std::pair(0.0F, 0.0F),
                                          {0.5F, 0.0F},
                                          {0.51F, 1.0F},
                                          {1.0F, 1.0F},
                                          {1.49F, 1.0F},
                                          {1.5F, 2.0F},
                                          {2.5F, 2.0F},
                                          {3.5F, 4.0F}}) {
        const std::vector<Scalar> values(19, sign * (1 + ulps * ulp));
        EXPECT_EQ(sent(codec, values), std::vector<Scalar>(19, sign * (1 + rounded * ulp))) << codec << ulps;
      }
    }
  };
  expect_rounded("bf16", std::ldexp(1.0F, -7));
  expect_rounded("fp16", std::ldexp(1.0F, -10));
  EXPECT_EQ(sent("bf16", {3.14159265F}), std::vector<Scalar>{3.140625F});
  EXPECT_EQ(sent("fp16", {3.14159265F}), std::vector<Scalar>{3.140625F});
  EXPECT_EQ(sent("fp16", {0.1F}), std::vector<Scalar>{0.0999755859375F});
}

TEST(Codecs, Fp16HasAScaleForEachMessage) {
  for (const Scalar unit : {1e-30F, 1e-8F, 1.0F, 70000.0F, 1e18F, 3e38F}) {
    const std::vector<Scalar> values{unit, -unit / 3, unit / 1e6F, 0}, arrived = sent("fp16", values);
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(arrived[i] / unit, values[i] / unit, std::abs(values[i] / unit) / 2048 + 1e-11) << unit;
  }
  EXPECT_EQ(sent("fp16", {0, 0, 0}), (std::vector<Scalar>{0, 0, 0}));
  const Scalar least = std::numeric_limits<Scalar>::denorm_min();
  EXPECT_NEAR(sent("fp16", {least})[0], 0, 1e-40);
}

TEST(Codecs, ABadNumberStaysVisible) {
  std::mt19937 random(test::seed());
  for (const std::string& codec : lossy_codecs())
    for (const Scalar bad : {kNaN, -kNaN, kInfinity, -kInfinity, 1e38F})
      for (const std::size_t place : {std::size_t{0}, std::size_t{13}, std::size_t{100}}) {
        std::vector<Scalar> values = random_numbers(101, random);
        values[place] = bad;
        const Scalar found = sent(codec, values)[place];
        if (std::isnan(bad)) {
          EXPECT_TRUE(std::isnan(found)) << codec;
        } else if (std::isinf(bad)) {
          EXPECT_EQ(found, bad) << codec;
        } else {
          EXPECT_GT(found, 0.9e38F) << codec;
        }
      }
}

TEST(Codecs, TopKSendsTheLargestAndOfEqualOnesTheFirst) {
  EXPECT_EQ(sent("top_k", {1, -5, 2, 4, -3, 0, 0, 1}), (std::vector<Scalar>{0, -5, 0, 4, 0, 0, 0, 0}));
  EXPECT_EQ(sent("top_k", {2, -2, 2, 2, -2, 2, 1, 2}), (std::vector<Scalar>{2, -2, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(sent("top_k", {2, 2, 2, 1, 2, 0, 0, -9}), (std::vector<Scalar>{2, 0, 0, 0, 0, 0, 0, -9}));
  EXPECT_EQ(sent("top_k", {1, 2, 3, 2, 1, 0, 2, 2}, 0.5), (std::vector<Scalar>{0, 2, 3, 2, 0, 0, 2, 0}));
  EXPECT_EQ(sent("top_k", std::vector<Scalar>(8, 0)), std::vector<Scalar>(8, 0));
  EXPECT_EQ(sent("top_k", {0, kInfinity, kNaN, 1, 9, 9, 9, 9}).at(1), kInfinity);
  std::mt19937 random(test::seed());
  const std::vector<Scalar> values = random_numbers(1001, random);
  EXPECT_EQ(sent("top_k", values, 1), values);
  const std::vector<Scalar> arrived = sent("top_k", values, 0.1);
  EXPECT_EQ(std::ranges::count_if(arrived, [](Scalar value) { return value != 0; }), 101);
  Scalar least_sent = kInfinity, max_kept = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (arrived[i] == 0) {
      max_kept = std::max(max_kept, std::abs(values[i]));
    } else {
      EXPECT_EQ(arrived[i], values[i]);
      least_sent = std::min(least_sent, std::abs(values[i]));
    }
  }
  EXPECT_GE(least_sent, max_kept);
}

TEST(Codecs, AMessageCanBeAddedAndTakenAway) {
  for (const std::string& name : lossy_codecs()) {
    const std::unique_ptr<Codec> codec = make_codec(options_of(name, 1));
    AlignedBuffer<std::byte> message(codec->bytes(3));
    codec->encode(std::vector<Scalar>{1, -2, 4}, message.span());
    std::vector<Scalar> values{10, 10, 10};
    codec->add(message.span(), 1, values);
    EXPECT_EQ(values, (std::vector<Scalar>{11, 8, 14})) << name;
    codec->add(message.span(), -1, values);
    EXPECT_EQ(values, (std::vector<Scalar>{10, 10, 10})) << name;
  }
}

// The sum of all that arrives stays within one message's loss of the sum of all that was to be sent.
TEST(SliceWires, WithErrorFeedbackNothingIsLostButLate) {
  constexpr Index kCount = 50;
  constexpr int kSteps = 1000;  // without feedback the gap grows with them
  for (const std::string& name : lossy_codecs()) {
    double gap[2] = {};  // largest, without and with feedback
    for (const bool feedback : {false, true}) {
      std::mt19937 random(test::seed());
      const std::unique_ptr<Codec> codec = make_codec(options_of(name, 0.1));
      SliceCodec slice(*codec, {0, kCount}, kCount, feedback);
      AlignedBuffer<std::byte> message(slice.bytes());
      std::vector<double> wanted(kCount);
      std::vector<Scalar> got(kCount);
      for (int step = 0; step < kSteps; ++step) {
        std::vector<Scalar> values = random_numbers(kCount, random);
        for (Scalar& value : values) value = 0.01F * value + 1.0009F;
        for (std::size_t i = 0; i < kCount; ++i) wanted[i] += values[i];
        slice.encode(values, message.span());
        slice.add(message.span(), got);
      }
      for (std::size_t i = 0; i < kCount; ++i)
        gap[feedback] = std::max(gap[feedback], std::abs(wanted[i] - static_cast<double>(got[i])));
    }
    // A number of about 1 is rounded by up to 1/256 or 1/2048; of top 10 %, its turn comes every tenth step.
    const double one_message = name == "top_k" ? 25 : name == "bf16" ? 0.008 : 0.002;
    EXPECT_LT(gap[1], one_message) << name;
    EXPECT_GT(gap[0], 4 * one_message) << name << " loses nothing without feedback: this test sees nothing";
  }
}

TEST(SliceWires, TheLossTravelsAsItIs) {
  for (const std::string& name : lossy_codecs()) {
    const std::unique_ptr<Codec> codec = make_codec(options_of(name));
    for (const Range range : {Range{100, 117}, {100, 104}, {104, 120}, {110, 120}, {50, 60}, {104, 104}}) {
      SliceCodec slice(*codec, range, 104, true);
      const Index gradients = std::clamp<Index>(104 - range.begin, 0, range.size());
      EXPECT_EQ(slice.bytes(), codec->bytes(gradients) + 4 * (range.size() - gradients)) << name;
      std::vector<Scalar> values(static_cast<std::size_t>(range.size()));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1 / (3 + static_cast<Scalar>(i));
      AlignedBuffer<std::byte> message(slice.bytes());
      slice.encode(values, message.span());
      std::vector<Scalar> arrived(values.size(), 5);
      slice.decode(message.span(), arrived);
      for (Index i = gradients; i < range.size(); ++i) EXPECT_EQ(at(arrived, i), at(values, i)) << name;
      if (gradients >= 4) {
        EXPECT_NE(arrived, values) << name;
      }
    }
  }
}

TEST(Refusals, OrderedReductionTakesNoLossyWire) {
  for (const CodecEntry& entry : codec_catalog()) {
    test::Given run = test::typical();
    run.distribute = options_of(entry.name);
    EXPECT_NO_THROW(run.plan(4));
    run.distribute.reduction = Reduction::kOrdered;
    if (entry.name == "fp32") {
      EXPECT_NO_THROW(run.plan(4));
      continue;
    }
    test::expect_parts(test::error_text<ConfigError>([&] { run.plan(4); }),
                       {"ordered reduction with lossy compression"});
  }
}

}  // namespace lockstep::codec_test
