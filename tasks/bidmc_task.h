#pragma once

#include "tasks/formats/bidmc.h"
#include "tasks/task.h"

namespace spt::tasks {

/// Regression of one number from 32 s of PPG and ECG: values (B, 4000, 2), targets (B, 1); metrics r2 and mse over the whole split.
///
/// Splits: 70/15/15, by recording (no recording is in two parts), or by window as published (scikit-learn's rule twice, seeds split_seed
/// and split_seed + 1; published: 0). Example ids: position of the window among all, in order of recording and time. Random: streams
/// "split" of split_seed and "subset" of the job.
Task bidmc_task(std::string name, formats::BidmcTarget target, std::string summary);

}  // namespace spt::tasks
