#include "tasks/formats/show.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "tasks/formats/aan.h"
#include "tasks/formats/bidmc.h"
#include "tasks/formats/contact_sheet.h"
#include "tasks/formats/images_dataset.h"
#include "tasks/formats/imdb.h"
#include "tasks/formats/listops.h"
#include "tasks/formats/pathfinder.h"
#include "tasks/formats/pathfinder_files.h"
#include "tasks/formats/speech.h"

namespace spt::formats {
namespace {

constexpr int64_t kMostShown = 1000;

/// What a view has to work with.
struct View {
  const std::filesystem::path& root;
  const std::string& task;
  const ShowOptions& options;
  const std::function<void(const std::string&)>& say;

  int64_t at_most(size_t there) const { return std::min(options.n, static_cast<int64_t>(there)); }

  void write(const std::string& extension, std::string_view content) const {
    const std::filesystem::path file = options.out.empty() ? std::filesystem::path(task + extension) : options.out;
    write_file_atomically(file, content);
    say(fmt::format("{}: wrote {}", task, file.string()));
  }

  void waves(const std::vector<Waveform>& signals) const {
    if (signals.empty()) throw DataError("{}: there is no example to show", task);
    write(".svg", waveform_svg(signals));
  }

  /// The sheet, and the labels in its order.
  void sheet(const std::vector<Picture>& pictures, const std::vector<int64_t>& labels) const {
    if (pictures.empty()) throw DataError("{}: there is no example to show", task);
    const auto columns = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(pictures.size()))));
    write(".png", encode_png(contact_sheet(pictures, columns)));
    for (size_t first = 0; first < labels.size(); first += static_cast<size_t>(columns)) {
      const auto last = std::min(labels.size(), first + static_cast<size_t>(columns));
      say(fmt::format("  labels of row {}: {}", first / static_cast<size_t>(columns) + 1,
                      fmt::join(labels.begin() + first, labels.begin() + last, " ")));
    }
  }
};

/// Planes one after the other become channels side by side.
Picture picture_of(const ImageSet& images, int64_t i) {
  Picture picture{.height = images.height, .width = images.width, .channels = images.channels, .pixels = {}};
  const std::span<const uint8_t> planes = images.image(i);
  const int64_t plane = images.height * images.width;
  for (int64_t p = 0; p < plane; ++p)
    for (int64_t c = 0; c < images.channels; ++c) picture.pixels.push_back(planes[c * plane + p]);
  return picture;
}

void show_images(const View& view, const ImageSet& images) {
  std::vector<Picture> pictures;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < view.at_most(static_cast<size_t>(images.n)); ++i) {
    pictures.push_back(picture_of(images, i));
    labels.push_back(images.labels[i]);
  }
  view.sheet(pictures, labels);
}

void show_fashion(const View& view) { show_images(view, load_fashion(view.root, true).train); }

void show_image(const View& view) { show_images(view, to_grey(load_cifar10(view.root, true).train)); }

void show_scifar(const View& view) { show_images(view, load_cifar10(view.root, true, "scifar").train); }

void show_pathfinder(const View& view) {
  const PathfinderSet& set = *find_pathfinder_set(view.task);
  std::vector<Picture> pictures;
  std::vector<int64_t> labels;
  const auto add = [&](std::vector<uint8_t> pixels, int64_t label) {
    pictures.push_back({.height = set.side, .width = set.side, .channels = 1, .pixels = std::move(pixels)});
    labels.push_back(label);
  };
  if (const auto folder = find_pathfinder(set, view.root)) {
    const PathfinderIndex index = read_pathfinder_index(*folder, set.side);
    view.say(fmt::format("{}: the first images of {}", view.task, folder->string()));
    for (int64_t i = 0; i < view.at_most(index.samples.size()); ++i) add(read_pathfinder_image(index, i), index.samples[i].label);
  } else {
    const PathfinderGenerator generator(pathfinder_options(set.side), 0);
    view.say(fmt::format("{}: generated, as the task does by default", view.task));
    for (int64_t i = 0; i < view.options.n; ++i) {
      PathfinderImage image = generator.image(static_cast<uint64_t>(i));
      add(std::move(image.pixels), image.label);
    }
  }
  view.sheet(pictures, labels);
}

void show_listops(const View& view) {
  const std::filesystem::path file = listops_file(view.root / "listops", "train");
  const bool there = std::filesystem::exists(file);
  const ListopsExamples examples = there ? read_listops_file(file) : generate_listops({}, "train", view.options.n);
  view.say(there ? fmt::format("listops: the first expressions of {}", file.string()) : "listops: generated, as the task does by default");
  for (int64_t i = 0; i < view.at_most(static_cast<size_t>(examples.size())); ++i) {
    std::string text;
    for (const uint8_t token : examples.tokens(i)) text += fmt::format("{}{}", text.empty() ? "" : " ", listops_text(token));
    view.say(fmt::format("{}: {}", examples.label(i), text));
  }
}

void show_text(const View& view) {
  const ImdbData data = load_imdb(view.root);
  for (int64_t i = 0; i < view.at_most(data.train.size()); ++i) {
    // Reviews are in order of their class: shown are some of both.
    const Review& review = i % 2 == 0 ? data.train[i / 2] : data.train[data.train.size() - 1 - i / 2];
    view.say(fmt::format("{}: {}", review.label == 1 ? "positive" : "negative", review.text));
  }
}

void show_retrieval(const View& view) {
  const auto official = find_aan_tsv(view.root);
  const auto stand_in = find_scisummnet(view.root);
  if (!official && !stand_in) throw DataError("retrieval: there are no data to show: {}", aan_tree().how_to_get(view.root));
  const AanData data = official ? read_aan_tsv(*official) : read_scisummnet(*stand_in);
  for (int64_t i = 0; i < view.at_most(data.pairs[0].size()); ++i) {
    const AanPair& pair = data.pairs[0][i];
    for (const auto& [name, text] : {std::pair("first", pair.first), std::pair("second", pair.second)})
      view.say(fmt::format("{}, {}: {}", pair.label == 1 ? "related" : "unrelated", name, data.texts[text]));
  }
}

/// Clips from all over the training set, which is in order of the words.
void show_speech(const View& view) {
  const char* release = find_speech(view.root, "v0.02") ? "v0.02" : "v0.01";
  const SpeechData data = load_speech(view.root, release);
  const int64_t n = view.at_most(data.clips.size()), apart = n == 0 ? 1 : static_cast<int64_t>(data.clips.size()) / n;
  std::vector<Waveform> signals;
  for (int64_t i = 0; i < n; ++i) {
    const SpeechClip& clip = data.clips[i * apart];
    const std::span<const int16_t> pcm = data.clip(clip);
    signals.push_back({clip.name, {std::vector<float>(pcm.begin(), pcm.end())}});
  }
  view.waves(signals);
}

/// The beginning of a recording each, as long as an example.
void show_bidmc(const View& view) {
  constexpr int64_t kWindow = 4000;
  const BidmcRecordings data = load_bidmc(view.root);
  std::vector<Waveform> signals;
  for (int64_t i = 0; i < view.at_most(data.recordings.size()); ++i) {
    const BidmcRecording& recording = data.recordings[i];
    Waveform wave{fmt::format("recording {}: PPG, ECG", recording.id), std::vector<std::vector<float>>(2)};
    for (int64_t k = 0; k < std::min(2 * kWindow, static_cast<int64_t>(recording.signal.size())); ++k)
      wave.channels[k % 2].push_back(recording.signal[k]);
    signals.push_back(std::move(wave));
  }
  view.waves(signals);
}

using ShowTask = void (*)(const View&);

/// One line a task.
const std::map<std::string, ShowTask>& views() {
  static const std::map<std::string, ShowTask> kViews = {{"bidmc-hr", show_bidmc},
                                                         {"bidmc-rr", show_bidmc},
                                                         {"bidmc-spo2", show_bidmc},
                                                         {"fashion", show_fashion},
                                                         {"image", show_image},
                                                         {"listops", show_listops},
                                                         {"pathfinder32", show_pathfinder},
                                                         {"pathx", show_pathfinder},
                                                         {"pathx256", show_pathfinder},
                                                         {"retrieval", show_retrieval},
                                                         {"scifar", show_scifar},
                                                         {"speech", show_speech},
                                                         {"text", show_text}};
  return kViews;
}

}  // namespace

void show_data(const std::filesystem::path& data_root, const std::string& task, const ShowOptions& options,
               const std::function<void(const std::string&)>& say) {
  const auto found = views().find(task);
  if (found == views().end()) {
    std::vector<std::string> known;
    for (const auto& [name, view] : views()) known.push_back(name);
    throw Error("{}", unknown_name("task to show", task, known));
  }
  if (options.n < 1 || options.n > kMostShown) throw Error("{}: n is {}; allowed: 1 to {}", task, options.n, kMostShown);
  found->second({data_root, task, options, say});
}

}  // namespace spt::formats
