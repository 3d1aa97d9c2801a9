#include "tests/e2e/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "harness/base/file.h"

namespace spt::e2e {

Program::Program(const std::vector<std::string>& arguments, const std::filesystem::path& output) {
  const std::string program = std::string(SPT_BINARY_DIR) + "/spt-bench";
  std::vector<const char*> list = {program.c_str()};
  for (const std::string& argument : arguments) list.push_back(argument.c_str());
  list.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ != 0) return;
  const int out = ::open(output.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  const int in = ::open("/dev/null", O_RDONLY);
  ::dup2(in, 0);
  ::dup2(out, 1);
  ::dup2(out, 2);
  ::execv(program.c_str(), const_cast<char* const*>(list.data()));
  ::_exit(127);
}

Program::~Program() {
  if (ended()) return;
  kill(SIGKILL);
  wait(10);
}

bool Program::ended() {
  if (!ended_ && ::waitpid(pid_, &status_, WNOHANG) == pid_) ended_ = true;
  return ended_;
}

int Program::wait(double timeout_s) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(timeout_s);
  while (!ended()) {
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << "spt-bench did not end within " << timeout_s << " s";
      kill(SIGKILL);
      ::waitpid(pid_, &status_, 0);
      ended_ = true;
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return status_;
}

void Program::kill(int signal) const {
  if (!ended_) ::kill(pid_, signal);
}

int run_program(const std::vector<std::string>& arguments, const std::filesystem::path& output, double timeout_s) {
  Program program(arguments, output);
  const int status = program.wait(timeout_s);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::map<pid_t, std::filesystem::path> workers_of(pid_t supervisor) {
  std::map<pid_t, std::filesystem::path> found;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream stat(entry.path() / "stat");
    std::string line;
    std::getline(stat, line);
    const size_t close = line.rfind(')');
    if (close == std::string::npos || close + 4 >= line.size() || std::stol(line.substr(close + 4)) != supervisor) continue;
    std::ifstream in(entry.path() / "cmdline", std::ios::binary);
    std::vector<std::string> words(1);
    for (char c; in.get(c);) {
      if (c == '\0') words.emplace_back();
      else words.back() += c;
    }
    if (words.size() >= 3 && words[1] == "run") found[static_cast<pid_t>(std::stol(name))] = words[2];
  }
  return found;
}

std::string stage_name(const std::filesystem::path& run_dir) {
  const std::filesystem::path file = run_dir / "request.json";
  if (!std::filesystem::exists(file)) return "";
  const nlohmann::json request = nlohmann::json::parse(read_file(file));
  return request.at("job").at("stages").at(request.at("stage").get<size_t>()).at("name");
}

std::filesystem::path fresh_folder(const std::string& name) {
  static int count = 0;
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / (name + "-" + std::to_string(::getpid()) + "-" + std::to_string(++count));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder;
}

}  // namespace spt::e2e
