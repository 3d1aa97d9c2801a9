#pragma once

#include <span>
#include <string>
#include <vector>

#include "reports/table.h"

namespace spt::reports {

struct CurvePoint {
  double step = 0;
  double mean = 0;           ///< NaN: a gap in the line
  double low = 0, high = 0;  ///< smallest and largest of the seeds
};

struct CurveLine {
  std::string label;
  size_t colour = 0;  ///< index of a colour-blind safe palette: the architecture
  size_t dash = 0;    ///< index of dash pattern and marker: the arm
  std::vector<CurvePoint> points;
};

struct CurvePanel {
  std::string title;
  std::vector<CurveLine> lines;  ///< a label that stands in several panels has one entry in the legend
};

struct CurveFigure {
  std::string name;  ///< of the Figure
  std::string caption, x_label, y_label;
  std::vector<CurvePanel> panels;  ///< side by side, with one y axis range
};

/// At most `limit` points by merging neighbours: mean of means, extremes of the band, gaps kept. The first and last steps stay.
std::vector<CurvePoint> thin_curve(std::vector<CurvePoint> points, size_t limit);

/// Draws all figures with one run of gnuplot; where it is absent or fails, `missing` of each says so.
std::vector<Figure> draw_curves(std::span<const CurveFigure> curves, const std::string& gnuplot = "gnuplot");

/// The figure as a file of its own: white paper, dark ink.
std::string standalone_svg(const Figure& figure);

}  // namespace spt::reports
