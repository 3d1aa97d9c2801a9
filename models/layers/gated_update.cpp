#include "models/layers/gated_update.h"

#include <torch/torch.h>

#include <algorithm>

namespace spt::models {
namespace {

/// x, gate, a, b (rows, D).
class GatedUpdate : public torch::autograd::Function<GatedUpdate> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& gate, const at::Tensor& a,
                            const at::Tensor& b) {
    context->save_for_backward({x, gate, a, b});
    at::Tensor y = at::empty(x.sizes(), x.options());
    for_each_part(x, 2, [&](const Part& part, const std::vector<at::Tensor>& buffers) {
      at::Tensor share = buffers[0], h = buffers[1], to = part(y);
      at::sigmoid_out(share, part(gate));
      at::silu_(at::add_out(h, part(a), part(b)));
      at::lerp_out(to, part(x), h, share);
    });
    return y;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context, torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &gate = saved[1], &a = saved[2], &b = saved[3], g = gradients[0].contiguous();
    at::Tensor dx = at::empty(g.sizes(), g.options()), dgate = at::empty(g.sizes(), g.options()), da = at::empty(g.sizes(), g.options());
    for_each_part(x, 3, [&](const Part& part, const std::vector<at::Tensor>& buffers) {
      const at::Tensor gradient = part(g);
      at::Tensor share = buffers[0], sum = buffers[1], h = buffers[2], to_x = part(dx), to_gate = part(dgate), to_a = part(da);
      at::sigmoid_out(share, part(gate));
      at::add_out(sum, part(a), part(b));
      at::silu_out(h, sum);
      h.sub_(part(x)).mul_(gradient);  // of the share
      at::sigmoid_backward_out(to_gate, h, share);
      at::mul_out(h, gradient, share);  // of silu(a + b)
      at::sub_out(to_x, gradient, h);
      at::silu_backward_out(to_a, h, sum);
    });
    return {dx, dgate, da, da};
  }

 private:
  struct Part {
    int64_t first, rows;
    at::Tensor operator()(const at::Tensor& t) const { return t.narrow(0, first, rows); }
  };

  /// Calls use(part, buffers) for some rows after the other, each buffer of their size; for all at once on another device.
  template <class Use>
  static void for_each_part(const at::Tensor& x, size_t buffers, Use&& use) {
    constexpr int64_t kNumbers = int64_t{1} << 14;
    const int64_t rows = x.size(0), width = x.size(1);
    const int64_t most = x.is_cpu() ? std::clamp(kNumbers / width, int64_t{1}, std::max(rows, int64_t{1})) : rows;
    std::vector<at::Tensor> memory, part_memory(buffers);
    for (size_t i = 0; i < buffers; ++i) memory.push_back(at::empty({most, width}, x.options()));
    for (int64_t first = 0; first < rows; first += most) {
      const Part part{first, std::min(most, rows - first)};
      for (size_t i = 0; i < buffers; ++i) part_memory[i] = memory[i].narrow(0, 0, part.rows);
      use(part, part_memory);
    }
  }
};

}  // namespace

at::Tensor gated_update(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& a, const at::Tensor& b) {
  const int64_t D = x.size(-1);
  return GatedUpdate::apply(x.reshape({-1, D}), gate.reshape({-1, D}), a.reshape({-1, D}), b.reshape({-1, D})).view_as(x);
}

at::Tensor gated_update_naive(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& a, const at::Tensor& b) {
  return torch::lerp(x, torch::silu(a + b), torch::sigmoid(gate));
}

}  // namespace spt::models
