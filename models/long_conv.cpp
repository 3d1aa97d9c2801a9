#include <torch/torch.h>

#include <algorithm>

#include "models/layers/ssm_layer.h"

namespace spt::models {
namespace {

constexpr double kRandomTap = 0.002, kGeometricTap = 0.02;  // published

struct LongConvOptions : SsmOptions {
  double squash = 0.001;
  std::string init = "geometric";

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    visit_shared(self, visit);
    visit("squash", self.squash, OptionInfo{.effect = "soft threshold of the taps: smaller ones count as 0", .min = 0});
    visit("init", self.init,
          OptionInfo{.effect = "initial taps: normal(0, 0.002), or normal(0, 0.02) that decays faster in later channels",
                     .choices = {"geometric", "random"}});
  }
};

LongConvOptions long_conv_options(const OptionMap& given) { return read_options<LongConvOptions>(given, "architecture 'long-conv'"); }

/// Taps a direction of a body for this input: l_max, but no more than there are positions.
int64_t long_conv_taps(const LongConvOptions& options, const InputSpec& input) {
  if (input.max_length > 0) return options.taps(input.max_length);
  if (options.l_max == 0) throw Error("architecture 'long-conv' needs the longest length of the task's rows, or l_max");
  return options.l_max;
}

/// A kernel of free taps: k = sign(w) max(|w| - squash, 0).
///
/// Shapes: kernel w (directions, D, taps), D (1, D).
/// Random: taps as option init says; geometric: w_j of channel d times exp(-j / taps (D / 2)^(d / D)).
/// Source: arXiv:2302.06646 section 3 (published code: src/models/sequence/long_conv_kernel.py, double_exp)
class FreeKernel : public StateSpace {
 public:
  FreeKernel(const LongConvOptions& o, int64_t taps) : StateSpace(o), squash_(o.squash), geometric_(o.init == "geometric") {
    kernel_ = register_parameter("kernel", torch::empty({o.directions(), o.d_model, taps}));
    register_skip();
  }
  at::Tensor kernel(int64_t length) override {
    return torch::softshrink(kernel_.narrow(-1, 0, std::min(kernel_.size(-1), length)), squash_);
  }
  void reset_parameters(const Stream& init, const std::string& prefix) override {
    const torch::NoGradGuard no_grad;
    draw_normal(kernel_, init, prefix + "kernel", geometric_ ? kGeometricTap : kRandomTap);
    if (geometric_) kernel_.mul_(decay().to(kernel_.options()));
    reset_skip(init, prefix);
  }
  ParameterRole role(const std::string& name) const override { return name == "kernel" ? ParameterRole::kStateW : ParameterRole::kStateD; }

 private:
  at::Tensor decay() const {
    const int64_t width = kernel_.size(1), taps = kernel_.size(2);
    const at::Tensor channel = torch::arange(width, torch::kFloat64) / static_cast<double>(width);
    const at::Tensor lag = torch::arange(taps, torch::kFloat64) / static_cast<double>(taps);
    return torch::exp(-torch::outer(torch::pow(static_cast<double>(width) / 2, channel), lag));  // (D, taps)
  }

  double squash_;
  bool geometric_;
  at::Tensor kernel_;
};

OptionMap long_conv_size(int64_t n_layers, int64_t d_model, int64_t l_max) {
  return {{"n_layers", n_layers}, {"d_model", d_model}, {"l_max", l_max}};
}

}  // namespace

Architecture long_conv() {
  return {
      .name = "long-conv",
      .version = 1,
      .summary = "Unrestricted long convolution: every tap of every channel is a parameter; bidirectional or causal",
      .source = "arXiv:2302.06646 section 3: squashed free kernels by FFT",
      .options = schema_of<LongConvOptions>(),
      .causal = {{"bidirectional", false}},
      .sizes = {{"100K", long_conv_size(2, 24, 1024)},
                {"300K", long_conv_size(3, 48, 1024)},
                {"1M", long_conv_size(4, 112, 1024)},
                {"3M", long_conv_size(6, 204, 1024)},
                {"10M", long_conv_size(6, 532, 1024)}},
      .validate = [](const OptionMap& options) { long_conv_options(options); },
      .width = [](const OptionMap& options) { return long_conv_options(options).d_model; },
      .build_body = [](const OptionMap& given, const InputSpec& input, double dropout) -> std::shared_ptr<Body> {
        const LongConvOptions options = long_conv_options(given);
        const int64_t taps = long_conv_taps(options, input);
        return make_ssm_body(options, dropout, [&] { return std::make_shared<FreeKernel>(options, taps); });
      },
      .body_flops = [](const OptionMap& given, int64_t length) { return ssm_body_flops(long_conv_options(given), length, 0); },
      .build_model = {},
      .model_flops = {},
  };
}

}  // namespace spt::models
