#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "harness/base/error.h"
#include "tasks/formats/pathfinder.h"

// How one image comes about; what all images of a generator share is in pathfinder.cpp.
namespace spt::formats {
namespace {

constexpr uint8_t kMostFreeMask = 76;          // 255 * 0.3, rounded down
constexpr double kLeastEndpointWeight = 1e-4;  // sum over all places for a dash
constexpr double kLeastFreeShare = 0.01;       // of an image, before a distractor is tried
constexpr int64_t kAttemptsAnImage = 200'000;
constexpr int kQuickSeedTries = 32;

bool inside(PathfinderPoint p, int64_t side) { return p.y >= 0 && p.x >= 0 && p.y < side && p.x < side; }

/// Puts a stamp around `centre`: each pixel becomes the larger one. Rows are whole chunks; what is added to fill them is 0.
void put_stamp(PaddedSquare& image, PathfinderPoint centre, std::span<const uint8_t> stamp, int64_t reach, int64_t row) {
  const uint8_t* own = stamp.data();
  for (int64_t y = centre.y - reach; y <= centre.y + reach; ++y) {
    uint8_t* pixels = image.bytes.data() + image.index(y, centre.x - reach);
    for (int64_t chunk = 0; chunk < row; chunk += kPathfinderStampChunk, own += kPathfinderStampChunk, pixels += kPathfinderStampChunk)
      for (int64_t i = 0; i < kPathfinderStampChunk; ++i) pixels[i] = std::max(pixels[i], own[i]);
  }
}

/// Calls visit(first pixel in the image, first in the patch, how many) for the rows of a square patch around `centre` that are inside.
template <class Visit>
void visit_rows(PathfinderPoint centre, int64_t reach, int64_t side, Visit&& visit) {
  const int64_t first_x = std::max<int64_t>(0, centre.x - reach), n = std::min(side - 1, centre.x + reach) - first_x + 1;
  if (n <= 0) return;
  for (int64_t y = std::max<int64_t>(0, centre.y - reach); y <= std::min(side - 1, centre.y + reach); ++y)
    visit(y * side + first_x, (y - centre.y + reach) * (2 * reach + 1) + first_x - centre.x + reach, n);
}

}  // namespace

/// One image in the making.
class PathfinderDraw {
 public:
  PathfinderDraw(const PathfinderGenerator& generator, SplitMix64 random)
      : g_(generator),
        options_(generator.options_),
        side_(generator.options_.side),
        random_(random),
        t_(&g_.tables_.front()),
        mask_(t_->empty) {}

  PathfinderImage run() {
    PathfinderImage image;
    image.label = static_cast<uint8_t>(random_.below(2));
    t_ = &g_.tables_[random_.below(g_.tables_.size())];
    image.margin = t_->margin;
    std::array<Snake, 2> targets;
    do {
      ++image.attempts;
      if (image.attempts > kAttemptsAnImage)
        throw Error("pathfinder: {} tries found no room for two contours; the settings leave too little: {}", kAttemptsAnImage,
                    g_.identity());
    } while (!draw_targets(targets));
    std::vector<float> bright(static_cast<size_t>(side_ * side_));
    for (int64_t k = 0; k < 2; ++k) add_contour(image, bright, targets[k], options_.snake_contrast * options_.paddle_contrast, k);
    add_distractors(image, bright);
    const size_t first = random_.below(2);
    image.markers = {targets[first].origin, targets[image.label == 1 ? first : 1 - first].head};
    for (const PathfinderPoint marker : image.markers) add_marker(bright, marker);
    image.pixels = to_bytes(bright);
    return image;
  }

 private:
  using Direction = PathfinderGenerator::Direction;
  using Kernel = PathfinderGenerator::Kernel;
  using Mask = PathfinderGenerator::Mask;

  struct Dash {
    PathfinderPoint start;
    int64_t paddle;
    double angle;
  };
  /// A contour that grows at `head`.
  struct Snake {
    PathfinderPoint origin, pivot, head;
    const Direction* direction = nullptr;
    std::vector<Dash> dashes;
  };

  bool draw_targets(std::array<Snake, 2>& targets) {
    if (!first_seed(targets[0]) || !second_seed(targets[1], targets[0].origin)) return false;
    mask_ = t_->empty;
    for (int64_t round = 1; round < options_.contour_length; ++round)
      for (Snake& snake : targets)
        if (!extend(snake)) return false;
    block(targets[1].dashes.back());  // not the first one's last dash: as published
    return true;
  }

  void start(Snake& snake, PathfinderPoint tail, const Direction& direction) {
    snake.origin = tail;
    snake.direction = &direction;
    snake.dashes = {{tail, direction.paddle, direction.angle}};
    snake.head = pathfinder_move(tail, direction.head);
    snake.pivot = pathfinder_move(snake.head, direction.pivot);
  }
  bool fits(const Snake& snake) const { return inside(snake.head, side_) && inside(snake.pivot, side_); }

  /// A first dash somewhere in the middle of the empty image.
  bool first_seed(Snake& snake) {
    return seed(snake, [this](const Kernel& kernel) { return any_zero(kernel.taken_at_first, kernel.free_at_first); });
  }

  /// ... or where nothing is yet. The edge is occupied as part of the frame.
  bool distractor_seed(Snake& snake) {
    return seed(snake, [this](const Kernel& kernel) -> std::optional<PathfinderPoint> {
      // Most of a large image is free: what is drawn from all pixels until one is free is drawn from the free ones.
      for (int tried = 0; tried < kQuickSeedTries; ++tried) {
        const uint64_t drawn = random_.below(static_cast<uint64_t>(side_ * side_));
        const PathfinderPoint p = {static_cast<int64_t>(drawn) / side_, static_cast<int64_t>(drawn) % side_};
        if (is_free(p, kernel.ones)) return p;
      }
      BitSquare full(side_);
      for (int64_t y = 0; y < side_; ++y)
        for (int64_t x = 0; x < side_; ++x)
          if (mask_.values.at(y, x) > kMostFreeMask) full.set(y, x);
      const BitSquare taken = full.dilated(kernel.ones);
      return any_zero(taken, taken.zeros());
    });
  }

  /// `room` gives for a kernel a pixel where the dash can begin, uniform over all of them.
  template <class Room>
  bool seed(Snake& snake, Room&& room) {
    for (int64_t tried = 0; tried < options_.paddle_tries; ++tried) {
      const Direction& direction = t_->seeds[random_.below(t_->seeds.size())];
      const Kernel& kernel = t_->kernels[direction.paddle];
      if (!kernel.works) return false;
      const std::optional<PathfinderPoint> tail = room(kernel);
      if (!tail) return false;
      start(snake, *tail, direction);
      if (fits(snake)) return true;
    }
    return false;
  }

  std::optional<PathfinderPoint> any_zero(const BitSquare& taken, int64_t zeros) {
    if (zeros == 0) return std::nullopt;
    return taken.zero(static_cast<int64_t>(random_.below(static_cast<uint64_t>(zeros))));
  }

  bool is_free(PathfinderPoint p, std::span<const PathfinderPoint> ones) const {
    return std::none_of(ones.begin(), ones.end(), [&](PathfinderPoint d) {
      const PathfinderPoint q = {p.y + d.y, p.x + d.x};
      return inside(q, side_) && mask_.values.at(q.y, q.x) > kMostFreeMask;
    });
  }

  bool second_seed(Snake& snake, PathfinderPoint first) {
    for (int64_t tried = 0; tried < options_.paddle_tries; ++tried) {
      const Direction& direction = t_->seeds[random_.below(t_->seeds.size())];
      const double around = static_cast<double>(random_.below(360)) * std::numbers::pi / 180;
      const PathfinderStep away = pathfinder_step(around, static_cast<double>(options_.seed_distance));
      start(snake, {std::lrint(static_cast<double>(first.y) + away.y), std::lrint(static_cast<double>(first.x) + away.x)}, direction);
      if (fits(snake)) return true;
    }
    return false;
  }

  /// Adds a dash; the one before it joins the mask.
  bool extend(Snake& snake) {
    const PathfinderPoint joint = pathfinder_move(snake.pivot, snake.direction->joint);
    t_->ring.find(joint, snake.direction->turn_weights, mask_.spread, endpoints_);
    if (endpoints_.offsets.empty() || endpoints_.sum < kLeastEndpointWeight) return false;
    for (int64_t tried = 0; tried < options_.paddle_tries; ++tried) {
      const int64_t drawn = draw_endpoint();
      const PathfinderPoint d = t_->ring.offsets()[drawn], head = {joint.y + d.y, joint.x + d.x};
      const Direction& direction = t_->headings[drawn];
      if (!has_room(head, direction.paddle)) continue;
      block(snake.dashes.back());
      snake.dashes.push_back({head, direction.paddle, pathfinder_flip(direction.angle)});
      snake.pivot = joint;
      snake.head = head;
      snake.direction = &direction;
      return true;
    }
    return false;
  }

  int64_t draw_endpoint() {
    const double u = random_.uniform() * endpoints_.sum;
    double sum = 0;
    for (size_t i = 0; i < endpoints_.weights.size(); ++i) {
      sum += endpoints_.weights[i];
      if (sum > u) return endpoints_.offsets[i];
    }
    return endpoints_.offsets.back();  // rounding left the sum below u
  }

  bool has_room(PathfinderPoint centre, int64_t paddle) const {
    const auto& strong = t_->stamps[paddle].strong;
    return std::none_of(strong.begin(), strong.end(), [&](const auto& pixel) {
      const PathfinderPoint p = {centre.y + pixel.first.y, centre.x + pixel.first.x};
      return mask_.values.at(p.y, p.x) >= g_.refused_[pixel.second] && inside(p, side_);
    });
  }

  void block(const Dash& dash) {
    const auto& stamp = t_->stamps[dash.paddle];
    // What lies outside the image counts for nothing. It would not spread in either; where it does here, the frame has 255 already.
    put_stamp(mask_.values, dash.start, stamp.mask, t_->reach, t_->row);
    put_stamp(mask_.spread, dash.start, stamp.spread, t_->reach, t_->row);
  }

  void add_contour(PathfinderImage& image, std::vector<float>& bright, const Snake& snake, double contrast, int64_t contour) const {
    const auto scale = static_cast<float>(contrast / 255);
    for (const Dash& dash : snake.dashes) {
      const Paddle& paddle = t_->paddles[dash.paddle];
      visit_rows(dash.start, paddle.reach, side_, [&](int64_t pixel, int64_t from, int64_t n) {
        for (int64_t i = 0; i < n; ++i) bright[pixel + i] = std::max(bright[pixel + i], scale * static_cast<float>(paddle.line[from + i]));
      });
      image.dashes.push_back({dash.start, dash.angle, contour});
    }
  }

  void add_distractors(PathfinderImage& image, std::vector<float>& bright) {
    int64_t contour = 2;
    for (int64_t k = 0; k < options_.distractors; ++k) {
      const Mask before = mask_;
      for (int64_t tried = 0; tried < options_.distractor_tries; ++tried) {
        Snake snake;
        if (draw_distractor(snake)) {
          add_contour(image, bright, snake, options_.snake_contrast, contour++);
          break;
        }
        mask_ = before;
      }
    }
  }

  bool draw_distractor(Snake& snake) {
    int64_t free = 0;
    for (int64_t y = 0; y < side_; ++y)
      for (int64_t x = 0; x < side_; ++x) free += mask_.values.at(y, x) <= kMostFreeMask ? 1 : 0;
    if (static_cast<double>(free) < kLeastFreeShare * static_cast<double>(side_ * side_) || !distractor_seed(snake)) return false;
    for (int64_t i = 1; i < options_.distractor_length; ++i)
      if (!extend(snake)) return false;
    block(snake.dashes.back());
    return true;
  }

  void add_marker(std::vector<float>& bright, PathfinderPoint centre) const {
    const PathfinderPatch patch = draw_marker(g_.marker_axis_, options_.antialias, options_.marker_radius, centre);
    for (int64_t y = 0; y < patch.height; ++y) {
      for (int64_t x = 0; x < patch.width; ++x) {
        float& pixel = bright[(patch.corner.y + y) * side_ + patch.corner.x + x];
        pixel = std::max(pixel, static_cast<float>(patch.pixels[y * patch.width + x]) / 255);
      }
    }
  }

  static std::vector<uint8_t> to_bytes(const std::vector<float>& bright) {
    const auto [least, most] = std::minmax_element(bright.begin(), bright.end());
    const float low = *least, scale = 255 / (*most - low);
    std::vector<uint8_t> bytes(bright.size());
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>((bright[i] - low) * scale + 0.5f);
    return bytes;
  }

  const PathfinderGenerator& g_;
  const PathfinderOptions& options_;
  const int64_t side_;
  SplitMix64 random_;
  const PathfinderGenerator::Tables* t_;
  Mask mask_;
  PathfinderEndpoints endpoints_;
};

PathfinderImage PathfinderGenerator::image(uint64_t i) const { return PathfinderDraw(*this, stream_.generator(i)).run(); }

}  // namespace spt::formats
