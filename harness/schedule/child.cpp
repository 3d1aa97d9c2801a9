#include "harness/schedule/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/process/v2.hpp>
#include <cstring>
#include <fstream>
#include <map>

#include "harness/base/error.h"

namespace bp = boost::process::v2;

namespace spt::schedule {
namespace {

/// Runs in the child between fork and exec, so only async-signal-safe calls.
struct ChildSetup {
  pid_t parent = ::getpid();
  rlim_t data = RLIM_INFINITY;
  std::vector<const char*> environment;

  template <class Launcher>
  boost::system::error_code on_setup(Launcher& launcher, const boost::filesystem::path&, const char* const*&) {
    launcher.env = environment.data();
    return {};
  }
  template <class Launcher>
  boost::system::error_code on_exec_setup(Launcher&, const boost::filesystem::path&, const char* const*&) {
    if (::setpgid(0, 0) != 0 || ::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return {errno, boost::system::system_category()};
    if (::getppid() != parent) ::_exit(127);  // the parent died before prctl
    const rlimit memory{data, data};
    ::setrlimit(RLIMIT_DATA, &memory);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    return {};
  }
  template <class... A>
  void on_exec_error(A&&...) {
    ::_exit(127);  // not exit(): that would run our destructors in the child
  }
};

std::vector<std::string> merged_environment(const std::vector<std::string>& changes) {
  std::map<std::string, std::string> all;
  const auto add = [&](std::string_view entry) { all[std::string(entry.substr(0, entry.find('=')))] = entry; };
  for (char** entry = environ; *entry; ++entry) add(*entry);
  for (const std::string& entry : changes) add(entry);
  std::vector<std::string> result;
  for (auto& [name, entry] : all) result.push_back(std::move(entry));
  return result;
}

}  // namespace

struct Child::Impl {
  std::unique_ptr<bp::process> process;
  pid_t pid = -1;
  bool ended = false;
};

Child::Child(boost::asio::io_context& context, const ChildOptions& options, std::function<void(int)> on_exit)
    : impl_(std::make_unique<Impl>()) {
  const int log = ::open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (log < 0) throw Error("cannot open the log '{}': {}", options.log.string(), std::strerror(errno));
  const std::vector<std::string> environment = merged_environment(options.environment);
  ChildSetup setup;
  for (const std::string& entry : environment) setup.environment.push_back(entry.c_str());
  setup.environment.push_back(nullptr);
  if (options.memory_limit > 0) setup.data = static_cast<rlim_t>(options.memory_limit);
  try {
    impl_->process = std::make_unique<bp::process>(context, boost::filesystem::path(options.program.string()), options.arguments,
                                                   bp::process_stdio{nullptr, log, log}, setup);
  } catch (const boost::system::system_error& e) {
    ::close(log);
    throw Error("cannot start '{}': {}", options.program.string(), e.code().message());
  }
  ::close(log);
  impl_->pid = impl_->process->id();
  impl_->process->async_wait([this, on_exit = std::move(on_exit)](const boost::system::error_code& error, int) {
    if (error) return;
    impl_->ended = true;
    ::kill(-impl_->pid, SIGKILL);  // grandchildren
    on_exit(impl_->process->native_exit_code());
  });
}

Child::~Child() {
  if (!impl_->ended) ::kill(-impl_->pid, SIGKILL);
}

pid_t Child::pid() const { return impl_->pid; }

void Child::signal(int number) {
  if (!impl_->ended) ::kill(-impl_->pid, number);
}

int64_t Child::resident_bytes() const {
  std::ifstream status(fmt::format("/proc/{}/status", impl_->pid));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:")) return std::stoll(line.substr(6)) * 1024;
  return 0;
}

}  // namespace spt::schedule
