#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tasks/formats/png.h"

namespace spt::formats {

/// Pictures of one size in rows of `columns`, small ones enlarged by a whole factor, on a grey ground. Grey if all are, else in colour.
Picture contact_sheet(std::span<const Picture> pictures, int64_t columns);

/// One line plot of a signal.
struct Waveform {
  std::string title;
  std::vector<std::vector<float>> channels;  ///< of one length
};

/// The signals below each other, each scaled to its own range, as an SVG picture; long ones as their least and largest values a column.
std::string waveform_svg(std::span<const Waveform> signals);

}  // namespace spt::formats
