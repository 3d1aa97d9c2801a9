#include "protocols/masking.h"

#include <torch/torch.h>

#include "harness/base/error.h"

namespace spt::protocols {

at::Tensor draw_mask(const at::Tensor& lengths, const at::Tensor& example_ids, std::span<const uint64_t> epochs, const Stream& mask,
                     double ratio, int64_t rows, int64_t length) {
  const int64_t B = example_ids.size(0);
  SPT_CHECK(B > 0 && rows % B == 0 && static_cast<int64_t>(epochs.size()) == B, "{} rows, {} examples, {} epochs", rows, B, epochs.size());
  const at::Tensor hidden = torch::zeros({rows, length}, torch::kBool);
  auto out = hidden.accessor<bool, 2>();
  const auto ids = example_ids.accessor<int64_t, 1>();
  for (int64_t r = 0; r < rows; ++r) {
    const uint64_t document = static_cast<uint64_t>(r / B);
    SplitMix64 draw = mask.generator(epochs[r % B], static_cast<uint64_t>(ids[r % B]) | (document << 62));
    const int64_t real = lengths.defined() ? lengths.const_data_ptr<int64_t>()[r] : length;
    for (int64_t l = 0; l < real; ++l) out[r][l] = draw.uniform() < ratio;
  }
  return hidden;
}

at::Tensor hide_tokens(const at::Tensor& tokens, const at::Tensor& mask) { return tokens.masked_fill(mask, kMaskToken); }

at::Tensor hide_values(const at::Tensor& values, const at::Tensor& mask) {
  const at::Tensor indicator = mask.unsqueeze(-1);
  return torch::cat({values.masked_fill(indicator, 0), indicator.to(values.scalar_type())}, -1);
}

at::Tensor grey_levels(const at::Tensor& values) {
  return ((values.to(torch::kFloat64) * 0.5 + 0.5) * 255.0).round().clamp(0, 255).to(torch::kInt64);
}

}  // namespace spt::protocols
