#include "tasks/formats/listops.h"

#include <sstream>

#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace spt;
  std::istringstream input{std::string(fuzz::text(data, size))};
  formats::ListopsExamples examples;
  if (!fuzz::accepted([&] { examples = formats::read_listops(input, fuzz::kWhere); })) return 0;
  for (int64_t i = 0; i < examples.size(); ++i) {
    const auto tokens = examples.tokens(i);
    fuzz::require(formats::evaluate_listops(tokens) == examples.label(i), "a label is the expression's value");
    const auto again = formats::parse_listops(formats::format_listops(tokens), fuzz::kWhere);
    fuzz::require(std::equal(again.begin(), again.end(), tokens.begin(), tokens.end()), "what is written is what is read");
  }
  return 0;
}
