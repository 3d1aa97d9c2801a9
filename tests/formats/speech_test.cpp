#include "tasks/formats/speech.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>

#include "harness/base/hash.h"
#include "tasks/formats/mapped_file.h"
#include "tasks/formats/wav.h"
#include "tests/formats/wav_files.h"

namespace spt::formats {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_files::flat_clip;
using testing_files::message_of;
using testing_files::TemporaryFolder;
using testing_files::wav_bytes;

std::vector<int16_t> wav_of(const std::string& bytes) { return read_wav(bytes, 16000, 16000, "'a.wav'"); }

TEST(Wav, GivesTheSamples) {
  EXPECT_THAT(wav_of(wav_bytes({0, 1, -1, 32767, -32768})), ElementsAre(0, 1, -1, 32767, -32768));
  EXPECT_TRUE(wav_of(wav_bytes({})).empty());
}

TEST(Wav, RefusesWhatIsNotOneChannelOf16BitsAt16Kilohertz) {
  const std::string whole = wav_bytes({1, 2, 3, 4});
  const auto error = [](const std::string& bytes) { return message_of<DataError>([&] { wav_of(bytes); }); };
  EXPECT_THAT(error(wav_bytes({1, 2}, 8000)), HasSubstr("'a.wav': 8000 Hz instead of 16000"));
  EXPECT_THAT(error(wav_bytes({1, 2}, 16000, 2)), HasSubstr("2 channels"));
  EXPECT_THAT(error(wav_bytes({1, 2}, 16000, 1, 8)), HasSubstr("not 16-bit PCM"));
  EXPECT_THAT(error(wav_bytes(std::vector<int16_t>(16001))), HasSubstr("16001 samples, more than 16000"));
  EXPECT_THAT(error(whole.substr(0, whole.size() - 2)), HasSubstr("truncated at byte 50; its header says 52"));
  EXPECT_THAT(error(whole.substr(0, 20)), HasSubstr("ends at byte 20"));
  EXPECT_THAT(error(""), HasSubstr("ends at byte 0"));
  EXPECT_THAT(error(std::string(100, 'x')), HasSubstr("not a WAV file"));
}

TEST(Wav, ChunksBesidesTheSoundAreSkippedAndNoneMayLeaveTheFile) {
  const std::string whole = wav_bytes({1, 2, 3});
  const auto with = [&](const std::string& chunk) {
    std::string bytes = whole.substr(0, 12) + chunk + whole.substr(12);
    bytes[4] = static_cast<char>(bytes.size() - 8);
    return bytes;
  };
  const std::string damaged = "adtlltxt" + std::string(12, '\xff');
  EXPECT_THAT(wav_of(with(std::string("LIST\x14\0\0\0", 8) + damaged)), ElementsAre(1, 2, 3));
  EXPECT_THAT(wav_of(with(std::string("odd \x01\0\0\0xp", 10))), ElementsAre(1, 2, 3));
  const auto error = [](const std::string& bytes) { return message_of<DataError>([&] { wav_of(bytes); }); };
  EXPECT_THAT(error(with(std::string(8, '\xff'))),
              HasSubstr("'a.wav': byte 12: a chunk of 4294967295 bytes, more than the 38 that follow"));
  EXPECT_THAT(error(with(std::string("fmt.\0\0\0\0", 8)).replace(20, 4, "xxxx")), HasSubstr("there is no chunk 'fmt '"));
}

TEST(Speech, AFolderGivesPaddedClipsInOrderOfTheirNames) {
  const TemporaryFolder root;
  write_speech(root);
  const SpeechData data = read_speech(*find_speech(root.path, "v0.02"));
  ASSERT_EQ(data.clips.size(), 12u);
  EXPECT_EQ(data.clips[0].name, "bed/0_nohash_0.wav");
  EXPECT_EQ(data.clips[1].samples, 9558);
  EXPECT_EQ(data.clip(data.clips[5])[0], -1);
  EXPECT_EQ(data.clip(data.clips[5])[9557], 101);
  EXPECT_EQ(data.clip(data.clips[5])[9558], 0);
  std::vector<int64_t> splits, words;
  for (size_t i = 8; i < 12; ++i) splits.push_back(data.clips[i].split), words.push_back(data.clips[i].word);
  EXPECT_THAT(splits, ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(words, ::testing::Each(34));  // zero is the last class
  EXPECT_EQ(speech_release("v0.01").words.size(), 30u);
  EXPECT_EQ(speech_release("v0.02").words.size(), 35u);
  EXPECT_THAT(message_of([] { speech_release("v0.03"); }), HasSubstr("v0.02"));
}

TEST(Speech, RefusesWrongLayoutsWithFileAndLine) {
  struct Change {
    std::string file, content, message;
  };
  const std::string folder = "speech_commands/speech_commands_v0.02/";
  for (const Change& change : {Change{"bed/9_nohash_0.wav", "RIFF", "bed/9_nohash_0.wav: ends at byte 4"},
                               {"frog/1_nohash_0.wav", flat_clip(1, 1), "the folder 'frog'"},
                               {"testing_list.txt", "bed/2_nohash_0.wav\n", "is in both lists"},
                               {"testing_list.txt", "bed/3_nohash_0.wav\nbed\n", "testing_list.txt, line 2"},
                               {"validation_list.txt", std::string(100000, 'x') + "/a.wav", "validation_list.txt, line 1"}}) {
    const TemporaryFolder root;
    write_speech(root);
    root.write(folder + change.file, change.content);
    EXPECT_THAT(message_of<DataError>([&] { read_speech(*find_speech(root.path, "v0.02")); }), HasSubstr(change.message));
  }
  const TemporaryFolder root;
  write_speech(root);
  std::filesystem::remove(root.path / folder / "testing_list.txt");
  EXPECT_THAT(message_of<DataError>([&] { read_speech(*find_speech(root.path, "v0.02")); }), HasSubstr("there is no testing_list.txt"));
  root.write("speech_commands/speech_commands_v0.01.tar.gz", "no archive");
  EXPECT_THAT(message_of<DataError>([&] { read_speech(*find_speech(root.path, "v0.01")); }), HasSubstr("speech_commands_v0.01.tar.gz"));
}

void expect_same_speech(const SpeechData& a, const SpeechData& b) {
  ASSERT_EQ(a.clips.size(), b.clips.size());
  EXPECT_EQ(a.data_hash, b.data_hash);
  for (size_t i = 0; i < a.clips.size(); ++i) {
    EXPECT_EQ(a.clips[i].name, b.clips[i].name);
    EXPECT_EQ(a.clips[i].split, b.clips[i].split);
    EXPECT_EQ(a.clips[i].samples, b.clips[i].samples);
    EXPECT_TRUE(std::ranges::equal(a.clip(a.clips[i]), b.clip(b.clips[i]))) << i;
  }
}

std::vector<std::filesystem::path> cache_files(const TemporaryFolder& root) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(root.path / "cache")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

TEST(SpeechCache, GivesWhatTheFilesGiveAndIsMadeAgainWhenDamaged) {
  const TemporaryFolder root;
  write_speech(root);
  const SpeechData direct = read_speech(*find_speech(root.path, "v0.02"));
  expect_same_speech(load_speech(root.path, "v0.02"), direct);
  const auto files = cache_files(root);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(std::filesystem::file_size(files[0]), 12u * 32000u);
  const auto written = std::filesystem::last_write_time(files[0]);
  expect_same_speech(load_speech(root.path, "v0.02"), direct);
  EXPECT_EQ(std::filesystem::last_write_time(files[0]), written);
  const SpeechData facts = load_speech(root.path, "v0.02", true);
  EXPECT_EQ(facts.clips.size(), 12u);
  EXPECT_TRUE(facts.pcm.empty());
  for (const auto& file : files) {
    std::string bytes = read_file(file);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] + 1);
    std::ofstream(file, std::ios::binary) << bytes;
    expect_same_speech(load_speech(root.path, "v0.02"), direct);
  }
  root.write("speech_commands/speech_commands_v0.02/cat/7_nohash_0.wav", flat_clip(5, 5));  // another set, another cache
  EXPECT_EQ(load_speech(root.path, "v0.02").clips.size(), 13u);
}

TEST(SpeechCache, AReadOnlyRootIsLeftAlone) {
  const TemporaryFolder root;
  write_speech(root);
  using std::filesystem::perms;
  std::filesystem::permissions(root.path, perms::owner_read | perms::owner_exec);
  expect_same_speech(load_speech(root.path, "v0.02"), read_speech(*find_speech(root.path, "v0.02")));
  std::filesystem::permissions(root.path, perms::owner_all);
  EXPECT_FALSE(std::filesystem::exists(root.path / "cache"));
}

TEST(SpeechCache, ADamagedSetLeavesNoCache) {
  const TemporaryFolder root;
  write_speech(root);
  root.write("speech_commands/speech_commands_v0.02/zero/9_nohash_0.wav", "cut");
  EXPECT_NE(message_of<DataError>([&] { load_speech(root.path, "v0.02"); }), "");
  EXPECT_TRUE(cache_files(root).empty());
  EXPECT_THAT(message_of<DataError>([&] { load_speech(root.path, "v0.01"); }),
              AllOf(HasSubstr("v0.01"), HasSubstr("speech_commands_v0.01.tar.gz")));
}

TEST(SpeechScaling, StandardisesEachStepOverTheTrainingClips) {
  const std::vector<int16_t> a = {0, 328, 5}, b = {0, -328, 5}, c = {100, 0, 5};
  const std::vector<std::span<const int16_t>> train = {a, b};
  const SpeechScaling once(train, false), twice(train, true);
  std::vector<float> values(3);
  once.write(a, 1, values);
  const double std1 = 328 * std::sqrt(2.0) / 32768;
  EXPECT_NEAR(values[0], 0, 1e-6);
  EXPECT_NEAR(values[1], 328.0 / 32768 / (std1 + 1e-5), 1e-5);
  EXPECT_NEAR(values[2], 0, 1e-6);  // no spread: epsilon alone
  once.write(c, 1, values);
  EXPECT_NEAR(values[0], 100.0 / 32768 / 1e-5, 1e-2);
  twice.write(a, 1, values);
  EXPECT_NEAR(values[1], 328.0 / 32768 / 32768 / (std1 / 32768 + 1e-5), 1e-6);
  std::vector<float> every(2);
  once.write(c, 2, every);
  EXPECT_NEAR(every[1], 0, 1e-6);
  EXPECT_NE(message_of([&] { SpeechScaling(std::span(train).first(1), false); }), "");
}

TEST(DataSpeech, TheSubsetIsRead) {
  const char* root = std::getenv("SPT_DATA");
  const auto place = root == nullptr ? std::nullopt : find_speech(root, "v0.01");
  if (!place) GTEST_SKIP() << "no Speech Commands v0.01 below SPT_DATA";
  const SpeechData data = read_speech(*place);
  std::array<int64_t, 3> clips{};
  int64_t shortest = kSpeechSamples, padded = 0;
  for (const SpeechClip& clip : data.clips) {
    ++clips[static_cast<size_t>(clip.split)];
    shortest = std::min(shortest, clip.samples);
    padded += clip.samples < kSpeechSamples;
  }
  EXPECT_THAT(clips, ElementsAre(1284, 537, 51));
  EXPECT_EQ(shortest, 9558);
  EXPECT_EQ(padded, 180);
}

}  // namespace
}  // namespace spt::formats
