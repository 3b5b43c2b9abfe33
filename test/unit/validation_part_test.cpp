// What data.validation says in place of a file.
#include "lockstep/base/errors.h"
#include "lockstep/config/command_line.h"
#include "support/error_text.h"
#include "support/known_names.h"

namespace lockstep::test::validation_part_test {

using By = ValidationPart::By;

std::optional<ValidationPart> parse(std::string_view text) {
  return parse_validation_part("data.validation", text);
}

std::string refusal(const std::string& text) {
  return error_text<ConfigError>([&] { parse(text); });
}

TEST(ValidationPart, AnyOtherTextIsAFile) {
  for (const char* file : {"", "a.csv", "stratified", "stratified(0.1).csv", "./stratified(0.1)", "x(0.1)",
                           "time", "data/time(date, 0.1)", "share", "fold"})
    EXPECT_FALSE(parse(file)) << file;
}

TEST(ValidationPart, HasAShareAndPerhapsAColumn) {
  EXPECT_EQ(parse("share(0.25)")->by, By::kRecord);
  EXPECT_EQ(parse("share (0.25)")->share, 0.25);
  EXPECT_EQ(parse("stratified(0.25)")->share, 0.25);
  const ValidationPart time = parse(" time( signup date , 1e-1 ) ").value();
  EXPECT_EQ(std::tuple(time.by, time.column, time.share, time.folds),
            std::tuple(By::kTime, "signup date", 0.1, 0));
  EXPECT_EQ(parse("group(a, b, 0.5)")->column, "a, b") << "the last comma is before the share";
  EXPECT_EQ(parse("group(\"a, b\", 0.5)")->column, "a, b");
  for (const char* text : {"stratified()", "stratified(y, 0.1)", "stratified(ten)"})
    expect_parts(refusal(text), {text, "expected the share", "\"stratified(0.1)\""});
  expect_parts(refusal("share(y, 0.1)"), {"share(y, 0.1)", "expected the share", "\"share(0.1)\""});
  for (const char* text : {"time(0.1)", "time(, 0.1)", "time(date)", "time(date, x)"})
    expect_parts(refusal(text), {text, "expected a column and the share", "\"time(date, 0.1)\""});
  for (const char* text : {"stratified(0)", "stratified(1)", "group(g, -0.1)", "share(10)"})
    expect_parts(refusal(text), {text, "above 0 and below 1"});
}

TEST(ValidationPart, IsASpanOfTime) {
  const ValidationPart open = parse("time(sign up, from = 2024-01-01)").value();
  EXPECT_EQ(std::tuple(open.by, open.column, open.from, open.to, open.folds),
            std::tuple(By::kTime, "sign up", "2024-01-01", "", 0));
  const ValidationPart closed = parse("time(date, to=\"Dec 31, 2024\", from='1 Jan')").value();
  EXPECT_EQ(closed.from, "1 Jan");
  EXPECT_EQ(closed.to, "Dec 31, 2024");
  for (const ValidationPart& part : {open, closed}) {
    const ValidationPart again = parse(to_string(part)).value();
    EXPECT_EQ(std::tuple(again.column, again.from, again.to), std::tuple(part.column, part.from, part.to));
  }
  for (const char* text : {"time(date, to = 2024-01-01)", "time(from = 2024-01-01)"})
    expect_parts(refusal(text), {text, "from = 2024-01-01"});
  for (const char* text : {"time(d, from = 2023-03-01, from = x)", "time(d, from = 1, to = 2, to = 3)"})
    expect_parts(refusal(text), {text, "stands twice"});
}

TEST(ValidationPart, OfTheTestSetIsNoFold) {
  DataOptions data;
  EXPECT_FALSE(test_part(data));
  data.test_part = "time(date, 0.2)";
  EXPECT_EQ(test_part(data)->share, 0.2);
  for (const char* text : {"fold(1/3)", "test.csv"}) {
    data.test_part = text;
    expect_parts(error_text<ConfigError>([&] { test_part(data); }), {text, "data.test"});
  }
}

TEST(ValidationPart, IsOneOfSeveralFolds) {
  const ValidationPart fold = parse("fold(2/5)").value();
  EXPECT_EQ(std::tuple(fold.fold, fold.folds, fold.by, fold.share), std::tuple(2, 5, By::kRecord, 0));
  EXPECT_EQ(parse("fold( 1 / 3 ,by=class )")->by, By::kClass);
  const ValidationPart group = parse("fold(1/3, by = group(a (b, c)))").value();
  EXPECT_EQ(group.by, By::kGroup);
  EXPECT_EQ(group.column, "a (b, c)");
  EXPECT_EQ(parse("fold(1/3, by = column('part'))")->column, "part");
  for (const char* text : {"fold()", "fold(2)", "fold(0/5)", "fold(6/5)", "fold(1/1)", "fold(1/1001)",
                           "fold(x/5)", "fold(1/5/2)", "fold(0.5)"})
    expect_parts(refusal(text), {text, "the number of a fold of 2 to 1000 folds", "\"fold(2/5)\""});
  for (const char* text :
       {"fold(1/3, class)", "fold(1/3, by = group)", "fold(1/3, by = group())", "fold(1/3, by = class(y))",
        "fold(1/3, by = chance)", "fold(1/3, by = time(t)", "fold(1/3, of = class)"})
    expect_parts(refusal(text), {text, "by = record, class", "\"fold(2/5, by = group(customer))\""});
}

TEST(ValidationPart, IsWrittenSoThatItIsReadAgain) {
  for (const char* text :
       {"share(0.1)", "stratified(0.25)", "time(date, 0.1)", "group(a, b, 0.5)", "group(\" a\", 0.5)",
        "fold(2/5)", "fold(2/5, by = class)", "fold(1/2, by = time(when))", "fold(1/2, by = group(\"'x'\"))",
        "fold(3/3, by = column(part))"})
    EXPECT_EQ(to_string(parse(text).value()), text);
}

TEST(ValidationPart, IsNamedWhereAKeyOfItsOwnIsGivenForAShareOrAFold) {
  for (const char* key : {"validation_share", "folds", "fold", "fold_by", "fold_column"})
    expect_parts(error_text<ConfigError>([&] {
                   load_config({}, {"a.toml", fmt::format("[data]\n{} = 2\n", key)}, options());
                 }),
                 {fmt::format("a.toml:2: unknown key 'data.{}'", key), "Lockstep has data.validation = "});
}

}  // namespace lockstep::test::validation_part_test
