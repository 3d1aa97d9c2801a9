#include "reports/report.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "tests/golden/approved.h"
#include "tests/reports/rows.h"

namespace spt::reports {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing_rows::add_curves;
using testing_rows::fail;
using testing_rows::row_of;
using testing_rows::Sample;
using testing_rows::sample_input;

std::string text_of(const ReportInput& input, ReportOptions options = {}) {
  options.figures = false;
  return terminal_text(build_report(input, options));
}

std::string data_of(const Report& report, const std::string& name) {
  for (const TextFile& file : report.data) {
    if (file.name == name) return file.text;
  }
  return "";
}

TEST(ReportGolden, AllComplete) {
  const Report report = build_report(sample_input(), {.figures = false});
  EXPECT_TRUE(golden::is_approved("report_complete", terminal_text(report)));
  EXPECT_TRUE(golden::is_approved("report_complete_statistics", data_of(report, "statistics.csv")));
  EXPECT_TRUE(golden::is_approved("report_complete_scores", data_of(report, "scores.csv")));
}

TEST(ReportGolden, DivergedSeed) {
  ReportInput input = sample_input();
  fail(row_of(input, "s4d", "spt-masked@P+F", 3), "diverged");
  EXPECT_TRUE(golden::is_approved("report_diverged", text_of(input)));
}

TEST(ReportGolden, IncompleteSeeds) {
  ReportInput input = sample_input();
  fail(row_of(input, "transformer", "scratch@(P+F)", 2), "crashed");
  fail(row_of(input, "s4d", "scratch@F", 5), "missing");
  fail(row_of(input, "s4d", "scratch@F", 4), "diverged");
  EXPECT_TRUE(golden::is_approved("report_incomplete", text_of(input)));
}

TEST(ReportGolden, AtChance) {
  Sample sample;
  sample.mean["s4d scratch@F"] = 0.098;
  sample.mean["s4d scratch@(P+F)"] = 0.3;
  ReportInput input = sample_input(sample);
  row_of(input, "s4d", "scratch@(P+F)", 1).test = 0.1;
  EXPECT_TRUE(golden::is_approved("report_at_chance", text_of(input)));
}

TEST(ReportGolden, OneSeed) { EXPECT_TRUE(golden::is_approved("report_one_seed", text_of(sample_input({.seeds = {7}})))); }

TEST(ReportGolden, OrderReversed) {
  Sample sample;
  sample.mean["s4d scratch@(P+F)"] = 0.83;
  EXPECT_TRUE(golden::is_approved("report_reversed", text_of(sample_input(sample))));
}

TEST(ReportGolden, MixedDevicesAllowed) {
  ReportInput input = sample_input();
  row_of(input, "s4d", "scratch@F", 1).device_kind = "cuda";
  row_of(input, "s4d", "scratch@F", 2).threads = 2;
  row_of(input, "s4d", "scratch@F", 3).libtorch = "2.14.1";
  EXPECT_TRUE(golden::is_approved("report_mixed", text_of(input, {.allow_mixed = true})));
}

TEST(ReportGolden, MarkdownAndPage) {
  const Report report = build_report(sample_input({.seeds = {1, 2, 3}}), {.figures = false});
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "spt-report-golden";
  write_report(report, folder);
  EXPECT_TRUE(golden::is_approved("report_markdown", read_file(folder / "report.md")));
  EXPECT_TRUE(golden::is_approved("report_page", read_file(folder / "report.html")));
  std::filesystem::remove_all(folder);
}

TEST(Report, RefusesMixedDevicesAndLibTorchVersions) {
  ReportInput input = sample_input();
  row_of(input, "s4d", "scratch@F", 1).libtorch = "2.13.1";  // a patch may differ
  EXPECT_NO_THROW(text_of(input));
  EXPECT_THAT(text_of(input), HasSubstr("Jobs differ in LibTorch: 2.13.0+cpu (30 jobs), 2.13.1 (1 job)"));
  row_of(input, "s4d", "scratch@F", 1).libtorch = "2.14.0";
  EXPECT_THROW(text_of(input), Error);
  row_of(input, "s4d", "scratch@F", 1).libtorch = "2.13.0";
  row_of(input, "s4d", "scratch@F", 1).device_kind = "cuda";
  try {
    text_of(input);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("task 'fashion' mixes device kinds: cpu (30 jobs), cuda (1 job)"));
    EXPECT_THAT(error.what(), HasSubstr("--allow-mixed"));
  }
  fail(row_of(input, "s4d", "scratch@F", 1), "crashed");  // its device did not make a number
  EXPECT_NO_THROW(text_of(input));
}

TEST(Report, SaysWhatMustBeReadBeforeTheNumbers) {
  ReportInput input = sample_input({.seeds = {1, 2, 3}});
  input.matrix.analysis_changed = true;
  for (results::ResultRow& row : input.rows) row.partial_data = true;
  row_of(input, "s4d", "scratch@(P+F)", 1).match_residual = 0.031;
  const std::string text = text_of(input);
  for (const char* notice : {"CHANGED AFTER RESULTS WERE SEEN", "Fewer than 5 seeds: fashion (n = 3)", "PARTIAL DATA: fashion",
                             "CUDA was not executed", "3.10 %", "unadjusted", "Untuned"}) {
    EXPECT_THAT(text, HasSubstr(notice)) << notice;
  }
  EXPECT_THAT(text, Not(HasSubstr("allowed")));  // 3.1 % is an error on the flops basis alone
  for (results::ResultRow& row : input.rows) {
    if (row.arm_kind == "matched") row.arm = "scratch@(P+F):flops";
  }
  EXPECT_THAT(text_of(input), HasSubstr("fashion s4d scratch@(P+F):flops: the FLOPs of the arms differ by 3.1 %"));
}

TEST(Report, OfTotalModeComparesWithScratchAtTheSameTotal) {
  ReportInput input = sample_input();
  input.matrix.mode = "total";
  std::erase_if(input.rows, [](const results::ResultRow& row) { return row.arm_kind == "scratch"; });
  for (results::ResultRow& row : input.rows) {
    if (row.arm_kind == "matched") row.arm = "scratch@T";
  }
  const std::string text = text_of(input);
  EXPECT_THAT(text, HasSubstr("s4d           spt-masked@P+F  scratch@T  +0.0203"));
  EXPECT_THAT(text, HasSubstr("no arm"));  // by compute, by pretraining
  EXPECT_THAT(text, HasSubstr("Profile fair, total mode"));
  EXPECT_THAT(text, Not(HasSubstr("scratch@F trains")));
}

TEST(Report, OfNothingIsAReport) {
  ReportInput input;
  input.matrix.name = "empty";
  EXPECT_THAT(text_of(input), HasSubstr("0 of 0 done"));
  input = sample_input();
  for (results::ResultRow& row : input.rows) {
    fail(row, "missing");
    row.test_size = 0;
    row.metric = "";
  }
  const std::string text = text_of(input);
  EXPECT_THAT(text, HasSubstr("0 of 31 done, 31 missing"));
  EXPECT_THAT(text, HasSubstr("incomplete (0/5)"));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

TEST(Report, EscapesHostileLabelsInEveryOutput) {
  const std::string hostile = "a<b>&|,\"' \x1b[31m\nx";
  ReportInput input = sample_input();
  input.matrix.name = hostile;
  input.matrix.reference = hostile;
  for (results::ResultRow& row : input.rows) {
    if (row.architecture == "transformer") row.architecture = hostile;
    row.task = hostile;
    row.unit = hostile;
    row.failure_message = hostile;
  }
  add_curves(input, 4);
  const Report report = build_report(input, {});
  ASSERT_TRUE(report.warnings.empty()) << report.warnings[0];
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "spt-report-hostile";
  const auto names = write_report(report, folder);
  for (const std::string& name : names) {
    const std::string text = read_file(folder / name);
    if (name.ends_with(".csv")) {
      if (name == "curves.csv") continue;
      EXPECT_THAT(text, HasSubstr("\"a<b>&|,\"\"' \x1b[31m\nx\"")) << name;
      continue;
    }
    EXPECT_THAT(text, Not(HasSubstr("<b>"))) << name;
    EXPECT_THAT(text, Not(HasSubstr("\x1b"))) << name;
  }
  EXPECT_THAT(terminal_text(report), Not(HasSubstr("\x1b")));
  std::filesystem::remove_all(folder);
}

TEST(Report, WritesEveryFileAndNamesThem) {
  ReportInput input = sample_input();
  add_curves(input, 10);
  const Report report = build_report(input, {});
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / "spt-report-files" / "deep";
  const auto names = write_report(report, folder);
  EXPECT_THAT(names, testing::UnorderedElementsAre("report.md", "report.html", "scores.csv", "statistics.csv", "seeds.csv", "curves.csv",
                                                   "curves_1_finetune.svg", "curves_1_pretrain.svg"));
  for (const std::string& name : names) EXPECT_GT(std::filesystem::file_size(folder / name), 100u) << name;
  EXPECT_THAT(read_file(folder / "report.html"), HasSubstr("<svg"));
  EXPECT_THAT(read_file(folder / "report.md"), HasSubstr("(curves_1_finetune.svg)"));
  std::filesystem::remove_all(folder.parent_path());
  EXPECT_THROW(write_report(report, "/dev/null/x"), Error);
}

TEST(Report, WarnsWhereGnuplotIsAbsent) {
  ReportInput input = sample_input();
  add_curves(input, 5);
  const Report report = build_report(input, {.gnuplot = "spt-no-such-program"});
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_THAT(report.warnings[0], HasSubstr("'spt-no-such-program' is not installed"));
  EXPECT_THAT(terminal_text(report), HasSubstr("'spt-no-such-program' is not installed"));
}

}  // namespace
}  // namespace spt::reports
