#include "quantity.h"

#include <charconv>
#include <cmath>
#include <span>

namespace lockstep {
namespace {

struct Unit {
  std::string_view name;
  double size;
};

constexpr Unit kTimes[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
constexpr Unit kBandwidths[] = {
    {"Mbit", 1e6 / 8}, {"Gbit", 1e9 / 8}, {"Tbit", 1e12 / 8}, {"MB", 1e6}, {"GB", 1e9}};

// A number and one of the units behind it.
std::optional<double> parse_quantity(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number) || number < 0) return std::nullopt;
  const std::string_view wanted = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const Unit& unit : units) {
    if (unit.name == wanted) return number * unit.size;
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> parse_seconds(std::string_view text) {
  return parse_quantity(text, kTimes);
}

std::optional<double> parse_bandwidth(std::string_view text) {
  if (text.ends_with("/s")) text.remove_suffix(2);
  const std::optional<double> bandwidth = parse_quantity(text, kBandwidths);
  return bandwidth == 0 ? std::nullopt : bandwidth;
}

}  // namespace lockstep
