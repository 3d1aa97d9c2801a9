#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace spt::schedule {

struct ChildOptions {
  std::filesystem::path program;
  std::vector<std::string> arguments;
  std::filesystem::path log;             ///< stdout and stderr are appended here
  std::vector<std::string> environment;  ///< "K=V", over this process's own
  int64_t memory_limit = 0;              ///< bytes of data (RLIMIT_DATA); 0: none
};

/// A process in a group of its own that dies with this one. Start it from a thread that lives as long as the child may (PR_SET_PDEATHSIG).
class Child {
 public:
  /// `on_exit` gets the wait status, on the context's thread. Errors: Error naming the program if it cannot be started.
  Child(boost::asio::io_context& context, const ChildOptions& options, std::function<void(int wait_status)> on_exit);
  ~Child();  ///< kills what still runs of the group
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const;
  void signal(int number);         ///< to the whole group
  int64_t resident_bytes() const;  ///< VmRSS, 0 once it has ended

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spt::schedule
