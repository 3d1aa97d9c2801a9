#include <gmock/gmock.h>
#include <torch/torch.h>

#include <cstdlib>
#include <map>
#include <set>

#include "tasks/formats/bidmc.h"
#include "tasks/task.h"
#include "tests/formats/bidmc_files.h"

namespace spt::tasks {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing_files::message_of;
using testing_files::TemporaryFolder;

const std::filesystem::path kNoRecordings = "no-such-data-root";

OpenedTask open_windows(const TemporaryFolder& root, OptionMap options = {}, const char* task = "bidmc-hr", uint64_t seed = 1) {
  options["partial"] = true;
  return find_task(task).open(options, root.path, Stream(seed, "subset"));
}

std::vector<int64_t> window_ids(const Dataset& dataset) {
  std::vector<int64_t> all(static_cast<size_t>(dataset.size()));
  for (int64_t i = 0; i < dataset.size(); ++i) all[static_cast<size_t>(i)] = i;
  const at::Tensor ids = dataset.batch(all).example_ids;
  return {ids.data_ptr<int64_t>(), ids.data_ptr<int64_t>() + ids.numel()};
}

TEST(BidmcTask, FactsNeedNoDataForTheOfficialRecordings) {
  for (const char* name : {"bidmc-hr", "bidmc-rr", "bidmc-spo2"}) {
    const TaskFacts facts = find_task(name).facts({}, kNoRecordings);
    EXPECT_EQ(facts.kind, "regression");
    EXPECT_EQ(facts.metrics[0].name, "r2");
    EXPECT_EQ(facts.metrics[1].name, "mse");
    EXPECT_EQ(facts.channels, 2);
    EXPECT_EQ(facts.max_length, 4000);
    EXPECT_EQ(facts.train_size, 37 * 150);
    EXPECT_EQ(facts.validation_size, 8 * 150);
    EXPECT_EQ(facts.test_size, 8 * 150);
    const TaskFacts by_window = find_task(name).facts({{"split", std::string("window")}, {"split_seed", int64_t{0}}}, kNoRecordings);
    EXPECT_EQ(by_window.train_size, 5565);
    EXPECT_EQ(by_window.validation_size, 1192);
    EXPECT_EQ(by_window.test_size, 1193);
  }
  EXPECT_THAT(message_of<DataError>([] { find_task("bidmc-hr").open({}, kNoRecordings, Stream(1, "subset")); }),
              HasSubstr("physionet.org"));
}

TEST(BidmcTask, NoRecordingIsInTwoSplits) {
  const TemporaryFolder root;
  testing_files::write_bidmc(root);
  const OpenedTask opened = open_windows(root, {{"stride", int64_t{1000}}});  // 5 windows a recording: id / 5 is the recording
  EXPECT_EQ(opened.train->size() + opened.validation->size() + opened.test->size(), 50);
  std::map<int64_t, int> split_of;
  int split = 0;
  for (const auto& dataset : {opened.train, opened.validation, opened.test}) {
    for (const int64_t id : window_ids(*dataset)) EXPECT_EQ(split_of.try_emplace(id / 5, split).first->second, split);
    ++split;
  }
  EXPECT_EQ(split_of.size(), 10u);
  std::map<int64_t, int> windows_of;  // the cluster of a window is the number of its recording
  for (int64_t i = 0; i < opened.test->size(); ++i) ++windows_of[opened.test->cluster(i)];
  EXPECT_THAT(windows_of, ::testing::SizeIs(2));
  for (const auto& [recording, windows] : windows_of) EXPECT_EQ(windows, 5) << recording;
  EXPECT_NE(window_ids(*opened.test), window_ids(*open_windows(root, {{"stride", int64_t{1000}}, {"split_seed", int64_t{7}}}).test));
  EXPECT_EQ(window_ids(*opened.test), window_ids(*open_windows(root, {{"stride", int64_t{1000}}}, "bidmc-hr", 2).test));
}

TEST(BidmcTask, ABatchHoldsWindowsAndRescaledTargets) {
  const TemporaryFolder root;
  testing_files::write_bidmc(root);
  const OptionMap options = {{"stride", int64_t{1000}}};
  const OpenedTask opened = open_windows(root, options, "bidmc-spo2");
  const Batch batch = opened.test->batch(std::vector<int64_t>{1});
  ASSERT_EQ(batch.values.sizes(), (std::vector<int64_t>{1, 4000, 2}));
  ASSERT_EQ(batch.targets.sizes(), (std::vector<int64_t>{1, 1}));
  const int64_t id = batch.example_ids[0].item<int64_t>(), recording = id / 5 + 1, begin = 1000 * (id % 5);
  EXPECT_NEAR(batch.values[0][7][1].item<double>(), 0.001 * static_cast<double>((begin + 7) % 100) + static_cast<double>(recording), 1e-4);
  EXPECT_EQ(opened.test->label(1), -1);
  OptionMap raw = options;
  raw["rescale_targets"] = false;
  const Batch plain = open_windows(root, raw, "bidmc-spo2").test->batch(std::vector<int64_t>{1});
  EXPECT_NEAR(plain.targets.item<double>(), 90.0 + static_cast<double>(recording), 1e-4);
  std::vector<int64_t> all(static_cast<size_t>(opened.train->size()));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  const at::Tensor targets = opened.train->batch(all).targets;
  EXPECT_FLOAT_EQ(targets.min().item<float>(), -1);
  EXPECT_FLOAT_EQ(targets.max().item<float>(), 1);
}

TEST(BidmcTask, TserWindowsAreSplitAsPublished) {
  const TemporaryFolder root;
  root.write("bidmc/BIDMC32HR_TRAIN.ts", testing_files::ts_file(0, 15));
  root.write("bidmc/BIDMC32HR_TEST.ts", testing_files::ts_file(15, 5));
  const OptionMap options = {{"source", std::string("tser")}, {"split", std::string("window")}, {"split_seed", int64_t{0}}};
  const OpenedTask opened = open_windows(root, options);
  EXPECT_EQ(opened.train->size(), 14);
  EXPECT_EQ(opened.validation->size(), 3);
  EXPECT_EQ(opened.test->size(), 3);
  // numpy.random.RandomState(0).permutation(20) begins 18 1 19 8 10 17: held out; train is the rest in its order.
  EXPECT_THAT(window_ids(*opened.train), ::testing::ElementsAre(6, 13, 4, 2, 5, 14, 9, 7, 16, 11, 3, 0, 15, 12));
  EXPECT_THAT(opened.notes.front(), HasSubstr("as published"));
  EXPECT_THAT(message_of([] { find_task("bidmc-hr").validate({{"source", std::string("tser")}}); }), HasSubstr("split = \"window\""));
  EXPECT_THAT(message_of<DataError>([&] { open_windows(root, options, "bidmc-rr"); }), HasSubstr("BIDMC32RR_TRAIN.ts"));
}

TEST(BidmcTask, OtherRecordingsNeedPartial) {
  const TemporaryFolder root;
  testing_files::write_bidmc(root, 3);
  EXPECT_THAT(message_of<DataError>([&] { find_task("bidmc-hr").open({}, root.path, Stream(1, "subset")); }),
              AllOf(HasSubstr("3 recordings"), HasSubstr("partial = true")));
  EXPECT_THAT(message_of<DataError>([&] { open_windows(root); }), HasSubstr("too few to split"));
}

TEST(BidmcTask, SubsetsAreNested) {
  const TemporaryFolder root;
  testing_files::write_bidmc(root);
  const auto train = [&](int64_t n) { return window_ids(*open_windows(root, {{"stride", int64_t{1000}}, {"train_examples", n}}).train); };
  const auto small = train(5), large = train(20);
  EXPECT_TRUE(std::equal(small.begin(), small.end(), large.begin()));
  const OpenedTask opened = open_windows(root, {{"stride", int64_t{1000}}, {"test_examples", int64_t{3}}});
  EXPECT_EQ(opened.test->size(), 3);
  const auto test = window_ids(*opened.test);
  EXPECT_TRUE(std::is_sorted(test.begin(), test.end()));
}

TEST(DataBidmcTask, OpensAsPlanned) {
  const char* root = std::getenv("SPT_DATA");
  if (root == nullptr || !formats::find_bidmc(root)) GTEST_SKIP() << "no BIDMC recordings below SPT_DATA";
  const OpenedTask opened = find_task("bidmc-rr").open({}, root, Stream(1, "subset"));
  const TaskFacts planned = find_task("bidmc-rr").facts({}, root);
  EXPECT_EQ(opened.facts.data_hash, planned.data_hash);
  EXPECT_EQ(opened.train->size(), planned.train_size);
  EXPECT_EQ(opened.validation->size(), planned.validation_size);
  EXPECT_EQ(opened.test->size(), planned.test_size);
  EXPECT_TRUE(opened.test->batch(std::vector<int64_t>{0, 600, 1199}).values.isfinite().all().item<bool>());
  for (const std::string& note : opened.notes) std::cout << note << "\n";
}

}  // namespace
}  // namespace spt::tasks
