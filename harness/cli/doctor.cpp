#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <ostream>
#include <sstream>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "harness/cli/checks.h"
#include "harness/cli/cli.h"
#include "harness/schedule/child.h"
#include "harness/schedule/slots.h"
#include "harness/worker_client.h"
#include "results/store.h"
#include "tasks/formats/data_commands.h"

namespace spt::cli {
namespace {

struct DoctorFlags {
  std::string db = "spt-bench.db", data, worker, device = "cpu";
};

class Checkup {
 public:
  explicit Checkup(Context& context) : context_(context) {}
  void say(bool good, const std::string& line) {
    context_.out << (good ? "ok      " : "FAILED  ") << line << '\n';
    if (!good) context_.exit_code = 1;
  }
  void note(const std::string& line) { context_.out << "note    " << line << '\n'; }
  /// One check; an Error is its answer.
  template <class F>
  void check(const std::string& what, F&& body) {
    try {
      body();
    } catch (const std::exception& error) {
      say(false, fmt::format("{}: {}", what, error.what()));
    }
  }

 private:
  Context& context_;
};

/// Output and exit code of the worker's self test, which executes every kernel against its slow twin.
std::pair<std::string, int> run_selftest(const std::filesystem::path& worker, const std::string& device) {
  const std::filesystem::path log = std::filesystem::temp_directory_path() / fmt::format("spt-doctor-{}.txt", ::getpid());
  boost::asio::io_context io;
  int status = -1;
  {
    const schedule::Child child(
        io, {.program = worker, .arguments = {"selftest", device}, .log = log, .environment = {"GOMP_SPINCOUNT=0"}, .memory_limit = 0},
        [&](int wait_status) { status = wait_status; });
    io.run();
  }
  std::string text = read_file(log);
  std::filesystem::remove(log);
  return {std::move(text), status};
}

void check_worker(const DoctorFlags& flags, Checkup& checkup) {
  const std::filesystem::path worker = worker_program(flags.worker);
  const Catalog catalog = make_worker_client({.program = worker, .cache = default_cache()})->catalog();
  checkup.say(true, fmt::format("worker {}: build {}, {}, LibTorch {}", worker.string(), catalog.build_id.substr(0, 12), catalog.compiler,
                                catalog.libtorch));
  checkup.say(true, fmt::format("{} architectures, {} tasks, {} protocols", catalog.architectures.size(), catalog.tasks.size(),
                                catalog.protocols.size()));
  if (!catalog.cuda) checkup.note("this LibTorch has no CUDA half: everything runs on the CPU");
  else if (schedule::available_gpus() == 0) checkup.note("no NVIDIA GPU answers: CUDA was not executed");
  else if (flags.device == "cpu") checkup.note("CUDA was not executed; `spt-bench doctor --device cuda` does");
  const auto [text, status] = run_selftest(worker, flags.device);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("ok ") || line.starts_with("FAILED")) checkup.say(line.starts_with("ok "), line.substr(8));
    else checkup.note(line);  // why it ended early
  }
  checkup.say(status == 0, fmt::format("self test on {}", flags.device));
}

void check_data(const DoctorFlags& flags, Checkup& checkup) {
  const std::filesystem::path root = data_root(flags.data);
  checkup.note(fmt::format("data folder {}{}", root.string(),
                           std::filesystem::is_directory(root) ? "" : " (not there: generated and packaged data need none)"));
  formats::list_data(root, {}, [&](const std::string& line) { checkup.note(line); });
}

void check_disk(const DoctorFlags& flags, Checkup& checkup) {
  constexpr uintmax_t kWanted = uintmax_t{1} << 30;
  const std::filesystem::path folder = std::filesystem::absolute(flags.db).parent_path();
  const uintmax_t free = std::filesystem::space(folder).available;
  checkup.say(free >= kWanted, fmt::format("disk: {:.1f} GiB free in {} (a run wants at least 1)",
                                           static_cast<double>(free) / static_cast<double>(1 << 30), folder.string()));
}

void check_database(const DoctorFlags& flags, Checkup& checkup) {
  if (!std::filesystem::exists(flags.db)) return checkup.note(fmt::format("database {}: none yet", flags.db));
  const results::Store store(flags.db, results::Store::Mode::kReadOnly);
  const std::string problem = store.integrity_problem();
  checkup.say(problem.empty(),
              fmt::format("database {}: {}", flags.db, problem.empty() ? fmt::format("sound, {} jobs", store.status("").jobs) : problem));
  if (!store.note().empty()) checkup.note(store.note());
}

void doctor(const DoctorFlags& flags, Context& context) {
  Checkup checkup(context);
  checkup.check("worker", [&] { check_worker(flags, checkup); });
  checkup.check("data", [&] { check_data(flags, checkup); });
  checkup.check("disk", [&] { check_disk(flags, checkup); });
  checkup.check("database", [&] { check_database(flags, checkup); });
}

}  // namespace

void add_doctor(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("doctor", "Checks worker, kernels (each executed once against its slow twin), data, disk and database");
  const auto flags = std::make_shared<DoctorFlags>();
  verb->add_option("--db", flags->db, "database file")->capture_default_str()->check(path_given());
  verb->add_option("--data", flags->data, "data folder (default: $SPT_DATA, else ./data)");
  verb->add_option("--device", flags->device, "where the kernels are executed")
      ->capture_default_str()
      ->check(CLI::IsMember({"cpu", "cuda"}));
  verb->add_option("--worker", flags->worker, "worker program (default: spt-bench-worker beside this one)");
  verb->callback([flags, &context] { doctor(*flags, context); });
}

}  // namespace spt::cli
