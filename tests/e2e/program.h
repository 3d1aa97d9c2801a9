#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace spt::e2e {

/// spt-bench as a user starts it: a process of its own, output into a file.
class Program {
 public:
  Program(const std::vector<std::string>& arguments, const std::filesystem::path& output);
  ~Program();  ///< kills it
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  pid_t pid() const { return pid_; }
  bool ended();                ///< without waiting
  int wait(double timeout_s);  ///< wait status; SIGKILLs it and fails the test after the time
  void kill(int signal) const;

 private:
  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
};

/// Runs to its end. Exit code, or 128 + signal.
int run_program(const std::vector<std::string>& arguments, const std::filesystem::path& output, double timeout_s);

/// Workers of a supervisor: process id -> run folder.
std::map<pid_t, std::filesystem::path> workers_of(pid_t supervisor);

/// pretrain | finetune, from the request in a run folder; "" before it is written.
std::string stage_name(const std::filesystem::path& run_dir);

/// A fresh folder below the test's temporary one, unique to this process.
std::filesystem::path fresh_folder(const std::string& name);

}  // namespace spt::e2e
