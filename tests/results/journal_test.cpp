#include "results/journal.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <fstream>

#include "harness/base/error.h"
#include "harness/base/rng.h"
#include "results/blob.h"
#include "tests/results/samples.h"

namespace spt::results {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::filesystem::path fresh_file(const std::string& name) {
  const std::filesystem::path file = testing::TempDir() + fmt::format("journal_{}_{}.jsonl", ::getpid(), name);
  std::filesystem::remove(file);
  return file;
}

void append_text(const std::filesystem::path& file, std::string_view text) {
  std::ofstream(file, std::ios::app | std::ios::binary) << text;
}

std::string error_of(std::string_view line) {
  try {
    parse_line(line, "here");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from << " in " << text;
  return text.replace(at, from.size(), to);
}

TEST(JournalLine, OfEveryEventSurvivesTheRoundTrip) {
  for (const Event& event : sample_events()) {
    const std::string text = format_line(sample_line(event));
    EXPECT_EQ(text.find('\n'), std::string::npos);
    const JournalLine back = parse_line(text, "here");
    EXPECT_EQ(back.event.index(), event.index());
    EXPECT_EQ(format_line(back), text);
    EXPECT_EQ(back.time, 1700000000.125);
    EXPECT_EQ(back.stage_key, "stage-a");
    EXPECT_EQ(back.sequence, 2);
  }
}

TEST(JournalLine, KeepsEveryBitOfNumbers) {
  const auto start = std::get<StartEvent>(parse_line(format_line(sample_line(sample_events()[0])), "here").event);
  EXPECT_EQ(start.stamp, sample_stamp());
  EXPECT_EQ(start.majority, 1.0 / 3.0);
  EXPECT_EQ(start.open_s, 1e-300);
  EXPECT_EQ(start.parameters, 123456789012345);
  EXPECT_THAT(start.notes, ElementsAre("note one", "note \"two\""));
  const auto progress = std::get<ProgressEvent>(parse_line(format_line(sample_line(sample_events()[1])), "here").event);
  EXPECT_TRUE(std::isnan(progress.loss));
  EXPECT_EQ(progress.lr, 5e-324);
  EXPECT_EQ(progress.metric_value, std::numeric_limits<double>::infinity());
  SplitMix64 random(7);
  for (int i = 0; i < 2000; ++i) {
    const double value = std::bit_cast<double>(random());
    ProgressEvent event;
    event.loss = value;
    const auto back = std::get<ProgressEvent>(parse_line(format_line(sample_line(event)), "here").event);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(back.loss));
    } else {
      EXPECT_EQ(std::bit_cast<uint64_t>(back.loss), std::bit_cast<uint64_t>(value));
    }
  }
}

TEST(JournalLine, CarriesScoresOfManyExamplesBitForBit) {
  SplitMix64 random(8);
  ScoresEvent event{"test", "accuracy", {}, {}};
  for (int i = 0; i < 10001; ++i) {
    event.scores.push_back(i % 3 == 0 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(random.uniform()));
    event.predicted.push_back(static_cast<int32_t>(random.below(10)));
  }
  const auto back = std::get<ScoresEvent>(parse_line(format_line(sample_line(event)), "here").event);
  EXPECT_EQ(back.predicted, event.predicted);
  ASSERT_EQ(back.scores.size(), event.scores.size());
  EXPECT_EQ(std::memcmp(back.scores.data(), event.scores.data(), event.scores.size() * 4), 0);
  const auto empty = std::get<ScoresEvent>(parse_line(format_line(sample_line(ScoresEvent{"test", "mse", {}, {}})), "here").event);
  EXPECT_THAT(empty.scores, IsEmpty());
}

TEST(JournalLine, SpeaksOfClustersOnlyWhereThereAreAny) {
  const std::string none = format_line(sample_line(ScoresEvent{"test", "accuracy", {1.f}, {0}, {}}));
  EXPECT_EQ(none.find("clusters"), std::string::npos);  // so a line of before clusters were known reads as well
  EXPECT_THAT(std::get<ScoresEvent>(parse_line(none, "here").event).clusters, IsEmpty());
  const std::string some = format_line(sample_line(ScoresEvent{"test", "r2", {1.f, 2.f}, {}, {31, 44}}));
  EXPECT_THAT(std::get<ScoresEvent>(parse_line(some, "here").event).clusters, ElementsAre(31, 44));
}

TEST(JournalLine, ReplacesTextThatIsNotUnicode) {
  const std::string text = format_line(sample_line(FailedEvent{Failure::kCrashed, "bad \xff byte", ""}));
  EXPECT_EQ(std::get<FailedEvent>(parse_line(text, "here").event).message, "bad \xEF\xBF\xBD byte");
}

TEST(JournalLine, CutAnywhereIsAnError) {
  for (const Event& event : sample_events()) {
    const std::string text = format_line(sample_line(event));
    for (size_t length = 0; length < text.size(); ++length) EXPECT_THAT(error_of(text.substr(0, length)), HasSubstr("here")) << length;
  }
}

TEST(JournalLine, OfRandomBytesIsAnErrorAndNeverACrash) {
  SplitMix64 random(9);
  const std::vector<Event> events = sample_events();
  for (int i = 0; i < 4000; ++i) {
    std::string noise(random.below(60), ' ');
    for (char& byte : noise) byte = static_cast<char>(random());
    EXPECT_NE(error_of(noise), "");
    std::string changed = format_line(sample_line(events[random.below(events.size())]));
    changed[random.below(changed.size())] = static_cast<char>(random());
    error_of(changed);  // may be another valid line: only crashes and foreign exceptions count
  }
}

TEST(JournalLine, IsReadStrictly) {
  const std::string text = format_line(sample_line(CheckpointEvent{"f"}));
  EXPECT_THAT(error_of(replaced(text, "\"event\":\"checkpoint\"", "\"event\":\"chekpoint\"")), HasSubstr("did you mean 'checkpoint'"));
  EXPECT_THAT(error_of(replaced(text, "\"file\"", "\"fil\"")), HasSubstr("'file' is missing"));
  EXPECT_THAT(error_of(replaced(text, "{\"file\"", "{\"more\":1,\"file\"")), HasSubstr("more"));
  EXPECT_THAT(error_of(replaced(text, "\"attempt\":1", "\"attempt\":0")), HasSubstr("attempt"));
  EXPECT_THAT(error_of(replaced(text, "\"step\":5", "\"step\":-5")), HasSubstr("step"));
  EXPECT_THAT(error_of(replaced(text, "\"step\":5", "\"step\":5.0")), HasSubstr("step"));
  EXPECT_THAT(error_of(replaced(text, "\"step\":5", "\"step\":18446744073709551615")), HasSubstr("out of range"));
  EXPECT_THAT(error_of(replaced(text, "\"stage\":\"stage-a\"", "\"stage\":\"\"")), HasSubstr("empty"));
  EXPECT_THAT(error_of(replaced(text, "\"f\"", "true")), HasSubstr("wrong type"));
  EXPECT_THAT(error_of(replaced(format_line(sample_line(FailedEvent{})), "crashed", "crushed")),
              HasSubstr("unknown failure class 'crushed'"));
  ProgressEvent progress;
  progress.loss = 0.5;
  EXPECT_THAT(error_of(replaced(format_line(sample_line(progress)), "0.5", "\"0.5\"")), HasSubstr("no number"));
}

TEST(JournalLine, RefusesDamagedScores) {
  const std::string text = format_line(sample_line(ScoresEvent{"test", "m", {1.f, 2.f}, {}}));
  EXPECT_THAT(error_of(replaced(text, "\"n\":2", "\"n\":3")), HasSubstr("damaged"));
  EXPECT_THAT(error_of(replaced(text, "\"n\":2", "\"n\":1")), HasSubstr("damaged"));
  EXPECT_THAT(error_of(replaced(text, "\"n\":2", "\"n\":-1")), HasSubstr("cannot hold"));
  EXPECT_THAT(error_of(replaced(text, "\"n\":2", "\"n\":4000000000000")), HasSubstr("cannot hold"));
  EXPECT_THAT(error_of(replaced(text, "\"n\":2,\"zlib\":\"eJ", "\"n\":2,\"zlib\":\"e*")), HasSubstr("base64"));
}

TEST(Base64, AgreesWithTheExamplesOfTheStandard) {
  const std::vector<std::pair<std::string, std::string>> examples = {
      {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : examples) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text, "here"), bytes);
  }
  for (const char* bad : {"Zg=", "Zg==Zg==", "Z===", "====", "Zh==", "Zm9=", "Zm 9"}) EXPECT_THROW(from_base64(bad, "here"), Error) << bad;
}

TEST(FailureNames, AreReadBack) {
  for (const Failure failure : {Failure::kDiverged, Failure::kOom, Failure::kTimeout, Failure::kHung, Failure::kCrashed, Failure::kKilled,
                                Failure::kData, Failure::kBlocked})
    EXPECT_EQ(failure_from_name(failure_name(failure)), failure);
  EXPECT_EQ(failure_from_name("done"), std::nullopt);
}

TEST(ReadJournal, GivesNoLinesWhereThereIsNoFile) {
  const JournalTail tail = read_journal(fresh_file("missing"), 17);
  EXPECT_THAT(tail.lines, IsEmpty());
  EXPECT_THAT(tail.problems, IsEmpty());
  EXPECT_EQ(tail.offset, 0u);
}

TEST(ReadJournal, CutAtEachByteGivesTheWholeLinesAndNoProblem) {
  const std::string first = format_line(sample_line(sample_events()[0])) + "\n";
  const std::string both = first + format_line(sample_line(sample_events()[6])) + "\n";
  for (size_t length = 0; length <= both.size(); ++length) {
    const std::filesystem::path file = fresh_file("cut");
    append_text(file, both.substr(0, length));
    const JournalTail tail = read_journal(file, 0);
    EXPECT_THAT(tail.problems, IsEmpty()) << length;
    EXPECT_EQ(tail.lines.size(), size_t{length >= first.size()} + size_t{length == both.size()});
    append_text(file, both.substr(length));
    EXPECT_EQ(tail.lines.size() + read_journal(file, tail.offset).lines.size(), 2u) << length;
  }
}

TEST(ReadJournal, ReportsDamagedLinesInTheMiddleAndKeepsTheOthers) {
  const std::filesystem::path file = fresh_file("damaged");
  const std::string good = format_line(sample_line(CheckpointEvent{"f"}));
  append_text(file, good + "\n" + good.substr(0, 20) + "\n\n" + replaced(good, "\"event\":\"checkpoint\"", "\"event\":\"later\"") + "\n" +
                        good + "\n");
  const JournalTail tail = read_journal(file, 0);
  EXPECT_THAT(tail.lines, SizeIs(2));
  ASSERT_THAT(tail.problems, SizeIs(3));
  EXPECT_THAT(tail.problems[0], HasSubstr(fmt::format("{}' at byte {}", file.string(), good.size() + 1)));
  EXPECT_THAT(tail.problems[2], HasSubstr("unknown event 'later'"));
  EXPECT_EQ(tail.offset, std::filesystem::file_size(file));
}

TEST(ReadJournal, ReadsAFileAgainThatBecameShorter) {
  const std::filesystem::path file = fresh_file("shorter");
  append_text(file, format_line(sample_line(CheckpointEvent{"f"})) + "\n");
  const JournalTail tail = read_journal(file, 100000);
  EXPECT_THAT(tail.lines, SizeIs(1));
  EXPECT_THAT(tail.problems, ElementsAre(HasSubstr("100000 were read before")));
}

TEST(ReadJournal, KeepsTheStageOfEachLine) {
  const std::filesystem::path file = fresh_file("stages");
  append_text(file, format_line(sample_line(CheckpointEvent{"f"}, 1, 1, "a")) + "\n" +
                        format_line(sample_line(CheckpointEvent{"f"}, 1, 1, "b")) + "\n");
  const JournalTail tail = read_journal(file, 0);
  ASSERT_THAT(tail.lines, SizeIs(2));
  EXPECT_EQ(tail.lines[1].stage_key, "b");
}

TEST(JournalWriter, NumbersItsLinesAndCutsOffATornOne) {
  const std::filesystem::path file = fresh_file("writer");
  {
    JournalWriter writer(file, "k", 1);
    writer.write(0, CheckpointEvent{"a"});
    writer.write(3, CheckpointEvent{"b"});
    writer.sync();
  }
  append_text(file, "{\"stage\":\"k\",\"att");
  JournalWriter(file, "k", 2).write(4, CheckpointEvent{"c"});
  const JournalTail tail = read_journal(file, 0);
  EXPECT_THAT(tail.problems, IsEmpty());
  ASSERT_THAT(tail.lines, SizeIs(3));
  EXPECT_EQ(tail.lines[1].sequence, 1);
  EXPECT_EQ(tail.lines[1].step, 3);
  EXPECT_EQ(tail.lines[2].sequence, 0);
  EXPECT_EQ(tail.lines[2].attempt, 2);
  EXPECT_GT(tail.lines[2].time, 1.7e9);
}

}  // namespace
}  // namespace spt::results
