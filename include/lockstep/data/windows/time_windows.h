// A table as windows of time. Its records, in order of series and time, are *positions*. A window stands at
// an *origin*: the positions before it are its past, those from it on its horizon.
//
//   features   the past of each label, then that of each other column, feature after feature, and the horizon
//              of those that are known ahead behind their past; last the columns that name the series
//   targets    the horizon of each label, label after label
//
// A window belongs to the set whose span of time its whole horizon lies in, so that its past may reach back
// over the border, and nothing reaches forward. Windows are cut when a batch is made: a rank, or a node that
// can share memory, holds the positions once, whatever windows its replicas train on.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lockstep/data/options.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/record_source.h"
#include "lockstep/data/table/schema/column_texts.h"
#include "lockstep/data/table/values/schema.h"

namespace lockstep {

/// A forecast that needs no model, measured on a set.
struct NaiveForecast {
  std::string name;  ///< "the last value", "the value 24 positions before"
  /// Mean absolute error over windows, positions and labels, in the units of the labels.
  double absolute = 0;
  double squared = 0;                ///< mean squared error of the labels as the model learns them
  std::vector<double> by_step = {};  ///< absolute, of each position of the horizon
};

/// Windows of one set.
class WindowSource : public RecordSource {
 public:
  const WindowSource* as_windows() const override { return this; }
  /// *Local.* Repeating the last value and, where data.season says it, the season before.
  virtual std::vector<NaiveForecast> naive_forecasts() const = 0;
  virtual const TableWindows& windows() const = 0;
  /// The values of the columns that name the series of a window; of none ""
  virtual std::vector<std::string> series_of(Index id) const = 0;
  /// The time of a position as the table writes it, also beyond its end: from 0 on, or -1 and less of the
  /// past.
  virtual std::string time_of(Index id, Index step) const = 0;
};

/// A number of positions after which labels come again.
struct Season {
  Index positions = 0;
  double autocorrelation = 0;  ///< of the labels, a moving mean over so many positions taken off
  double error = 0;  ///< of repeating the value so many positions before, in mean deviations of the labels
};

/// The seasons whose repetition has the least error, the best first, among those that are `usual` and all
/// lengths up to a third of the longest series after which changes come again by more than chance. None is a
/// multiple of one as good. Not a number: no value.
std::vector<Season> find_seasons(std::span<const std::vector<double>> series,
                                 const std::vector<Index>& usual = {});

/// The contents of a table of series of time, for someone who is about to forecast them.
struct SeriesSummary {
  Index series = 0;
  Index shortest = 0;  ///< positions of a series
  Index median = 0;
  Index longest = 0;
  std::string first;  ///< time
  std::string last;
  std::string step;          ///< the usual one: "1 day"
  Index missing_labels = 0;  ///< before the last known one of their series
  std::vector<Note> notes;   ///< on gaps and irregular steps
  std::vector<Season> seasons;
};

/// A summary of the series that data.time and data.series name, whose texts are given, and the labels, which
/// are read. Errors: as read_time_axis.
SeriesSummary summarise_series(const RecordSource& table, const WindowOptions& windows, ColumnTexts& texts);

}  // namespace lockstep
