#include "reports/plot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "reports/text.h"

extern char** environ;

namespace spt::reports {
namespace {

namespace fs = std::filesystem;

// Okabe and Ito's palette without black and yellow, which vanish on one of the two page colours.
constexpr const char* kCurveColours[] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"};
constexpr const char* kCurveDashes[] = {"solid", "(12,5)", "(3,4)", "(12,4,3,4)"};
constexpr int kCurveMarkers[] = {7, 5, 9, 13, 11};
constexpr double kCurveWidth = 960;        // pixels
constexpr double kCurvePanelHeight = 330;  // with titles and axis labels
constexpr double kCurveLegendRow = 20;
constexpr size_t kCurvePoints = 600;  // a line has no more than pixels
constexpr size_t kCurveMarkerCount = 25;

/// A folder for one run of gnuplot, removed with everything in it.
class PlotFolder {
 public:
  PlotFolder() : path_((fs::temp_directory_path() / "spt-plot-XXXXXX").string()) {
    if (!::mkdtemp(path_.data())) throw Error("cannot make a temporary folder {}: {}", path_, std::strerror(errno));
  }
  ~PlotFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  PlotFolder(const PlotFolder&) = delete;
  PlotFolder& operator=(const PlotFolder&) = delete;
  fs::path operator/(const std::string& name) const { return fs::path(path_) / name; }

 private:
  std::string path_;
};

/// In single quotes gnuplot expands nothing: no backslash, no back quote, no macro.
std::string quote_for_gnuplot(std::string_view text) {
  std::string quoted = "'";
  for (char c : clean_text(text)) {
    if (c == '\'') quoted += '\'';
    quoted += c == '\n' ? ' ' : c;
  }
  return quoted + "'";
}

std::string style_of_line(const CurveLine& line, double width) {
  return fmt::format("lw {} dt {} lc rgb '{}' pt {} ps 0.45", width, kCurveDashes[line.dash % std::size(kCurveDashes)],
                     kCurveColours[line.colour % std::size(kCurveColours)], kCurveMarkers[line.dash % std::size(kCurveMarkers)]);
}

std::string data_of_line(const CurveLine& line, const std::string& block) {
  std::string data = block + " << END_OF_LINE\n";
  for (const CurvePoint& point : line.points) {
    data += std::isfinite(point.mean) ? fmt::format("{} {} {} {}\n", point.step, point.mean, point.low, point.high) : "\n";
  }
  return data + "END_OF_LINE\n";
}

std::pair<double, double> value_range(const CurveFigure& figure) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const CurvePanel& panel : figure.panels) {
    for (const CurveLine& line : panel.lines) {
      for (const CurvePoint& point : line.points) {
        if (!std::isfinite(point.mean)) continue;
        low = std::min(low, point.low);
        high = std::max(high, point.high);
      }
    }
  }
  if (!(low <= high)) return {0, 1};
  const double pad = high > low ? 0.05 * (high - low) : std::max(1e-3, 0.05 * std::abs(high));
  return {low - pad, high + pad};
}

bool has_points(const CurveLine& line) {
  return std::any_of(line.points.begin(), line.points.end(), [](const CurvePoint& point) { return std::isfinite(point.mean); });
}

std::vector<const CurveLine*> legend_of(const CurveFigure& figure) {
  std::vector<const CurveLine*> legend;
  for (const CurvePanel& panel : figure.panels) {
    for (const CurveLine& line : panel.lines) {
      const bool known = std::any_of(legend.begin(), legend.end(), [&](const CurveLine* other) { return other->label == line.label; });
      if (!known) legend.push_back(&line);
    }
  }
  return legend;
}

size_t legend_columns(const std::vector<const CurveLine*>& legend) {
  size_t longest = 1;
  for (const CurveLine* line : legend) longest = std::max(longest, display_width(clean_text(line->label)));
  const double entry = 7.0 * static_cast<double>(longest) + 70;
  return std::clamp<size_t>(static_cast<size_t>((kCurveWidth - 60) / entry), 1, std::max<size_t>(1, legend.size()));
}

std::string script_of_panel(const CurvePanel& panel, size_t index) {
  std::string data, bands, lines;
  for (size_t i = 0; i < panel.lines.size(); ++i) {
    if (!has_points(panel.lines[i])) continue;
    CurveLine line = panel.lines[i];
    line.points = thin_curve(std::move(line.points), kCurvePoints);
    const std::string block = fmt::format("$d{}_{}", index, i);
    data += data_of_line(line, block);
    bands += fmt::format("{} using 1:3:4 with filledcurves fs transparent solid 0.13 noborder lc rgb '{}' notitle, ", block,
                         kCurveColours[line.colour % std::size(kCurveColours)]);
    lines += fmt::format("{} using 1:2 with linespoints {} pi {} notitle, ", block, style_of_line(line, 1.8),
                         std::max<size_t>(1, line.points.size() / kCurveMarkerCount));
  }
  std::string plots = bands + lines;
  plots = plots.empty() ? "[0:1] NaN notitle" : plots.substr(0, plots.size() - 2);
  return fmt::format("set title {} offset 0,-0.6\n{}plot {}\n", quote_for_gnuplot(panel.title), data, plots);
}

/// Drawn by hand, in pixels over the whole canvas: gnuplot's own key drops entries that it thinks do not fit.
std::string script_of_legend(const std::vector<const CurveLine*>& legend, size_t columns, double legend_height, double height) {
  if (legend.empty()) return "";
  const double entry = (kCurveWidth - 60) / static_cast<double>(columns);
  std::string script = "unset title\nunset xlabel\nunset ylabel\nunset tics\nunset border\nunset grid\n";
  script += fmt::format(
      "set lmargin at screen 0\nset rmargin at screen 1\nset bmargin at screen 0\nset tmargin at screen 1\nset xrange [0:{}]\nset yrange "
      "[0:{}]\n",
      kCurveWidth, height);
  std::string data, plots;
  for (size_t i = 0; i < legend.size(); ++i) {
    const double x = 60 + entry * static_cast<double>(i % columns);
    const double y = legend_height - kCurveLegendRow * (0.5 + static_cast<double>(i / columns)) - 6;
    script += fmt::format("set label {} {} at {},{} left\n", i + 1, quote_for_gnuplot(legend[i]->label), x + 48, y);
    data += fmt::format("$k{} << END_OF_LINE\n{} {}\n{} {}\n{} {}\nEND_OF_LINE\n", i, x, y, x + 20, y, x + 40, y);
    const std::string style = style_of_line(*legend[i], 1.8);
    plots += fmt::format("{0}$k{1} using 1:2 with lines {3} notitle, $k{1} using 1:2 every ::1::1 with linespoints {2} notitle",
                         i == 0 ? "" : ", ", i, style, style.substr(0, style.find(" pt ")));
  }
  return script + data + "plot " + plots + "\n";
}

std::string script_of_figure(const CurveFigure& figure, const std::string& file) {
  const auto legend = legend_of(figure);
  const size_t columns = legend_columns(legend);
  const double legend_height = 14 + kCurveLegendRow * std::ceil(static_cast<double>(legend.size()) / static_cast<double>(columns));
  const double height = kCurvePanelHeight + legend_height;
  const auto [low, high] = value_range(figure);
  std::string script =
      fmt::format("reset\nset terminal svg size {},{} dynamic font 'sans,12' noenhanced name '{}'\nset encoding utf8\nset output {}\n",
                  kCurveWidth, height, figure.name, quote_for_gnuplot(file));
  script += fmt::format(
      "set multiplot\nset yrange [{}:{}]\nset grid lc rgb '#808080' lw 0.4 dt (2,4)\nset tics nomirror\nset border 3\nunset key\n", low,
      high);
  script += fmt::format("set tmargin at screen {}\nset bmargin at screen {}\n", 1 - 34 / height, (legend_height + 52) / height);
  script += fmt::format("set xlabel {}\n", quote_for_gnuplot(figure.x_label));
  const double count = static_cast<double>(std::max<size_t>(1, figure.panels.size())), left = 72, gap = 56;
  const double width = (kCurveWidth - left - 20 - gap * (count - 1)) / count;
  for (size_t i = 0; i < figure.panels.size(); ++i) {
    const double x = left + static_cast<double>(i) * (width + gap);
    script += fmt::format("set lmargin at screen {}\nset rmargin at screen {}\n", x / kCurveWidth, (x + width) / kCurveWidth);
    script += i == 0 ? fmt::format("set ylabel {}\n", quote_for_gnuplot(figure.y_label)) : "unset ylabel\n";
    script += script_of_panel(figure.panels[i], i);
  }
  script += script_of_legend(legend, columns, legend_height, height);
  return script + "unset multiplot\nunset output\n";
}

/// "" if it ended well, else why not.
std::string run_gnuplot(const std::string& program, const fs::path& script, const fs::path& errors) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 2, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  std::string name = program, defaults = "-d", file = script.string();  // -d: no start-up files of the user
  char* arguments[] = {name.data(), defaults.data(), file.data(), nullptr};
  pid_t child = 0;
  const int failure = ::posix_spawnp(&child, name.c_str(), &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure == ENOENT) return fmt::format("'{}' is not installed (Debian and Ubuntu: apt-get install gnuplot-nox)", program);
  if (failure != 0) return fmt::format("'{}' could not be started: {}", program, std::strerror(failure));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return fmt::format("'{}' could not be waited for: {}", program, std::strerror(errno));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  const std::string said = fs::exists(errors) ? clean_text(read_file(errors)) : "";
  return fmt::format("'{}' failed (status {}): {}", program, status, said.substr(0, 500));
}

void replace_everywhere(std::string& text, std::string_view from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
}

/// gnuplot's document as one element for a page: ink from the page, ids of its own, no tool tips. Only tags change, never text.
std::string element_of_svg(const std::string& document, const CurveFigure& figure) {
  const size_t begin = document.find("<svg");
  if (begin == std::string::npos) return "";
  std::string element;
  for (size_t i = begin; i < document.size();) {
    if (document[i] != '<') {
      const size_t end = std::min(document.find('<', i), document.size());
      element.append(document, i, end - i);
      i = end;
      continue;
    }
    const size_t end = std::min(document.find('>', i), document.size() - 1) + 1;
    std::string tag = document.substr(i, end - i);
    i = end;
    if (tag == "<title>" || tag == "<desc>") {
      i = std::min(document.find("</", i), document.size());
      i = std::min(document.find('>', i), document.size() - 1) + 1;
      continue;
    }
    replace_everywhere(tag, " color=\"black\"", "");
    replace_everywhere(tag, "\"black\"", "\"currentColor\"");
    replace_everywhere(tag, "'black'", "'currentColor'");
    for (const char* id : {"gpPt", "gpDot", "textbox", "greybox", "gnuplot_canvas"}) replace_everywhere(tag, id, figure.name + "_" + id);
    if (tag.starts_with("<svg")) tag.insert(4, " role=\"img\" aria-label=\"" + escape_xml(figure.caption) + "\"");
    element += tag;
  }
  return element;
}

}  // namespace

std::vector<CurvePoint> thin_curve(std::vector<CurvePoint> points, size_t limit) {
  SPT_CHECK(limit >= 3, "a curve of {} points", limit);
  if (points.size() <= limit) return points;
  std::vector<CurvePoint> thinned = {points.front()};
  const size_t inner = points.size() - 2, buckets = limit - 2;
  for (size_t b = 0; b < buckets; ++b) {
    const size_t begin = 1 + b * inner / buckets, end = 1 + (b + 1) * inner / buckets;
    CurvePoint merged = points[begin];
    for (size_t i = begin + 1; i < end; ++i) {
      merged.step += points[i].step;
      merged.mean += points[i].mean;  // NaN in one is a gap in all
      merged.low = std::min(merged.low, points[i].low);
      merged.high = std::max(merged.high, points[i].high);
    }
    merged.step /= static_cast<double>(end - begin);
    merged.mean /= static_cast<double>(end - begin);
    thinned.push_back(merged);
  }
  thinned.push_back(points.back());
  return thinned;
}

std::vector<Figure> draw_curves(std::span<const CurveFigure> curves, const std::string& gnuplot) {
  std::vector<Figure> figures;
  if (curves.empty()) return figures;
  const PlotFolder folder;
  std::string script;
  for (const CurveFigure& curve : curves) script += script_of_figure(curve, (folder / (curve.name + ".svg")).string());
  write_file_atomically(folder / "script.gp", script);
  const std::string problem = run_gnuplot(gnuplot, folder / "script.gp", folder / "errors.txt");
  for (const CurveFigure& curve : curves) {
    Figure figure{curve.name, curve.caption, "", ""};
    const fs::path file = folder / (curve.name + ".svg");
    if (problem.empty() && fs::exists(file)) figure.svg = element_of_svg(read_file(file), curve);
    if (figure.svg.empty()) figure.missing = "no figure: " + (problem.empty() ? "'" + gnuplot + "' wrote nothing" : problem);
    figures.push_back(std::move(figure));
  }
  return figures;
}

std::string standalone_svg(const Figure& figure) {
  std::string svg = figure.svg;
  const size_t paper = svg.find("fill=\"none\"/>");
  if (paper != std::string::npos) svg.replace(paper, 13, "fill=\"#ffffff\"/>");
  if (svg.starts_with("<svg")) svg.insert(4, " color=\"#1b1f24\"");
  return "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n" + svg;
}

}  // namespace spt::reports
