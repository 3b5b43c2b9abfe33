// train.class_weights: how many times a training sample of each class counts.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/dataset.h"

namespace lockstep {

/// "spam: 2"; the class by its name, or by its number.
struct NamedClassWeight {
  std::string name;
  double weight = 1;
};

/// Whether they are to be computed from the training data.
bool is_balanced(std::span<const std::string> option);

/// Errors: ConfigError for an entry that is no "CLASS: NUMBER", with a number of 0 or more.
std::vector<NamedClassWeight> parse_class_weights(std::span<const std::string> option);

/// The weight of each of `classes` classes, as the config has them; the data set names the classes, if it
/// does. Errors: ConfigError for a class that there is not, that is named twice, or that is left out.
std::vector<Scalar> match_class_weights(std::span<const NamedClassWeight> named, const DatasetInfo& data,
                                        Index classes);

/// samples / (classes * samples of the class), scikit-learn's "balanced", over the classes that have samples;
/// 1 for the others.
std::vector<Scalar> balance_classes(std::span<const Index> counts);
/// The first class without samples, as the beginning of a sentence; "" if each has some.
std::string describe_unbalanced(std::span<const Index> counts, const DatasetInfo& data);

/// One line for people: "ham 0.58 (4,825 records), spam 3.7 (747)"; without counts if there are none.
/// `counted`: what they are of, "records".
std::string describe_class_weights(std::span<const Scalar> weights, std::span<const Index> counts,
                                   const DatasetInfo& data, std::string_view counted = "records");

}  // namespace lockstep
