#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>

#include "harness/base/file.h"
#include "harness/base/json.h"
#include "harness/base/safetensors.h"

// Plants an error in a copy of a case and wants the program to notice.
namespace spt {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

struct ProgramRun {
  int status = 0;
  std::string output;
};

ProgramRun run_program(const std::string& arguments) {
  const fs::path log = fs::path(testing::TempDir()) / fmt::format("spt-reference-{}.log", ::getpid());
  const int status = std::system(fmt::format("'{}/spt-reference-tests' {} > '{}' 2>&1", SPT_BINARY_DIR, arguments, log.string()).c_str());
  ProgramRun run{WEXITSTATUS(status), read_file(log)};
  fs::remove(log);
  return run;
}

class PlantedError : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            fmt::format("spt-reference-{}-{}", ::getpid(), testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directories(root_);
    fs::copy(fs::path(SPT_REFERENCE_CASES) / name_, root_ / name_, fs::copy_options::recursive);
  }
  void TearDown() override { fs::remove_all(root_); }

  ProgramRun run() const { return run_program(fmt::format("--cases '{}'", root_.string())); }
  void edit_json(const std::function<void(nlohmann::json&)>& edit) const {
    const fs::path file = root_ / name_ / "case.json";
    nlohmann::json json = parse_json(read_file(file), file.string());
    edit(json);
    write_file_atomically(file, json.dump());
  }
  void edit_tensors(const std::function<void(std::map<std::string, RawTensor>&)>& edit) const {
    const fs::path file = root_ / name_ / "case.safetensors";
    SafetensorsFile content = read_safetensors(file);
    edit(content.tensors);
    write_safetensors(file, content);
  }

  const std::string name_ = "s4d_layer";
  fs::path root_;
};

TEST_F(PlantedError, IsNotThereAtFirst) { EXPECT_EQ(run().status, 0) << run().output; }

TEST_F(PlantedError, InAWeightIsADifference) {
  edit_tensors([](auto& tensors) {
    std::string& bytes = tensors.at("weight.ssm.w_imag").bytes;
    double value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    value += 1e-6;
    std::memcpy(bytes.data(), &value, sizeof value);
  });
  const ProgramRun result = run();
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.output, HasSubstr("output.y: differs by"));
}

TEST_F(PlantedError, InAWeightIsADifferenceInFloat32) {
  const auto run_float32 = [&] { return run_program(fmt::format("--cases '{}' --dtype float32", root_.string())); };
  EXPECT_EQ(run_float32().status, 0) << run_float32().output;
  edit_tensors([](auto& tensors) {
    std::string& bytes = tensors.at("weight.ssm.D").bytes;
    double value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    value += 0.01;
    std::memcpy(bytes.data(), &value, sizeof value);
  });
  EXPECT_EQ(run_float32().status, 1);
  EXPECT_THAT(run_float32().output, HasSubstr("allowed 0.0001"));
}

TEST_F(PlantedError, OfAMissingWeightIsNamed) {
  edit_tensors([](auto& tensors) { tensors.erase("weight.ssm.D"); });
  EXPECT_EQ(run().status, 1);
  EXPECT_THAT(run().output, HasSubstr("no weight 'ssm.D'"));
}

TEST_F(PlantedError, OfAWeightLeftOverIsNamed) {
  edit_tensors([](auto& tensors) { tensors["weight.ssm.E"] = tensors.at("weight.ssm.D"); });
  EXPECT_EQ(run().status, 1);
  EXPECT_THAT(run().output, HasSubstr("weight 'ssm.E' is none of the network's"));
}

TEST_F(PlantedError, OfAnOutputNobodyKnowsIsNamed) {
  edit_tensors([](auto& tensors) { tensors["output.z"] = tensors.at("output.y"); });
  EXPECT_EQ(run().status, 1);
  EXPECT_THAT(run().output, HasSubstr("output.z was not compared"));
}

TEST_F(PlantedError, OfAnUnknownOptionIsNamed) {
  edit_json([](nlohmann::json& json) { json["options"]["d_states"] = 8; });
  EXPECT_EQ(run().status, 1);
  EXPECT_THAT(run().output, HasSubstr("did you mean 'd_state'"));
}

TEST_F(PlantedError, OfAnUnknownValueIsNamed) {
  edit_json([](nlohmann::json& json) { json["options"]["measure"] = "diag-log"; });
  EXPECT_EQ(run().status, 1);
}

TEST_F(PlantedError, OfAnUnknownKindOrSubjectIsNamed) {
  edit_json([](nlohmann::json& json) { json["subject"] = "s4e"; });
  EXPECT_EQ(run().status, 1);
  EXPECT_THAT(run().output, HasSubstr("nothing handles kind 'layer' with subject 's4e'"));
}

TEST_F(PlantedError, InTheFilesIsAFailureOfThatCase) {
  write_file_atomically(root_ / name_ / "case.safetensors", "short");
  EXPECT_EQ(run().status, 1);
  edit_json([](nlohmann::json& json) { json.erase("tolerance"); });
  EXPECT_EQ(run().status, 1);
}

TEST(ReferenceProgram, FailsWhereAClipIsNotToBeHad) {
  const fs::path root = fs::path(testing::TempDir()) / fmt::format("spt-reference-{}-clips", ::getpid()),
                 source = fs::path(SPT_REFERENCE_CASES) / "preprocess_speech";
  fs::create_directories(root / "preprocess_speech");
  for (const char* file : {"case.json", "case.safetensors"}) fs::copy(source / file, root / "preprocess_speech" / file);
  EXPECT_EQ(run_program(fmt::format("--cases '{}'", root.string())).status, 0) << "clips of the repository's own case";
  nlohmann::json json = parse_json(read_file(source / "case.json"), "case.json");
  json["files"]["train"][0] = "bed/00000000_nohash_9.wav";
  write_file_atomically(root / "preprocess_speech" / "case.json", json.dump());
  const ProgramRun run = run_program(fmt::format("--cases '{}'", root.string()));
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.output, HasSubstr("bed/00000000_nohash_9.wav is neither beside the case"));
  fs::remove_all(root);
}

TEST(ReferenceProgram, FailsWhereThereIsNothingToRun) {
  EXPECT_EQ(run_program("--filter no_such_case").status, 1);
  EXPECT_EQ(run_program("--cases /no/such/folder").status, 1);
  EXPECT_EQ(run_program("--case x").status, 2);
}

}  // namespace
}  // namespace spt
