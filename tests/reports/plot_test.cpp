#include "reports/plot.h"

#include <gmock/gmock.h>

#include <cmath>

namespace spt::reports {
namespace {

using testing::HasSubstr;
using testing::Not;

std::vector<CurvePoint> rising(size_t n) {
  std::vector<CurvePoint> points;
  for (size_t i = 0; i < n; ++i) {
    const double y = 1 - std::exp(-3.0 * static_cast<double>(i) / static_cast<double>(n));
    points.push_back({static_cast<double>(i), y, y - 0.05, y + 0.05});
  }
  return points;
}

CurveFigure figure_of(const std::string& label, std::vector<CurvePoint> points) {
  return {"curve_1",
          "Accuracy against step",
          "step",
          "accuracy (fraction)",
          {{"validation", {{label, 0, 0, points}}}, {"train subset", {{label, 0, 1, points}}}}};
}

TEST(Curves, DrawWithAxesLegendAndBand) {
  const CurveFigure curve = figure_of("s4d scratch@F", rising(20));
  const auto figures = draw_curves({&curve, 1});
  ASSERT_EQ(figures.size(), 1u);
  EXPECT_EQ(figures[0].missing, "");
  const std::string& svg = figures[0].svg;
  EXPECT_TRUE(svg.starts_with("<svg"));
  for (const char* text : {">step<", ">accuracy (fraction)<", ">validation<", ">train subset<", ">s4d scratch@F<", "fill-opacity"})
    EXPECT_THAT(svg, HasSubstr(text));
  EXPECT_THAT(svg, Not(HasSubstr("black")));
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
}

TEST(Curves, TakeLabelsAsText) {
  const std::string hostile = "<b>&'\"`touch spt-was-here` @x \\n %d {/Symbol a}\nline";
  CurveFigure curve = figure_of(hostile, rising(5));
  curve.caption = curve.x_label = curve.y_label = hostile;
  const auto figures = draw_curves({&curve, 1});
  ASSERT_EQ(figures[0].missing, "");
  EXPECT_THAT(figures[0].svg, Not(HasSubstr("<b>")));
  EXPECT_THAT(figures[0].svg, HasSubstr("&amp;'\"`touch spt-was-here` @x \\n %d {/Symbol a} line"));
}

TEST(Curves, BreakAtAGap) {
  std::vector<CurvePoint> points = rising(9);
  points[4].mean = std::nan("");
  const CurveFigure curve = figure_of("a", points), whole = figure_of("a", rising(9));
  EXPECT_NE(draw_curves({&curve, 1})[0].svg, draw_curves({&whole, 1})[0].svg);
  const CurveFigure none = figure_of("a", {{1, std::nan(""), 0, 0}});
  EXPECT_EQ(draw_curves({&none, 1})[0].missing, "");
  const CurveFigure empty{"e", "", "", "", {}};
  EXPECT_EQ(draw_curves({&empty, 1}).size(), 1u);
}

TEST(Curves, SayWhenGnuplotIsAbsentOrFails) {
  const CurveFigure curve = figure_of("a", rising(5));
  EXPECT_THAT(draw_curves({&curve, 1}, "spt-no-such-program")[0].missing, HasSubstr("'spt-no-such-program' is not installed"));
  EXPECT_THAT(draw_curves({&curve, 1}, "false")[0].missing, HasSubstr("'false' failed"));
  EXPECT_THAT(draw_curves({&curve, 1}, "true")[0].missing, HasSubstr("'true' wrote nothing"));
  EXPECT_TRUE(draw_curves({}).empty());
}

TEST(Curves, HaveIdsOfTheirOwn) {
  CurveFigure a = figure_of("a", rising(5)), b = a;
  b.name = "curve_2";
  const std::vector<CurveFigure> both = {a, b};
  const auto figures = draw_curves(both);
  EXPECT_THAT(figures[0].svg, HasSubstr("curve_1_gpPt7"));
  EXPECT_THAT(figures[1].svg, Not(HasSubstr("curve_1")));
}

TEST(Curves, StandaloneFileHasPaperAndInk) {
  const CurveFigure curve = figure_of("a", rising(5));
  const std::string svg = standalone_svg(draw_curves({&curve, 1})[0]);
  EXPECT_TRUE(svg.starts_with("<?xml"));
  EXPECT_THAT(svg, HasSubstr("fill=\"#ffffff\"/>"));
  EXPECT_THAT(svg, HasSubstr("xmlns=\"http://www.w3.org/2000/svg\""));
}

TEST(ThinCurve, KeepsEndsExtremesAndGaps) {
  std::vector<CurvePoint> points = rising(100001);
  points[50000].high = 7;
  points[70000].mean = std::nan("");
  const auto thinned = thin_curve(points, 500);
  ASSERT_EQ(thinned.size(), 500u);
  EXPECT_EQ(thinned.front().step, 0);
  EXPECT_EQ(thinned.back().step, 100000);
  double high = 0;
  int gaps = 0;
  for (size_t i = 0; i < thinned.size(); ++i) {
    high = std::max(high, thinned[i].high);
    gaps += std::isnan(thinned[i].mean);
    if (i > 0) {
      EXPECT_GT(thinned[i].step, thinned[i - 1].step);
    }
  }
  EXPECT_EQ(high, 7);
  EXPECT_EQ(gaps, 1);
  EXPECT_EQ(thin_curve(rising(500), 500).size(), 500u);
}

}  // namespace
}  // namespace spt::reports
