// Numbers as spreadsheets and other countries write them.
#include "lockstep/data/table/values/notation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

namespace lockstep::notation_test {
namespace {

const NumberNotation kGerman{.decimal = ',', .thousands = '.'};

TEST(Notation, NumbersAreReadInTheirNotation) {
  struct Case {
    const char* text;
    NumberNotation notation;
    double number;
  };
  const std::vector<Case> cases{{"12,5", {.decimal = ','}, 12.5},
                                {"-12,5", {.decimal = ','}, -12.5},
                                {"1.234,5", kGerman, 1234.5},
                                {"1.234,5-", kGerman, -1234.5},
                                {"1234,5", kGerman, 1234.5},
                                {"1.234.567", kGerman, 1234567},
                                {"1,234.5", {.thousands = ','}, 1234.5},
                                {"(1,234)", {.thousands = ','}, -1234},
                                {"1 234,5", {.decimal = ',', .thousands = ' '}, 1234.5},
                                {"1\xc2\xa0"
                                 "234,5",
                                 {.decimal = ',', .thousands = ' '},
                                 1234.5},
                                {"1\xe2\x80\xaf"
                                 "234,5",
                                 {.decimal = ',', .thousands = ' '},
                                 1234.5},
                                {"1'234.5", {.thousands = '\''}, 1234.5},
                                {"1\u2019234\u2019567.5", {.thousands = '\''}, 1234567.5},
                                {"\u221212.5", {}, -12.5},
                                {"\u2212 $12.5", {.prefix = "$"}, -12.5},
                                {"($1,234)", {.thousands = ',', .prefix = "$"}, -1234},
                                {"$12.5", {.prefix = "$"}, 12.5},
                                {"$ 12.5", {.prefix = "$"}, 12.5},
                                {"-$12.5", {.prefix = "$"}, -12.5},
                                {"$-12.5", {.prefix = "$"}, -12.5},
                                {"12.5", {.prefix = "$"}, 12.5},
                                {"12.5 %", {.suffix = "%"}, 12.5},
                                {"12,5 \xe2\x82\xac", {.decimal = ',', .suffix = "\xe2\x82\xac"}, 12.5},
                                {"+3", {.suffix = "%"}, 3},
                                {",5", {.decimal = ','}, 0.5},
                                {"1e3", {.prefix = "$"}, 1000}};
  for (const Case& each : cases) {
    const auto number = parse_number(each.text, each.notation);
    ASSERT_TRUE(number) << each.text;
    EXPECT_EQ(*number, each.number) << each.text;
  }
}

TEST(Notation, OtherTextsAreNoNumbers) {
  const std::vector<std::pair<const char*, NumberNotation>> cases{{"1.23,5", kGerman},
                                                                  {"1.2345", kGerman},
                                                                  {"1234.567", kGerman},
                                                                  {"12.345.6", kGerman},
                                                                  {"1,2,3", {.decimal = ','}},
                                                                  {"12.5", {.decimal = ','}},
                                                                  {",234", {.thousands = ','}},
                                                                  {"1,,234", {.thousands = ','}},
                                                                  {"1,234,", {.thousands = ','}},
                                                                  {"", {.decimal = ','}},
                                                                  {"-", {.decimal = ','}},
                                                                  {"()", {.decimal = ','}},
                                                                  {"--1", {.decimal = ','}},
                                                                  {"-1-", {.decimal = ','}},
                                                                  {"$", {.prefix = "$"}},
                                                                  {"12 kg", {.suffix = "%"}},
                                                                  {"inf", {.suffix = "%"}},
                                                                  {"1e999", {.suffix = "%"}}};
  for (const auto& [text, notation] : cases) EXPECT_FALSE(parse_number(text, notation)) << text;
}

std::optional<NotationCounts::Fit> best_of(const std::vector<const char*>& texts, char separator = ',') {
  NotationCounts counts;
  for (const char* text : texts) counts.add_text(text);
  return counts.best(separator);
}

TEST(Notation, IsFoundFromTheTextsOfAColumn) {
  const auto term = [](const std::vector<const char*>& texts, char separator = ',') {
    const auto fit = best_of(texts, separator);
    return fit ? fit->notation.term() : "none";
  };
  EXPECT_EQ(term({"12,5", "3,25"}), "number(decimal=comma)");
  EXPECT_EQ(term({"1.234,5", "12,5"}), "number(decimal=comma, thousands=point)");
  EXPECT_EQ(term({"1,234", "12,345,678"}), "number(thousands=comma)");
  EXPECT_EQ(term({"1,234", "12,345"}), "number(thousands=comma)") << "as most write who separate by commas";
  EXPECT_EQ(term({"1,234", "12,345"}, ';'), "number(decimal=comma)");
  EXPECT_TRUE(best_of({"1,234", "12,345"})->ambiguous);
  EXPECT_FALSE(best_of({"1,234", "12,34"})->ambiguous);
  EXPECT_EQ(term({"$5", "$1,200.50"}), "number(thousands=comma, prefix=\"$\")");
  EXPECT_EQ(term({"US$5", "US$1,200.50"}), "number(thousands=comma, prefix=\"US$\")");
  EXPECT_EQ(term({"5 %", "7.5%"}), "number(suffix=\"%\")");
  EXPECT_EQ(term({"12 345,6", "7,5"}), "number(decimal=comma, thousands=space)");
  EXPECT_EQ(term({"12-", "7.5-"}), "number()") << "a minus behind";
  EXPECT_EQ(term({"p12", "p13"}), "none");
  EXPECT_EQ(term({"red", "blue"}), "none");
  EXPECT_EQ(term({"2024-01-31"}), "none");
}

TEST(Notation, SignsAreDescribedAsWhatTheyAre) {
  const auto words = [](const std::vector<const char*>& texts) { return best_of(texts)->describe(); };
  EXPECT_EQ(words({"\u221212", "\u22127.5"}), "the minus of typography (\u2212)");
  EXPECT_EQ(words({"(12)", "(7.5)"}), "parentheses around negative ones");
  EXPECT_EQ(words({"12-", "7.5-"}), "the minus behind them");
  EXPECT_EQ(words({"1\u2019234", "1'234.5"}),
            "an apostrophe between thousands and the apostrophe of typography (\u2019)");
  EXPECT_EQ(words({"(1,234)", "1,234.5"}), "a comma between thousands and parentheses around negative ones");
}

TEST(Notation, PlainNumbersWithAPointSpeakAgainstADecimalComma) {
  NotationCounts counts;
  counts.add_text("1,234");
  for (const char* text : {"12.5", "7.25"}) counts.add_number(text, 1);
  EXPECT_EQ(counts.best(';')->notation, (NumberNotation{.thousands = ','}));
}

TEST(Notation, OtherAffixesAreNotRead) {
  const auto fit = best_of({"$5", "$6",
                            "\xe2\x82\xac"
                            "7"});
  EXPECT_EQ(fit->notation.prefix, "$");
  EXPECT_EQ(fit->texts, 2);
}

TEST(Notation, CountsMergeAsIfSeenAtOnce) {
  const std::vector<const char*> texts{"12,5", "x", "$3", "2024-01-31", "1.234,5", "y"};
  NotationCounts whole;
  NotationCounts parts[2];
  for (std::size_t i = 0; i < texts.size(); ++i) {
    whole.add_text(texts[i]);
    parts[i % 2].add_text(texts[i]);
  }
  whole.add_number("007", 7);
  parts[1].add_number("007", 7);
  parts[1].merge(parts[0]);
  MessageWriter message;
  message(parts[1]);
  MessageReader reader(message.bytes());
  NotationCounts read;
  reader(read);
  EXPECT_EQ(read.best(',')->notation, whole.best(',')->notation);
  EXPECT_EQ(read.best(',')->texts, whole.best(',')->texts);
  EXPECT_EQ(read.best(',')->example, whole.best(',')->example);
  EXPECT_EQ(read.others().by_count().size(), 3U);
  EXPECT_EQ(read.other_example(), "2024-01-31");
  EXPECT_EQ(read.best_date()->texts, 1);
  EXPECT_EQ(read.best_date()->example, "2024-01-31");
  EXPECT_EQ(read.no_dates().distinct(), whole.no_dates().distinct());
  EXPECT_EQ(read.leading_zeros(), 1);
}

TEST(Notation, CodesAreNoticed) {
  NotationCounts counts;
  counts.add_number("0", 0);
  counts.add_number("0.5", 0.5);
  counts.add_number("-0", 0);
  counts.add_number("9007199254740992", 9007199254740992.0);
  counts.add_number("1e300", 1e300);
  EXPECT_EQ(counts.leading_zeros(), 0);
  EXPECT_EQ(counts.beyond_double(), 0);
  counts.add_number("01", 1);
  counts.add_number("1234567890123456789", 1234567890123456789.0);
  EXPECT_EQ(counts.leading_zeros(), 1);
  EXPECT_EQ(counts.leading_zero_example(), "01");
  EXPECT_EQ(counts.beyond_double(), 1);
}

TEST(Notation, TheFormOfDatesFollowsFromAllOfThem) {
  const auto best = [](const std::vector<const char*>& texts) {
    NotationCounts counts;
    for (const char* text : texts) counts.add_text(text);
    return counts.best_date();
  };
  EXPECT_EQ(best({"2024-01-31", "2024-02-01"})->form, DateForm::kYmd);
  EXPECT_EQ(best({"1/2/2024", "31/1/2024"})->form, DateForm::kDmy);
  EXPECT_EQ(best({"1/2/2024", "1/31/2024"})->form, DateForm::kMdy);
  EXPECT_EQ(best({"10:30", "23:59:59"})->form, DateForm::kTime);
  EXPECT_FALSE(best({"1/2/2024", "31/1/2024"})->ambiguous);
  EXPECT_TRUE(best({"1/2/2024", "3/4/2024"})->ambiguous);
  EXPECT_EQ(best({"2024-01-31 10:30", "2024-01-31"})->times, 1);
  EXPECT_EQ(best({"red", "2024-01-31"})->texts, 1);
  EXPECT_FALSE(best({"red", "10-20", "1.2", "A-1-2"}));
}

}  // namespace
}  // namespace lockstep::notation_test
