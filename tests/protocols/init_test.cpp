#include "protocols/init.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "harness/base/error.h"
#include "protocols/optimizer.h"
#include "protocols/protocol.h"

namespace spt::protocols {
namespace {

using models::ParameterRole;

std::shared_ptr<models::Model> small_model(const std::string& name, uint64_t seed = 1) {
  const models::Architecture& architecture = models::find_architecture(name);
  models::ModelSpec spec;
  spec.options = complete(architecture.options, architecture.sizes.front().second, name);
  spec.input = {.vocabulary = 11, .channels = 0, .max_length = 16};
  spec.head = {.kind = "pooled", .outputs = 4};
  auto model = models::build_model(architecture, spec);
  model->reset_parameters(Stream(seed, "init"));
  return model;
}

/// Names of the parameters in which two models differ.
std::vector<std::string> differing(const models::Model& a, const models::Model& b) {
  std::vector<std::string> names;
  for (const auto& item : a.named_parameters())
    if (!torch::equal(item.value(), b.named_parameters()[item.key()])) names.push_back(item.key());
  return names;
}

TEST(Init, NormalDrawsEveryTrainedParameterAndNoBuffer) {
  const auto model = small_model("s4d"), before = small_model("s4d");
  model->named_parameters()["encoder.weight"].requires_grad_(false);
  apply_init(*model, "normal", Stream(1, "init"));
  EXPECT_EQ(differing(*model, *before).size(), model->named_parameters().size() - 1);
  for (const auto& buffer : model->named_buffers()) EXPECT_TRUE(torch::equal(buffer.value(), before->named_buffers()[buffer.key()]));
  for (const InitGroup& group : init_groups(*model, "normal")) {
    EXPECT_EQ(group.redrawn, group.role != "embedding") << group.role;
    if (!group.redrawn) continue;
    const double error = kInitStd / std::sqrt(static_cast<double>(group.values));
    EXPECT_NEAR(group.mean, 0, 5 * error) << group.role;
    EXPECT_NEAR(group.std, kInitStd, 5 * error) << group.role;
  }
}

TEST(Init, NormalStateDrawsTheStateSpaceAlone) {
  const auto model = small_model("s4d"), before = small_model("s4d");
  apply_init(*model, "normal-state", Stream(1, "init"));
  const std::vector<std::string> changed = differing(*model, *before);
  EXPECT_FALSE(changed.empty());
  for (const std::string& name : changed) EXPECT_NE(name.find(".ssm."), std::string::npos) << name;
  const auto transformer = small_model("transformer"), same = small_model("transformer");
  apply_init(*transformer, "normal-state", Stream(1, "init"));
  EXPECT_TRUE(differing(*transformer, *same).empty());
}

TEST(Init, DrawsDependOnSeedAndNameAlone) {
  const auto a = small_model("transformer", 1), b = small_model("transformer", 2), c = small_model("transformer", 1);
  apply_init(*a, "normal", Stream(7, "init"));
  apply_init(*b, "normal", Stream(7, "init"));
  apply_init(*c, "normal", Stream(8, "init"));
  EXPECT_TRUE(differing(*a, *b).empty()) << "nothing of the first draw is left";
  EXPECT_EQ(differing(*a, *c).size(), a->named_parameters().size());
}

TEST(Init, DefaultChangesNothingAndItsGroupsSayWhatIsThere) {
  const auto model = small_model("transformer"), before = small_model("transformer");
  apply_init(*model, "default", Stream(9, "init"));
  EXPECT_TRUE(differing(*model, *before).empty());
  int64_t tensors = 0, values = 0;
  for (const InitGroup& group : init_groups(*model, "default")) {
    EXPECT_FALSE(group.redrawn);
    tensors += group.tensors;
    values += group.values;
    if (group.role == "norm") {
      EXPECT_GT(group.std, 0.1) << "gains of one, shifts of zero";
    }
  }
  EXPECT_EQ(tensors, static_cast<int64_t>(model->named_parameters().size()));
  EXPECT_GT(values, 1000);
}

TEST(Init, EveryRoleIsDecidedAndAnUnknownNameIsRefused) {
  EXPECT_FALSE(is_redrawn("default", ParameterRole::kStateA));
  EXPECT_TRUE(is_redrawn("normal", ParameterRole::kNorm));
  for (const auto role : {ParameterRole::kStateA, ParameterRole::kStateB, ParameterRole::kStateC, ParameterRole::kStateD,
                          ParameterRole::kStateDt, ParameterRole::kStateReal, ParameterRole::kStateImag, ParameterRole::kStateW})
    EXPECT_TRUE(is_redrawn("normal-state", role)) << role_name(role);
  for (const auto role :
       {ParameterRole::kMatrix, ParameterRole::kBias, ParameterRole::kNorm, ParameterRole::kEmbedding, ParameterRole::kPosition})
    EXPECT_FALSE(is_redrawn("normal-state", role)) << role_name(role);
  EXPECT_THROW(is_redrawn("norml", ParameterRole::kMatrix), Error);
}

TEST(Init, EveryProtocolHasItAsAnOption) {
  for (const Protocol& protocol : protocols()) {
    const auto found =
        std::find_if(protocol.options.begin(), protocol.options.end(), [](const OptionSchema& o) { return o.name == "init"; });
    ASSERT_NE(found, protocol.options.end()) << protocol.name;
    EXPECT_EQ(found->info.choices, init_names());
    EXPECT_EQ(found->default_value, OptionValue(std::string("default")));
  }
}

}  // namespace
}  // namespace spt::protocols
