#include "tasks/bidmc_task.h"

namespace spt::tasks {

/// Heart rate from PPG and ECG (beats a minute).
Task bidmc_hr() {
  return bidmc_task("bidmc-hr", formats::BidmcTarget::kHeartRate,
                    "heart rate from 32 s of PPG and ECG, 4,000 positions of 2 channels; regression");
}

}  // namespace spt::tasks
