#include "harness/base/error.h"
#include "harness/base/file.h"
#include "tasks/formats/pathfinder_files.h"

namespace spt::formats {

void list_pathfinder(const PathfinderSet& set, const std::filesystem::path& data_root, const PathfinderSay& say) {
  say(
      fmt::format("{}: Pathfinder of {} x {} pixels, contour length 14: 200,000 images, 2 classes; Linsley et al. 2018, Long Range Arena "
                  "(arXiv:2011.04006); licence: Apache 2.0",
                  set.task, set.side, set.side));
  say("  drawn when it is trained on; files are needed for the option source = \"lra\" only");
  const auto folder = find_pathfinder(set, data_root);
  if (folder) {
    const bool ours = std::filesystem::exists(*folder / kPathfinderIdentityFile);
    say(fmt::format("  there: {}{}", folder->string(), ours ? ", made by spt-bench data make" : ""));
  } else {
    say(fmt::format("  missing: put {} of Long Range Arena's lra_release into {}, or spt-bench data make {}", set.folder,
                    (data_root / "pathfinder").string(), set.task));
  }
}

bool verify_pathfinder(const PathfinderSet& set, const std::filesystem::path& data_root, const PathfinderSay& say) {
  const auto folder = find_pathfinder(set, data_root);
  if (!folder) {
    say(fmt::format("{0}: no files; spt-bench data list {0} tells when they are needed", set.task));
    return false;
  }
  try {
    const PathfinderIndex index = read_pathfinder_index(*folder, set.side);
    const auto n = static_cast<int64_t>(index.samples.size());
    int64_t ones = 0;
    for (int64_t i = 0; i < n; ++i) {
      read_pathfinder_image(index, i);
      ones += index.samples[i].label;
    }
    say(fmt::format("{}: {} images of {} x {} in {}, all whole, {} on one contour, data hash {}", set.task, n, set.side, set.side,
                    folder->string(), ones, index.data_hash));
    if (n == kPathfinderImages) return true;
    say(fmt::format("  not the {} of Long Range Arena; to train on it, give the task partial = true", kPathfinderImages));
  } catch (const Error& e) {  // the verdict that was asked for
    say(fmt::format("{}: damaged: {}", set.task, e.what()));
  }
  return false;
}

}  // namespace spt::formats
