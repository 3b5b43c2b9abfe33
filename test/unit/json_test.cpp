#include "lockstep/base/json.h"

#include <gtest/gtest.h>

#include <limits>

#include "support/error_text.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

TEST(WholeNumber, IsThatOrAnError) {
  EXPECT_EQ(whole_number(Json(-7)), -7);
  EXPECT_EQ(whole_number(Json(std::numeric_limits<Index>::max())), std::numeric_limits<Index>::max());
  EXPECT_EQ(test::error_text<DataError>([] { whole_number(Json::parse("8e37")); }),
            "8e+37 where a whole number belongs");
  for (const char* text :
       {"1.5", "1e3", "88888888888888888888888888888888888888", "\"3\"", "[3]", "null", "true"}) {
    EXPECT_THROW(whole_number(Json::parse(text)), DataError) << text;
  }
}

TEST(WholeNumber, OfAnArrayIsEachOfThem) {
  EXPECT_EQ(whole_numbers(Json::parse("[3, 0, -1]")), (std::vector<Index>{3, 0, -1}));
  EXPECT_THROW(whole_numbers(Json::parse("[3, 0.5]")), DataError);
  EXPECT_THROW(whole_numbers(Json::parse("3")), Json::exception);
}

}  // namespace
}  // namespace lockstep
