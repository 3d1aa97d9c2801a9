#include "models/layers/attention.h"

#include <torch/torch.h>

#include <cmath>

#include "tests/reference/handlers.h"

namespace spt::reference {
namespace {

constexpr const char* kProjections[] = {"query", "key", "value", "output"};

/// The published draw: uniform in +-1/sqrt(d), weight then bias, from torch's generator with the case's seed, in float64.
std::pair<at::Tensor, at::Tensor> published_draw(int64_t width, int64_t seed) {
  torch::manual_seed(static_cast<uint64_t>(seed));
  const double bound = 1 / std::sqrt(static_cast<double>(width));
  at::Tensor weight = torch::empty({width, width}, torch::kFloat64).uniform_(-bound, bound);
  return {weight, torch::empty({width}, torch::kFloat64).uniform_(-bound, bound)};
}

}  // namespace

void attention_init_case(Case& c) {
  JsonReader reader(c.options(), c.where("options"));
  models::AttentionOptions options{.width = reader.get<int64_t>("d_model"), .n_heads = reader.get<int64_t>("n_heads")};
  const auto init = reader.get<std::string>("projection_init");
  const auto seed = reader.get<int64_t>("seed");
  reader.finish();
  if (init != "copies" && init != "separate") throw Error("{}: unknown projection_init '{}'", c.name(), init);
  options.copies = init == "copies";
  models::Attention attention(options);
  attention.to(torch::kFloat64);
  attention.reset_parameters(Rng(1).stream("init"), "attention.");
  const auto ours = attention.named_parameters();
  const double bound = 1 / std::sqrt(static_cast<double>(options.width));
  const auto drawn = published_draw(options.width, seed);
  for (const char* projection : kProjections)
    for (const char* part : {"weight", "bias"}) {
      const std::string name = fmt::format("{}.{}", projection, part);
      const at::Tensor published = c.tensor("weight.attention." + name), value = ours[name].detach();
      c.check(name, value.sizes() == published.sizes() && value.abs().max().item<double>() <= bound, "another shape or range");
      const bool is_query = projection == std::string("query");
      c.check(name, is_query || torch::equal(value, ours[fmt::format("query.{}", part)].detach()) == options.copies,
              "copies and separate draws are confused");
      if (options.copies)
        c.compare(name + " as published", published, part == std::string("weight") ? drawn.first : drawn.second, c.tolerance("output"));
    }
}

}  // namespace spt::reference
