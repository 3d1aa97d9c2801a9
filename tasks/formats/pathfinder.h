#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/base/rng.h"
#include "tasks/formats/pathfinder_shapes.h"

namespace spt::formats {

/// What a Pathfinder generator draws; pathfinder_options() has the settings of Long Range Arena. Lengths are pixels.
struct PathfinderOptions {
  int64_t side = 32;          ///< of the image
  int64_t padding = 1;        ///< frame that no dash enters
  int64_t antialias = 2;      ///< lines are drawn so much finer
  int64_t seed_distance = 7;  ///< between the origins of the two target contours
  double marker_radius = 1.5;
  int64_t paddle_length = 2;  ///< of one dash
  double paddle_thickness = 0.5;
  std::vector<int64_t> paddle_margins = {1};  ///< one is drawn per image: half the gap between dashes
  int64_t contour_length = 14;                ///< dashes of a target
  int64_t distractor_length = 4;
  int64_t distractors = 5;
  double snake_contrast = 2;
  double paddle_contrast = 0.75;  ///< of target dashes, times snake_contrast
  double continuity = 1;          ///< how much a turn counts: the larger, the straighter
  int64_t paddle_tries = 3;       ///< of a seed, and of a dash
  int64_t distractor_tries = 5;   ///< before one is left out
  void validate() const;          ///< Errors: Error naming the option, its value and what is allowed
};

/// Long Range Arena's images of this side with contour length 14: 32, 64, 128 (PathX) or 256 (PathX-256).
/// Errors: Error for another side.
const PathfinderOptions& pathfinder_options(int64_t side);

/// A dash as it was drawn: from `start` towards `angle`.
struct PathfinderDash {
  PathfinderPoint start;
  double angle = 0;
  int64_t contour = 0;  ///< 0, 1: targets; then the distractors
};

/// One image and how it came about.
struct PathfinderImage {
  std::vector<uint8_t> pixels;             ///< side^2
  uint8_t label = 0;                       ///< 1: both markers are on one contour
  std::array<PathfinderPoint, 2> markers;  ///< at the origin of one target, and at the end of the same or the other one
  int64_t margin = 0;
  int64_t attempts = 0;                ///< tries of the two targets
  std::vector<PathfinderDash> dashes;  ///< along each contour from its origin
};

inline constexpr int64_t kPathfinderStampChunk = 16;  ///< rows of stamps are whole chunks of so many bytes, which one instruction takes

/// Draws Pathfinder images: two contours of dashes with a marker at an end of each or at both ends of one, and shorter distractors.
///
/// Random: image i is a function of (options, seed, i) alone: stream "pathfinder/SIDE" of the seed, by i; its first draw is the label.
/// Source: Linsley et al. 2018, drewlinsley/pathfinder snakes2.py; statistics must match the
/// reference case pathfinder_statistics, parts the case pathfinder_parts.
/// Const calls are safe from several threads at once.
class PathfinderGenerator {
 public:
  PathfinderGenerator(PathfinderOptions options, uint64_t seed);
  const PathfinderOptions& options() const { return options_; }
  uint8_t label(uint64_t i) const;
  PathfinderImage image(uint64_t i) const;
  /// The text that identifies the images: version of the generator and everything that they depend on.
  std::string identity() const;

 private:
  friend class PathfinderDraw;

  /// A direction in which a dash can be drawn from where it starts.
  struct Direction {
    double angle = 0;
    PathfinderStep head;               ///< by the length of a dash
    PathfinderStep pivot;              ///< back by length + margin, from the head
    PathfinderStep joint;              ///< by length + 2 margins, from a pivot
    std::vector<double> turn_weights;  ///< of the ring
    int64_t paddle = 0;                ///< of a seed: from its tail; of a later dash: from its head, back
  };
  /// A dash as it is put into the mask.
  struct Stamp {
    std::vector<uint8_t> mask, spread;                        ///< its mask, and the same spread over the margin; rows as in Tables
    std::vector<std::pair<PathfinderPoint, uint8_t>> strong;  ///< pixels that can be too much together with another dash
  };
  /// Where a seed fits.
  struct Kernel {
    std::vector<PathfinderPoint> ones;
    bool works = false;
    BitSquare taken_at_first{0};  ///< where the first seed of an image cannot begin; empty unless it works
    int64_t free_at_first = 0;
  };
  /// 255 times the shared mask, and the same with every pixel spread over the margin.
  struct Mask {
    PaddedSquare values, spread;
  };
  /// What depends on the margin.
  struct Tables {
    Tables(const PathfinderOptions& options, int64_t margin);
    int64_t margin;
    PaddleShape shape;
    int64_t reach, row;  ///< of stamps: from the centre, and bytes of a padded row
    std::vector<Paddle> paddles;
    std::vector<Stamp> stamps;    ///< by paddle
    std::vector<Kernel> kernels;  ///< by paddle of seeds
    EndpointRing ring;
    std::vector<Direction> seeds;     ///< 360: -180 .. 179 degrees
    std::vector<Direction> headings;  ///< by offset of the ring: from the joint to the head
    Mask empty;

   private:
    int64_t paddle_for(double angle);
    Direction direction(double angle) const;
    Stamp stamp(const Paddle& paddle) const;
    Kernel kernel(const Paddle& paddle, const BitSquare& border) const;
  };

  PathfinderOptions options_;
  uint64_t seed_;
  Stream stream_;
  std::vector<Tables> tables_;  ///< by margin
  LanczosAxis marker_axis_;
  std::array<uint16_t, 256> refused_;  ///< by value of a paddle's mask: least value in the mask that it may not be put on
};

}  // namespace spt::formats
