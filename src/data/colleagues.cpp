#include "lockstep/data/colleagues.h"

namespace lockstep {
namespace {

class Alone final : public Colleagues {
 public:
  Index rank() const override { return 0; }
  Index size() const override { return 1; }
  void agree(const std::function<void()>& work) override { work(); }
  std::vector<Bytes> all_gather(std::span<const std::byte> mine) override {
    return {Bytes(mine.begin(), mine.end())};
  }
  std::vector<Bytes> all_to_all(const std::vector<Bytes>& parcels) override { return parcels; }
};

}  // namespace

Colleagues& alone() {
  static Alone one;
  return one;
}

}  // namespace lockstep
