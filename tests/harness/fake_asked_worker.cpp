// A worker for the tests of the client: answers canned text and appends each verb to $SPT_FAKE_CALLS.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  if (const char* calls = std::getenv("SPT_FAKE_CALLS")) std::ofstream(calls, std::ios::app) << verb << '\n';
  const std::string mode = std::getenv("SPT_FAKE_MODE") ? std::getenv("SPT_FAKE_MODE") : "";
  if (mode == "fail") {
    std::cerr << "first\nno such kernel\n";
    return 3;
  }
  if (mode == "hang") ::sleep(60);
  if (mode == "text") std::cout << "not json";
  else if (verb == "catalog")
    std::cout << R"({"architectures":[],"build_id":"b","compiler":"c","cuda":false,"libtorch":"2.13.0","objectives":[],"protocols":[],"recipes":[],"tasks":[]})";
  else if (verb == "describe" || verb == "probe") {
    const std::string query{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
    const char* answer = std::getenv("SPT_FAKE_ANSWER");
    std::cout << (answer ? answer : query);
  }
  return 0;
}
