// The records of a table in order of series and time, with what is between them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lockstep/data/options.h"
#include "lockstep/data/peer_group.h"
#include "lockstep/data/record_source.h"
#include "lockstep/data/table/schema/column_texts.h"
#include "lockstep/data/table/values/notation.h"
#include "time_grid.h"
#include "time_layout.h"

namespace lockstep {

struct TimeAxis {
  std::vector<std::vector<std::string>> series;  ///< of each the values of its columns, in order of the file
  std::vector<Index> begins;                     ///< first position of each series, and the end of the last
  std::vector<Index> records;                    ///< the record of each position
  std::vector<double> times;                     ///< of each position
  std::vector<bool> filled;                      ///< the position stands for a time that the series lacks
  std::vector<TimeGrid> grids;                   ///< of each series
  TimeGrid grid;                                 ///< that of most positions
  std::optional<DateForm> form = {};             ///< nothing: times are numbers
  std::vector<TimeLayout> layouts;               ///< of each series
  bool local = false;       ///< times are those of the clocks of the zones that texts name, not UTC
  std::vector<Note> notes;  ///< on gaps and irregular steps

  Index positions() const { return static_cast<Index>(records.size()); }
  Index series_count() const { return static_cast<Index>(series.size()); }
  /// The positions of a series.
  Range positions_of(Index number) const { return {at(begins, number), at(begins, number + 1)}; }
  /// The series of a position.
  Index series_of(Index position) const;
  /// Its values in quotes, "'north, 12'"; "" where the table is one series.
  std::string series_name(Index number) const;
  /// The patterns of the series, each once, as a schema keeps them.
  std::vector<std::string> steps() const;
  /// A time of a series as the table writes it.
  std::string text(double time, Index number = 0) const;
};

/// *Collective.* From the texts of the columns of time and series. `steps`: the patterns of the training
/// data, which a short history may not show; empty: these are the training data. Errors: ConfigError if there
/// are none such, or times are of two forms; DataError if two records of a series have one time.
TimeAxis read_time_axis(const RecordSource& table, const WindowOptions& windows,
                        const std::vector<std::string>& steps, ColumnTexts& texts, PeerGroup& peers);

}  // namespace lockstep
