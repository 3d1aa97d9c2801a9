#pragma once

#include "tasks/task.h"

namespace spt::tasks {

OptionInfo z_score_info();  ///< of the option z_score, which every task with continuous inputs has

/// Puts (x - mean_c) / std_c in place of each value of all splits, c the value's channel: value k of a step is of channel k % channels.
///
/// mean and std (ddof 0) are those of the train split, before a subset is taken from it, and stand in a note. Of a split with more than
/// `most_values` values evenly spaced examples are counted. Padded positions stay as they are.
/// Errors: DataError where a channel of train has one value only.
/// Source: arXiv:2310.02980 and its code.
void z_score(OpenedTask& opened, int64_t channels, int64_t most_values);

inline constexpr int64_t kZScoreStoredValues = int64_t{1} << 28;  ///< most_values of data that are in memory
inline constexpr int64_t kZScoreMadeValues = int64_t{1} << 24;    ///< ... of data that are made or read when they are asked for

}  // namespace spt::tasks
