// A random experiment on little data: what decides its numbers, and ways to run it that must not matter.
#pragma once

#include "support/random_data.h"

namespace lockstep::test {

class RandomExperiment {
 public:
  /// How replicas become one model.
  enum class Kind {
    kOrdered,  ///< in lockstep, with the same bits by each strategy that promises so
    kLocal,    ///< local SGD, ordered
    kNative,   ///< in lockstep, in whatever order is fast
    kAlone     ///< parameter servers with asynchronous workers
  };

  /// Draws it, with its files in the directory.
  RandomExperiment(Dice& dice, const std::string& directory);

  Kind kind() const { return kind_; }
  /// Whether the numbers are the same on any number of ranks.
  bool same_bits() const { return kind_ == Kind::kOrdered || kind_ == Kind::kLocal; }
  /// The config: a key in each line.
  std::string config() const;
  /// The numbers of workers that a run can have, up to three; the last is the largest. Of workers that step
  /// alone a step is as many samples as one of them has, so that only a length in steps stays with their
  /// number.
  std::vector<Index> workers() const;
  /// Flags of a run on so many workers, none of which changes a number; and the servers beside them.
  struct Way {
    Index workers = 1;
    Index servers = 0;
    std::string flags;
    Index ranks() const { return workers + servers; }
  };
  Way draw_way(Dice& dice, Index workers) const;

 private:
  void set(const std::string& key, const std::string& value);  // a text
  void set_plain(const std::string& key, const std::string& value);
  void set_number(const std::string& key, double value);
  void draw_data(Dice& dice, const std::string& directory);
  void draw_files(Dice& dice, const std::string& directory);
  void draw_order(Dice& dice);
  void draw_model(Dice& dice);
  void draw_optimizer(Dice& dice);
  void draw_schedule(Dice& dice);
  void draw_batches(Dice& dice);
  void draw_evaluation(Dice& dice);
  void draw_strategy(Dice& dice);
  void draw_faults(Dice& dice);
  void draw_contradiction(Dice& dice);

  Kind kind_;
  DataSpec data_;
  Index rows_;
  bool evaluated_ = false;
  bool validated_ = false;  // has a validation set
  bool lossy_ = false;
  Index layers_with_weights_ = 0;
  bool in_steps_ = false;  // how long it is
  Index replicas_;
  std::vector<std::string> lines_;
};

}  // namespace lockstep::test
