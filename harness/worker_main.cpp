#include <c10/util/Exception.h>

#include <cstdio>
#include <iostream>
#include <iterator>

#include "harness/base/json.h"
#include "harness/worker/convert.h"
#include "harness/worker/describe.h"
#include "harness/worker/probe.h"
#include "harness/worker/process.h"
#include "harness/worker/runner.h"
#include "harness/worker/selftest.h"

namespace {

constexpr const char* kUsage =
    "usage: spt-bench-worker catalog         what is registered, as JSON\n"
    "       spt-bench-worker describe        answers a DescribeQuery (JSON on standard input)\n"
    "       spt-bench-worker probe           answers a ProbeQuery (JSON on standard input)\n"
    "       spt-bench-worker convert         writes weights under other names (a ConvertQuery, JSON on standard input)\n"
    "       spt-bench-worker run DIR         trains the stage of DIR/request.json\n"
    "       spt-bench-worker selftest [cpu|cuda]\n";

nlohmann::json read_query() { return spt::parse_json(std::string{std::istreambuf_iterator<char>(std::cin), {}}, "standard input"); }

int selftest(const std::string& device) {
  bool all = true;
  for (const spt::worker::SelfCheck& check : spt::worker::selftest(device, 1)) {
    std::cout << (check.passed ? "ok      " : "FAILED  ") << check.name << ": " << check.detail << "\n";
    all = all && check.passed;
  }
  return all ? 0 : 1;
}

int dispatch(const std::vector<std::string>& arguments) {
  using namespace spt;
  const std::string verb = arguments.empty() ? "" : arguments[0];
  const size_t n = arguments.size();
  if (verb == "catalog" && n == 1) return std::cout << to_json(worker::make_catalog()).dump() << "\n", 0;
  if (verb == "describe" && n == 1)
    return std::cout << to_json(worker::describe(describe_query_from_json(read_query(), "query"))).dump() << "\n", 0;
  if (verb == "probe" && n == 1) return std::cout << to_json(worker::probe(probe_query_from_json(read_query(), "query"))).dump() << "\n", 0;
  if (verb == "convert" && n == 1)
    return std::cout << to_json(worker::convert(convert_query_from_json(read_query(), "query"))).dump() << "\n", 0;
  if (verb == "selftest" && n <= 2) return selftest(n == 2 ? arguments[1] : "cpu");
  if (verb != "run" || n != 2) return std::cerr << kUsage, 2;
  worker::install_stop_signals();
  return worker::run_stage(arguments[1]) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  spt::worker::prepare_process();
  try {
    return dispatch({argv + 1, argv + argc});
  } catch (const c10::Error& error) {  // its what() ends in a stack, which hides the reason
    std::cerr << "spt-bench-worker: " << error.what_without_backtrace() << "\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "spt-bench-worker: " << error.what() << "\n";
    return 2;
  }
}
