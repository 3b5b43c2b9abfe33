#include "lockstep/base/json.h"

#include "data/table/sources/sparse_source.h"
#include "lockstep/data/table/values/schema.h"
#include "lockstep/train/storage/checkpoint.h"
#include "support/error_text.h"

namespace lockstep::test::json_test {

using Json = nlohmann::json;

TEST(WholeNumber, IsThatOrAnError) {
  EXPECT_EQ(whole_number(Json(-7)), -7);
  EXPECT_EQ(whole_number(Json(std::numeric_limits<Index>::max())), std::numeric_limits<Index>::max());
  EXPECT_EQ(error_text<DataError>([] { whole_number(Json::parse("8e37")); }),
            "8e+37 where a whole number belongs");
  for (const char* text :
       {"1.5", "1e3", "88888888888888888888888888888888888888", "\"3\"", "[3]", "null", "true"})
    EXPECT_THROW(whole_number(Json::parse(text)), DataError) << text;
}

TEST(WholeNumber, OfAnArrayIsEachOfThem) {
  EXPECT_EQ(whole_numbers(Json::parse("[3, 0, -1]")), (std::vector<Index>{3, 0, -1}));
  EXPECT_THROW(whole_numbers(Json::parse("[3, 0.5]")), DataError);
  EXPECT_THROW(whole_numbers(Json::parse("3")), Json::exception);
}

std::string nested(Index depth) {
  return std::string(static_cast<std::size_t>(depth), '[') +
         std::string(static_cast<std::size_t>(depth), ']');
}

TEST(ParseJson, TakesWhatIsNestedUpToTheLimit) {
  EXPECT_EQ(parse_json<Json>(R"({"a": [1, {"b": "[[["}]})").at("a").at(1).at("b"), "[[[");
  EXPECT_NO_THROW(parse_json<Json>(nested(kMaxJsonDepth)));
  EXPECT_NO_THROW(parse_json<Json>(R"({"a": "\\\"[{", "b": ")" + std::string(1000, '[') + R"("})"))
      << "brackets in strings";
  std::string wide = "[";
  for (int i = 0; i < 10'000; ++i) wide += "[],{},";
  EXPECT_EQ(parse_json<Json>(wide + "0]").size(), 20'001U);
}

TEST(ParseJson, RefusesWhatIsDeeperThanTheStack) {
  EXPECT_EQ(error_text<DataError>([] { parse_json<Json>("  " + nested(300'000)); }),
            "its JSON is nested 300,000 deep (at byte 300,002), expected at most 100");
  EXPECT_THROW(parse_json<Json>(nested(kMaxJsonDepth + 1)), DataError);
  std::string objects;
  for (int i = 0; i < 300'000; ++i) objects += R"({"a":)";
  EXPECT_THROW(parse_json<Json>(objects), DataError) << "not closed";
}

TEST(ParseJson, RefusesANumberThatNoDoubleHolds) {
  expect_parts(error_text<DataError>([] { parse_json<Json>(R"({"steps": 1e999})"); }), {"1e999"});
  EXPECT_EQ(parse_json<Json>("1e300").get<double>(), 1e300);
}

TEST(ParseJson, IsWhatEveryReaderUses) {
  const std::string deep = nested(300'000);
  const auto expect_refusal = [](const auto& read) {
    expect_parts(error_text<DataError>(read), {"nested 300,001 deep", "at most 100"});
  };
  const std::string manifest = R"({"xxh3":"00","checkpoint":)" + deep + "}";
  expect_refusal([&] { parse_manifest(manifest, "manifest.json"); });
  const std::string parts = R"({"xxh3":"00","parts":)" + deep + "}";
  expect_refusal([&] { parse_parts(parts, "parts.json"); });
  const std::string schema = R"({"version":)" + deep + "}";
  expect_refusal([&] { parse_schema(schema, "schema.json"); });
  expect_refusal([&] { parse_sparse_schema(schema); });
}

TEST(ParseJson, SaysShortlyWhatIsNoJson) {
  expect_parts(error_text<DataError>([] { parse_json<Json>("[1,}"); }), {"it is no JSON", "column 4"});
  const std::string said =
      error_text<DataError>([] { parse_json<Json>("\"" + std::string(1'000'000, 'a')); });
  EXPECT_LT(said.size(), 500U) << said.substr(0, 500);
}

}  // namespace lockstep::test::json_test
