#include "tests/reference/schedules.h"

#include <torch/torch.h>

#include "tests/reference/handlers.h"

namespace spt::reference {
namespace {

bool reads_higher_as_better(JsonReader& reader) {
  const auto mode = reader.get<std::string>("mode");
  if (mode != "max" && mode != "min") throw Error("{}", unknown_name("mode of a plateau", mode, std::vector<std::string>{"max", "min"}));
  return mode == "max";
}

std::vector<double> numbers(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(torch::kFloat64).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

}  // namespace

protocols::Schedule read_schedule(const std::string& name, JsonReader& reader) {
  protocols::Schedule schedule{.name = name};
  const bool falls = name == "cosine_warmup" || name == "linear_warmup";
  if (falls || name == "constant_warmup" || name == "inverse_sqrt") schedule.warmup = reader.get<int64_t>("warmup_steps");
  if (falls || name == "cosine" || name == "linear") schedule.steps = reader.get<int64_t>("total_steps");
  if (name == "multistep") schedule.milestones = reader.get<std::vector<int64_t>>("milestones");
  if (name == "step") schedule.step_size = reader.get<int64_t>("step_size");
  if (name == "step" || name == "multistep") schedule.gamma = reader.get<double>("gamma");
  if (name == "plateau") {
    schedule.gamma = reader.get<double>("factor");
    schedule.patience = reader.get<int64_t>("patience");
    schedule.higher_is_better = reads_higher_as_better(reader);
  }
  return schedule;
}

/// Options and outputs share their keys: <schedule>.<anything>. A plateau's is one rate a validation, any other's one a step of
/// input.steps.
void schedule_case(Case& c) {
  const at::Tensor steps = c.input("steps");
  for (const auto& [key, given] : c.options().items()) {
    JsonReader reader(given, c.where(key));
    protocols::Schedule schedule = read_schedule(key.substr(0, key.find('.')), reader);
    const auto lr = schedule.lr = reader.get<double>("lr");
    reader.finish();
    std::vector<double> rates;
    if (schedule.name == "plateau") {
      const std::vector<double> values = numbers(c.input("metric." + key));
      for (size_t n = 1; n <= values.size(); ++n) rates.push_back(plateau_rate(schedule, std::span(values).first(n)));
    } else {
      for (const double step : numbers(steps)) rates.push_back(lr * schedule_factor(schedule, static_cast<int64_t>(step)));
    }
    c.compare_output(key, torch::tensor(rates, torch::kFloat64));
  }
}

}  // namespace spt::reference
