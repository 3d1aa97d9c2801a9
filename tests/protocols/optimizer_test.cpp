#include "protocols/optimizer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

namespace spt::protocols {
namespace {

using models::ParameterRole;

std::vector<TrainedTensor> copies(const std::vector<at::Tensor>& tensors, const std::vector<TensorRule>& rules) {
  std::vector<TrainedTensor> trained;
  for (size_t i = 0; i < tensors.size(); ++i)
    trained.push_back({fmt::format("t{}", i), tensors[i].detach().clone().requires_grad_(), ParameterRole::kMatrix, rules[i]});
  return trained;
}

/// 50 updates with the same random gradients by ours and by torch's, whose groups have one tensor each; largest difference.
template <class Theirs, class TheirOptions>
double difference_from_torch(const std::string& name, const OptimizerOptions& options, const TheirOptions& base) {
  torch::manual_seed(1);
  const auto f64 = torch::dtype(torch::kFloat64);
  const std::vector<at::Tensor> start = {torch::randn({5, 7}, f64), torch::randn({11}, f64), torch::randn({3, 2, 2}, f64)};
  const std::vector<TensorRule> rules = {{1e-2, 0.05}, {3e-3, 0.0}, {1e-2, 0.05}};
  const auto ours = make_optimizer(name, copies(start, rules), options);
  std::vector<at::Tensor> theirs;
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (size_t i = 0; i < start.size(); ++i) {
    theirs.push_back(start[i].clone().requires_grad_());
    auto own = std::make_unique<TheirOptions>(base);
    own->lr(rules[i].lr).weight_decay(rules[i].weight_decay);
    groups.emplace_back(std::vector<at::Tensor>{theirs[i]}, std::move(own));
  }
  Theirs reference(groups, base);
  for (int step = 0; step < 50; ++step) {
    const double factor = 1.0 / (1 + step);
    for (size_t i = 0; i < start.size(); ++i) {
      const at::Tensor gradient = torch::randn_like(start[i]);
      ours->tensors()[i].tensor.mutable_grad() = gradient.clone();
      theirs[i].mutable_grad() = gradient;
      static_cast<TheirOptions&>(reference.param_groups()[i].options()).lr(rules[i].lr * factor);
    }
    ours->step(factor);
    reference.step();
  }
  double largest = 0;
  for (size_t i = 0; i < start.size(); ++i) {
    EXPECT_GT((ours->tensors()[i].tensor - start[i]).abs().max().item<double>(), 1e-3);
    largest = std::max(largest, (ours->tensors()[i].tensor - theirs[i]).abs().max().item<double>());
  }
  return largest;
}

TEST(Optimizer, EachEqualsTheTorchClassOfItsNameInDoublePrecision) {
  const OptimizerOptions options{.adam = {0.9, 0.98, 1e-8}, .sgd = {0.9}};
  const auto adam = torch::optim::AdamOptions(1e-2).betas({0.9, 0.98}).eps(1e-8);
  const auto adamw = torch::optim::AdamWOptions(1e-2).betas({0.9, 0.98}).eps(1e-8);
  EXPECT_LT((difference_from_torch<torch::optim::Adam>("adam", options, adam)), 1e-12);
  EXPECT_LT((difference_from_torch<torch::optim::AdamW>("adamw", options, adamw)), 1e-12);
  EXPECT_LT((difference_from_torch<torch::optim::SGD>("sgd", options, torch::optim::SGDOptions(1e-2).momentum(0.9))), 1e-12);
  EXPECT_LT((difference_from_torch<torch::optim::SGD>("sgd", {.adam = {}, .sgd = {0.0}}, torch::optim::SGDOptions(1e-2))), 1e-12);
  EXPECT_GT((difference_from_torch<torch::optim::AdamW>("adam", options, adamw)), 1e-6) << "the decay is not the decoupled one";
}

TEST(Optimizer, AnUnknownNameIsRefusedWithTheKnownOnes) {
  EXPECT_THROW(make_optimizer("adamax", {}, {}), Error);
  for (const std::string& name : optimizer_names()) EXPECT_NE(make_optimizer(name, {}, {}), nullptr) << name;
}

TEST(Optimizer, AMissingGradientCountsAsZero) {
  const at::Tensor start = torch::ones({4}, torch::kFloat64);
  AdamW with(copies({start}, {{0.1, 0.0}}), {}), without(copies({start}, {{0.1, 0.0}}), {});
  for (AdamW* optimizer : {&with, &without}) {
    optimizer->tensors()[0].tensor.mutable_grad() = torch::ones({4}, torch::kFloat64);
    optimizer->step(1);
    optimizer->zero_grad();
  }
  with.tensors()[0].tensor.mutable_grad() = torch::zeros({4}, torch::kFloat64);
  with.step(1);
  without.step(1);
  EXPECT_TRUE(torch::equal(with.tensors()[0].tensor, without.tensors()[0].tensor));
  EXPECT_LT(without.tensors()[0].tensor[0].item<double>(), 0.9 - 1e-3);  // momentum moved it on
}

TEST(Optimizer, StateRestoresToTheSameTrajectory) {
  for (const std::string& name : optimizer_names()) {
    const auto first = make_optimizer(name, copies({torch::ones({4})}, {{0.1, 0.01}}), {});
    const auto step = [](Optimizer& optimizer, double gradient) {
      optimizer.tensors()[0].tensor.mutable_grad() = torch::full({4}, gradient);
      optimizer.step(0.5);
    };
    step(*first, 0.3);
    step(*first, -0.1);
    const auto second = make_optimizer(name, copies({first->tensors()[0].tensor}, {{0.1, 0.01}}), {});
    EXPECT_FALSE(first->state().empty()) << name;
    for (const auto& [key, tensor] : first->state())
      for (const auto& [own, target] : second->state())
        if (own == key) target.copy_(tensor);
    second->set_steps(first->steps());
    step(*first, 0.2);
    step(*second, 0.2);
    EXPECT_TRUE(torch::equal(first->tensors()[0].tensor, second->tensors()[0].tensor)) << name;
  }
}

TEST(Optimizer, ClipsByTheGlobalNormAndReportsTheOldOne) {
  AdamW optimizer(copies({torch::zeros({2}), torch::zeros({1})}, {{0.1, 0.0}, {0.1, 0.0}}), {});
  optimizer.tensors()[0].tensor.mutable_grad() = torch::tensor({3.0f, 0.0f});
  optimizer.tensors()[1].tensor.mutable_grad() = torch::tensor({4.0f});
  EXPECT_NEAR(optimizer.clip(1.0), 5.0, 1e-6);
  EXPECT_NEAR(optimizer.tensors()[1].tensor.grad().item<float>(), 0.8, 1e-6);
  EXPECT_NEAR(optimizer.clip(0.0), 1.0, 1e-5);  // no limit: norm alone
  EXPECT_NEAR(optimizer.clip(2.0), 1.0, 1e-5);
  EXPECT_NEAR(optimizer.tensors()[0].tensor.grad()[0].item<float>(), 0.6, 1e-6);
}

TEST(Optimizer, NamesTheFirstBadGradient) {
  AdamW optimizer(copies({torch::zeros({2}), torch::zeros({1})}, {{0.1, 0.0}, {0.1, 0.0}}), {});
  optimizer.tensors()[0].tensor.mutable_grad() = torch::tensor({3.0f, 0.0f});
  EXPECT_EQ(optimizer.first_bad_gradient(), "");
  optimizer.tensors()[1].tensor.mutable_grad() = torch::tensor({NAN});
  EXPECT_EQ(optimizer.first_bad_gradient(), "t1");
  EXPECT_FALSE(std::isfinite(optimizer.clip(1.0)));
}

TEST(OptimizerRules, FairDecaysMatricesAloneAndLimitsStateRates) {
  const OptimizerRules rules{.name = "fair", .lr = 0.01, .weight_decay = 0.05, .state_lr = 0.001};
  EXPECT_EQ(tensor_rule(rules, ParameterRole::kMatrix), (TensorRule{0.01, 0.05}));
  for (const auto role : {ParameterRole::kBias, ParameterRole::kNorm, ParameterRole::kEmbedding, ParameterRole::kPosition,
                          ParameterRole::kStateC, ParameterRole::kStateD})
    EXPECT_EQ(tensor_rule(rules, role), (TensorRule{0.01, 0.0})) << role_name(role);
  for (const auto role : {ParameterRole::kStateA, ParameterRole::kStateB, ParameterRole::kStateDt})
    EXPECT_EQ(tensor_rule(rules, role), (TensorRule{0.001, 0.0})) << role_name(role);
  OptimizerRules slow = rules;
  slow.lr = 1e-4;
  EXPECT_EQ(tensor_rule(slow, ParameterRole::kStateA), (TensorRule{1e-4, 0.0}));
}

TEST(OptimizerRules, PaperDecaysEverythingButStateABDt) {
  const OptimizerRules rules{.name = "paper", .lr = 0.01, .weight_decay = 0.05, .state_lr = 0.5, .lr_dt = {}, .lr_a = 0.001, .lr_b = 0.002};
  for (const auto role : {ParameterRole::kMatrix, ParameterRole::kBias, ParameterRole::kNorm, ParameterRole::kEmbedding,
                          ParameterRole::kStateC, ParameterRole::kStateD})
    EXPECT_EQ(tensor_rule(rules, role), (TensorRule{0.01, 0.05})) << role_name(role);
  EXPECT_EQ(tensor_rule(rules, ParameterRole::kStateA), (TensorRule{0.001, 0.0}));
  EXPECT_EQ(tensor_rule(rules, ParameterRole::kStateB), (TensorRule{0.002, 0.0}));
  EXPECT_EQ(tensor_rule(rules, ParameterRole::kStateDt), (TensorRule{0.01, 0.0}));
}

TEST(OptimizerRules, AnUnknownSetIsRefused) { EXPECT_THROW(tensor_rule({.name = "papers"}, ParameterRole::kMatrix), Error); }

}  // namespace
}  // namespace spt::protocols
