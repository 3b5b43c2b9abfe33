// Dates as Python and the program write them; more of them: cases/dates.case.
#include "lockstep/data/table/values/notation.h"

#include "lockstep/data/table/values/number.h"
#include "lockstep/data/table/values/schema.h"
#include "support/torch_references.h"

namespace lockstep::date_test {

TEST(Date, AreThoseOfPythonInAllForms) {
  for (const nlohmann::json& reference : test::torch_references("dates", "date_references.json")) {
    const auto text = reference[0].get<std::string>();
    const auto form = std::ranges::find(kDateForms, reference[1].get<std::string>(), &Named<DateForm>::name);
    ASSERT_NE(form, std::end(kDateForms));
    const auto date = read_date(text, form->value);
    ASSERT_TRUE(date) << text;
    EXPECT_NEAR(date->days, reference[2].get<double>(), 1e-9) << text;
    const bool ends_compact =
        has_short_years(form->value) && std::ranges::all_of(text.substr(0, 6), is_digit);
    if (form->value >= DateForm::kEpoch || ends_compact || parse_number(text)) continue;
    // Found by how it begins, and of no other form, but for days that may be months.
    Index fits = 0;
    bool found = false;
    for (const DateForm each : possible_forms(text)) {
      fits += parse_date(text, each) ? 1 : 0;
      found = found || each == form->value;
    }
    EXPECT_TRUE(found) << text;
    const bool two = form->value == DateForm::kDmy || form->value == DateForm::kMdy;
    EXPECT_LE(fits, two ? 2 : 1) << text;
  }
}

TEST(Date, IsWrittenWithItsTimeToTheMinute) {
  EXPECT_EQ(write_date(20088), "2024-12-31");
  EXPECT_EQ(write_date(20088.75), "2024-12-31 18:00");
  EXPECT_EQ(write_date(-0.25), "1969-12-31 18:00");
  EXPECT_EQ(write_date(18628 + 799.0 / 86'400), "2021-01-01 00:13:19");
  EXPECT_EQ(write_date(18628 + 199.75 / 86'400), "2021-01-01 00:03:19.750");
  EXPECT_EQ(write_date(18628 - 1e-4 / 86'400), "2021-01-01") << "of the next day, rounded";
  EXPECT_EQ(write_date(0.75, DateForm::kTime), "18:00");
  EXPECT_EQ(write_date(1, DateForm::kTime), "24:00");
}

}  // namespace lockstep::date_test
