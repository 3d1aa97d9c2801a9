// The numbers of the whole program in one text: whoever changes them has to say so, and to raise the version of what changed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "harness/base/file.h"
#include "results/store.h"
#include "tests/e2e/program.h"
#include "tests/golden/approved.h"

namespace spt::e2e {
namespace {

constexpr const char* kSignatureMatrix = R"(name = "signature"
seeds = [1]
reference = "transformer"
protocols = ["scratch", "spt-causal", "spt-masked"]
[budget]
finetune = { steps = 10 }
pretrain = { steps = 10 }
evaluations = 1
[train]
batch = 8
precision = "float64"
[[architecture]]
name = "transformer"
options = { n_layers = 1, d_model = 8, n_heads = 2, d_ff = 16 }
[[architecture]]
name = "s4d"
options = { n_layers = 1, d_model = 8, d_state = 4 }
[[architecture]]
name = "gru"
options = { n_layers = 1, d_model = 8 }
[[task]]
name = "fashion"
options = { patch = 7, train_examples = 64, validation_examples = 64, test_examples = 64 }
[[task]]
name = "listops"
options = { min_length = 4, max_length = 16, max_depth = 3, train_examples = 64, validation_examples = 64, test_examples = 64 }
)";

// Float64 and 4 digits: equal on every CPU capability, but not under another order of operations that matters.
TEST(Signature, OfASmokeGridIsTheApprovedOne) {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist")) GTEST_SKIP() << "the package dataset-fashion-mnist is not installed";
  const std::filesystem::path folder = fresh_folder("signature"), out = folder / "out.txt";
  write_file_atomically(folder / "signature.toml", kSignatureMatrix);
  const std::string db = (folder / "s.db").string();
  ASSERT_EQ(run_program({"run", "--matrix", (folder / "signature.toml").string(), "--db", db, "--slots", "2", "--no-report"}, out, 300), 0)
      << read_file(out);
  const results::Store store(db, results::Store::Mode::kReadOnly);
  std::map<std::string, std::string> lines;
  const std::string id = store.matrices().at(0).id;
  std::map<std::string, std::string> losses;
  const results::Curves curves = store.curves(id);
  for (const results::CurvePoint& point : curves.points)
    if (const results::Curve& curve = curves.curves[point.curve]; curve.metric == "loss")
      losses[curve.job_key] += fmt::format(" {} {} {:.4g}", curve.stage, curve.split, point.value);
  for (const results::ResultRow& row : store.results(id))
    lines[row.name] = fmt::format("{}: test {:.4g},{} FLOPs {:.6g}, parameters {}\n", row.name, row.test.value_or(-1), losses[row.job_key],
                                  row.flops, row.parameters);
  std::string text;
  for (const auto& [name, line] : lines) text += line;
  EXPECT_TRUE(golden::is_approved("signature", text));
}

}  // namespace
}  // namespace spt::e2e
