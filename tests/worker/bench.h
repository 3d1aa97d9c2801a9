#pragma once

#include "harness/worker/train.h"
#include "tests/worker/doubles.h"

namespace spt::worker::test {

/// A stage of the tiny job put together by hand, in float64.
struct Bench {
  explicit Bench(const JobSpec& spec, size_t index = 0) : job(spec), stage(tiny_registry(), job, index, "") {
    model = stage.fresh_model(at::kCPU);
    optimizer = stage.optimizer(*model);
  }
  TrainSetup setup(int64_t threads = 0) {
    return {*model,      *optimizer, stage.objective(), stage.train_data(), stage.spec().train, stage.spec().steps,
            stage.rng(), at::kCPU,   threads,           stage.cost()};
  }
  std::vector<StepReport> train(int64_t threads = 0, const std::function<void()>& between = {}) {
    std::vector<StepReport> reports;
    train_stage(setup(threads), totals, [&](const StepReport& report) {
      reports.push_back(report);
      if (between) between();
      return true;
    });
    return reports;
  }
  at::Tensor flat() const {
    std::vector<at::Tensor> all;
    for (const at::Tensor& parameter : model->parameters()) all.push_back(parameter.detach().flatten());
    return torch::cat(all);
  }
  JobSpec job;
  Stage stage;
  std::shared_ptr<models::Model> model;
  std::unique_ptr<protocols::Optimizer> optimizer;
  TrainTotals totals;
};

inline JobSpec job_of(const std::string& kind, const std::string& pretraining, const std::function<void(TrainOptions&)>& change = {}) {
  JobSpec job = tiny_job(kind, pretraining);
  for (StageSpec& stage : job.stages) {
    stage.train.precision = "float64";
    if (change) change(stage.train);
  }
  return job;
}

}  // namespace spt::worker::test
