#include "results/run_lock.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "harness/base/error.h"
#include "harness/base/file.h"

namespace spt::results {
namespace {

using ::testing::HasSubstr;

std::filesystem::path lock_database(const std::string& name) {
  const std::filesystem::path file = testing::TempDir() + fmt::format("lock_{}_{}.db", ::getpid(), name);
  std::filesystem::remove(file.string() + ".lock");
  return file;
}

std::string refusal(const std::filesystem::path& database) {
  try {
    const RunLock lock(database);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(RunLock, NamesItsHolder) {
  const std::filesystem::path database = lock_database("holder");
  {
    const RunLock lock(database);
    const std::string message = refusal(database);
    EXPECT_THAT(message, HasSubstr(fmt::format("process {} on host '", ::getpid())));
    EXPECT_THAT(message, testing::ContainsRegex("since 20[0-9-]+T[0-9:]+Z"));
  }
  EXPECT_EQ(refusal(database), "");
}

TEST(RunLock, EndsWithAKilledHolder) {
  const std::filesystem::path database = lock_database("killed");
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const RunLock lock(database);
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THAT(refusal(database), HasSubstr(fmt::format("process {} ", child)));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(refusal(database), "");
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(RunLock, OfAHolderThatWroteNoSenseIsRefusedToo) {
  const std::filesystem::path database = lock_database("nonsense");
  const RunLock lock(database);
  std::ofstream(database.string() + ".lock") << "{\"host\": 3";
  EXPECT_THAT(refusal(database), HasSubstr("another process"));
}

TEST(RunLock, NeedsAFolder) { EXPECT_THAT(refusal(testing::TempDir() + "no/such/folder.db"), HasSubstr("cannot open the lock")); }

}  // namespace
}  // namespace spt::results
