#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace spt::formats {

// What Pathfinder images are drawn with. Points are (y, x), y down; angles are radians, 0 = +x, growing towards +y.

struct PathfinderPoint {
  int64_t y = 0;
  int64_t x = 0;
  bool operator==(const PathfinderPoint&) const = default;
};

/// A length in a direction: (length sin angle, length cos angle).
struct PathfinderStep {
  double y = 0;
  double x = 0;
};
PathfinderStep pathfinder_step(double angle, double length);

/// (ceil(p.y + d.y), ceil(p.x + d.x)) in double and on absolute coordinates, so that the 1e-16 of sin(pi) vanishes in the sum.
PathfinderPoint pathfinder_move(PathfinderPoint p, PathfinderStep d);

/// The opposite direction.
double pathfinder_flip(double angle);

/// Offsets (dy, dx) with dy^2 + dx^2 <= radius^2, by row.
std::vector<PathfinderPoint> pathfinder_disc(int64_t radius);

/// Pillow's Lanczos (a = 3) of 8-bit images, along one axis: for each output pixel the first input pixel and 22-bit fixed-point weights.
class LanczosAxis {
 public:
  LanczosAxis(int64_t from, int64_t to);  ///< `from` input pixels shrink to `to` output pixels, from >= to
  int64_t to() const { return static_cast<int64_t>(first_.size()); }
  int64_t first(int64_t i) const { return first_[i]; }
  std::span<const int32_t> weights(int64_t i) const { return weights_[i]; }
  uint8_t sum(int64_t i, const uint8_t* pixels, int64_t stride) const;  ///< output pixel i; pixels[k * stride] is input pixel k

 private:
  std::vector<int64_t> first_;
  std::vector<std::vector<int32_t>> weights_;
};

/// The two passes, horizontal first, each rounded and clipped to 8 bits. Shapes: (axis input)^2 -> to^2.
std::vector<uint8_t> shrink_square(std::span<const uint8_t> pixels, int64_t side, const LanczosAxis& axis);

/// Sizes of a dash ("paddle").
struct PaddleShape {
  int64_t length = 5;
  double thickness = 1.5;
  int64_t margin = 2;
  int64_t antialias = 2;
  int64_t reach() const;  ///< h = length + ceil(thickness) + margin: patches have side 2h + 1
};

/// A dash as patches whose centre is where it starts. Values are 255 times those of the description.
struct Paddle {
  int64_t reach = 0;
  PathfinderPoint fine_end;   ///< end of the line on the fine canvas, from its start
  std::vector<uint8_t> line;  ///< (2 reach + 1)^2
  std::vector<uint8_t> mask;  ///< the same, of the line widened by the margin
};

/// Where the line of a dash ends on the fine canvas, relative to its start: all that a paddle depends on beside its shape.
PathfinderPoint paddle_fine_end(const PaddleShape& shape, double angle);

/// Draws a line (antialias x finer, thickness * antialias wide) on a canvas of side 2 h antialias + 1 and shrinks it to 2h + 1; the mask is
/// the same of the line dilated by a disc of margin * antialias.
///
/// Source: Linsley et al. 2018, snakes2.py; must equal the reference case pathfinder_parts.
Paddle draw_paddle(const PaddleShape& shape, PathfinderPoint fine_end);

/// Pixels of an image that are not 0, as a rectangle.
struct PathfinderPatch {
  PathfinderPoint corner;
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> pixels;
};

/// A disc of this radius around `centre` in an image of side axis.to(), drawn antialias x finer and shrunk.
PathfinderPatch draw_marker(const LanczosAxis& axis, int64_t antialias, double radius, PathfinderPoint centre);

/// An 8-bit image with room around it, so that patches need no clipping: rows of `stride` bytes, `pad` of them before and after the image.
struct PaddedSquare {
  PaddedSquare(int64_t side, int64_t pad) : side(side), pad(pad), stride(side + 2 * pad), bytes(static_cast<size_t>(stride * stride)) {}
  int64_t index(int64_t y, int64_t x) const { return (y + pad) * stride + x + pad; }
  uint8_t at(int64_t y, int64_t x) const { return bytes[index(y, x)]; }

  int64_t side, pad, stride;
  std::vector<uint8_t> bytes;
};

/// Where the next dash may begin, seen from a joint.
struct PathfinderEndpoints {
  std::vector<int64_t> offsets;  ///< indices into EndpointRing::offsets(), of those inside the image
  std::vector<double> weights;   ///< of each; probabilities once they are divided by `sum`
  double sum = 0;
};

/// Integer points about `radius` away from a joint, weighted by (1 - occupied) cos(e)^2 with e = min(continuity * |turn|, pi/2).
class EndpointRing {
 public:
  EndpointRing(int64_t radius, double continuity);
  const std::vector<PathfinderPoint>& offsets() const { return offsets_; }  ///< from the joint, sorted by y, then x
  double angle(int64_t offset) const { return angles_[offset]; }            ///< from the joint
  std::vector<double> turn_weights(double angle) const;                     ///< cos(e)^2 by offset, coming in this direction
  /// `occupied`: 255 times the mask, with every pixel spread over the margin around it.
  void find(PathfinderPoint joint, std::span<const double> turn_weights, const PaddedSquare& occupied, PathfinderEndpoints& found) const;

 private:
  double continuity_;
  std::vector<PathfinderPoint> offsets_;
  std::vector<double> angles_;
};

/// An image of bits, side <= 256.
class BitSquare {
 public:
  explicit BitSquare(int64_t side) : side_(side), words_((side + 63) / 64), bits_(static_cast<size_t>(side * words_)) {}
  int64_t side() const { return side_; }
  bool at(int64_t y, int64_t x) const { return (bits_[y * words_ + x / 64] >> (x % 64) & 1) != 0; }
  void set(int64_t y, int64_t x) { bits_[y * words_ + x / 64] |= uint64_t{1} << (x % 64); }
  int64_t zeros() const;                       ///< how many pixels are not set
  PathfinderPoint zero(int64_t number) const;  ///< the number-th of them, by row
  /// A pixel is set if one of the pixels at `offsets` from it, inside the image, is.
  BitSquare dilated(std::span<const PathfinderPoint> offsets) const;

 private:
  int64_t side_;
  int64_t words_;
  std::vector<uint64_t> bits_;
};

/// Where a seed's dash must find no occupied pixel, seen from its tail: the pixels that are exactly 1 in the mask of a paddle, on a canvas
/// of side 2 (length + margin) + 1 and one pixel off its centre, as published.
std::vector<PathfinderPoint> seed_kernel(const PaddleShape& shape, const Paddle& paddle);

/// The published generator gives up where some pixel has its whole kernel outside the image. True: it does not.
bool kernel_works(std::span<const PathfinderPoint> kernel);

}  // namespace spt::formats
