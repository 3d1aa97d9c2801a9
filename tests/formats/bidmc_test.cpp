#include "tasks/formats/bidmc.h"

#include <archive.h>
#include <archive_entry.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "tasks/formats/archive.h"
#include "tasks/formats/npy.h"
#include "tests/formats/bidmc_files.h"

namespace spt::formats {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_files::message_of;
using testing_files::npy_file;
using testing_files::raw_numbers;
using testing_files::TemporaryFolder;
using testing_files::ts_file;
using testing_files::ts_line;

TEST(Bidmc, ColumnsAreFoundByName) {
  const TemporaryFolder root;
  testing_files::write_bidmc(root, 2);
  const BidmcRecordings data = load_bidmc(root.path);
  ASSERT_EQ(data.recordings.size(), 2u);
  for (size_t r = 0; r < 2; ++r) {
    const BidmcRecording& recording = data.recordings[r];
    EXPECT_EQ(recording.id, static_cast<int64_t>(r) + 1);
    ASSERT_EQ(recording.signal.size(), 2u * 8751u);
    EXPECT_NEAR(recording.signal[2 * 300], 0.5 + 0.4 * std::sin(3.0 * static_cast<double>(r + 1)), 1e-5);
    EXPECT_NEAR(recording.signal[2 * 307 + 1], 0.007 + static_cast<double>(r + 1), 1e-5);
    EXPECT_TRUE(std::isnan(recording.targets[1][39]));
    EXPECT_EQ(recording.targets[1][40], 20);
  }
}

TEST(Bidmc, WindowsHaveTheMeanOfTheirSecondsAndNeedOne) {
  const TemporaryFolder root;
  testing_files::write_bidmc(root, 1);
  const BidmcRecordings data = load_bidmc(root.path);
  const auto windows = bidmc_windows(data, BidmcTarget::kHeartRate, 1000);
  ASSERT_EQ(windows.size(), 5u);
  EXPECT_EQ(windows[1].begin, 1000);
  EXPECT_NEAR(windows[1].target, 61 + 0.01 * (8 + 39) / 2.0, 1e-4);  // seconds 8 to 39
  const auto breaths = bidmc_windows(data, BidmcTarget::kRespiratoryRate, 1000);
  ASSERT_EQ(breaths.size(), 3u);  // windows from 0 s and 8 s end before the first value
  EXPECT_EQ(breaths[0].begin, 2000);
}

TEST(Bidmc, RefusesDamageWithFileAndLine) {
  struct Damage {
    std::string file, content, message;
  };
  const std::string signals = testing_files::bidmc_signals(1, 8751), numerics = testing_files::bidmc_numerics(1, 71);
  const auto replaced = [](std::string text, const std::string& what, const std::string& by) {
    return text.replace(text.find(what), what.size(), by);
  };
  for (const Damage& damage : {Damage{"Signals", replaced(signals, "PLETH", "PLATH"), "line 1: there is no column 'PLETH'"},
                               {"Signals", replaced(signals, "\n0.008,", "\n0.016,"), "line 3: time 0.016"},
                               {"Signals", replaced(signals, "\n0.008,", "\nx,"), "line 3: 'x' in column 'Time [s]' is no number"},
                               {"Signals", replaced(signals, "\n0.008,", "\n0.008,1,"), "line 3: 7 columns, the header has 6"},
                               {"Signals", signals.substr(0, 5000), "Signals.csv"},
                               {"Signals", replaced(signals, "\n0.008,", "\n" + std::string(5000, '1') + ","), "line 3: 50"},
                               {"Signals", "", "empty"},
                               {"Numerics", "Time [s], HR, PULSE, RESP, SpO2\n", "no values"},
                               {"Numerics", replaced(numerics, "NaN", "\xff\xfe"), "line 2"},
                               {"Numerics", replaced(numerics, "NaN", "inf"), "is no number"}}) {
    const TemporaryFolder root;
    testing_files::write_bidmc(root, 1);
    root.write("bidmc/bidmc_csv/bidmc_01_" + damage.file + ".csv", damage.content);
    EXPECT_THAT(message_of<DataError>([&] { load_bidmc(root.path); }),
                AllOf(HasSubstr("bidmc_01_" + damage.file), HasSubstr(damage.message)));
  }
  const TemporaryFolder root;
  EXPECT_THAT(message_of<DataError>([&] { load_bidmc(root.path); }), HasSubstr("physionet.org"));
  testing_files::write_bidmc(root, 2);
  std::filesystem::remove(root.path / "bidmc/bidmc_csv/bidmc_02_Signals.csv");
  EXPECT_THAT(message_of<DataError>([&] { load_bidmc(root.path); }), HasSubstr("bidmc_02_Signals.csv is missing"));
}

TEST(BidmcTs, ReadsTwoDimensionsAndATarget) {
  const BidmcTable table = parse_bidmc_ts(ts_file(3, 2), "'a.ts'");
  ASSERT_EQ(table.size(), 2);
  EXPECT_THAT(table.y, ElementsAre(63, 64));
  EXPECT_EQ(table.x[0], 3);
  EXPECT_EQ(table.x[2 * 7 + 1], 7.5);
  EXPECT_EQ(table.x[8000], 4);
}

TEST(BidmcTs, RefusesDamageWithTheLine) {
  const std::string head = "@problemName x\n@data\n";
  const auto error = [](const std::string& text) { return message_of<DataError>([&] { parse_bidmc_ts(text, "'a.ts'"); }); };
  EXPECT_THAT(error(head + ts_line(1, "60") + ts_line(2, "61", 3999)), HasSubstr("'a.ts', line 4: dimension 1 has 3999 values"));
  EXPECT_THAT(error(head + ts_line(1, "?")), HasSubstr("line 3: '?' is no number"));
  EXPECT_THAT(error(head + "1,2,3:60\n"), HasSubstr("line 3: not two dimensions"));
  EXPECT_THAT(error(ts_line(1, "60")), HasSubstr("line 1: data before @data"));
  EXPECT_THAT(error("@problemName x\n"), HasSubstr("no @data"));
  EXPECT_THAT(error(head), HasSubstr("no windows"));
  EXPECT_THAT(error(head + std::string((1 << 20) + 1, '1')), HasSubstr("which no window has"));
}

TEST(Npy, ReadsBothWidths) {
  const NpyArray wide = parse_npy(npy_file("<f8", "(2, 3)", raw_numbers<double>({1, 2, 3, 4, 5, 6.5})), "'a.npy'");
  EXPECT_THAT(wide.shape, ElementsAre(2, 3));
  EXPECT_THAT(wide.values, ElementsAre(1, 2, 3, 4, 5, 6.5));
  EXPECT_THAT(parse_npy(npy_file("<f4", "(2,)", raw_numbers<float>({1, -2})), "'a.npy'").values, ElementsAre(1, -2));
}

TEST(Npy, RefusesWhatItCannotHold) {
  const auto error = [](const std::string& bytes) { return message_of<DataError>([&] { parse_npy(bytes, "'a.npy'"); }); };
  const std::string values = raw_numbers<double>({1, 2});
  EXPECT_THAT(error("PK"), HasSubstr("byte 0: not a .npy file"));
  EXPECT_THAT(error(npy_file("|O", "(2,)", values)), HasSubstr("values of type '|O'"));
  EXPECT_THAT(error(npy_file("<f8", "(2,)", values, "True")), HasSubstr("C order"));
  EXPECT_THAT(error(npy_file("<f8", "(3,)", values)), HasSubstr("2 values for a shape of 3"));
  EXPECT_THAT(error(npy_file("<f8", "(2,)", values + "x")), HasSubstr("values for a shape"));
  EXPECT_THAT(error(npy_file("<f8", "(-2,)", values)), HasSubstr("not possible"));
  EXPECT_THAT(error(npy_file("<f8", "(1099511627776, 1099511627776)", values)), HasSubstr("too large"));
  EXPECT_THAT(error(npy_file("<f8", "(2,)", values).substr(0, 40)), HasSubstr("byte 8: a header of"));
}

TEST(BidmcTables, NpyArraysComeSplitAndTsFilesDoNot) {
  const TemporaryFolder root;
  EXPECT_THAT(message_of<DataError>([&] { load_bidmc_tables(root.path, BidmcTarget::kHeartRate); }),
              AllOf(HasSubstr("BIDMC32HR_TRAIN.ts"), HasSubstr("physionet")));
  root.write("bidmc/BIDMC32HR_TRAIN.ts", ts_file(0, 3));
  root.write("bidmc/BIDMC32HR_TEST.ts", ts_file(10, 2));
  const BidmcTables ts = load_bidmc_tables(root.path, BidmcTarget::kHeartRate);
  EXPECT_FALSE(ts.is_split);
  EXPECT_THAT(ts.tables[0].y, ElementsAre(60, 61, 62, 70, 71));
  const std::string one = raw_numbers(std::vector<double>(8000, 0.25)), three = one + one + one;
  for (const char* part : {"train", "valid", "test"}) {
    const bool train = part == std::string("train");
    root.write(fmt::format("bidmc/HR/reshuffle/{}x.npy", part),
               npy_file("<f8", train ? "(3, 4000, 2)" : "(1, 4000, 2)", train ? three : one));
    root.write(fmt::format("bidmc/HR/reshuffle/{}y.npy", part),
               npy_file("<f8", train ? "(3,)" : "(1,)", raw_numbers(std::vector<double>(train ? 3 : 1, 80))));
  }
  const BidmcTables npy = load_bidmc_tables(root.path, BidmcTarget::kHeartRate);
  EXPECT_TRUE(npy.is_split);
  EXPECT_EQ(npy.tables[0].size(), 3);
  EXPECT_EQ(npy.tables[2].size(), 1);
  EXPECT_NE(npy.data_hash, ts.data_hash);
  root.write("bidmc/HR/reshuffle/validy.npy", npy_file("<f8", "(2,)", raw_numbers<double>({1, 2})));
  EXPECT_THAT(message_of<DataError>([&] { load_bidmc_tables(root.path, BidmcTarget::kHeartRate); }), HasSubstr("1 windows and 2 targets"));
  root.write("bidmc/HR/reshuffle/testx.npy", npy_file("<f8", "(2, 4000)", one));
  EXPECT_NE(message_of<DataError>([&] { load_bidmc_tables(root.path, BidmcTarget::kHeartRate); }), "");
}

TEST(TargetScaling, MapsTheTrainTargetsToMinusOneAndOne) {
  const std::vector<double> train = {60, 80, 100};
  const TargetScaling scaling(train);
  EXPECT_DOUBLE_EQ(scaling(60), -1);
  EXPECT_DOUBLE_EQ(scaling(80), 0);
  EXPECT_DOUBLE_EQ(scaling(120), 2);
  EXPECT_NE(message_of([] { TargetScaling(std::vector<double>{5, 5}); }), "");
  EXPECT_NE(message_of([] { TargetScaling(std::vector<double>{}); }), "");
}

/// Writes an archive of one entry.
void pack_entry(const std::filesystem::path& file, const std::string& name, const std::string& content, const std::string& hardlink = "",
                const std::string& symlink = "") {
  archive* writer = archive_write_new();
  archive_write_set_format_pax_restricted(writer);
  ASSERT_EQ(archive_write_open_filename(writer, file.c_str()), ARCHIVE_OK);
  archive_entry* entry = archive_entry_new();
  archive_entry_set_pathname(entry, name.c_str());
  archive_entry_set_filetype(entry, symlink.empty() ? AE_IFREG : AE_IFLNK);
  archive_entry_set_perm(entry, 0644);
  archive_entry_set_size(entry, hardlink.empty() && symlink.empty() ? static_cast<la_int64_t>(content.size()) : 0);
  if (!hardlink.empty()) archive_entry_set_hardlink(entry, hardlink.c_str());
  if (!symlink.empty()) archive_entry_set_symlink(entry, symlink.c_str());
  ASSERT_EQ(archive_write_header(writer, entry), ARCHIVE_OK);
  if (hardlink.empty() && symlink.empty()) archive_write_data(writer, content.data(), content.size());
  archive_entry_free(entry);
  archive_write_close(writer);
  archive_write_free(writer);
}

TEST(Archive, RefusesPathsThatLeadOutAndLinks) {
  const TemporaryFolder root;
  const auto error = [&](const std::string& name, const std::string& hardlink = "", const std::string& symlink = "") {
    pack_entry(root.path / "a.tar", name, "x", hardlink, symlink);
    return message_of<DataError>([&] { visit_archive(root.path / "a.tar", {1, 1}, [](std::string_view, const auto& read) { read(); }); });
  };
  EXPECT_EQ(error("folder/file.txt"), "");
  EXPECT_THAT(error("../file.txt"), AllOf(HasSubstr("a.tar"), HasSubstr("leads out of the archive")));
  EXPECT_THAT(error("folder/../../file.txt"), HasSubstr("leads out"));
  EXPECT_THAT(error("/etc/passwd"), HasSubstr("leads out"));
  EXPECT_THAT(error("folder/file.txt", "/etc/passwd"), HasSubstr("is a link"));
  EXPECT_THAT(error("folder/file.txt", "", "other.txt"), HasSubstr("is a link"));
  EXPECT_THAT(error("../file.txt", "", "other.txt"), HasSubstr("leads out"));
}

TEST(Archive, RefusesMoreThanSuchDataHave) {
  const TemporaryFolder root;
  pack_entry(root.path / "a.tar", "a/b.txt", std::string(1000, 'x'));
  const auto error = [&](const ArchiveLimits& limits) {
    return message_of<DataError>([&] { visit_archive(root.path / "a.tar", limits, [](std::string_view, const auto& read) { read(); }); });
  };
  EXPECT_EQ(error({1000, 1000}), "");
  EXPECT_THAT(error({999, 1000}), AllOf(HasSubstr("'a/b.txt' has more than 999 bytes"), HasSubstr("a.tar")));
  EXPECT_THAT(error({1000, 999}), HasSubstr("more than 999 bytes"));
  const std::string whole = read_file(root.path / "a.tar");
  std::ofstream(root.path / "a.tar", std::ios::binary) << whole.substr(0, 700);
  EXPECT_THAT(error({1000, 1000}), AllOf(HasSubstr("cannot be read"), HasSubstr("(after 700 bytes)")));
}

TEST(DataBidmc, TheReleaseIsTheOfficialOne) {
  const char* root = std::getenv("SPT_DATA");
  const auto place = root == nullptr ? std::nullopt : find_bidmc(root);
  if (!place) GTEST_SKIP() << "no BIDMC recordings below SPT_DATA";
  const BidmcRecordings data = load_bidmc(root);
  EXPECT_EQ(data.data_hash, kBidmcOfficialHash);
  ASSERT_EQ(data.recordings.size(), 53u);
  for (const BidmcRecording& recording : data.recordings) EXPECT_EQ(recording.signal.size(), 2u * static_cast<size_t>(kBidmcSamples));
  for (const BidmcTarget target : {BidmcTarget::kHeartRate, BidmcTarget::kRespiratoryRate, BidmcTarget::kSpO2})
    EXPECT_EQ(bidmc_windows(data, target, kBidmcStride).size(), 7950u);
}

}  // namespace
}  // namespace spt::formats
