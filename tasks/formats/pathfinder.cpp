#include "tasks/formats/pathfinder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "harness/base/error.h"

namespace spt::formats {
namespace {

constexpr int64_t kPathfinderGeneratorVersion = 1;
constexpr double kMostMaskSum = 1.8;  // of a paddle's mask and what is there already

void check_range(const char* name, double value, double least, double most) {
  if (!(value >= least && value <= most)) throw Error("pathfinder: {} is {}; allowed: {} to {}", name, value, least, most);
}

std::vector<PathfinderOptions> published_options() {
  std::vector<PathfinderOptions> all(4);
  all[1] = {.side = 64,
            .padding = 1,
            .antialias = 2,
            .seed_distance = 12,
            .marker_radius = 2.5,
            .paddle_length = 5,
            .paddle_thickness = 1,
            .paddle_margins = {1},
            .contour_length = 14,
            .distractor_length = 4,
            .distractors = 5,
            .snake_contrast = 0.8,
            .paddle_contrast = 1,
            .continuity = 1.8};
  all[2] = {.side = 128,
            .padding = 1,
            .antialias = 2,
            .seed_distance = 20,
            .marker_radius = 3,
            .paddle_length = 5,
            .paddle_thickness = 1.5,
            .paddle_margins = {2, 3},
            .contour_length = 14,
            .distractor_length = 4,
            .distractors = 8,
            .snake_contrast = 0.9,
            .paddle_contrast = 1,
            .continuity = 1.8};
  all[3] = {.side = 256,
            .padding = 22,
            .antialias = 2,
            .seed_distance = 27,
            .marker_radius = 5,
            .paddle_length = 5,
            .paddle_thickness = 2,
            .paddle_margins = {3},
            .contour_length = 14,
            .distractor_length = 4,
            .distractors = 7,
            .snake_contrast = 1,
            .paddle_contrast = 1,
            .continuity = 1.8};
  return all;
}

PathfinderOptions validated(PathfinderOptions options) {
  options.validate();
  return options;
}

/// Rows of `side` bytes on rows of `row` bytes, `inset` from the left and from the top.
std::vector<uint8_t> in_rows(std::span<const uint8_t> square, int64_t side, int64_t inset, int64_t row) {
  std::vector<uint8_t> rows(static_cast<size_t>((side + 2 * inset) * row));
  for (int64_t y = 0; y < side; ++y) std::copy_n(square.begin() + y * side, side, rows.begin() + (y + inset) * row + inset);
  return rows;
}

/// Each pixel becomes the largest within `margin` of it; the side grows by 2 margin.
std::vector<uint8_t> spread_square(std::span<const uint8_t> pixels, int64_t side, int64_t margin) {
  const int64_t wide = side + 2 * margin;
  std::vector<uint8_t> spread(static_cast<size_t>(wide * wide));
  for (const PathfinderPoint d : pathfinder_disc(margin)) {
    for (int64_t y = 0; y < side; ++y) {
      for (int64_t x = 0; x < side; ++x) {
        uint8_t& to = spread[(y + margin + d.y) * wide + x + margin + d.x];
        to = std::max(to, pixels[y * side + x]);
      }
    }
  }
  return spread;
}

BitSquare frame_bits(int64_t side, int64_t width) {
  BitSquare bits(side);
  for (int64_t y = 0; y < side; ++y)
    for (int64_t x = 0; x < side; ++x)
      if (y < width || x < width || y >= side - width || x >= side - width) bits.set(y, x);
  return bits;
}

}  // namespace

void PathfinderOptions::validate() const {
  check_range("side", static_cast<double>(side), 16, 256);
  check_range("padding", static_cast<double>(padding), 1, static_cast<double>(side) / 4);
  check_range("antialias", static_cast<double>(antialias), 1, 8);
  check_range("seed_distance", static_cast<double>(seed_distance), 1, static_cast<double>(side - 1) / 4);
  check_range("marker_radius", marker_radius, 0.5, static_cast<double>(side) / 4);
  check_range("paddle_length", static_cast<double>(paddle_length), 1, static_cast<double>(side) / 4);
  check_range("paddle_thickness", paddle_thickness, 0.25, static_cast<double>(side) / 4);
  if (paddle_margins.empty()) throw Error("pathfinder: paddle_margins is empty; at least one is needed");
  for (const int64_t margin : paddle_margins) check_range("paddle_margins", static_cast<double>(margin), 1, static_cast<double>(side) / 4);
  check_range("contour_length", static_cast<double>(contour_length), 1, 1000);
  check_range("distractor_length", static_cast<double>(distractor_length), 1, 1000);
  check_range("distractors", static_cast<double>(distractors), 0, 1000);
  check_range("snake_contrast", snake_contrast, 1e-3, 100);
  check_range("paddle_contrast", paddle_contrast, 1e-3, 100);
  check_range("continuity", continuity, 0.1, 100);
  check_range("paddle_tries", static_cast<double>(paddle_tries), 1, 1000);
  check_range("distractor_tries", static_cast<double>(distractor_tries), 1, 1000);
}

const PathfinderOptions& pathfinder_options(int64_t side) {
  static const std::vector<PathfinderOptions> kOptions = published_options();
  for (const PathfinderOptions& options : kOptions)
    if (options.side == side) return options;
  throw Error("pathfinder: no published settings for images of side {}; known: 32, 64, 128, 256", side);
}

PathfinderGenerator::Tables::Tables(const PathfinderOptions& options, int64_t margin)
    : margin(margin),
      shape{.length = options.paddle_length, .thickness = options.paddle_thickness, .margin = margin, .antialias = options.antialias},
      reach(shape.reach() + margin),
      row((2 * reach + kPathfinderStampChunk) / kPathfinderStampChunk * kPathfinderStampChunk),
      ring(options.paddle_length + margin, options.continuity),
      empty{PaddedSquare(options.side, row + 2), PaddedSquare(options.side, row + 2)} {
  for (int64_t degrees = -180; degrees < 180; ++degrees) {
    seeds.push_back(direction(static_cast<double>(degrees) * std::numbers::pi / 180));
    seeds.back().paddle = paddle_for(seeds.back().angle);
  }
  const BitSquare border = frame_bits(options.side, 2 * options.seed_distance);
  for (const Paddle& paddle : paddles) kernels.push_back(kernel(paddle, border));
  for (int64_t i = 0; i < static_cast<int64_t>(ring.offsets().size()); ++i) {
    headings.push_back(direction(ring.angle(i)));
    headings.back().paddle = paddle_for(pathfinder_flip(ring.angle(i)));
  }
  for (const Paddle& paddle : paddles) stamps.push_back(stamp(paddle));
  const BitSquare frame = frame_bits(options.side, options.padding), wide = frame.dilated(pathfinder_disc(margin));
  for (int64_t y = 0; y < options.side; ++y) {
    for (int64_t x = 0; x < options.side; ++x) {
      empty.values.bytes[empty.values.index(y, x)] = frame.at(y, x) ? 255 : 0;
      empty.spread.bytes[empty.spread.index(y, x)] = wide.at(y, x) ? 255 : 0;
    }
  }
}

PathfinderGenerator::Stamp PathfinderGenerator::Tables::stamp(const Paddle& paddle) const {
  const int64_t side = 2 * paddle.reach + 1;
  Stamp stamp{.mask = in_rows(paddle.mask, side, margin, row),
              .spread = in_rows(spread_square(paddle.mask, side, margin), side + 2 * margin, 0, row),
              .strong = {}};
  for (int64_t y = 0; y < side; ++y)
    for (int64_t x = 0; x < side; ++x)
      if (const uint8_t m = paddle.mask[y * side + x]; m / 255.0 + 1 >= kMostMaskSum)
        stamp.strong.push_back({{y - paddle.reach, x - paddle.reach}, m});
  return stamp;
}

PathfinderGenerator::Kernel PathfinderGenerator::Tables::kernel(const Paddle& paddle, const BitSquare& border) const {
  Kernel kernel{.ones = seed_kernel(shape, paddle)};
  kernel.works = kernel_works(kernel.ones);
  if (!kernel.works) return kernel;
  kernel.taken_at_first = border.dilated(kernel.ones);
  kernel.free_at_first = kernel.taken_at_first.zeros();
  return kernel;
}

PathfinderGenerator::Direction PathfinderGenerator::Tables::direction(double angle) const {
  const auto length = static_cast<double>(shape.length), gap = static_cast<double>(margin);
  return {.angle = angle,
          .head = pathfinder_step(angle, length),
          .pivot = pathfinder_step(pathfinder_flip(angle), length + gap),
          .joint = pathfinder_step(angle, length + 2 * gap),
          .turn_weights = ring.turn_weights(angle)};
}

int64_t PathfinderGenerator::Tables::paddle_for(double angle) {
  const PathfinderPoint end = paddle_fine_end(shape, angle);
  const auto found = std::find_if(paddles.begin(), paddles.end(), [&](const Paddle& p) { return p.fine_end == end; });
  if (found != paddles.end()) return found - paddles.begin();
  paddles.push_back(draw_paddle(shape, end));
  return static_cast<int64_t>(paddles.size()) - 1;
}

PathfinderGenerator::PathfinderGenerator(PathfinderOptions options, uint64_t seed)
    : options_(validated(std::move(options))),
      seed_(seed),
      stream_(seed, fmt::format("pathfinder/{}", options_.side)),
      marker_axis_(options_.side * options_.antialias, options_.side) {
  for (const int64_t margin : options_.paddle_margins) tables_.emplace_back(options_, margin);
  for (int own = 0; own < 256; ++own) {
    uint16_t least = 0;
    while (least < 256 && least / 255.0 + own / 255.0 < kMostMaskSum) ++least;
    refused_[own] = least;
  }
}

uint8_t PathfinderGenerator::label(uint64_t i) const { return static_cast<uint8_t>(stream_.generator(i).below(2)); }

std::string PathfinderGenerator::identity() const {
  const PathfinderOptions& o = options_;
  return fmt::format(
      "spt-pathfinder {} seed={} side={} padding={} antialias={} seed_distance={} marker_radius={} paddle_length={} paddle_thickness={} "
      "paddle_margins={} "
      "contour_length={} distractor_length={} distractors={} snake_contrast={} paddle_contrast={} continuity={} paddle_tries={} "
      "distractor_tries={}",
      kPathfinderGeneratorVersion, seed_, o.side, o.padding, o.antialias, o.seed_distance, o.marker_radius, o.paddle_length,
      o.paddle_thickness, fmt::join(o.paddle_margins, ","), o.contour_length, o.distractor_length, o.distractors, o.snake_contrast,
      o.paddle_contrast, o.continuity, o.paddle_tries, o.distractor_tries);
}

}  // namespace spt::formats
