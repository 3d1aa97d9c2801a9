// A worker without LibTorch for tests of the client and of the command line: answers as FakeWorker does, and appends each verb to
// $SPT_FAKE_CALLS. $SPT_FAKE_MODE: fail | hang | text; $SPT_FAKE_ANSWER: what it says instead.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "harness/base/json.h"
#include "tests/harness/fake_catalog.h"

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

nlohmann::json answer_to(const std::string& verb, const std::string& query) {
  spt::testing_catalog::FakeWorker worker;
  if (verb == "catalog") return to_json(worker.catalog());
  const nlohmann::json asked = spt::parse_json(query, "query");
  if (verb == "describe") return to_json(worker.describe(spt::describe_query_from_json(asked, "query")));
  if (verb == "convert") return to_json(worker.convert(spt::convert_query_from_json(asked, "query")));
  return to_json(worker.probe(spt::probe_query_from_json(asked, "query")));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "", mode = variable("SPT_FAKE_MODE"), canned = variable("SPT_FAKE_ANSWER");
  if (const std::string calls = variable("SPT_FAKE_CALLS"); !calls.empty()) std::ofstream(calls, std::ios::app) << verb << '\n';
  if (mode == "fail") {
    std::cerr << "first\nno such kernel\n";
    return 3;
  }
  if (mode == "hang") ::sleep(60);
  const std::string query{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  std::cout << (mode == "text" ? "not json" : !canned.empty() ? canned : spt::canonical(answer_to(verb, query)));
  return 0;
}
