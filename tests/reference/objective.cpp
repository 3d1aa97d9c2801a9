#include <torch/torch.h>

#include "protocols/losses.h"
#include "protocols/published_objective.h"
#include "tests/reference/handlers.h"

// Objectives in their published tensor form; both forms share masking and losses (protocols/published_objective.h).
namespace spt::reference {
namespace {

namespace published = protocols::published;

/// Compares output.loss where it stands, loss, and the gradient of the loss by `leaf` where it stands.
void compare_loss(Case& c, const at::Tensor& loss, const std::string& name, const at::Tensor& leaf) {
  if (c.has("output.loss")) c.compare_output("loss", loss);
  c.compare("loss", loss, c.tensor("loss"), c.tolerance("loss"));
  if (!c.has("grad.input." + name)) return;
  loss.backward();
  c.compare("grad.input." + name, leaf.grad(), c.tensor("grad.input." + name), c.tolerance("gradient"));
}

void compare_pair(Case& c, const published::Pair& pair) {
  c.compare_output("network_input", pair.network_input);
  c.compare_output("target", pair.target);
}

/// Cross-entropy and accuracy of input.logits, where the case has them.
void compare_class_loss(Case& c, const at::Tensor& target, int64_t ignore) {
  if (!c.has("input.logits")) return;
  const at::Tensor logits = c.input("logits").requires_grad_();
  compare_loss(c, published::cross_entropy(logits, target, ignore), "logits", logits);
  c.compare_output("accuracy", published::accuracy(logits, target, ignore));
}

struct TokenOptions {
  int64_t mask_id = 0, ignore = 0;
};

TokenOptions token_options(const Case& c) {
  JsonReader reader(c.options(), c.where("options"));
  const TokenOptions options = {reader.get<int64_t>("mask_id"), reader.get<int64_t>("ignore")};
  reader.get<int64_t>("vocabulary");  // the last axis of the logits says so too
  reader.get<int64_t>("pad_id");      // pads are known by the lengths
  reader.finish();
  return options;
}

double value_ignore(const Case& c) {
  JsonReader reader(c.options(), c.where("options"));
  const auto ignore = reader.get<double>("ignore");
  reader.get<int64_t>("channels");
  reader.finish();
  return ignore;
}

void compare_value_loss(Case& c, const at::Tensor& target, double ignore) {
  const at::Tensor prediction = c.input("prediction").requires_grad_();
  compare_loss(c, published::masked_mae(prediction, target, ignore), "prediction", prediction);
  c.compare_output("masked_mae", published::masked_mae(prediction, target, ignore));
  c.compare_output("r2", published::masked_r2(prediction, target, ignore));
}

int64_t level_ignore(const Case& c) {
  JsonReader reader(c.options(), c.where("options"));
  const auto ignore = reader.get<int64_t>("ignore");
  if (reader.get<int64_t>("levels") != 256) throw Error("{}: only 256 levels are known", c.name());
  reader.finish();
  return ignore;
}

/// A float32 picture whose last target counts as 0 in the published form and not at all in the fair one.
void compare_image_l1(Case& c, double ignore) {
  const at::Tensor x = published::image_values(c.input("image")).to(torch::kFloat64), prediction = c.input("prediction");
  const published::Pair counted = published::causal_values(x, ignore, true), fair = published::causal_values(x, ignore);
  compare_pair(c, counted);
  c.compare_output("target_fair", fair.target);
  c.compare_output("loss_fair", published::masked_mae(prediction, fair.target, ignore));
  compare_loss(c, published::masked_mae(prediction, counted.target, ignore), "prediction", prediction);
}

}  // namespace

void supervised_case(Case& c) {
  JsonReader reader(c.options(), c.where("options"));
  const auto classes = reader.get<int64_t>("classes");
  reader.finish();
  const at::Tensor logits = c.input("logits").requires_grad_(), label = c.input("label");
  c.check("classes", logits.size(-1) == classes, "the logits have another number");
  const at::Tensor cross_entropy = protocols::cross_entropy_sum(logits, label) / static_cast<double>(label.size(0));
  c.compare_output("cross_entropy", cross_entropy);
  c.compare_output("accuracy", static_cast<double>(protocols::correct_count(logits, label)) / static_cast<double>(label.size(0)));
  cross_entropy.backward();
  c.compare("grad.input.logits", logits.grad(), c.tensor("grad.input.logits"), c.tolerance("gradient"));

  const at::Tensor prediction = c.input("prediction").requires_grad_(), value = c.input("value").view({-1, 1});
  const at::Tensor mse = protocols::squared_error_sum(prediction, value) / static_cast<double>(value.size(0));
  protocols::RegressionSums sums;
  sums.add(prediction.detach(), value);
  c.compare_output("mse", mse);
  c.compare("mse of the sums", torch::tensor(sums.mse(), torch::kFloat64), mse, c.tolerance("output"));
  c.compare_output("mae", sums.mae());
  c.compare_output("r2", sums.r2());
  mse.backward();
  c.compare("grad.input.prediction", prediction.grad(), c.tensor("grad.input.prediction"), c.tolerance("gradient"));
}

void masked_tokens_case(Case& c) {
  const TokenOptions options = token_options(c);
  const published::Pair pair =
      published::masked_tokens(c.input("tokens"), c.input("lengths"), c.input("mask"), options.mask_id, options.ignore);
  compare_pair(c, pair);
  compare_class_loss(c, pair.target, options.ignore);
}

void causal_tokens_case(Case& c) {
  const TokenOptions options = token_options(c);
  const published::Pair pair = published::causal_tokens(c.input("tokens"), c.input("lengths"), options.ignore);
  compare_pair(c, pair);
  compare_class_loss(c, pair.target, options.ignore);
}

void masked_values_case(Case& c) {
  const double ignore = value_ignore(c);
  const published::Pair pair = published::masked_values(c.input("x"), c.input("mask"), ignore);
  compare_pair(c, pair);
  compare_value_loss(c, pair.target, ignore);
}

void causal_values_case(Case& c) {
  const double ignore = value_ignore(c);
  if (c.has("input.image")) return compare_image_l1(c, ignore);
  const published::Pair pair = published::causal_values(c.input("x"), ignore);
  compare_pair(c, pair);
  compare_value_loss(c, pair.target, ignore);
}

void masked_levels_case(Case& c) {
  const int64_t ignore = level_ignore(c);
  const published::Pair pair = published::masked_levels(c.input("image"), c.input("mask"), ignore);
  compare_pair(c, pair);
  compare_class_loss(c, pair.target, ignore);
}

void causal_levels_case(Case& c) {
  const int64_t ignore = level_ignore(c);
  const published::Pair pair = published::causal_levels(c.input("image"), ignore);
  compare_pair(c, pair);
  compare_class_loss(c, pair.target, ignore);
}

void metric_aggregation_case(Case& c) {
  JsonReader reader(c.options(), c.where("options"));
  const auto batches = reader.get<int64_t>("batches");
  reader.finish();
  const at::Tensor value = c.input("value"), prediction = c.input("prediction"), target = c.input("target"), logits = c.input("logits");
  c.check("batches", value.size(0) == batches, "the tensors have another number");
  double r2 = 0, accuracy = 0, cross_entropy = 0, summed_cross_entropy = 0;
  int64_t correct = 0;
  protocols::RegressionSums all;
  for (int64_t i = 0; i < batches; ++i) {
    protocols::RegressionSums one;
    one.add(prediction[i], value[i]);
    all.add(prediction[i], value[i]);
    r2 += one.r2();
    accuracy += published::accuracy(logits[i], target[i]);
    cross_entropy += published::cross_entropy(logits[i], target[i]).item<double>();
    const at::Tensor rows = logits[i].flatten(0, -2), ids = target[i].flatten(),
                     at = ids.ne(published::kIgnoredClass).nonzero().squeeze(-1);
    summed_cross_entropy += protocols::cross_entropy_sum(rows.index_select(0, at), ids.index_select(0, at)).item<double>();
    correct += protocols::correct_count(rows.index_select(0, at), ids.index_select(0, at));
  }
  const double n = static_cast<double>(batches), counted = static_cast<double>(target.ne(published::kIgnoredClass).sum().item<int64_t>());
  c.compare_output("r2_paper", r2 / n);
  c.compare_output("accuracy_paper", accuracy / n);
  c.compare_output("cross_entropy_paper", cross_entropy / n);
  c.compare_output("r2_fair", all.r2());
  c.compare_output("accuracy_fair", static_cast<double>(correct) / counted);
  c.compare_output("cross_entropy_fair", summed_cross_entropy / counted);
}

}  // namespace spt::reference
