#include "tasks/bidmc_task.h"

namespace spt::tasks {

/// Respiratory rate from PPG and ECG (breaths a minute).
Task bidmc_rr() {
  return bidmc_task("bidmc-rr", formats::BidmcTarget::kRespiratoryRate,
                    "respiratory rate from 32 s of PPG and ECG, 4,000 positions of 2 channels; regression");
}

}  // namespace spt::tasks
