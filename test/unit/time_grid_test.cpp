// Patterns of times and how they are written, as pandas has them; more of them: cases/windows.case.
#include "data/windows/time_grid.h"

#include "data/windows/time_layout.h"
#include "support/torch_references.h"

namespace lockstep::time_grid_test {

// The form by which all texts are dates.
std::optional<DateForm> form_of(const std::vector<std::string>& texts) {
  for (const DateForm form : {DateForm::kYmd, DateForm::kMdy, DateForm::kDmy, DateForm::kYearMonth,
                              DateForm::kMonthYear, DateForm::kWeek, DateForm::kOrdinal}) {
    if (std::ranges::all_of(texts,
                            [form](const std::string& text) { return parse_date(text, form).has_value(); }))
      return form;
  }
  return std::nullopt;
}

TEST(TimeGrid, GoesOnAsPandasDoes) {
  for (const nlohmann::json& reference : test::torch_references("times", "pandas_references.json")) {
    auto texts = reference["text"].get<std::vector<std::string>>();
    const auto form = form_of(texts);
    ASSERT_TRUE(form) << texts.front();
    const auto known = texts.size() - reference["next"].get<std::size_t>();
    TimeLayout layout(form);
    std::vector<double> times;
    for (const std::string& text : std::span(texts).first(known)) {
      layout.add(text);
      times.push_back(*parse_date(text, *form));
    }
    const TimeGrid grid(times, true);
    EXPECT_TRUE(grid.holds()) << texts.front();
    const TimeGrid kept(grid.term());
    for (std::size_t step = 1; known + step - 1 < texts.size(); ++step) {
      const double time = kept.after(times.back(), static_cast<Index>(step));
      EXPECT_EQ(layout.write(time), texts[known + step - 1]) << grid.describe() << ", from " << texts.front();
    }
    EXPECT_EQ(grid.steps(times[2], times[5]), 3) << grid.describe() << ", from " << texts.front();
  }
}

TEST(TimeGrid, HoldsWithFewGapsAndFewOthers) {
  std::vector<double> days;
  for (Index i = 0; i < 400; ++i) {
    const bool holiday = i % 50 == 3;
    if (i % 7 < 5 && !holiday) days.push_back(static_cast<double>(19'723 + i));  // from a Monday on
  }
  TimeGrid grid(days, true);
  EXPECT_EQ(grid.describe(), "5 times a week, the same in all weeks");
  EXPECT_NEAR(grid.coverage(), 0.98, 0.02);
  EXPECT_EQ(grid.seasons(), (std::vector<Index>{5, 260}));
  // Half of the days by chance are no pattern of weeks; one third is none at all.
  std::vector<double> sparse;
  std::vector<double> sparser;
  for (Index i = 0; i < 400; ++i) {
    if (i * i % 11 < 5) sparse.push_back(static_cast<double>(i));
    if (i * i % 13 < 4) sparser.push_back(static_cast<double>(i));
  }
  EXPECT_EQ(TimeGrid(sparse, true).describe(), "1 day");
  EXPECT_FALSE(TimeGrid(sparser, false).holds());
  EXPECT_THROW(TimeGrid("3 1 1 0 1 0 0"), Error);
}

}  // namespace lockstep::time_grid_test
