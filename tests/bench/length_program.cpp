// Cost and memory of the body of an architecture against the length of its rows: forward and backward of one row, float32, one thread.
//   spt-length-bench [--architecture NAME] [--options JSON] [--lengths 1024 2048 ...] [--steps N]
// Without a name: every architecture in one layer of width 32, full attention and local attention both. One line of a Markdown table each:
// milliseconds of the fastest step at each length, MiB that the process grew by, and the exponents fitted to both.
#include <torch/torch.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <iostream>
#include <limits>

#include "harness/base/error.h"
#include "harness/base/json.h"
#include "harness/worker/process.h"
#include "models/architecture.h"

namespace spt {
namespace {

struct Subject {
  std::string label;
  const models::Architecture* architecture;
  OptionMap options;
};

std::vector<Subject> small_subjects() {
  std::vector<Subject> subjects;
  for (const models::Architecture& architecture : models::architectures()) {
    if (!architecture.build_body) continue;
    OptionMap options = complete(architecture.options, {}, architecture.name);
    if (options.contains("n_layers")) options["n_layers"] = int64_t{1};
    if (options.contains("d_model")) options["d_model"] = int64_t{32};
    if (architecture.name == "mega") options["chunk"] = int64_t{128};
    subjects.push_back({architecture.name, &architecture, options});
    if (architecture.name != "transformer") continue;
    options["attention"] = std::string("local");
    subjects.push_back({architecture.name + ", local", &architecture, options});
  }
  return subjects;
}

struct Point {
  double milliseconds = std::numeric_limits<double>::infinity();
  double mebibytes = 0;
};

Point measure(const Subject& subject, int64_t length, int64_t steps) {
  worker::reset_peak_memory(at::kCPU);
  const int64_t before = worker::peak_memory(at::kCPU);
  Point point;
  const auto body = subject.architecture->build_body(subject.options, {.vocabulary = 20, .channels = 0, .max_length = length}, 0);
  body->reset_parameters(Rng(0).stream("init"), "body.");
  body->train();
  const at::Tensor x = torch::randn({1, length, subject.architecture->width(subject.options)}).requires_grad_();
  for (int64_t i = 0; i <= steps; ++i) {  // the first makes what later ones keep
    const auto start = std::chrono::steady_clock::now();
    body->zero_grad();
    body->forward(x, {}).square().sum().backward();
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    if (i > 0) point.milliseconds = std::min(point.milliseconds, ms);
  }
  point.mebibytes = static_cast<double>(worker::peak_memory(at::kCPU) - before) / (1 << 20);
  return point;
}

/// Slope of log y over log x by least squares.
double exponent(const std::vector<int64_t>& x, const std::vector<double>& y) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  const double n = static_cast<double>(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double a = std::log(static_cast<double>(x[i])), b = std::log(std::max(y[i], 1e-3));
    sx += a, sy += b, sxx += a * a, sxy += a * b;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

void print_row(const Subject& subject, const std::vector<int64_t>& lengths, int64_t steps) {
  std::vector<double> times, sizes;
  std::cout << "| " << subject.label << " |" << std::flush;
  for (const int64_t length : lengths) {
    const Point point = measure(subject, length, steps);
    times.push_back(point.milliseconds);
    sizes.push_back(point.mebibytes);
    std::cout << fmt::format(" {:.3g} ms, {:.3g} MiB |", point.milliseconds, point.mebibytes) << std::flush;
  }
  if (lengths.size() > 1) std::cout << fmt::format(" {:.2f} | {:.2f} |", exponent(lengths, times), exponent(lengths, sizes));
  std::cout << std::endl;
}

int run(int count, char** arguments) {
  CLI::App app("Cost and memory of a body against the length of its rows.");
  std::string name, options = "{}";
  std::vector<int64_t> lengths = {1024, 2048, 4096, 8192, 16384};
  int64_t steps = 3;
  app.add_option("--architecture", name);
  app.add_option("--options", options, "JSON, over the defaults")->needs("--architecture");
  app.add_option("--lengths", lengths)->check(CLI::PositiveNumber);
  app.add_option("--steps", steps, "of which the fastest counts, after one more")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, count, arguments);
  at::set_num_threads(1);
  torch::manual_seed(0);
  std::vector<Subject> subjects = small_subjects();
  if (!name.empty()) {
    const models::Architecture& architecture = models::find_architecture(name);
    if (!architecture.build_body) throw Error("architecture {} has no body", name);
    subjects = {
        {name, &architecture, complete(architecture.options, options_from_json(parse_json(options, "--options"), "--options"), name)}};
  }
  for (const Subject& subject : subjects) print_row(subject, lengths, steps);
  return 0;
}

}  // namespace
}  // namespace spt

int main(int count, char** arguments) {
  try {
    return spt::run(count, arguments);
  } catch (const spt::Error& error) {
    std::cerr << "spt-length-bench: " << error.what() << '\n';
    return 2;
  }
}
