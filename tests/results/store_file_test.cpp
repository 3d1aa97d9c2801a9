// The store as a file: other programs' files, damage, full disks, several processes at once.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/rng.h"
#include "results/blob.h"
#include "results/schema.h"
#include "results/store.h"

namespace spt::results {
namespace {

using ::testing::HasSubstr;
using Mode = Store::Mode;

// A folder of its own, gone at the end.
class Folder {
 public:
  Folder() {
    static int count = 0;
    path_ = testing::TempDir() + fmt::format("store_{}_{}", ::getpid(), count++);
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(const char* name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::string message_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

void plan_one(Store& store) {
  MatrixRow matrix;
  matrix.id = "m";
  PlannedJob job;
  job.key = "k";
  job.stages = {"k"};
  job.metric = "loss";
  store.record_plan(matrix, {job}, {{"k", "finetune", "", "{}", 0}});
}

JournalLine evaluation(int64_t step, int64_t metrics = 1) {
  EvaluationEvent event;
  for (int64_t i = 0; i < metrics; ++i) event.metrics.push_back({"validation", fmt::format("m{}", i), static_cast<double>(step), 1});
  return {"k", 1, step, step, 0, event};
}

// Runs body in a child that ends without the parent's clean-up. \return its pid
pid_t in_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  try {
    body();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "child: %s\n", e.what());
    ::_exit(1);
  }
  ::_exit(0);
}

int exit_code(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(StoreFile, IsKeptAndReadByAnother) {
  const Folder folder;
  {
    Store store(folder / "a ?#%.db", Mode::kReadWrite);
    plan_one(store);
    store.ingest({evaluation(1)});
    EXPECT_EQ(Store(folder / "a ?#%.db", Mode::kReadOnly).curves("m").points.size(), 1u);
  }
  EXPECT_EQ(Store(folder / "a ?#%.db", Mode::kReadOnly).curves("m").points.size(), 1u);
  EXPECT_EQ(SQLite::Database((folder / "a ?#%.db").string()).execAndGet("PRAGMA journal_mode").getString(), "wal");
}

TEST(StoreFile, IsNotMadeNorWrittenByAReader) {
  const Folder folder;
  EXPECT_THAT(message_of([&] { Store(folder / "none.db", Mode::kReadOnly); }), HasSubstr("there is no database"));
  EXPECT_FALSE(std::filesystem::exists(folder / "none.db"));
  {
    Store store(folder / "a.db", Mode::kReadWrite);
    plan_one(store);
  }
  const std::string before = read_file(folder / "a.db");
  Store reader(folder / "a.db", Mode::kReadOnly);
  EXPECT_THAT(message_of([&] { reader.begin_attempt("k"); }), HasSubstr("may not be written"));
  EXPECT_EQ(read_file(folder / "a.db"), before);
}

TEST(StoreFile, IsReadInAFolderThatMayNotBeWritten) {
  const Folder folder;
  {
    Store store(folder / "a.db", Mode::kReadWrite);
    plan_one(store);
  }
  std::filesystem::permissions(folder / "a.db", std::filesystem::perms(0444));
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));
  const pid_t child = in_child([&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) throw Error("cannot become nobody");  // root may write everywhere
    if (Store(folder / "a.db", Mode::kReadOnly).matrices().size() != 1) throw Error("no matrix");
  });
  EXPECT_EQ(exit_code(child), 0);
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
}

TEST(StoreFile, OfAnotherProgramIsRefusedAndLeftAlone) {
  const Folder folder;
  {
    SQLite::Database(std::string(folder / "other.db"), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec("CREATE TABLE t (x)");
  }
  const std::string before = read_file(folder / "other.db");
  for (const Mode mode : {Mode::kReadOnly, Mode::kReadWrite})
    EXPECT_THAT(message_of([&] { Store(folder / "other.db", mode); }), HasSubstr("another program"));
  EXPECT_EQ(read_file(folder / "other.db"), before);
  std::ofstream(folder / "text.db") << std::string(5000, 'x');
  std::ofstream(folder / "short.db") << "hello";
  for (const char* name : {"text.db", "short.db"})
    for (const Mode mode : {Mode::kReadOnly, Mode::kReadWrite})
      EXPECT_THAT(message_of([&] { Store(folder / name, mode); }), HasSubstr("not an SQLite database")) << name;
  EXPECT_THAT(message_of([&] { Store(folder.path(), Mode::kReadWrite); }), HasSubstr("folder"));
  EXPECT_THAT(message_of([&] { Store(folder / "no/such/folder.db", Mode::kReadWrite); }), HasSubstr("cannot be opened"));
}

TEST(StoreFile, OfANewerProgramIsRefused) {
  const Folder folder;
  {
    Store(folder / "a.db", Mode::kReadWrite);
  }
  {
    SQLite::Database(std::string(folder / "a.db"), SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 99");
  }
  for (const Mode mode : {Mode::kReadOnly, Mode::kReadWrite}) {
    const std::string message = message_of([&] { Store(folder / "a.db", mode); });
    EXPECT_THAT(message, HasSubstr("schema version 99"));
    EXPECT_THAT(message, HasSubstr(folder / "a.db"));
  }
}

TEST(StoreFile, OfAnOlderProgramKeepsItsScoresAndGetsClusters) {
  const Folder folder;
  {
    SQLite::Database old(std::string(folder / "a.db"), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    for (size_t version = 0; version < 2; ++version) old.exec(std::string(migrations()[version]));
    old.exec(fmt::format(
        "PRAGMA application_id = {}; PRAGMA user_version = 2; INSERT INTO stage (id, key, name, position) VALUES (1, 'k', 'finetune', 0)",
        kApplicationId));
    const std::string scores = compress(std::vector<float>{1, 0}), none = compress(std::vector<int32_t>{});
    SQLite::Statement insert(old,
                             "INSERT INTO score (stage, split, metric, attempt, sequence, n, n_predicted, scores, predicted) VALUES (1, "
                             "'test', 'm', 1, 1, 2, 0, ?, ?)");
    insert.bind(1, scores.data(), static_cast<int>(scores.size()));
    insert.bind(2, none.data(), static_cast<int>(none.size()));
    insert.exec();
  }
  const Store store(folder / "a.db", Mode::kReadWrite);
  EXPECT_EQ(store.scores("k", "test"), (std::vector<float>{1, 0}));
  EXPECT_TRUE(store.clusters("k", "test").empty());
}

TEST(StoreFile, ThatIsEmptyIsFilledByAWriterOnly) {
  const Folder folder;
  std::ofstream(folder / "a.db").flush();
  EXPECT_THAT(message_of([&] { Store(folder / "a.db", Mode::kReadOnly); }), HasSubstr("schema version 0"));
  {
    Store(folder / "a.db", Mode::kReadWrite);
  }
  EXPECT_EQ(Store(folder / "a.db", Mode::kReadOnly).integrity_problem(), "");
}

TEST(StoreFile, CutOrDamagedIsAnErrorAndNeverACrash) {
  const Folder folder;
  {
    Store store(folder / "a.db", Mode::kReadWrite);
    plan_one(store);
    for (int64_t step = 1; step <= 300; ++step) store.ingest({evaluation(step, 20)});
  }
  const std::string whole = read_file(folder / "a.db");
  ASSERT_GT(whole.size(), 100000u);
  SplitMix64 random(5);
  int found = 0;
  for (int round = 0; round < 60; ++round) {
    std::string bytes = whole;
    if (round % 2 == 0) bytes.resize(1 + random.below(whole.size() - 1));
    else
      for (int i = 0; i < 400; ++i) bytes[random.below(bytes.size())] = static_cast<char>(random());
    std::ofstream(folder / "b.db", std::ios::binary) << bytes;
    for (const char* side : {"b.db-wal", "b.db-shm"}) std::filesystem::remove(folder / side);
    const std::string message = message_of([&] {
      Store store(folder / "b.db", round % 4 < 2 ? Mode::kReadOnly : Mode::kReadWrite);
      const std::string problem = store.integrity_problem();
      if (!problem.empty()) throw Error(problem);
      store.results("m");
      store.curves("m");
    });
    if (!message.empty()) ++found;
  }
  EXPECT_GE(found, 55);  // a cut or change inside free space is harmless
}

TEST(StoreConcurrency, ManyOpenANewDatabaseAtOnce) {
  for (int round = 0; round < 3; ++round) {
    const Folder folder;
    std::vector<pid_t> children;
    for (int i = 0; i < 8; ++i)
      children.push_back(in_child([&] { plan_one(*std::make_unique<Store>(folder / "a.db", Mode::kReadWrite)); }));
    for (const pid_t child : children) EXPECT_EQ(exit_code(child), 0);
    EXPECT_EQ(Store(folder / "a.db", Mode::kReadOnly).matrices().size(), 1u);
  }
}

TEST(StoreConcurrency, ReadersSeeNoErrorAndWholeBatchesWhileAWriterWrites) {
  const Folder folder;
  Store writer(folder / "a.db", Mode::kReadWrite);
  plan_one(writer);
  const pid_t child = in_child([&] {
    size_t seen = 0;
    while (seen < 3000) {
      Store reader(folder / "a.db", Mode::kReadOnly, 0);  // does not wait for anyone
      for (int i = 0; i < 5; ++i) {
        const size_t rows = reader.curves("m").points.size();
        if (rows % 10 != 0 || rows < seen) throw Error("{} rows after {}", rows, seen);
        seen = rows;
        reader.status("m");
        reader.results("m");
      }
    }
  });
  for (int64_t step = 1; step <= 300; ++step) writer.ingest({evaluation(step, 10)});
  EXPECT_EQ(exit_code(child), 0);
}

TEST(StoreConcurrency, ASecondWriterWaitsAndThenSaysSo) {
  const Folder folder;
  Store writer(folder / "a.db", Mode::kReadWrite);
  plan_one(writer);
  SQLite::Database other(std::string(folder / "a.db"), SQLite::OPEN_READWRITE);
  other.exec("BEGIN IMMEDIATE");
  Store hasty(folder / "a.db", Mode::kReadWrite, 50);
  EXPECT_THAT(message_of([&] { hasty.begin_attempt("k"); }), HasSubstr("is locked"));
  std::thread release([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    other.exec("COMMIT");
  });
  EXPECT_EQ(writer.begin_attempt("k"), 1);
  release.join();
  EXPECT_EQ(hasty.begin_attempt("k"), 2);
}

TEST(StoreConcurrency, ManyWritersLoseNoAttempt) {
  const Folder folder;
  {
    Store store(folder / "a.db", Mode::kReadWrite);
    plan_one(store);
  }
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i)
    children.push_back(in_child([&] {
      Store store(folder / "a.db", Mode::kReadWrite);
      for (int n = 0; n < 15; ++n) store.begin_attempt("k");
    }));
  for (const pid_t child : children) EXPECT_EQ(exit_code(child), 0);
  EXPECT_EQ(Store(folder / "a.db", Mode::kReadOnly).stage_states().at("k").attempts, 8 * 15);
}

TEST(StoreDisk, FullIsAnErrorThatLosesNothingCommitted) {
  const Folder folder;
  const std::filesystem::path file = folder / "a.db";
  {
    Store store(file, Mode::kReadWrite);
    plan_one(store);
  }
  const pid_t child = in_child([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{400000, 400000};  // no file may grow beyond: what a full disk does to a write
    ::setrlimit(RLIMIT_FSIZE, &limit);
    Store store(file, Mode::kReadWrite);
    int64_t step = 0;
    const std::string message = message_of([&] {
      while (step < 100000) {
        store.ingest({evaluation(step + 1, 50)});
        ++step;
      }
    });
    if (message.find("full") == std::string::npos) throw Error("message: '{}' after {} steps", message, step);
    if (store.curves("m").points.size() != static_cast<size_t>(step) * 50)
      throw Error("{} rows after {} steps", store.curves("m").points.size(), step);
    write_file_atomically(folder / "steps", std::to_string(step));
  });
  ASSERT_EQ(exit_code(child), 0);
  Store store(file, Mode::kReadWrite);
  EXPECT_EQ(store.integrity_problem(), "");
  const int64_t steps = std::stoll(read_file(folder / "steps"));
  EXPECT_GT(steps, 3);
  EXPECT_EQ(store.curves("m").points.size(), static_cast<size_t>(steps) * 50);
  store.ingest({evaluation(steps + 1, 50)});
  EXPECT_EQ(store.curves("m").points.size(), static_cast<size_t>(steps + 1) * 50);
}

TEST(StoreCrash, KilledWritersLoseNothingCommitted) {
  const uint64_t seed = std::random_device{}();
  std::printf("seed %lu\n", static_cast<unsigned long>(seed));
  SplitMix64 random(seed);
  const Folder folder;
  {
    Store store(folder / "a.db", Mode::kReadWrite);
    plan_one(store);
  }
  int64_t committed = 0, in_the_middle = 0;
  for (int round = 0; round < 10; ++round) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = in_child([&] {
      Store store(folder / "a.db", Mode::kReadWrite);
      for (int64_t step = committed + 1;; ++step) {
        store.ingest({evaluation(step, 200)});
        if (::write(pipe[1], "x", 1) != 1) ::_exit(2);
      }
    });
    ::close(pipe[1]);
    char byte = 0;
    ASSERT_EQ(::read(pipe[0], &byte, 1), 1);
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(20000)));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    int64_t told = committed + 1;
    while (::read(pipe[0], &byte, 1) == 1) ++told;
    ::close(pipe[0]);
    Store store(folder / "a.db", Mode::kReadWrite);
    ASSERT_EQ(store.integrity_problem(), "");
    const size_t rows = store.curves("m").points.size();
    ASSERT_EQ(rows % 200, 0u) << "a part of a transaction in round " << round;
    const auto stored = static_cast<int64_t>(rows / 200);
    ASSERT_GE(stored, told) << "round " << round;
    ASSERT_LE(stored, told + 1) << "round " << round;
    in_the_middle += stored == told;
    committed = stored;
  }
  EXPECT_GT(in_the_middle, 0) << "no kill landed inside a transaction";
}

TEST(NetworkFileSystems, AreToldFromLocalOnes) {
  for (const int64_t type : {int64_t{0x6969}, int64_t{0xFF534D42}, int64_t{static_cast<int32_t>(0xFF534D42)}, int64_t{0x0BD00BD0}})
    EXPECT_TRUE(is_network_file_system(type));
  for (const int64_t type : {0xEF53, 0x58465342, 0x01021994, 0x794C7630})
    EXPECT_FALSE(is_network_file_system(type));  // ext4 xfs tmpfs overlay
}

}  // namespace
}  // namespace spt::results
