// A text that is a number in some notation consists of a sign, a prefix, a core and a suffix. The core holds
// digits and what stands between them. Which notations read it is found by trying all of them: a decimal sign
// stands once, behind it are digits only, and between thousands all groups but the first have three digits.
// So "1,234" is read by two of them, and only the other values of the column tell which one is meant.
#include "lockstep/data/table/values/notation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "lockstep/base/text.h"
#include "lockstep/data/table/values/number.h"

namespace lockstep {
namespace {

struct Form {
  char decimal;
  char thousands;
};
// In this order one is preferred to the others that read as many texts.
constexpr std::array kNumberForms{Form{'.', 0},   Form{'.', ','}, Form{',', 0},   Form{',', '.'},
                                  Form{',', ' '}, Form{'.', ' '}, Form{'.', '\''}};
constexpr std::size_t kPointAndComma = 1;
constexpr std::size_t kDecimalComma = 2;
constexpr std::size_t kCommaAndPoint = 3;
constexpr std::size_t kCommaAndSpace = 4;
constexpr std::size_t kPointAndSpace = 5;

// Signs before or behind amounts, one before those that it ends with. Letters in general are none: "p12" is a
// name.
constexpr std::array<std::string_view, 18> kAffixes{"US$", "R$",  "%",   "$",   "€",  "£",
                                                    "¥",   "₹",   "₽", "₩",   "₺",  "EUR",
                                                    "USD", "GBP", "CHF", "JPY", "kr", "zł"};

constexpr std::string_view kMinus = "\xe2\x88\x92";       // U+2212
constexpr std::string_view kApostrophe = "\xe2\x80\x99";  // U+2019

// Signs that any notation reads: those of one byte stand at the end.
constexpr std::array<std::pair<std::string_view, const char*>, 4> kSigns{
    {{")", "parentheses around negative ones"},
     {"-", "the minus behind them"},
     {kMinus, "the minus of typography (\xe2\x88\x92)"},
     {kApostrophe, "the apostrophe of typography (\xe2\x80\x99)"}}};

// The length of the blank that `text` starts with, a no-break space (U+00A0, U+202F, U+2009) counted; 0:
// none.
std::size_t blank_length(std::string_view text) {
  if (text.starts_with(' ') || text.starts_with('\t')) return 1;
  if (text.starts_with("\xc2\xa0")) return 2;
  if (text.starts_with("\xe2\x80\xaf") || text.starts_with("\xe2\x80\x89")) return 3;
  return 0;
}

std::string_view without_blanks(std::string_view text) {
  while (const std::size_t length = blank_length(text)) text.remove_prefix(length);
  for (;;) {
    std::size_t length = 0;
    for (const std::size_t tried : {std::size_t{1}, std::size_t{2}, std::size_t{3}}) {
      if (text.size() >= tried && blank_length(text.substr(text.size() - tried)) == tried) length = tried;
    }
    if (length == 0) return text;
    text.remove_suffix(length);
  }
}

// Takes `affix` off one end of the text; false if it does not stand there.
bool take_prefix(std::string_view& text, std::string_view affix) {
  if (affix.empty() || !text.starts_with(affix)) return false;
  text = without_blanks(text.substr(affix.size()));
  return true;
}
bool take_suffix(std::string_view& text, std::string_view affix) {
  if (affix.empty() || !text.ends_with(affix)) return false;
  text = without_blanks(text.substr(0, text.size() - affix.size()));
  return true;
}

// Takes the marks of a negative number off: "-12", "12-", "(12)". A plus before it goes, too.
void take_sign(std::string_view& text, bool& negative) {
  if (text.size() > 2 && text.front() == '(' && text.back() == ')' && !negative) {
    negative = true;
    text = without_blanks(text.substr(1, text.size() - 2));
  } else if (take_prefix(text, "-") || take_prefix(text, kMinus) || take_suffix(text, "-")) {
    negative = true;
  } else {
    take_prefix(text, "+");
  }
}

// The length of the sign between thousands that `text` starts with; 0: none.
std::size_t thousands_length(std::string_view text, char thousands) {
  if (thousands == ' ') return blank_length(text);
  if (thousands == '\'' && text.starts_with(kApostrophe)) return kApostrophe.size();
  return thousands != 0 && text.starts_with(thousands) ? 1 : 0;
}

// The core of a number in the plain notation, for the parser of those; empty if it does not fit.
struct PlainText {
  std::array<char, 64> bytes{};
  std::size_t size = 0;
  std::string_view view() const { return {bytes.data(), size}; }
};

bool to_plain(std::string_view core, const Form& form, PlainText& plain) {
  if (core.empty() || core.size() >= plain.bytes.size()) return false;
  Index group = 0;  // digits since the last sign between thousands
  bool grouped = false;
  bool behind_decimal = false;
  bool digits = false;
  plain.size = 0;
  for (std::size_t i = 0; i < core.size();) {
    const char c = core[i];
    if (is_digit(c)) {
      plain.bytes[plain.size++] = c;
      ++group;
      digits = true;
      ++i;
    } else if (c == form.decimal && !behind_decimal) {
      if (grouped && group != 3) return false;
      plain.bytes[plain.size++] = '.';
      behind_decimal = true;
      ++i;
    } else if (const std::size_t length = thousands_length(core.substr(i), form.thousands);
               length > 0 && !behind_decimal) {
      if (grouped ? group != 3 : group < 1 || group > 3) return false;
      grouped = true;
      group = 0;
      i += length;
    } else {
      return false;
    }
  }
  return digits && (behind_decimal || !grouped || group == 3);
}

std::optional<double> parse_core(std::string_view core, const Form& form) {
  PlainText plain;
  if (to_plain(core, form, plain)) return parse_number(plain.view());
  // With an exponent, as programs write very large and very small numbers.
  if (form.decimal == '.') return parse_number(core);
  if (core.find('.') != std::string_view::npos || core.find_first_of("eE") == std::string_view::npos)
    return std::nullopt;
  std::string point(core);
  std::ranges::replace(point, form.decimal, '.');
  return parse_number(point);
}

// The parts of a text that may be a number with one of the known affixes.
struct NumberParts {
  std::string_view prefix;
  std::string_view core;
  std::string_view suffix;
};

NumberParts split(std::string_view text) {
  NumberParts parts{.prefix = {}, .core = without_blanks(text), .suffix = {}};
  bool negative = false;
  take_sign(parts.core, negative);
  for (const std::string_view affix : kAffixes) {
    if (parts.prefix.empty() && take_prefix(parts.core, affix)) parts.prefix = affix;
    if (parts.suffix.empty() && take_suffix(parts.core, affix)) parts.suffix = affix;
  }
  take_sign(parts.core, negative);
  return parts;
}

constexpr auto kDmy = static_cast<std::size_t>(DateForm::kDmy);
constexpr auto kMdy = static_cast<std::size_t>(DateForm::kMdy);

// The first text in the order of bytes, so that it does not matter who has seen which.
void take_least(std::string& least, std::string_view text) {
  if (!text.empty() && (least.empty() || text < least)) least = text;
}

// For people: what is not plain in the notation.
std::vector<std::string> parts_of(const NumberNotation& notation) {
  std::vector<std::string> parts;
  if (notation.decimal != '.') parts.emplace_back("a decimal comma");
  if (notation.thousands != 0) {
    parts.push_back(fmt::format("{} {} between thousands", notation.thousands == '\'' ? "an" : "a",
                                word_of(kNumberSigns, notation.thousands)));
  }
  if (!notation.prefix.empty()) parts.push_back(fmt::format("{} before them", in_quotes(notation.prefix)));
  if (!notation.suffix.empty()) parts.push_back(fmt::format("{} behind them", in_quotes(notation.suffix)));
  return parts;
}

}  // namespace

std::string NumberNotation::term() const {
  std::vector<std::string> arguments;
  if (decimal != '.' && thousands != '.')
    arguments.push_back(fmt::format("decimal={}", word_of(kNumberSigns, decimal)));
  if (thousands != 0) arguments.push_back(fmt::format("thousands={}", word_of(kNumberSigns, thousands)));
  if (!prefix.empty()) arguments.push_back(fmt::format("prefix=\"{}\"", prefix));
  if (!suffix.empty()) arguments.push_back(fmt::format("suffix=\"{}\"", suffix));
  return fmt::format("number({})", fmt::join(arguments, ", "));
}

std::string NumberNotation::describe() const {
  const std::vector<std::string> parts = parts_of(*this);
  return parts.empty() ? "another sign of negative ones" : fmt::format("{}", fmt::join(parts, " and "));
}

std::string NotationCounts::Fit::describe() const {
  NumberNotation shown = notation;
  if (!decimals) shown.decimal = '.';
  std::vector<std::string> parts = parts_of(shown);
  parts.insert(parts.end(), signs.begin(), signs.end());
  return fmt::format("{}", fmt::join(parts, " and "));
}

std::optional<double> parse_number(std::string_view text, const NumberNotation& notation) {
  text = without_blanks(text);
  bool negative = false;
  take_sign(text, negative);
  take_prefix(text, notation.prefix);
  take_suffix(text, notation.suffix);
  if (!negative) take_sign(text, negative);
  const auto number = parse_core(text, {.decimal = notation.decimal, .thousands = notation.thousands});
  if (!number || (negative && *number < 0)) return std::nullopt;
  return negative ? -*number : *number;
}

// Whether a sign stands between thousands only: "1.049", "12.345.678".
static bool is_grouped(std::string_view core, char sign) {
  PlainText ignored;
  return core.front() != '0' && core.find(sign) != std::string_view::npos &&
         to_plain(core, {.decimal = '\0', .thousands = sign}, ignored);
}

void NotationCounts::count_signs(std::string_view core) {
  for (const char sign : {'.', ','}) {
    if (core.find(sign) == std::string_view::npos) continue;
    Signed& of = sign == '.' ? points_ : commas_;
    ++of.numbers;
    if (!is_grouped(core, sign)) return;
    ++of.grouped;
    take_least(group_example_, core);
    return;
  }
  hundreds_ += core.size() == 3 ? 1 : 0;
  large_wholes_ += core.size() > 3 ? 1 : 0;
}

bool NotationCounts::may_be_grouped(char sign) const {
  const Signed& of = signed_of(sign);
  const Signed& other = signed_of(sign == '.' ? ',' : '.');
  return of.grouped > 0 && of.grouped == of.numbers && other.numbers == 0 && large_wholes_ == 0;
}

void NotationCounts::count_affix(std::vector<Affix>& affixes, const Affix& affix) {
  constexpr std::size_t kMaxAffixes = 16;
  const auto known = std::ranges::find_if(affixes, [&affix](const Affix& each) {
    return each.prefix == affix.prefix && each.suffix == affix.suffix;
  });
  if (known == affixes.end()) {
    if (affixes.size() < kMaxAffixes) affixes.push_back(affix);
    return;
  }
  known->count += affix.count;
  take_least(known->example, affix.example);
}

// A number with letters or signs behind it, which may be a unit: "57,2 m²", "172cm". False: it is none.
bool NotationCounts::add_unit(std::string_view text) {
  constexpr std::size_t kLongest = 12;
  text = without_blanks(text);
  const std::size_t last_digit = text.find_last_of("0123456789");
  const std::string_view unit = without_blanks(text.substr(last_digit + 1));
  const NumberParts parts = split(text.substr(0, last_digit + 1));
  if (unit.empty() || unit.size() > kLongest || !parts.prefix.empty()) return false;
  bool fits = false;
  for (std::size_t i = 0; i < kNumberForms.size(); ++i) {
    if (!parse_core(parts.core, kNumberForms[i])) continue;
    ++unit_fits_[i];
    fits = true;
  }
  if (!fits) return false;
  count_signs(parts.core);
  count_affix(units_, {.prefix = {}, .suffix = std::string(unit), .count = 1, .example = std::string(text)});
  return true;
}

void NotationCounts::add_text(std::string_view text) {
  if (std::ranges::none_of(text, is_digit)) {
    take_least(other_example_, text);
    others_.add(text);
    no_dates_.add(text);
    return;
  }
  ++digit_texts_;
  const NumberParts parts = split(text);
  bool fits = false;
  for (std::size_t i = 0; i < kNumberForms.size(); ++i) {
    if (!parse_core(parts.core, kNumberForms[i])) continue;
    ++fits_[i];
    fits = true;
  }
  if (!fits) {
    if (add_unit(text)) {
      no_dates_.add(text);
    } else {
      add_date(text);
    }
    others_.add(text);
    take_least(other_example_, text);
    return;
  }
  count_signs(parts.core);
  no_dates_.add(text);
  take_least(example_, text);
  count_affix(affixes_, {.prefix = std::string(parts.prefix),
                         .suffix = std::string(parts.suffix),
                         .count = 1,
                         .example = std::string(text)});
  for (std::size_t i = 0; i < kSigns.size(); ++i) {
    const std::string_view sign = kSigns[i].first;
    signs_[i] += sign.size() == 1 ? text.ends_with(sign) : text.find(sign) != std::string_view::npos;
  }
}

void NotationCounts::add_date(std::string_view text) {
  bool fits = false;
  bool has_time = false;
  for (const DateForm form : possible_forms(text)) {
    const auto date = read_date(text, form);
    if (!date) continue;
    ++date_fits_[static_cast<std::size_t>(form)];
    take_least(date_examples_[static_cast<std::size_t>(form)], text);
    fits = true;
    has_time = date->has_time;
    if (!has_short_years(form)) break;  // it is of one form
  }
  dates_ += fits ? 1 : 0;
  times_ += has_time ? 1 : 0;
  if (!fits) no_dates_.add(text);
}

std::optional<NotationCounts::DateFit> NotationCounts::best_date() const {
  const auto best = static_cast<std::size_t>(std::ranges::max_element(date_fits_) - date_fits_.begin());
  if (date_fits_[best] == 0) return std::nullopt;
  DateFit fit{.form = static_cast<DateForm>(best),
              .texts = date_fits_[best],
              .times = times_,
              .example = date_examples_[best],
              .ambiguous = (best == kDmy || best == kMdy) && date_fits_[kDmy] == date_fits_[kMdy]};
  if (fit.texts == dates_) return fit;
  for (std::size_t i = 0; i < kTextDateForms; ++i) {
    const std::string& example = date_examples_[i];
    if (i == best || example.empty() || (fit.other && read_date(example, fit.form))) continue;
    fit.other = static_cast<DateForm>(i);
    fit.other_example = example;
  }
  return fit;
}

void NotationCounts::add_number(std::string_view text, double number) {
  constexpr double kExact = 9007199254740992;  // 2^53
  ++plain_numbers_;
  exponents_ +=
      text.find_first_of("eE") < text.size() && text.find_first_of(".-+") == std::string_view::npos ? 1 : 0;
  if (text.find('.') != std::string_view::npos) {
    ++with_point_;
  } else if (std::abs(number) > kExact && text.find_first_of("eE") == std::string_view::npos) {
    ++beyond_double_;
  }
  const std::size_t first = text.starts_with('-') || text.starts_with('+') ? 1 : 0;
  count_signs(text.substr(first));
  if (text.size() < first + 2 || text[first] != '0' || !is_digit(text[first + 1])) return;
  ++leading_zeros_;
  take_least(zero_example_, text);
}

void NotationCounts::merge(const NotationCounts& other) {
  for (std::size_t i = 0; i < kNumberForms.size(); ++i) fits_[i] += other.fits_[i];
  for (std::size_t i = 0; i < kSigns.size(); ++i) signs_[i] += other.signs_[i];
  for (const auto& [mine, theirs] :
       {std::pair(&points_, &other.points_), std::pair(&commas_, &other.commas_)}) {
    mine->numbers += theirs->numbers;
    mine->grouped += theirs->grouped;
  }
  hundreds_ += other.hundreds_;
  large_wholes_ += other.large_wholes_;
  take_least(group_example_, other.group_example_);
  with_point_ += other.with_point_;
  leading_zeros_ += other.leading_zeros_;
  beyond_double_ += other.beyond_double_;
  for (std::size_t i = 0; i < date_fits_.size(); ++i) {
    date_fits_[i] += other.date_fits_[i];
    take_least(date_examples_[i], other.date_examples_[i]);
  }
  dates_ += other.dates_;
  times_ += other.times_;
  take_least(zero_example_, other.zero_example_);
  take_least(example_, other.example_);
  take_least(other_example_, other.other_example_);
  for (const Affix& each : other.affixes_) count_affix(affixes_, each);
  for (const Affix& each : other.units_) count_affix(units_, each);
  for (std::size_t i = 0; i < kNumberForms.size(); ++i) unit_fits_[i] += other.unit_fits_[i];
  digit_texts_ += other.digit_texts_;
  plain_numbers_ += other.plain_numbers_;
  exponents_ += other.exponents_;
  others_.merge(other.others_);
  no_dates_.merge(other.no_dates_);
}

// The form that reads most of the texts, `fits` of each; nothing if none reads any.
std::optional<NotationCounts::Choice> NotationCounts::choose_form(std::span<const Index> fits,
                                                                  const FileSigns& file) const {
  // A plain number with a point is none with a decimal comma, unless the point stands between thousands.
  const auto reads = [&](std::size_t form) {
    const bool comma = kNumberForms[form].decimal == ',' && kNumberForms[form].thousands != '.';
    return fits[form] - (comma ? with_point_ : 0);
  };
  std::size_t best = 0;
  for (std::size_t form = 1; form < kNumberForms.size(); ++form) {
    if (reads(form) > reads(best)) best = form;
  }
  if (best == kPointAndComma && reads(kDecimalComma) == reads(best)) {
    // People who do not separate fields by commas write decimal commas.
    const bool mixed = may_be_grouped(',') && hundreds_ > 0;
    const bool decimal = file.tells() ? file.decimal_comma : !mixed && file.separator != ',';
    return Choice{.form = decimal ? kDecimalComma : kPointAndComma, .ambiguous = !file.tells()};
  }
  if (may_be_grouped('.') && (file.tells() ? file.decimal_comma : hundreds_ > 0))
    return Choice{.form = kCommaAndPoint, .ambiguous = !file.tells()};
  if (reads(best) <= 0) return std::nullopt;
  // Without any decimals the sign of the file is taken.
  if (best == kCommaAndSpace && reads(kPointAndSpace) == reads(best) && !file.decimal_comma)
    best = kPointAndSpace;
  return Choice{.form = best};
}

// Whether the units are the ends of codes, a capital letter: "12A", "12B".
bool NotationCounts::are_codes() const {
  const auto is_end_of_code = [](const Affix& each) {
    return each.suffix.size() == 1 && each.suffix >= "A" && each.suffix <= "Z";
  };
  return units_.size() > 1 && std::ranges::any_of(units_, is_end_of_code);
}

std::optional<NotationCounts::Fit> NotationCounts::best(const FileSigns& file) const {
  // Units are taken where all numbers have one.
  Index with_units = 0;
  for (const Affix& each : units_) with_units += each.count;
  const bool of_units = with_units > 0 && with_units == digit_texts_ && plain_numbers_ == 0;
  const std::array<Index, kFormCount>& fits = of_units ? unit_fits_ : fits_;
  const std::optional<Choice> choice = choose_form(fits, file);
  if (!choice || (of_units && are_codes())) return std::nullopt;
  const auto [form, ambiguous] = *choice;
  const bool shows_group = !group_example_.empty() && (ambiguous || form == kCommaAndPoint);
  Fit fit{.notation = {.decimal = kNumberForms[form].decimal, .thousands = kNumberForms[form].thousands},
          .texts = fits[form],
          .ambiguous = ambiguous,
          .decimals = form != kCommaAndPoint || commas_.numbers > 0,
          .example = shows_group && example_.empty() ? group_example_ : example_,
          .of_any_kind = fits[form]};
  for (std::size_t i = 0; i < kSigns.size(); ++i) {
    if (signs_[i] > 0) fit.signs.emplace_back(kSigns[i].second);
  }
  // The most frequent affixes are taken; numbers may stand without them, but not with others.
  std::vector<Affix> affixes = of_units ? units_ : affixes_;
  std::erase_if(affixes, [](const Affix& each) { return each.prefix.empty() && each.suffix.empty(); });
  if (affixes.empty()) return fit;
  std::ranges::sort(affixes, {},
                    [](const Affix& each) { return std::tuple(-each.count, each.prefix, each.suffix); });
  fit.notation.prefix = affixes.front().prefix;
  fit.notation.suffix = affixes.front().suffix;
  if (of_units) fit.example = affixes.front().example;
  for (const Affix& each : affixes) {
    fit.texts -= each.count;
    if (affixes.size() > 1) fit.mixed.push_back(each.example);
  }
  fit.texts += affixes.front().count;
  return fit;
}

}  // namespace lockstep
