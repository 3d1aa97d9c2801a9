#include <algorithm>
#include <atomic>
#include <exception>
#include <fstream>
#include <mutex>
#include <thread>

#include "harness/base/error.h"
#include "harness/base/file.h"
#include "tasks/formats/pathfinder.h"
#include "tasks/formats/pathfinder_files.h"
#include "tasks/formats/png.h"

namespace spt::formats {
namespace {

void write_whole_image(const std::filesystem::path& file, std::string_view bytes) {
  std::ofstream output(file, std::ios::binary);
  output.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  output.close();
  if (!output) throw Error("cannot write '{}': is the folder writable, and the disk not full?", file.string());
}

/// One call of make_pathfinder_files().
class PathfinderMaker {
 public:
  PathfinderMaker(const PathfinderSet& set, const PathfinderMake& make, const std::filesystem::path& root)
      : make_(make),
        root_(root),
        level_(root / kPathfinderLevel),
        generator_(pathfinder_options(set.side), static_cast<uint64_t>(make.seed)) {}

  int64_t batches() const { return (make_.count + make_.batch - 1) / make_.batch; }

  /// Errors: Error for a folder with other data.
  void claim_folder() const {
    const std::filesystem::path file = root_ / kPathfinderIdentityFile;
    const std::string identity = fmt::format("{} images_a_folder={}\n", generator_.identity(), make_.batch);
    if (std::filesystem::exists(file)) {
      if (read_file(file) == identity) return;
      throw Error("'{}' holds images of another generator or seed ({}); remove the folder, or give another data root", root_.string(),
                  file.string());
    }
    if (std::filesystem::exists(level_))
      throw Error("'{}' is there and was not made by this command; move it away, or give another data root", level_.string());
    std::error_code problem;
    std::filesystem::create_directories(root_, problem);
    if (problem) throw Error("cannot make the folder '{}': {}", root_.string(), problem.message());
    write_file_atomically(file, identity);
  }

  /// False: the batch was there.
  bool make_batch(int64_t batch) const {
    const int64_t first = batch * make_.batch, last = std::min(first + make_.batch, make_.count);
    const std::filesystem::path metadata = level_ / "metadata" / fmt::format("{}.npy", batch),
                                images = level_ / "imgs" / std::to_string(batch);
    if (std::filesystem::exists(metadata)) {
      const std::string text = read_file(metadata);
      if (std::count(text.begin(), text.end(), '\n') >= last - first) return false;
      std::filesystem::remove(metadata);  // a smaller set ended in this batch
    }
    const std::filesystem::path partial = images.string() + ".partial";
    std::filesystem::remove_all(partial);
    std::filesystem::remove_all(images);
    std::filesystem::create_directories(partial);
    std::filesystem::create_directories(metadata.parent_path());
    std::string lines;
    for (int64_t i = first; i < last; ++i) {
      PathfinderImage image = generator_.image(static_cast<uint64_t>(i));
      const std::string name = fmt::format("sample_{}.png", i - first);
      const int64_t side = generator_.options().side;
      write_whole_image(partial / name, encode_png({.height = side, .width = side, .channels = 1, .pixels = std::move(image.pixels)}));
      lines += metadata_line(batch, name, i - first, image);
    }
    std::filesystem::rename(partial, images);
    write_file_atomically(metadata, lines);
    return true;
  }

 private:
  std::string metadata_line(int64_t batch, const std::string& name, int64_t index, const PathfinderImage& image) const {
    const PathfinderOptions& o = generator_.options();
    return fmt::format("imgs/{} {} {} {} {} {} {} {} {} {} {}\n", batch, name, index, image.label, o.continuity, o.contour_length,
                       o.distractor_length, o.distractors, o.paddle_length, o.paddle_thickness, image.margin);
  }

  PathfinderMake make_;
  std::filesystem::path root_, level_;
  PathfinderGenerator generator_;
};

}  // namespace

void make_pathfinder_files(const PathfinderSet& set, const PathfinderMake& make, const std::filesystem::path& data_root,
                           const PathfinderSay& say) {
  if (make.count < 1 || make.count > 10'000'000) throw Error("{}: count is {}; allowed: 1 to 10000000", set.task, make.count);
  if (make.seed < 0) throw Error("{}: seed is {}; allowed: 0 and more", set.task, make.seed);
  if (make.threads < 1 || make.threads > 1024) throw Error("{}: threads is {}; allowed: 1 to 1024", set.task, make.threads);
  const std::filesystem::path root = pathfinder_folder(set, data_root);
  const PathfinderMaker maker(set, make, root);
  maker.claim_folder();
  std::atomic<int64_t> next = 0, made = 0;
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      for (int64_t batch = next++; batch < maker.batches(); batch = next++) {
        if (!maker.make_batch(batch)) continue;
        ++made;
        const std::lock_guard lock(mutex);
        say(fmt::format("{}: batch {} of {}", set.task, batch + 1, maker.batches()));
      }
    } catch (...) {  // handed to the caller
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      next = maker.batches();
    }
  };
  std::vector<std::thread> threads;
  for (int64_t i = 1; i < make.threads; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
  say(fmt::format("{}: {} images in {} ({} of {} batches were there already)", set.task, make.count, root.string(), maker.batches() - made,
                  maker.batches()));
}

}  // namespace spt::formats
