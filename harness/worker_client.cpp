#include "harness/worker_client.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio.hpp>
#include <boost/process/v2.hpp>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/base/hash.h"
#include "harness/base/json.h"

namespace spt {
namespace {

namespace asio = boost::asio;
namespace bp = boost::process::v2;
namespace fs = std::filesystem;
using nlohmann::json;

/// Runs in the child between fork and exec, so only async-signal-safe calls.
struct AskingSetup {
  pid_t parent = ::getpid();
  template <class Launcher>
  boost::system::error_code on_exec_setup(Launcher&, const boost::filesystem::path&, const char* const*&) {
    if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return {errno, boost::system::system_category()};
    if (::getppid() != parent) ::_exit(127);  // the parent died before prctl
    return {};
  }
  template <class... A>
  void on_exec_error(A&&...) {
    ::_exit(127);  // not exit(): that would run our destructors in the child
  }
};

/// An anonymous file with `text`, at its start: a child's stdin that needs no writer (and no SIGPIPE).
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& text) : descriptor_(::memfd_create("query", MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw Error("cannot make a file in memory: {}", std::strerror(errno));
    for (size_t at = 0; at < text.size();) {
      const ssize_t written = ::write(descriptor_, text.data() + at, text.size() - at);
      if (written < 0 && errno != EINTR) throw Error("cannot write a file in memory: {}", std::strerror(errno));
      at += static_cast<size_t>(std::max<ssize_t>(written, 0));
    }
    ::lseek(descriptor_, 0, SEEK_SET);
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

std::string last_lines(const std::string& text, size_t count) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (!line.empty()) lines.push_back(line);
  if (lines.empty()) return "it wrote nothing to stderr";
  if (lines.size() > count) lines.erase(lines.begin(), lines.end() - static_cast<ptrdiff_t>(count));
  return fmt::format("{}", fmt::join(lines, "\n"));
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
  return fmt::format("exited with {}", WEXITSTATUS(status));
}

/// One question: `program verb < input`; its stdout.
std::string ask(const WorkerOptions& options, const std::string& verb, const std::string& input) {
  const std::string called = fmt::format("'{} {}'", options.program.string(), verb);
  const MemoryFile query(input);
  asio::io_context context;
  asio::readable_pipe out(context), err(context);
  std::string out_text, err_text;
  std::unique_ptr<bp::process> process;
  try {
    process = std::make_unique<bp::process>(context, boost::filesystem::path(options.program.string()), std::vector<std::string>{verb},
                                            bp::process_stdio{query.descriptor(), out, err}, AskingSetup{});
  } catch (const boost::system::system_error& e) {
    throw Error("cannot start {}: {}", called, e.code().message());
  }
  asio::async_read(out, asio::dynamic_buffer(out_text), [](const boost::system::error_code&, size_t) {});
  asio::async_read(err, asio::dynamic_buffer(err_text), [](const boost::system::error_code&, size_t) {});
  asio::steady_timer timer(context, options.timeout);
  bool late = false;
  timer.async_wait([&](const boost::system::error_code& error) {
    if (error) return;
    late = true;
    ::kill(process->id(), SIGKILL);
  });
  process->async_wait([&](const boost::system::error_code&, int) { timer.cancel(); });
  context.run();
  const int status = process->native_exit_code();
  if (late) throw Error("{} gave no answer in {} s", called, options.timeout.count());
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw Error("{} {}: {}", called, how_it_ended(status), last_lines(err_text, 10));
  return out_text;
}

/// Names, sizes and times of what a data folder holds, down to two levels: changes when data come, go or grow. (The worker checks the
/// content itself before it trains.)
std::string data_fingerprint(const std::string& root) {
  constexpr int kDepth = 2;
  constexpr size_t kMost = 20'000;
  std::vector<std::string> rows;
  std::error_code error;
  const fs::path folder = fs::absolute(root).lexically_normal();
  const auto options = fs::directory_options::skip_permission_denied | fs::directory_options::follow_directory_symlink;
  for (fs::recursive_directory_iterator it(folder, options, error), end; !error && it != end && rows.size() < kMost; it.increment(error)) {
    if (it.depth() >= kDepth) it.disable_recursion_pending();
    std::error_code gone;
    const auto time = it->last_write_time(gone).time_since_epoch().count();
    const uintmax_t size = it->is_regular_file(gone) ? it->file_size(gone) : 0;
    rows.push_back(fmt::format("{} {} {}", it->path().string(), size, time));
  }
  std::sort(rows.begin(), rows.end());
  return sha256(fmt::format("{}\n{}", folder.string(), fmt::join(rows, "\n")));
}

class ProcessClient final : public WorkerClient {
 public:
  explicit ProcessClient(WorkerOptions options) : options_(std::move(options)) {
    if (!options_.cache.empty()) options_.cache /= elf_build_id(options_.program);
  }

  Catalog catalog() override {
    const std::string name = "catalog.json";
    if (const std::optional<json> known = cached(name)) {
      if (const auto catalog = read_cached<Catalog>(*known, name, catalog_from_json)) return *catalog;
    }
    const std::string text = ask(options_, "catalog", "");
    if (!text.starts_with('{'))
      throw Error("'{}' is no spt-bench-worker: its answer to catalog is '{}'", options_.program.string(), text.substr(0, text.find('\n')));
    const json answer = parse_json(text, "answer of the worker to catalog");
    Catalog catalog = catalog_from_json(answer, "answer of the worker to catalog");
    keep(name, answer);
    return catalog;
  }

  DescribeAnswer describe(const DescribeQuery& query) override {
    const std::string data = data_fingerprint(query.data_root);
    const json spelled = to_json(query);
    DescribeAnswer answer;
    answer.tasks.resize(query.tasks.size());
    answer.models.resize(query.models.size());
    DescribeQuery missing{query.data_root, {}, {}};
    std::vector<size_t> missing_tasks, missing_models;
    std::vector<std::string> task_files, model_files;
    for (size_t i = 0; i < query.tasks.size(); ++i) {
      task_files.push_back(fmt::format("task-{}.json", sha256(data + canonical(spelled["tasks"][i]))));
      if (take_task(task_files[i], answer.tasks[i])) continue;
      missing.tasks.push_back(query.tasks[i]);
      missing_tasks.push_back(i);
    }
    for (size_t i = 0; i < query.models.size(); ++i) {
      model_files.push_back(fmt::format("model-{}.json", sha256(data + canonical(spelled["models"][i]))));
      if (take_model(model_files[i], answer.models[i])) continue;
      missing.models.push_back(query.models[i]);
      missing_models.push_back(i);
    }
    if (missing.tasks.empty() && missing.models.empty()) return answer;
    const char* where = "answer of the worker to describe";
    const json fresh = parse_json(ask(options_, "describe", canonical(to_json(missing))), where);
    const DescribeAnswer read = describe_answer_from_json(fresh, where);
    if (read.tasks.size() != missing.tasks.size() || read.models.size() != missing.models.size())
      throw Error("{}: {} tasks and {} models, but {} and {} were asked about", where, read.tasks.size(), read.models.size(),
                  missing.tasks.size(), missing.models.size());
    for (size_t i = 0; i < missing_tasks.size(); ++i) {
      answer.tasks[missing_tasks[i]] = read.tasks[i];
      if (read.tasks[i].error.empty()) keep(task_files[missing_tasks[i]], fresh["tasks"][i]);
    }
    for (size_t i = 0; i < missing_models.size(); ++i) {
      answer.models[missing_models[i]] = read.models[i];
      if (read.models[i].error.empty()) keep(model_files[missing_models[i]], fresh["models"][i]);
    }
    return answer;
  }

  std::vector<std::vector<ProbeAnswer>> probe(const ProbeQuery& query) override {
    const char* where = "answer of the worker to probe";
    const auto answers = probe_answers_from_json(parse_json(ask(options_, "probe", canonical(to_json(query))), where), where);
    bool whole = answers.size() == query.jobs.size();
    for (size_t i = 0; whole && i < answers.size(); ++i) whole = answers[i].size() == query.jobs[i].stages.size();
    if (!whole) throw Error("{}: it has not one answer a stage", where);
    return answers;
  }

  ConvertAnswer convert(const ConvertQuery& query) override {
    const char* where = "answer of the worker to convert";
    return convert_answer_from_json(parse_json(ask(options_, "convert", canonical(to_json(query))), where), where);
  }

 private:
  /// A file that is absent, torn or of another form counts as unknown: it is asked for again and written anew.
  std::optional<json> cached(const std::string& name) const {
    if (options_.cache.empty() || !fs::is_regular_file(options_.cache / name)) return std::nullopt;
    try {
      return parse_json(read_file(options_.cache / name), name);
    } catch (const Error&) {
      return std::nullopt;
    }
  }
  template <class T, class Read>
  std::optional<T> read_cached(const json& value, const std::string& name, Read read) const {
    try {
      return read(value, name);
    } catch (const Error&) {
      return std::nullopt;
    }
  }
  bool take_task(const std::string& name, TaskAnswer& target) const {
    return take(name, "tasks", [&](const DescribeAnswer& a) { target = a.tasks[0]; });
  }
  bool take_model(const std::string& name, ModelAnswer& target) const {
    return take(name, "models", [&](const DescribeAnswer& a) { target = a.models[0]; });
  }
  template <class Use>
  bool take(const std::string& name, const char* list, Use use) const {
    const std::optional<json> known = cached(name);
    if (!known) return false;
    json whole = {{"tasks", json::array()}, {"models", json::array()}};
    whole[list].push_back(*known);
    const auto answer = read_cached<DescribeAnswer>(whole, name, describe_answer_from_json);
    if (answer) use(*answer);
    return answer.has_value();
  }
  /// A cache is a convenience: where it cannot be written, the worker is asked each time.
  void keep(const std::string& name, const json& value) {
    std::error_code error;
    if (options_.cache.empty() || (fs::create_directories(options_.cache, error), error)) return;
    try {
      write_file_atomically(options_.cache / name, canonical(value));
    } catch (const Error&) {
      options_.cache.clear();
    }
  }

  WorkerOptions options_;
};

}  // namespace

fs::path worker_program(const std::string& flag) {
  std::error_code error;
  const fs::path program = flag.empty() ? fs::read_symlink("/proc/self/exe", error).parent_path() / "spt-bench-worker" : fs::path(flag);
  if (error || !fs::is_regular_file(program))
    throw Error("there is no worker program '{}'; build it (scripts/setup) or give its path with --worker", program.string());
  return program;
}

fs::path default_cache() {
  if (const char* folder = std::getenv("XDG_CACHE_HOME"); folder && *folder) return fs::path(folder) / "spt-bench";
  if (const char* home = std::getenv("HOME"); home && *home) return fs::path(home) / ".cache" / "spt-bench";
  return {};
}

std::unique_ptr<WorkerClient> make_worker_client(WorkerOptions options) { return std::make_unique<ProcessClient>(std::move(options)); }

}  // namespace spt
