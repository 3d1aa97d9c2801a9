#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "results/journal.h"

namespace spt::results {

inline Stamp sample_stamp() { return {"a1b2", "2.14.1", "GNU 12.2", "cpu", "Some CPU \"quoted\" \u00e9", "AVX512", 1, true}; }

/// One event of each kind, every field away from its default, with the numbers that text formats lose.
inline std::vector<Event> sample_events() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  return {
      StartEvent{sample_stamp(),
                 "host\n1",
                 42,
                 7,
                 "resumed\tsame stamp",
                 123456789012345,
                 99,
                 "deadbeef",
                 true,
                 2000,
                 500,
                 10000,
                 0.1,
                 1.0 / 3.0,
                 {"note one", "note \"two\""},
                 0.25,
                 1e-300},
      ProgressEvent{nan, 5e-324, 0.1 + 0.2, 400, "accuracy", infinity},
      EvaluationEvent{3, {{"validation", "accuracy", 0.1, 500}, {"train", "loss", nan, 500}, {"validation", "loss", -infinity, 0}}},
      CheckpointEvent{"last.safetensors"},
      InitEvent{"normal", {{"matrix", 2, 30, true, -0.01, 0.1}, {"state_a", 1, 8, false, nan, infinity}}},
      TransferEvent{{"a", "b"}, {"c"}, {}, {"d.\\e"}},
      ScoresEvent{"test", "accuracy", {0.f, 1.f, 0.1f, std::numeric_limits<float>::infinity()}, {3, -1, 0, 2147483647}, {12, 12, 12, 7}},
      DoneEvent{360,
                true,
                {{"validation", "loss", 1.7976931348623157e308, 500}},
                {{"test", "accuracy", 0.123456789012345678, 10000}},
                400,
                12800,
                627200,
                1.5e18,
                5.1,
                0.2,
                0.03,
                0.04,
                0.5,
                0.06,
                6.7,
                1 << 30,
                true},
      FailedEvent{Failure::kDiverged, "loss is nan", "layers.0.weight"},
  };
}

inline JournalLine sample_line(Event event, int64_t attempt = 1, int64_t step = 5, const std::string& key = "stage-a") {
  return {key, attempt, 2, step, 1700000000.125, std::move(event)};
}

}  // namespace spt::results
