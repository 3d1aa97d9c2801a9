#include "tasks/formats/pathfinder.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <thread>

#include "tests/formats/image_files.h"

namespace spt::formats {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing_files::message_of;

/// A dash by its two ends, as a reader of the image would know it.
struct Segment {
  double y0, x0, y1, x1;
  double distance0(PathfinderPoint p) const { return std::hypot(y0 - static_cast<double>(p.y), x0 - static_cast<double>(p.x)); }
  double distance1(PathfinderPoint p) const { return std::hypot(y1 - static_cast<double>(p.y), x1 - static_cast<double>(p.x)); }
};

/// Says from dashes alone, in whatever order and without their contours, whether both markers are the ends of one contour of `length`
/// dashes: of all such paths from the first marker it takes the one whose joints fit best, as seen from the dash before and from the dash
/// after.
class Tracer {
 public:
  Tracer(std::vector<Segment> segments, int64_t margin, int64_t length)
      : segments_(std::move(segments)), gap_(static_cast<double>(margin)), length_(length) {}

  bool connected(PathfinderPoint from, PathfinderPoint to) {
    used_.assign(segments_.size(), false);
    least_ = INFINITY;
    for (size_t i = 0; i < segments_.size(); ++i) {
      if (segments_[i].distance0(from) > 0.01) continue;
      used_[i] = true;
      follow(segments_[i], 1, 0);
      used_[i] = false;
    }
    return least_ < INFINITY && end_.distance1(to) <= 1.5;
  }

 private:
  static constexpr double kMostMiss = 3.5;  // pixels; every coordinate is rounded

  /// Where the joint is, `gap` behind the end of a segment (or before its begin, for a negative one).
  static std::pair<double, double> joint(const Segment& s, double gap) {
    const double length = std::hypot(s.y1 - s.y0, s.x1 - s.x0), dy = (s.y1 - s.y0) / length, dx = (s.x1 - s.x0) / length;
    return gap > 0 ? std::pair(s.y1 + gap * dy, s.x1 + gap * dx) : std::pair(s.y0 + gap * dy, s.x0 + gap * dx);
  }

  void follow(const Segment& at, int64_t dashes, double missed) {
    if (missed >= least_) return;
    if (dashes == length_) {
      least_ = missed;
      end_ = at;
      return;
    }
    const auto [y, x] = joint(at, gap_);
    for (size_t i = 0; i < segments_.size(); ++i) {
      if (used_[i]) continue;
      const Segment& s = segments_[i];
      for (const Segment& t : {s, Segment{s.y1, s.x1, s.y0, s.x0}}) {
        const auto [ty, tx] = joint(t, -gap_);
        const double miss = (ty - y) * (ty - y) + (tx - x) * (tx - x);
        if (miss > kMostMiss * kMostMiss) continue;
        used_[i] = true;
        follow(t, dashes + 1, missed + miss);
        used_[i] = false;
      }
    }
  }

  std::vector<Segment> segments_;
  double gap_;
  int64_t length_;
  std::vector<bool> used_;
  double least_ = INFINITY;
  Segment end_{};
};

std::vector<Segment> segments_of(const PathfinderImage& image, int64_t length) {
  std::vector<Segment> segments;
  for (const PathfinderDash& dash : image.dashes) {
    const auto y = static_cast<double>(dash.start.y), x = static_cast<double>(dash.start.x), d = static_cast<double>(length);
    segments.push_back({y, x, y + d * std::sin(dash.angle), x + d * std::cos(dash.angle)});
  }
  std::reverse(segments.begin(), segments.end());
  return segments;
}

TEST(Pathfinder, AnIndependentTracerFindsTheLabel) {
  for (const int64_t side : {128, 256}) {
    const PathfinderGenerator generator(pathfinder_options(side), 3);
    const int64_t n = side == 128 ? 60 : 100;
    int64_t wrong = 0, ones = 0;
    for (int64_t i = 0; i < n; ++i) {
      const PathfinderImage image = generator.image(static_cast<uint64_t>(i));
      Tracer tracer(segments_of(image, generator.options().paddle_length), image.margin, generator.options().contour_length);
      ones += image.label;
      wrong += tracer.connected(image.markers[0], image.markers[1]) == (image.label == 1) ? 0 : 1;
    }
    EXPECT_LE(wrong, 1) << side;  // where two contours cross at a joint, dashes alone do not tell
    EXPECT_GT(ones, n / 3) << side;
    EXPECT_LT(ones, n * 2 / 3) << side;
  }
}

TEST(Pathfinder, DashesAreInTheImageAndMarkersAreBright) {
  for (const int64_t side : {32, 128, 256}) {
    const PathfinderGenerator generator(pathfinder_options(side), 4);
    for (uint64_t i = 0; i < 30; ++i) {
      const PathfinderImage image = generator.image(i);
      EXPECT_GE(image.dashes.size(), 28u);
      for (const PathfinderDash& dash : image.dashes) EXPECT_GT(image.pixels[dash.start.y * side + dash.start.x], 60) << side << " " << i;
      for (const PathfinderPoint marker : image.markers) EXPECT_GT(image.pixels[marker.y * side + marker.x], 200) << side << " " << i;
      EXPECT_EQ(*std::max_element(image.pixels.begin(), image.pixels.end()), 255);
      EXPECT_EQ(*std::min_element(image.pixels.begin(), image.pixels.end()), 0);
    }
  }
}

TEST(Pathfinder, MarkersStandAtTheEndsOfTheTargets) {
  const PathfinderGenerator generator(pathfinder_options(32), 5);
  for (uint64_t i = 0; i < 300; ++i) {
    const PathfinderImage image = generator.image(i);
    EXPECT_EQ(image.label, generator.label(i));
    int64_t origin = -1, end = -1;
    for (int64_t k = 0; k < 2; ++k) {
      if (image.dashes[k * 14].start == image.markers[0]) origin = k;
      if (image.dashes[k * 14 + 13].start == image.markers[1]) end = k;
    }
    if (image.dashes[0].start == image.dashes[14].start || image.dashes[13].start == image.dashes[27].start) continue;
    EXPECT_EQ(origin == end, image.label == 1) << i;
  }
}

TEST(Pathfinder, ImageIIsAFunctionOfSeedAndIAlone) {
  const PathfinderGenerator generator(pathfinder_options(32), 7), again(pathfinder_options(32), 7), other(pathfinder_options(32), 8);
  const PathfinderImage seventh = generator.image(7);
  for (uint64_t i = 0; i < 7; ++i) again.image(i);
  EXPECT_EQ(again.image(7).pixels, seventh.pixels);
  EXPECT_NE(other.image(7).pixels, seventh.pixels);
  EXPECT_NE(generator.image(8).pixels, seventh.pixels);
  std::vector<std::vector<uint8_t>> drawn(4);
  std::vector<std::thread> threads;
  for (auto& pixels : drawn) threads.emplace_back([&] { pixels = generator.image(7).pixels; });
  for (std::thread& thread : threads) thread.join();
  for (const auto& pixels : drawn) EXPECT_EQ(pixels, seventh.pixels);
}

TEST(Pathfinder, IdentityNamesTheVersionAndEverySetting) {
  const PathfinderGenerator generator(pathfinder_options(128), 9);
  EXPECT_THAT(generator.identity(),
              AllOf(HasSubstr("spt-pathfinder 1 "), HasSubstr("seed=9"), HasSubstr("side=128"), HasSubstr("paddle_margins=2,3")));
  EXPECT_NE(generator.identity(), PathfinderGenerator(pathfinder_options(256), 9).identity());
}

TEST(Pathfinder, ImpossibleSettingsAreErrors) {
  EXPECT_THAT(message_of([] { pathfinder_options(48); }), HasSubstr("32, 64, 128, 256"));
  PathfinderOptions options = pathfinder_options(32);
  options.padding = 0;
  EXPECT_THAT(message_of([&] { PathfinderGenerator(options, 1); }), AllOf(HasSubstr("padding is 0"), HasSubstr("1 to 8")));
  options = pathfinder_options(32);
  options.paddle_margins.clear();
  EXPECT_THAT(message_of([&] { PathfinderGenerator(options, 1); }), HasSubstr("paddle_margins"));
  options = pathfinder_options(32);
  options.contour_length = 900;
  EXPECT_THAT(message_of([&] { PathfinderGenerator(options, 1).image(0); }), HasSubstr("no room for two contours"));
}

TEST(PathfinderShapes, BitsDilateLikePixels) {
  SplitMix64 random(1);
  for (const int64_t side : {40, 64, 128, 200}) {
    BitSquare bits(side);
    for (int i = 0; i < 50; ++i) bits.set(static_cast<int64_t>(random.below(side)), static_cast<int64_t>(random.below(side)));
    const std::vector<PathfinderPoint> offsets = {{0, 0}, {-3, 7}, {5, -9}, {0, 31}, {-1, -33}};
    const BitSquare wide = bits.dilated(offsets);
    int64_t zeros = 0;
    for (int64_t y = 0; y < side; ++y) {
      for (int64_t x = 0; x < side; ++x) {
        bool any = false;
        for (const PathfinderPoint d : offsets) {
          const int64_t py = y + d.y, px = x + d.x;
          any = any || (py >= 0 && px >= 0 && py < side && px < side && bits.at(py, px));
        }
        ASSERT_EQ(wide.at(y, x), any) << side << " " << y << " " << x;
        if (!any) {
          EXPECT_EQ(wide.zero(zeros), (PathfinderPoint{y, x}));
          ++zeros;
        }
      }
    }
    EXPECT_EQ(wide.zeros(), zeros);
  }
}

TEST(PathfinderShapes, AxisAlignedStepsDoNotLeakRounding) {
  const double pi = std::numbers::pi;
  EXPECT_EQ(pathfinder_move({10, 10}, pathfinder_step(-pi, 5)), (PathfinderPoint{10, 5}));
  EXPECT_EQ(pathfinder_move({10, 10}, pathfinder_step(pi / 2, 5)), (PathfinderPoint{15, 10}));
}

TEST(PathfinderShapes, AKernelWorksOnlyIfEveryPixelHasAPartOfItInside) {
  EXPECT_TRUE(kernel_works(std::vector<PathfinderPoint>{{0, 0}, {1, 1}}));
  EXPECT_FALSE(kernel_works(std::vector<PathfinderPoint>{{1, 1}, {2, 2}}));
  EXPECT_FALSE(kernel_works(std::vector<PathfinderPoint>{{0, 1}, {0, 2}}));
}

}  // namespace
}  // namespace spt::formats
