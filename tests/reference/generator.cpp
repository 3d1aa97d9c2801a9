#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "harness/base/file.h"
#include "tasks/formats/listops.h"
#include "tasks/formats/pathfinder.h"
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

Estimate share_of(double hits, double n) { return {hits / n, std::sqrt(hits / n * (1 - hits / n) / n)}; }

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

at::Tensor square_tensor(const std::vector<uint8_t>& pixels, int64_t side) {
  return torch::tensor(std::vector<int64_t>(pixels.begin(), pixels.end()), torch::kInt64).view({side, side});
}

/// Compares in grey levels, by tolerance.<key>.
void compare_levels(Case& c, const std::string& name, const at::Tensor& got, const std::string& key) {
  c.compare("output." + name, got, c.tensor("output." + name), c.tolerance(key), true);
}

/// The parts of one setting: names of its tensors end in `_<side>`.
class PathfinderParts {
 public:
  PathfinderParts(Case& c, const std::string& suffix, const nlohmann::json& json) : c_(c), suffix_("_" + suffix) {
    JsonReader reader(json, c.where("options." + suffix));
    shape_ = {.length = reader.get<int64_t>("length"),
              .thickness = reader.get<double>("thickness"),
              .margin = reader.get<int64_t>("margin"),
              .antialias = reader.get<int64_t>("antialias")};
    step_ = reader.get<int64_t>("step");
    continuity_ = reader.get<double>("continuity");
    marker_radius_ = reader.get<double>("marker_radius");
    corner_degrees_ = reader.get<double>("corner_degrees");
    reader.finish();
  }

  void run() {
    paddles();
    corner();
    marker();
    endpoints();
    const int64_t m = shape_.margin;
    at::Tensor disc = torch::zeros({2 * m + 1, 2 * m + 1}, torch::kInt64);
    for (const auto& d : formats::pathfinder_disc(m)) disc[d.y + m][d.x + m] = 1;
    compare_levels(c_, "dilation_disc" + suffix_, disc, "dilation_disc");
  }

 private:
  static double radians(double degrees) { return degrees * M_PI / 180; }
  formats::Paddle paddle(double angle) const { return formats::draw_paddle(shape_, formats::paddle_fine_end(shape_, angle)); }

  void paddles() {
    const at::Tensor degrees = c_.input("degrees" + suffix_);
    std::vector<at::Tensor> lines, masks, ends, heads, kernels, available;
    const formats::BitSquare occupied = occupied_pixels();
    for (int64_t i = 0; i < degrees.size(0); ++i) {
      const double angle = radians(degrees[i].item<double>());
      const formats::Paddle p = paddle(angle);
      lines.push_back(square_tensor(p.line, 2 * p.reach + 1));
      masks.push_back(square_tensor(p.mask, 2 * p.reach + 1));
      ends.push_back(torch::tensor({p.fine_end.y, p.fine_end.x}, torch::kInt64));
      const auto head = formats::pathfinder_move({10, 10}, formats::pathfinder_step(angle, static_cast<double>(shape_.length)));
      heads.push_back(torch::tensor({head.y, head.x}, torch::kInt64));
      const auto ones = formats::seed_kernel(shape_, p);
      kernels.push_back(torch::zeros({2 * step_ + 1, 2 * step_ + 1}, torch::kInt64));
      for (const auto& d : ones) kernels.back()[d.y + step_][d.x + step_] = 1;
      available.push_back(available_bits(occupied, ones));
    }
    compare_levels(c_, "line" + suffix_, torch::stack(lines), "line");
    compare_levels(c_, "mask" + suffix_, torch::stack(masks), "mask");
    compare_levels(c_, "fine_end" + suffix_, torch::stack(ends), "fine_end");
    compare_levels(c_, "head" + suffix_, torch::stack(heads), "head");
    compare_levels(c_, "kernel" + suffix_, torch::stack(kernels), "kernel");
    compare_levels(c_, "available" + suffix_, torch::stack(available), "available");
  }

  formats::BitSquare occupied_pixels() {
    const at::Tensor mask = c_.input("occupied");
    formats::BitSquare bits(mask.size(0));
    for (int64_t y = 0; y < mask.size(0); ++y)
      for (int64_t x = 0; x < mask.size(1); ++x)
        if (mask[y][x].item<double>() > 0.3) bits.set(y, x);
    return bits;
  }

  /// (side, side / 8) bytes, the first pixel in the highest bit; all 0 for a kernel that does not work.
  static at::Tensor available_bits(const formats::BitSquare& occupied, const std::vector<formats::PathfinderPoint>& ones) {
    const formats::BitSquare taken = occupied.dilated(ones);
    at::Tensor bytes = torch::zeros({taken.side(), (taken.side() + 7) / 8}, torch::kInt64);
    if (!formats::kernel_works(ones)) return bytes;
    auto rows = bytes.accessor<int64_t, 2>();
    for (int64_t y = 0; y < taken.side(); ++y)
      for (int64_t x = 0; x < taken.side(); ++x)
        if (!taken.at(y, x)) rows[y][x / 8] |= 0x80 >> (x % 8);
    return bytes;
  }

  /// A paddle of contrast 0.5 at (1, side - 2), cut at the image's border.
  void corner() {
    const formats::Paddle p = paddle(radians(corner_degrees_));
    const int64_t side = 2 * p.reach + 1;
    at::Tensor line = torch::zeros({side, side}, torch::kFloat64), mask = line.clone();
    for (int64_t y = 0; y < side; ++y) {
      for (int64_t x = 0; x < side; ++x) {
        const int64_t py = y - 1 + p.reach, px = x - (side - 2) + p.reach;
        if (py < 0 || px < 0 || py >= side || px >= side) continue;
        line[y][x] = 0.5 * p.line[py * side + px] / 255;
        mask[y][x] = p.mask[py * side + px] / 255.0;
      }
    }
    compare_levels(c_, "corner_line" + suffix_, line, "corner_line");
    compare_levels(c_, "corner_mask" + suffix_, mask, "corner_mask");
  }

  void marker() {
    const at::Tensor want = c_.tensor("output.circle" + suffix_);
    const int64_t side = want.size(0);
    at::Tensor got = torch::zeros({side, side}, torch::kInt64);
    const formats::LanczosAxis axis(side * shape_.antialias, side);
    const formats::PathfinderPatch patch = formats::draw_marker(axis, shape_.antialias, marker_radius_, {9, 13});
    for (int64_t y = 0; y < patch.height; ++y)
      for (int64_t x = 0; x < patch.width; ++x) got[patch.corner.y + y][patch.corner.x + x] = patch.pixels[y * patch.width + x];
    compare_levels(c_, "circle" + suffix_, got, "circle");
  }

  void endpoints() {
    const at::Tensor mask = c_.input("mask");
    formats::PaddedSquare occupied(mask.size(0), 0);
    for (int64_t y = 0; y < occupied.side; ++y)
      for (int64_t x = 0; x < occupied.side; ++x)
        occupied.bytes[occupied.index(y, x)] = static_cast<uint8_t>(std::lround(mask[y][x].item<double>() * 255));
    const formats::EndpointRing ring(step_, continuity_);
    for (int64_t k = 0; c_.has("input.pivot" + suffix_ + fmt::format("_{}", k)); ++k) {
      const std::string name = suffix_ + fmt::format("_{}", k);
      const at::Tensor pivot = c_.input("pivot" + name);
      const formats::PathfinderPoint joint = {pivot[0].item<int64_t>(), pivot[1].item<int64_t>()};
      formats::PathfinderEndpoints found;
      ring.find(joint, ring.turn_weights(c_.input("orientation" + name).item<double>()), occupied, found);
      std::vector<int64_t> points;
      std::vector<double> angles, probabilities;
      for (size_t i = 0; i < found.offsets.size(); ++i) {
        const formats::PathfinderPoint d = ring.offsets()[found.offsets[i]];
        points.insert(points.end(), {joint.y + d.y, joint.x + d.x});
        angles.push_back(ring.angle(found.offsets[i]));
        probabilities.push_back(found.weights[i] / found.sum);
      }
      compare_levels(c_, "endpoints" + name, torch::tensor(points, torch::kInt64).view({-1, 2}), "endpoints");
      compare_levels(c_, "endpoint_orientation" + name, torch::tensor(angles, torch::kFloat64), "endpoint_orientation");
      compare_levels(c_, "endpoint_probability" + name, torch::tensor(probabilities, torch::kFloat64), "endpoint_probability");
    }
  }

  Case& c_;
  std::string suffix_;
  formats::PaddleShape shape_;
  int64_t step_;
  double continuity_, marker_radius_, corner_degrees_;
};

double only_value(JsonReader& reader, const char* key, const std::string& where) {
  const auto values = reader.get<std::vector<double>>(key);
  if (values.size() != 1) throw Error("{}: {} has {} values; here it is one", where, key, values.size());
  return values[0];
}

formats::PathfinderOptions pathfinder_case_options(const Case& c, const nlohmann::json& parameters, const std::string& where) {
  JsonReader reader(parameters, where);
  formats::PathfinderOptions o;
  const auto window = reader.get<std::vector<int64_t>>("window_size");
  if (window.size() != 2 || window[0] != window[1]) throw Error("{}: window_size is not that of a square image", where);
  o.side = window[0];
  o.padding = reader.get<int64_t>("padding");
  o.antialias = reader.get<int64_t>("antialias_scale");
  o.seed_distance = reader.get<int64_t>("seed_distance");
  o.marker_radius = reader.get<double>("marker_radius");
  o.contour_length = reader.get<int64_t>("contour_length");
  o.distractor_length = reader.get<int64_t>("distractor_length");
  o.distractors = reader.get<int64_t>("num_distractor_snakes");
  o.continuity = reader.get<double>("continuity");
  o.paddle_length = reader.get<int64_t>("paddle_length");
  o.paddle_thickness = reader.get<double>("paddle_thickness");
  o.paddle_margins = reader.get<std::vector<int64_t>>("paddle_margin_list");
  o.snake_contrast = only_value(reader, "snake_contrast_list", where);
  o.paddle_contrast = only_value(reader, "paddle_contrast_list", where);
  reader.finish();
  JsonReader options(c.options(), c.where("options"));
  if (options.get<bool>("use_single_paddles")) throw Error("{}: there are no single paddles here", c.name());
  options.get<int64_t>("max_target_contour_retrial");  // the published code starts again when they are used up
  o.distractor_tries = options.get<int64_t>("max_distractor_contour_retrial") + 1;
  o.paddle_tries = options.get<int64_t>("max_paddle_retrial") + 1;
  options.finish();
  return o;
}

/// Numbers of many images, by the name of their statistic.
struct PathfinderStatistics {
  std::map<std::string, std::vector<double>> values;
  std::vector<std::vector<double>> blocks = std::vector<std::vector<double>>(16), histogram;

  void add(const formats::PathfinderImage& image, int64_t side, const std::vector<int64_t>& edges) {
    const double n = static_cast<double>(image.pixels.size());
    double sum = 0, squares = 0, lit = 0, bright = 0, brightest = 0;
    std::vector<double> block(16), counts(edges.empty() ? 0 : edges.size() - 1);
    std::array<double, 256> levels{};
    for (size_t i = 0; i < image.pixels.size(); ++i) {
      const double v = image.pixels[i];
      ++levels[image.pixels[i]];
      sum += v;
      squares += v * v;
      block[static_cast<int64_t>(i) / side * 4 / side * 4 + static_cast<int64_t>(i) % side * 4 / side] += v * 16 / n;
    }
    for (int level = 0; level < 256; ++level) {
      if (level > 0) lit += levels[level];
      if (level > 127) bright += levels[level];
      if (level > 200) brightest += levels[level];
      for (size_t k = 0; k < counts.size(); ++k)
        if (level >= edges[k] && level < edges[k + 1]) counts[k] += levels[level] / n;
    }
    const auto [origin, terminal] = image.markers;
    const auto distance = [](double dy, double dx) { return std::hypot(dy, dx); };
    values["pixel_mean"].push_back(sum / n);
    values["pixel_sd"].push_back(std::sqrt(squares / n - sum / n * (sum / n)));
    values["share_nonzero"].push_back(lit / n);
    values["share_over_127"].push_back(bright / n);
    values["share_over_200"].push_back(brightest / n);
    values["label_rate"].push_back(image.label);
    values[fmt::format("marker_distance_label_{}", image.label)].push_back(
        distance(static_cast<double>(origin.y - terminal.y), static_cast<double>(origin.x - terminal.x)));
    values["origin_marker_y"].push_back(static_cast<double>(origin.y));
    values["origin_marker_x"].push_back(static_cast<double>(origin.x));
    values["terminal_marker_y"].push_back(static_cast<double>(terminal.y));
    values["terminal_marker_x"].push_back(static_cast<double>(terminal.x));
    const double middle = static_cast<double>(side) / 2;
    values["terminal_marker_distance_from_centre"].push_back(
        distance(static_cast<double>(terminal.y) - middle, static_cast<double>(terminal.x) - middle));
    for (size_t k = 0; k < block.size(); ++k) blocks[k].push_back(block[k]);
    histogram.resize(counts.size());
    for (size_t k = 0; k < counts.size(); ++k) histogram[k].push_back(counts[k]);
  }
};

void compare_pathfinder_setting(Case& c, const std::string& name, const nlohmann::json& published) {
  const formats::PathfinderOptions options = pathfinder_case_options(c, published.at("parameters"), c.where(name));
  const formats::PathfinderGenerator generator(options, 1);
  const nlohmann::json none = nlohmann::json::object();
  const nlohmann::json& histogram = published.contains("pixel_histogram") ? published.at("pixel_histogram") : none;
  const auto edges = histogram.contains("edges") ? histogram.at("edges").get<std::vector<int64_t>>() : std::vector<int64_t>{};
  PathfinderStatistics many;
  for (int64_t i = 0; i < published.at("images").get<int64_t>(); ++i)
    many.add(generator.image(static_cast<uint64_t>(i)), options.side, edges);
  for (const auto& [leaf, row] : published.items()) {
    if (!row.is_object() || !row.contains("se") || leaf == "pixel_histogram" || leaf == "block_mean_4x4") continue;
    if (!many.values.contains(leaf)) throw Error("{}: no statistic '{}' is known", c.name(), leaf);
    compare_statistic(c, name + " " + leaf, mean_of(many.values.at(leaf)), row);
  }
  const auto compare_cell = [&](const std::string& leaf, const std::vector<double>& values, const nlohmann::json& mean,
                                const nlohmann::json& se) {
    compare_statistic(c, name + " " + leaf, mean_of(values), {{"mean", mean}, {"se", se}});
  };
  for (size_t k = 0; k + 1 < edges.size(); ++k)
    compare_cell(fmt::format("pixels from {}", edges[k]), many.histogram[k], histogram.at("share").at(k), histogram.at("se").at(k));
  if (!published.contains("block_mean_4x4")) return;
  const nlohmann::json& blocks = published.at("block_mean_4x4");
  for (size_t k = 0; k < 16; ++k)
    compare_cell(fmt::format("block {}", k), many.blocks[k], blocks.at("mean").at(k / 4).at(k % 4), blocks.at("se").at(k / 4).at(k % 4));
}

}  // namespace

void pathfinder_parts_case(Case& c) {
  for (const auto& [suffix, json] : c.options().items()) PathfinderParts(c, suffix, json).run();
  c.mark_outputs_compared();
}

void pathfinder_statistics_case(Case& c) {
  const nlohmann::json published = parse_json(c.text("stats.json"), c.where("stats.json"));
  for (const auto& [name, setting] : published.items()) compare_pathfinder_setting(c, name, setting);
  c.take("output.");  // images for a look
  c.mark_outputs_compared();
}

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
