#include "tasks/z_score.h"

#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "harness/base/error.h"

namespace spt::tasks {
namespace {

struct ChannelMoments {
  std::vector<double> mean, std;
  int64_t examples = 0;
};

/// Calls `visit(value, channel)` for the values of every real position of a batch.
template <class Visit>
void visit_values(const Batch& batch, int64_t channels, Visit&& visit) {
  SPT_CHECK(batch.values.defined() && batch.values.is_contiguous() && batch.values.scalar_type() == torch::kFloat32,
            "z_score is for values");
  const int64_t length = batch.values.size(1), width = batch.values.size(2);
  SPT_CHECK(width % channels == 0, "steps of {} values of {} channels", width, channels);
  auto* values = batch.values.data_ptr<float>();
  const auto* lengths = batch.lengths.data_ptr<int64_t>();
  for (int64_t b = 0; b < batch.values.size(0); ++b) {
    float* row = values + b * length * width;
    for (int64_t i = 0, c = 0; i < lengths[b] * width; ++i) {
      visit(row[i], static_cast<size_t>(c));
      c = c + 1 == channels ? 0 : c + 1;
    }
  }
}

ChannelMoments channel_moments(const Dataset& data, int64_t channels, int64_t examples) {
  constexpr int64_t kAtOnce = 64;
  std::vector<double> sums(static_cast<size_t>(channels)), squares(sums.size());
  std::vector<int64_t> counts(sums.size());
  for (int64_t first = 0; first < examples; first += kAtOnce) {
    std::vector<int64_t> indices;
    for (int64_t i = first; i < std::min(first + kAtOnce, examples); ++i) indices.push_back(i * data.size() / examples);
    visit_values(data.batch(indices), channels, [&](float value, size_t c) {
      sums[c] += value;
      squares[c] += static_cast<double>(value) * value;
      ++counts[c];
    });
  }
  ChannelMoments moments{.mean = {}, .std = {}, .examples = examples};
  for (size_t c = 0; c < sums.size(); ++c) {
    const auto n = static_cast<double>(counts[c]);
    const double mean = sums[c] / n, variance = squares[c] / n - mean * mean;
    if (!(variance > 0)) throw DataError("z_score: channel {} of train has the value {} only", c, mean);
    moments.mean.push_back(mean);
    moments.std.push_back(std::sqrt(variance));
  }
  return moments;
}

class ZScored : public Dataset {
 public:
  ZScored(std::shared_ptr<const Dataset> data, std::shared_ptr<const ChannelMoments> moments)
      : data_(std::move(data)), moments_(std::move(moments)) {}
  int64_t size() const override { return data_->size(); }
  int64_t length(int64_t index) const override { return data_->length(index); }
  int64_t label(int64_t index) const override { return data_->label(index); }
  int64_t cluster(int64_t index) const override { return data_->cluster(index); }
  Batch batch(std::span<const int64_t> indices) const override {
    Batch batch = data_->batch(indices);
    visit_values(batch, static_cast<int64_t>(moments_->mean.size()),
                 [this](float& value, size_t c) { value = static_cast<float>((value - moments_->mean[c]) / moments_->std[c]); });
    return batch;
  }

 private:
  std::shared_ptr<const Dataset> data_;
  std::shared_ptr<const ChannelMoments> moments_;
};

}  // namespace

OptionInfo z_score_info() {
  return {
      .effect =
          "values get mean 0 and standard deviation 1, channel by channel, by the statistics of the train split (recorded in the notes)"};
}

void z_score(OpenedTask& opened, int64_t channels, int64_t most_values) {
  const Dataset& train = *opened.unlabelled_train;
  const int64_t most = most_values / (opened.facts.max_length * opened.facts.channels);
  const auto moments = std::make_shared<const ChannelMoments>(channel_moments(train, channels, std::clamp<int64_t>(most, 1, train.size())));
  const bool whole = opened.train == opened.unlabelled_train;
  for (std::shared_ptr<const Dataset>* split : {&opened.unlabelled_train, &opened.train, &opened.validation, &opened.test})
    *split = std::make_shared<const ZScored>(*split, moments);
  if (whole) opened.train = opened.unlabelled_train;
  std::string text;
  for (size_t c = 0; c < moments->mean.size(); ++c)
    text += fmt::format("{}{:.9g}, {:.9g}", c == 0 ? "" : "; ", moments->mean[c], moments->std[c]);
  opened.notes.push_back(fmt::format("z_score: mean and standard deviation of the channels over {} of {} train examples: {}",
                                     moments->examples, train.size(), text));
}

}  // namespace spt::tasks
