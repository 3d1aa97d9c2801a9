#include "tasks/formats/contact_sheet.h"

#include <algorithm>
#include <cmath>

#include "harness/base/error.h"

namespace spt::formats {
namespace {

constexpr int64_t kSheetGap = 4;          // pixels
constexpr int64_t kLeastSheetSide = 128;  // smaller pictures are enlarged to about this
constexpr uint8_t kSheetGround = 96;
constexpr int64_t kPlotWidth = 960, kPlotHeight = 90, kPlotTitle = 18;

std::string escaped_xml(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&') {
      escaped += "&amp;";
    } else if (c == '<') {
      escaped += "&lt;";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

/// Points of one channel: a value, or the least and the largest of each column.
std::string plot_points(std::span<const float> values, int64_t top) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const float bottom = *least, range = *most > *least ? *most - *least : 1;
  const auto n = static_cast<int64_t>(values.size());
  std::string points;
  const auto add = [&](int64_t column, float v) {
    points += fmt::format("{},{:.1f} ", column, static_cast<double>(top) + static_cast<double>(kPlotHeight) * (1 - (v - bottom) / range));
  };
  for (int64_t column = 0; column < kPlotWidth; ++column) {
    const int64_t first = column * n / kPlotWidth, last = std::max(first + 1, (column + 1) * n / kPlotWidth);
    const auto [low, high] = std::minmax_element(values.begin() + first, values.begin() + last);
    add(column, *low);
    if (*high != *low) add(column, *high);
  }
  return points;
}

}  // namespace

Picture contact_sheet(std::span<const Picture> pictures, int64_t columns) {
  SPT_CHECK(!pictures.empty() && columns > 0, "a sheet of {} pictures in {} columns", pictures.size(), columns);
  const Picture& model = pictures.front();
  const int64_t n = static_cast<int64_t>(pictures.size()), rows = (n + columns - 1) / columns;
  const int64_t scale = std::max<int64_t>(1, kLeastSheetSide / std::max(model.height, model.width));
  const int64_t cell_height = model.height * scale + kSheetGap, cell_width = model.width * scale + kSheetGap;
  Picture sheet{.height = rows * cell_height + kSheetGap,
                .width = std::min(n, columns) * cell_width + kSheetGap,
                .channels = model.channels,
                .pixels = {}};
  sheet.pixels.assign(static_cast<size_t>(sheet.height * sheet.width * sheet.channels), kSheetGround);
  for (int64_t k = 0; k < n; ++k) {
    const Picture& picture = pictures[k];
    SPT_CHECK(picture.height == model.height && picture.width == model.width && picture.channels == model.channels,
              "pictures of two sizes");
    const int64_t top = kSheetGap + k / columns * cell_height, left = kSheetGap + k % columns * cell_width;
    for (int64_t y = 0; y < model.height * scale; ++y)
      for (int64_t x = 0; x < model.width * scale; ++x)
        for (int64_t c = 0; c < model.channels; ++c)
          sheet.pixels[((top + y) * sheet.width + left + x) * model.channels + c] =
              picture.pixels[(y / scale * model.width + x / scale) * model.channels + c];
  }
  return sheet;
}

std::string waveform_svg(std::span<const Waveform> signals) {
  std::string body;
  int64_t top = 0;
  for (const Waveform& signal : signals) {
    body += fmt::format("<text x=\"4\" y=\"{}\">{}</text>\n", top + kPlotTitle - 5, escaped_xml(signal.title));
    top += kPlotTitle;
    for (const std::vector<float>& channel : signal.channels) {
      SPT_CHECK(!channel.empty(), "a signal without samples");
      body += fmt::format("<polyline fill=\"none\" stroke=\"#1f5fa8\" points=\"{}\"/>\n", plot_points(channel, top));
      top += kPlotHeight + kSheetGap;
    }
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{2}</svg>\n",
      kPlotWidth, top + kSheetGap, body);
}

}  // namespace spt::formats
