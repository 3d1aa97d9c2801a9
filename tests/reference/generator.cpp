#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "harness/base/file.h"
#include "tasks/formats/listops.h"
#include "tests/reference/handlers.h"

// Generators: values of given expressions, and statistics of many drawn ones.
namespace spt::reference {
namespace {

/// A set of drawn numbers as its mean and the standard error of that.
struct Estimate {
  double value = 0, error = 0;
};

Estimate mean_of(const std::vector<double>& values) {
  const at::Tensor t = torch::tensor(values, torch::kFloat64);
  return {t.mean().item<double>(), t.std().item<double>() / std::sqrt(static_cast<double>(values.size()))};
}

Estimate share_of(double hits, double n) {
  return {hits / n, std::sqrt(hits / n * (1 - hits / n) / n)};
}

/// |ours - published| <= k sqrt(se^2 + s^2).
void compare_statistic(Case& c, const std::string& what, const Estimate& ours, const nlohmann::json& published) {
  const double theirs = published.at(published.contains("mean") ? "mean" : "value").get<double>();
  const double allowed = c.tolerance("standard_errors") * std::hypot(published.at("se").get<double>(), ours.error);
  c.check(what, std::abs(ours.value - theirs) <= allowed,
          fmt::format("is {:.6g}, expected {:.6g} within {:.2g}", ours.value, theirs, allowed));
}

void compare_shares(Case& c, const std::string& leaf, const std::map<std::string, double>& counts, const nlohmann::json& published) {
  double all = 0;
  for (const auto& [key, count] : counts) all += count;
  for (const auto& [key, row] : published.items())
    compare_statistic(c, leaf + " " + key, share_of(counts.contains(key) ? counts.at(key) : 0, all), row);
}

struct ListopsCountsOfMany {
  std::vector<double> lengths, operators, arguments, depths;
  std::map<std::string, double> operator_count, root_count, digit_count, label_count;

  void add(std::span<const uint8_t> tokens, int64_t label) {
    double own_operators = 0, elements = -1, open = 0, depth = 0;  // the root is nobody's argument
    for (const uint8_t token : tokens) {
      if (token == formats::kListopsEnd) {
        --open;
        continue;
      }
      ++elements;
      ++(token < 10 ? digit_count : operator_count)[std::string(formats::listops_text(token))];
      if (token < 10) continue;
      ++own_operators;
      depth = std::max(depth, ++open);
    }
    lengths.push_back(static_cast<double>(tokens.size()));
    operators.push_back(own_operators);
    arguments.push_back(elements / own_operators);
    depths.push_back(depth);
    ++root_count[std::string(formats::listops_text(tokens[0]))];
    ++label_count[std::to_string(label)];
  }
};

formats::ListopsOptions listops_case_options(const Case& c) {
  JsonReader reader(c.options(), c.where("options"));
  const formats::ListopsOptions options = {.max_length = reader.get<int64_t>("max_length"),
                                           .min_length = reader.get<int64_t>("min_length"),
                                           .max_depth = reader.get<int64_t>("max_depth"),
                                           .max_arguments = reader.get<int64_t>("max_args"),
                                           .seed = 1};
  if (reader.get<double>("value_probability_threshold") != 0.25) throw Error("{}: an operator has probability 0.25 here", c.name());
  reader.finish();
  return options;
}

}  // namespace

void listops_value_case(Case& c) {
  JsonReader options(c.options(), c.where("options"));
  const auto rows = options.get<int64_t>("rows");
  options.finish();
  c.mark_outputs_compared();
  std::istringstream lines(c.text("case.jsonl"));
  int64_t n = 0;
  for (std::string line; std::getline(lines, line); ++n) {
    const nlohmann::json row = parse_json(line, c.where(fmt::format("row {}", n)));
    const auto text = row.at(0).get<std::string>();
    const int64_t value = formats::evaluate_listops(formats::parse_listops(text, c.where(text)));
    c.check(text, value == row.at(1).get<int64_t>(), fmt::format("is {}, expected {}", value, row.at(1).dump()));
  }
  c.check("rows", n == rows, fmt::format("{} lines, options say {}", n, rows));
}

void listops_statistics_case(Case& c) {
  const formats::ListopsOptions options = listops_case_options(c);
  const nlohmann::json published = parse_json(c.text("stats.json"), c.where("stats.json"));
  c.mark_outputs_compared();
  const auto n = published.at("samples").get<int64_t>();
  const formats::ListopsExamples examples = formats::generate_listops(options, "train", n);
  ListopsCountsOfMany many;
  for (int64_t i = 0; i < n; ++i) many.add(examples.tokens(i), examples.label(i));
  compare_statistic(c, "length", mean_of(many.lengths), published.at("length"));
  compare_statistic(c, "depth", mean_of(many.depths), published.at("depth"));
  compare_statistic(c, "operators_per_expression", mean_of(many.operators), published.at("operators_per_expression"));
  compare_statistic(c, "mean_arguments_per_operator", mean_of(many.arguments), published.at("mean_arguments_per_operator"));
  compare_shares(c, "operator_share", many.operator_count, published.at("operator_share"));
  compare_shares(c, "root_operator_share", many.root_count, published.at("root_operator_share"));
  compare_shares(c, "value_token_share", many.digit_count, published.at("value_token_share"));
  compare_shares(c, "label_share", many.label_count, published.at("label_share"));
  const auto trees = published.at("acceptance").at("tried").get<int64_t>();
  SplitMix64 generator(2);
  double accepted = 0;
  std::vector<uint8_t> tokens;
  for (int64_t i = 0; i < trees; ++i) {
    tokens.clear();
    accepted += formats::draw_listops_tree(options, generator, tokens) && static_cast<int64_t>(tokens.size()) > options.min_length;
  }
  compare_statistic(c, "acceptance", share_of(accepted, static_cast<double>(trees)), published.at("acceptance"));
}

}  // namespace spt::reference
