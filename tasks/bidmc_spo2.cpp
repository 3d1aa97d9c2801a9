#include "tasks/bidmc_task.h"

namespace spt::tasks {

/// Oxygen saturation of the blood from PPG and ECG (per cent).
Task bidmc_spo2() {
  return bidmc_task("bidmc-spo2", formats::BidmcTarget::kSpO2,
                    "oxygen saturation from 32 s of PPG and ECG, 4,000 positions of 2 channels; regression");
}

}  // namespace spt::tasks
