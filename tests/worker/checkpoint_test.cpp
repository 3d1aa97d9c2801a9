#include "harness/worker/checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "harness/base/file.h"
#include "harness/worker/stamp.h"
#include "harness/worker/transfer.h"
#include "tests/worker/doubles.h"

namespace spt::worker {
namespace {

std::filesystem::path fresh_folder(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / fmt::format("spt-{}-{}", name, ::getpid());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

models::ModelSpec tiny_spec(int64_t channels, const std::string& head, int64_t outputs) {
  return {.options = {{"causal", false}},
          .input = {channels > 0 ? 0 : 12, channels, 12},
          .head = {.kind = head, .outputs = outputs},
          .dropout = 0,
          .mask_padding = true};
}

std::shared_ptr<test::TinyModel> drawn(const models::ModelSpec& spec, uint64_t seed) {
  const auto model = std::make_shared<test::TinyModel>(spec);
  model->reset_parameters(Stream(seed, "init"));
  return model;
}

protocols::AdamW optimizer_of(const models::Model& model) { return {protocols::trained_tensors(model, {}), {}}; }

StageState sample_state() {
  StageState state;
  state.totals = {.step = 17, .examples = 272, .tokens = 2000, .flops = 1.0 / 3.0 * 1e15, .train_s = 0.1, .data_wait_s = 0.2};
  state.evaluations = 2;
  state.best_step = 12;
  state.best_index = 1;
  state.best = {{"loss", NAN, 70}, {"accuracy", 1.0 / 3.0, 70}};
  state.last = {{"loss", INFINITY, 70}, {"accuracy", -0.0, 70}};
  state.selection = {NAN, 1.0 / 3.0};
  state.wall_s = 12.5;
  state.peak_memory = 1 << 30;
  state.mixed_stamps = true;
  return state;
}

struct Saved {
  explicit Saved(const std::string& name)
      : folder(fresh_folder(name)), file(folder / "last.safetensors"), model(drawn(tiny_spec(0, "pooled", 2), 1)) {
    protocols::AdamW optimizer = optimizer_of(*model);
    for (const auto& [key, tensor] : optimizer.state()) at::Tensor(tensor).uniform_(0, 1);
    state = sample_state();
    save_last(file, *model, optimizer, state, "key", make_stamp("cpu", 1));
    moments = optimizer.state();
  }
  const std::filesystem::path folder, file;
  std::shared_ptr<test::TinyModel> model;
  std::vector<std::pair<std::string, at::Tensor>> moments;
  StageState state;
};

TEST(Checkpoint, BringsBackEveryTensorAndNumber) {
  const Saved saved("roundtrip");
  const auto other = drawn(tiny_spec(0, "pooled", 2), 2);
  protocols::AdamW optimizer = optimizer_of(*other);
  const LoadedLast last = read_last(saved.file);
  restore_last(last, *other, optimizer, "here");
  for (size_t i = 0; i < model_tensors(*other).size(); ++i)
    EXPECT_TRUE(torch::equal(model_tensors(*other)[i].second, model_tensors(*saved.model)[i].second));
  for (size_t i = 0; i < saved.moments.size(); ++i) EXPECT_TRUE(torch::equal(optimizer.state()[i].second, saved.moments[i].second));
  EXPECT_EQ(optimizer.steps(), 17);
  EXPECT_EQ(last.stage_key, "key");
  EXPECT_EQ(last.stamp, make_stamp("cpu", 1));
  EXPECT_EQ(last.state.totals.flops, saved.state.totals.flops);
  EXPECT_TRUE(std::isnan(last.state.best[0].value));
  EXPECT_EQ(last.state.best[1].value, 1.0 / 3.0);
  EXPECT_TRUE(std::isinf(last.state.last[0].value));
  ASSERT_EQ(last.state.selection.size(), 2u);
  EXPECT_TRUE(std::isnan(last.state.selection[0]));
  EXPECT_EQ(last.state.selection[1], 1.0 / 3.0);
  EXPECT_EQ(last.state.wall_s, 12.5);
  EXPECT_TRUE(last.state.mixed_stamps);
}

TEST(Checkpoint, EveryTruncationIsAnError) {
  const Saved saved("truncated");
  const std::string whole = read_file(saved.file);
  for (size_t size = 0; size < whole.size(); size += 97) {
    write_file_atomically(saved.file, std::string_view(whole).substr(0, size));
    EXPECT_THROW(read_last(saved.file), Error) << size;
  }
}

TEST(Checkpoint, EveryChangedByteIsAnError) {
  const Saved saved("flipped");
  const std::string whole = read_file(saved.file);
  for (size_t at = 0; at < whole.size(); at += 13) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x04);
    write_file_atomically(saved.file, changed);
    EXPECT_THROW(read_last(saved.file), Error) << "byte " << at << " of " << whole.size();
  }
}

TEST(Checkpoint, AnotherModelIsRefusedAndNothingIsWritten) {
  const Saved saved("other");
  const auto other = drawn(tiny_spec(0, "pooled", 3), 2);
  protocols::AdamW optimizer = optimizer_of(*other);
  const at::Tensor before = other->named_parameters()["encoder.weight"].clone();
  EXPECT_THROW(restore_last(read_last(saved.file), *other, optimizer, "here"), Error);
  EXPECT_TRUE(torch::equal(before, other->named_parameters()["encoder.weight"]));
  const auto wide = drawn(tiny_spec(0, "pooled", 2), 2);
  wide->to(torch::kFloat64);
  protocols::AdamW wide_optimizer = optimizer_of(*wide);
  EXPECT_THROW(restore_last(read_last(saved.file), *wide, wide_optimizer, "here"), Error);
}

TEST(Checkpoint, BestHoldsTheModelAloneAndItsStep) {
  const Saved saved("best");
  save_best(saved.folder / "best.safetensors", *saved.model, 12, "key");
  const LoadedBest best = read_best(saved.folder / "best.safetensors");
  EXPECT_EQ(best.step, 12);
  EXPECT_TRUE(best.content.tensors.contains("encoder.weight"));
  EXPECT_TRUE(best.content.tensors.contains("body.counter"));
  EXPECT_THROW(read_last(saved.folder / "best.safetensors"), Error);
  EXPECT_THROW(read_best(saved.file), Error);
}

TEST(Checkpoint, DtypesSurvive) {
  for (const at::ScalarType type :
       {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort, at::kChar, at::kByte, at::kBool}) {
    const at::Tensor tensor = torch::tensor({1, 0, 1, 1}).to(type).reshape({2, 2}).t();
    const at::Tensor back = from_raw(to_raw(tensor));
    EXPECT_EQ(back.scalar_type(), type);
    EXPECT_TRUE(torch::equal(back, tensor));
  }
  EXPECT_THROW(to_raw(torch::zeros({2}, torch::kComplexFloat)), Error);
  EXPECT_EQ(from_raw(to_raw(torch::tensor(4.5))).dim(), 0);
  EXPECT_EQ(from_raw(to_raw(torch::zeros({0, 3}))).numel(), 0);
}

SafetensorsFile tensors_of(const models::Model& model) {
  SafetensorsFile content;
  for (const auto& [name, tensor] : model_tensors(model)) content.tensors.emplace(name, to_raw(tensor));
  return content;
}

TEST(Transfer, CopiesTheBodySlicesTheIndicatorAndKeepsTheNewHead) {
  const auto pretrained = drawn(tiny_spec(3, "sequence", 2), 1);  // 2 channels and the indicator
  const auto fresh = drawn(tiny_spec(2, "pooled", 2), 1), model = drawn(tiny_spec(2, "pooled", 2), 1);
  {
    const torch::NoGradGuard no_grad;
    for (const auto& [name, tensor] : model_tensors(*pretrained)) at::Tensor(tensor).add_(1);
  }
  const results::TransferEvent audit = transfer(tensors_of(*pretrained), *model, "best");
  EXPECT_EQ(audit.sliced, (std::vector<std::string>{"encoder.weight"}));
  EXPECT_EQ(audit.copied, (std::vector<std::string>{"encoder.bias", "body.weight", "body.bias", "body.counter"}));
  EXPECT_EQ(audit.redrawn, (std::vector<std::string>{"head.weight", "head.bias"}));
  EXPECT_EQ(audit.dropped, (std::vector<std::string>{"head.bias", "head.weight"}));
  auto of = [](const std::shared_ptr<test::TinyModel>& m, const char* name) { return m->named_parameters()[name].detach(); };
  EXPECT_TRUE(torch::equal(of(model, "encoder.weight"), of(pretrained, "encoder.weight").slice(1, 0, 2)));
  EXPECT_TRUE(torch::equal(of(model, "body.weight"), of(pretrained, "body.weight")));
  EXPECT_TRUE(torch::equal(model->named_buffers()["body.counter"], pretrained->named_buffers()["body.counter"]));
  EXPECT_TRUE(torch::equal(of(model, "head.weight"), of(fresh, "head.weight")));  // also where shapes agree
}

TEST(Transfer, AnythingElseIsAnErrorThatNamesTheTensor) {
  const auto refused = [](const std::function<void(SafetensorsFile&)>& change, const std::string& named) {
    const auto source = drawn(tiny_spec(0, "sequence", 12), 1), model = drawn(tiny_spec(0, "pooled", 2), 2);
    SafetensorsFile content = tensors_of(*source);
    change(content);
    const at::Tensor before = model->named_parameters()["encoder.weight"].clone();
    try {
      transfer(content, *model, "best");
      ADD_FAILURE() << named;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(named), std::string::npos) << error.what();
    }
    EXPECT_TRUE(torch::equal(before, model->named_parameters()["encoder.weight"]));
  };
  refused([](SafetensorsFile& c) { c.tensors.erase("body.weight"); }, "body.weight");
  refused([](SafetensorsFile& c) { c.tensors["body.extra"] = to_raw(torch::zeros({2})); }, "body.extra");
  refused([](SafetensorsFile& c) { c.tensors["body.bias"] = to_raw(torch::zeros({7})); }, "body.bias");
  refused([](SafetensorsFile& c) { c.tensors["body.bias"] = to_raw(torch::zeros({6}, torch::kFloat64)); }, "body.bias");
  refused([](SafetensorsFile& c) { c.tensors["encoder.weight"] = to_raw(torch::zeros({12, 8})); }, "encoder.weight");
}

TEST(Stamp, SaysWhatThisProcessIs) {
  const results::Stamp stamp = make_stamp("cpu", 2);
  EXPECT_EQ(stamp.build_id.size(), 40u);
  EXPECT_EQ(stamp.threads, 2);
  EXPECT_FALSE(stamp.cpu_capability.empty());
  EXPECT_NE(stamp.libtorch.find('.'), std::string::npos);
}

TEST(Stamp, OtherThreadsMayGoOnAndOtherBuildsMayNot) {
  const results::Stamp now = make_stamp("cpu", 2);
  EXPECT_TRUE(may_resume(now, now, false).equal);
  results::Stamp then = now;
  then.threads = 1;
  EXPECT_TRUE(may_resume(then, now, false).allowed);
  EXPECT_FALSE(may_resume(then, now, false).equal);
  EXPECT_EQ(may_resume(then, now, false).note, "threads 1 -> 2");
  for (const auto change : {+[](results::Stamp& s) { s.build_id = "x"; }, +[](results::Stamp& s) { s.device_kind = "cuda"; },
                            +[](results::Stamp& s) { s.libtorch = "2.0.0"; }}) {
    then = now;
    change(then);
    EXPECT_FALSE(may_resume(then, now, false).allowed);
    EXPECT_TRUE(may_resume(then, now, true).allowed);
    EXPECT_FALSE(may_resume(then, now, true).equal);
  }
}

}  // namespace
}  // namespace spt::worker
