// 64-bit hash (xxh3) of bytes: for names, configs and files. Not for secrets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace lockstep {

std::uint64_t hash_bytes(std::span<const std::byte> bytes);
std::uint64_t hash_text(std::string_view text);

/// Beside std::equal_to<>, it lets a container of std::string look a std::string_view up without a copy.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return hash_text(text); }
};

/// Every bit of x reaches every bit of it: the finaliser of SplitMix64 (Steele, Lea & Flood 2014, "Fast
/// splittable pseudorandom number generators").
constexpr std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// The distance of neighbours in SplitMix64's sequence, which mix_bits() is applied to.
inline constexpr std::uint64_t kGoldenStep = 0x9e3779b97f4a7c15ULL;

/// A number that looks random for each record id, by SplitMix64 once for the key and once for the id: which
/// records are held back for validation, and what proves that each was seen.
constexpr std::uint64_t id_hash(std::uint64_t key, std::int64_t id) {
  const std::uint64_t mixed = mix_bits(key + kGoldenStep);
  return mix_bits((mixed ^ static_cast<std::uint64_t>(id)) + kGoldenStep);
}

}  // namespace lockstep
