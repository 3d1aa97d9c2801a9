#include "tasks/formats/pathfinder_shapes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "harness/base/error.h"

namespace spt::formats {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr int kLanczosBits = 22;
constexpr double kLanczosRadius = 3;

double sinc(double x) { return x == 0 ? 1.0 : std::sin(x * kPi) / (x * kPi); }

double lanczos(double x) { return x >= -kLanczosRadius && x < kLanczosRadius ? sinc(x) * sinc(x / kLanczosRadius) : 0.0; }

/// Pillow's ROUND_UP and ROUND_DOWN: halves go away from zero, or towards it.
int64_t round_up(double v) { return static_cast<int64_t>(v >= 0 ? std::floor(v + 0.5) : -std::floor(-v + 0.5)); }
int64_t round_down(double v) { return static_cast<int64_t>(v >= 0 ? std::ceil(v - 0.5) : -std::ceil(-v - 0.5)); }

/// A square 8-bit canvas; what is drawn outside is lost.
struct FineCanvas {
  int64_t side;
  std::vector<uint8_t> pixels = std::vector<uint8_t>(static_cast<size_t>(side * side));

  void set(int64_t y, int64_t x) {
    if (y >= 0 && y < side && x >= 0 && x < side) pixels[y * side + x] = 255;
  }
};

/// Pillow's line of width 1: Bresenham, both ends drawn.
void draw_thin_line(FineCanvas& canvas, PathfinderPoint from, PathfinderPoint to) {
  const int64_t step_x = to.x < from.x ? -1 : 1, step_y = to.y < from.y ? -1 : 1;
  const int64_t dx = std::abs(to.x - from.x), dy = std::abs(to.y - from.y);
  const bool flat = dx > dy;
  const int64_t along = flat ? dx : dy, across = flat ? dy : dx;
  int64_t error = 2 * across - along, y = from.y, x = from.x;
  for (int64_t i = 0; i < along; ++i) {
    canvas.set(y, x);
    if (error >= 0) {
      (flat ? y : x) += flat ? step_y : step_x;
      error -= 2 * along;
    }
    error += 2 * across;
    (flat ? x : y) += flat ? step_x : step_y;
  }
  canvas.set(to.y, to.x);
}

/// Pillow's wide line: a filled quadrangle around the segment.
void draw_wide_line(FineCanvas& canvas, PathfinderPoint from, PathfinderPoint to, double width) {
  const auto dx = static_cast<double>(to.x - from.x), dy = static_cast<double>(to.y - from.y);
  const double length = std::hypot(dx, dy), half = (width - 1) / 2;
  const double small = static_cast<double>(round_down(half)) / length, large = static_cast<double>(round_up(half)) / length;
  const int64_t left = round_down(small * dy), right = round_down(large * dy), above = round_up(small * dx), below = round_up(large * dx);
  const PathfinderPoint corners[4] = {
      {from.y + below, from.x - left}, {to.y + below, to.x - left}, {to.y - above, to.x + right}, {from.y - above, from.x + right}};
  const auto [lowest, highest] = std::minmax_element(std::begin(corners), std::end(corners), [](auto a, auto b) { return a.y < b.y; });
  for (int64_t y = lowest->y; y <= highest->y; ++y) {
    float first = INFINITY, last = -INFINITY;
    for (int i = 0; i < 4; ++i) {
      PathfinderPoint a = corners[i], b = corners[(i + 1) % 4];
      if (a.y == b.y) {
        if (a.y != y) continue;
        first = std::min({first, static_cast<float>(a.x), static_cast<float>(b.x)});
        last = std::max({last, static_cast<float>(a.x), static_cast<float>(b.x)});
        continue;
      }
      if (y < std::min(a.y, b.y) || y > std::max(a.y, b.y)) continue;
      const float slope = static_cast<float>(b.x - a.x) / static_cast<float>(b.y - a.y);
      const float x = static_cast<float>(y - a.y) * slope + static_cast<float>(a.x);
      first = std::min(first, x);
      last = std::max(last, x);
    }
    for (int64_t x = round_up(first); x <= round_down(last); ++x) canvas.set(y, x);
  }
}

FineCanvas dilated_canvas(const FineCanvas& canvas, int64_t radius) {
  FineCanvas wide{.side = canvas.side};
  const std::vector<PathfinderPoint> disc = pathfinder_disc(radius);
  for (int64_t y = 0; y < canvas.side; ++y)
    for (int64_t x = 0; x < canvas.side; ++x)
      if (canvas.pixels[y * canvas.side + x] != 0)
        for (const PathfinderPoint d : disc) wide.set(y + d.y, x + d.x);
  return wide;
}

}  // namespace

PathfinderStep pathfinder_step(double angle, double length) { return {length * std::sin(angle), length * std::cos(angle)}; }

PathfinderPoint pathfinder_move(PathfinderPoint p, PathfinderStep d) {
  return {static_cast<int64_t>(std::ceil(static_cast<double>(p.y) + d.y)), static_cast<int64_t>(std::ceil(static_cast<double>(p.x) + d.x))};
}

double pathfinder_flip(double angle) { return angle < 0 ? angle + kPi : angle - kPi; }

std::vector<PathfinderPoint> pathfinder_disc(int64_t radius) {
  std::vector<PathfinderPoint> disc;
  for (int64_t y = -radius; y <= radius; ++y)
    for (int64_t x = -radius; x <= radius; ++x)
      if (x * x + y * y <= radius * radius) disc.push_back({y, x});
  return disc;
}

LanczosAxis::LanczosAxis(int64_t from, int64_t to) {
  SPT_CHECK(to >= 1 && from >= to, "shrinking {} pixels to {}", from, to);
  const double scale = static_cast<double>(from) / static_cast<double>(to), support = kLanczosRadius * scale;
  for (int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const int64_t begin = std::max<int64_t>(0, static_cast<int64_t>(centre - support + 0.5));
    const int64_t end = std::min(from, static_cast<int64_t>(centre + support + 0.5));
    std::vector<double> exact;
    double sum = 0;
    for (int64_t k = begin; k < end; ++k) sum += exact.emplace_back(lanczos((static_cast<double>(k) - centre + 0.5) / scale));
    first_.push_back(begin);
    weights_.emplace_back();
    for (const double w : exact) weights_.back().push_back(static_cast<int32_t>(round_up(w / sum * (1 << kLanczosBits))));
  }
}

uint8_t LanczosAxis::sum(int64_t i, const uint8_t* pixels, int64_t stride) const {
  int64_t sum = int64_t{1} << (kLanczosBits - 1);
  const uint8_t* pixel = pixels + first_[i] * stride;
  for (const int32_t w : weights_[i]) {
    sum += static_cast<int64_t>(w) * *pixel;
    pixel += stride;
  }
  return static_cast<uint8_t>(std::clamp<int64_t>(sum >> kLanczosBits, 0, 255));
}

std::vector<uint8_t> shrink_square(std::span<const uint8_t> pixels, int64_t side, const LanczosAxis& axis) {
  const int64_t n = axis.to();
  std::vector<uint8_t> rows(static_cast<size_t>(side * n)), small(static_cast<size_t>(n * n));
  for (int64_t y = 0; y < side; ++y)
    for (int64_t x = 0; x < n; ++x) rows[y * n + x] = axis.sum(x, pixels.data() + y * side, 1);
  for (int64_t y = 0; y < n; ++y)
    for (int64_t x = 0; x < n; ++x) small[y * n + x] = axis.sum(y, rows.data() + x, n);
  return small;
}

int64_t PaddleShape::reach() const { return length + static_cast<int64_t>(std::ceil(thickness)) + margin; }

PathfinderPoint paddle_fine_end(const PaddleShape& shape, double angle) {
  const PathfinderPoint centre = {shape.reach() * shape.antialias, shape.reach() * shape.antialias};
  const PathfinderPoint end = pathfinder_move(centre, pathfinder_step(angle, static_cast<double>(shape.length * shape.antialias)));
  return {end.y - centre.y, end.x - centre.x};
}

Paddle draw_paddle(const PaddleShape& shape, PathfinderPoint fine_end) {
  const int64_t reach = shape.reach(), half = reach * shape.antialias;
  const PathfinderPoint centre = {half, half}, end = {half + fine_end.y, half + fine_end.x};
  FineCanvas canvas{.side = 2 * half + 1};
  const double width = shape.thickness * static_cast<double>(shape.antialias);
  if (width <= 1) {
    draw_thin_line(canvas, centre, end);
  } else {
    draw_wide_line(canvas, centre, end, width);
  }
  const LanczosAxis axis(canvas.side, 2 * reach + 1);
  const FineCanvas wide = dilated_canvas(canvas, shape.margin * shape.antialias);
  return {.reach = reach,
          .fine_end = fine_end,
          .line = shrink_square(canvas.pixels, canvas.side, axis),
          .mask = shrink_square(wide.pixels, canvas.side, axis)};
}

PathfinderPatch draw_marker(const LanczosAxis& axis, int64_t antialias, double radius, PathfinderPoint centre) {
  const int64_t side = axis.to(), fine_side = side * antialias;
  const double fine_radius = radius * static_cast<double>(antialias);
  const auto far = static_cast<int64_t>(std::ceil(radius + kLanczosRadius)) + 1;
  const int64_t top = std::max<int64_t>(0, centre.y - far), bottom = std::min(side, centre.y + far + 1);
  const int64_t left = std::max<int64_t>(0, centre.x - far), right = std::min(side, centre.x + far + 1);
  PathfinderPatch patch{.corner = {top, left}, .height = bottom - top, .width = right - left, .pixels = {}};
  std::vector<uint8_t> line(static_cast<size_t>(fine_side)), rows(static_cast<size_t>(fine_side * patch.width));
  for (int64_t y = 0; y < fine_side; ++y) {
    const auto dy = static_cast<double>(y - centre.y * antialias);
    if (std::abs(dy) > fine_radius) continue;
    for (int64_t x = 0; x < fine_side; ++x) {
      const auto dx = static_cast<double>(x - centre.x * antialias);
      line[x] = dy * dy + dx * dx <= fine_radius * fine_radius ? 255 : 0;
    }
    for (int64_t x = left; x < right; ++x) rows[y * patch.width + x - left] = axis.sum(x, line.data(), 1);
  }
  for (int64_t y = top; y < bottom; ++y)
    for (int64_t x = 0; x < patch.width; ++x) patch.pixels.push_back(axis.sum(y, rows.data() + x, patch.width));
  return patch;
}

EndpointRing::EndpointRing(int64_t radius, double continuity) : continuity_(continuity) {
  constexpr double kBelowInteger = 1e-9;  // 2.9999999999999996 becomes 3 once it is added to a coordinate
  const double step = 360.0 / (2 * kPi * static_cast<double>(radius));
  const auto whole = [](double v) { return static_cast<int64_t>(std::floor(v + kBelowInteger)); };
  for (int64_t i = 0; static_cast<double>(i) * step < 360.0; ++i) {
    const PathfinderStep d = pathfinder_step(static_cast<double>(i) * step * kPi / 180.0, static_cast<double>(radius));
    offsets_.push_back({whole(d.y), whole(d.x)});
  }
  std::sort(offsets_.begin(), offsets_.end(), [](PathfinderPoint a, PathfinderPoint b) { return a.y != b.y ? a.y < b.y : a.x < b.x; });
  offsets_.erase(std::unique(offsets_.begin(), offsets_.end()), offsets_.end());
  for (const PathfinderPoint d : offsets_) angles_.push_back(std::atan2(static_cast<double>(d.y), static_cast<double>(d.x)));
}

std::vector<double> EndpointRing::turn_weights(double angle) const {
  std::vector<double> weights;
  for (const double o : angles_) {
    const double turn = std::abs(o - angle), e = std::min(continuity_ * std::min(turn, 2 * kPi - turn), kPi / 2);
    weights.push_back(std::cos(e) * std::cos(e));
  }
  return weights;
}

void EndpointRing::find(PathfinderPoint joint, std::span<const double> turn_weights, const PaddedSquare& occupied,
                        PathfinderEndpoints& found) const {
  found.offsets.clear();
  found.weights.clear();
  found.sum = 0;
  for (size_t i = 0; i < offsets_.size(); ++i) {
    const int64_t y = joint.y + offsets_[i].y, x = joint.x + offsets_[i].x;
    if (y < 0 || x < 0 || y >= occupied.side || x >= occupied.side) continue;
    const double weight = (1 - static_cast<double>(occupied.at(y, x)) / 255) * turn_weights[i];
    found.offsets.push_back(static_cast<int64_t>(i));
    found.weights.push_back(weight);
    found.sum += weight;
  }
}

int64_t BitSquare::zeros() const {
  int64_t ones = 0;
  for (const uint64_t word : bits_) ones += std::popcount(word);
  return side_ * side_ - ones;
}

PathfinderPoint BitSquare::zero(int64_t number) const {
  for (int64_t y = 0; y < side_; ++y) {
    int64_t here = side_;
    for (int64_t w = 0; w < words_; ++w) here -= std::popcount(bits_[y * words_ + w]);
    if (number >= here) {
      number -= here;
      continue;
    }
    for (int64_t x = 0; x < side_; ++x)
      if (!at(y, x) && number-- == 0) return {y, x};
  }
  SPT_CHECK(false, "fewer pixels are free");
  return {};
}

BitSquare BitSquare::dilated(std::span<const PathfinderPoint> offsets) const {
  BitSquare wide(side_);
  const uint64_t last_word = side_ % 64 == 0 ? ~uint64_t{0} : (uint64_t{1} << (side_ % 64)) - 1;
  for (const PathfinderPoint& d : offsets) {
    // Bit x of row y takes bit x + d.x of row y + d.y.
    const int64_t whole = d.x >= 0 ? d.x / 64 : -((-d.x + 63) / 64), part = d.x - whole * 64;  // 0 <= part < 64
    const int64_t first = std::max<int64_t>(0, -d.y), last = std::min(side_, side_ - d.y);
    for (int64_t y = first; y < last; ++y) {
      const uint64_t* from = bits_.data() + (y + d.y) * words_;
      uint64_t* to = wide.bits_.data() + y * words_;
      const auto word = [&](int64_t w) { return w >= 0 && w < words_ ? from[w] : uint64_t{0}; };
      for (int64_t w = 0; w < words_; ++w)
        to[w] |= part == 0 ? word(w + whole) : word(w + whole) >> part | word(w + whole + 1) << (64 - part);
    }
  }
  for (int64_t y = 0; y < side_; ++y) wide.bits_[y * words_ + words_ - 1] &= last_word;
  return wide;
}

std::vector<PathfinderPoint> seed_kernel(const PaddleShape& shape, const Paddle& paddle) {
  const int64_t step = shape.length + shape.margin, side = 2 * paddle.reach + 1;
  std::vector<PathfinderPoint> ones;
  for (int64_t i = 0; i < side * side; ++i) {
    const PathfinderPoint d = {i / side - paddle.reach + 1, i % side - paddle.reach + 1};
    if (paddle.mask[i] == 255 && std::max(std::abs(d.y), std::abs(d.x)) <= step) ones.push_back(d);
  }
  return ones;
}

bool kernel_works(std::span<const PathfinderPoint> kernel) {
  for (const int64_t sy : {1, -1})
    for (const int64_t sx : {1, -1})
      // In the corner where y sy and x sx cannot become smaller.
      if (std::none_of(kernel.begin(), kernel.end(), [&](PathfinderPoint d) { return d.y * sy >= 0 && d.x * sx >= 0; })) return false;
  return true;
}

}  // namespace spt::formats
