#include <torch/torch.h>

#include <cmath>

#include "models/layers/mimo.h"
#include "models/layers/stack.h"

namespace spt::models {
namespace {

constexpr double kLargestReal = -1e-4;  // of clip_eigs

struct S5Options : StackOptions {
  int64_t d_state = 64;
  int64_t blocks = 1;
  bool conj_sym = true;
  bool bidirectional = true;
  bool clip_eigs = false;
  std::string discretization = "zoh";
  std::string activation = "half-glu";
  double dt_min = 0.001;
  double dt_max = 0.1;

  int64_t directions() const { return bidirectional ? 2 : 1; }
  int64_t stored() const { return conj_sym ? d_state / 2 : d_state; }
  bool half_gate() const { return activation == "half-glu"; }

  template <class Self, class Visitor>
  static void visit(Self& self, Visitor&& visit) {
    StackOptions::visit_size(self, visit);
    visit("d_state", self.d_state, OptionInfo{.effect = "states P of a layer", .min = 1});
    visit("blocks", self.blocks, OptionInfo{.effect = "diagonal blocks J of the initial HiPPO matrix; must divide d_state", .min = 1});
    visit("conj_sym", self.conj_sym, OptionInfo{.effect = "states come in conjugate pairs, of which one is kept; P / J is even then"});
    visit("bidirectional", self.bidirectional, OptionInfo{.effect = "the same recurrence runs backwards too, with a read-out of its own"});
    visit("clip_eigs", self.clip_eigs, OptionInfo{.effect = "keeps the real parts of the eigenvalues at or below -1e-4"});
    visit("discretization", self.discretization, OptionInfo{.effect = "from continuous to discrete time", .choices = {"zoh", "bilinear"}});
    visit("activation", self.activation,
          OptionInfo{.effect = "gate after GELU: v sigma(W v), or GLU with twice the weights", .choices = {"half-glu", "glu"}});
    visit("dt_min", self.dt_min, OptionInfo{.effect = "smallest initial step", .min = 1e-9, .unit = "positions"});
    visit("dt_max", self.dt_max, OptionInfo{.effect = "largest initial step", .min = 1e-9, .unit = "positions"});
    StackOptions::visit_norm(self, visit);
  }
};

S5Options s5_options(const OptionMap& given) {
  const auto options = read_options<S5Options>(given, "architecture 's5'");
  if (options.d_state % options.blocks != 0)
    throw Error("architecture 's5': blocks = {} does not divide d_state = {}", options.blocks, options.d_state);
  if (options.conj_sym && options.d_state / options.blocks % 2 != 0)
    throw Error("architecture 's5': d_state / blocks = {} / {} is odd; conj_sym needs pairs", options.d_state, options.blocks);
  if (options.dt_min > options.dt_max) throw Error("architecture 's5': dt_min = {} is above dt_max = {}", options.dt_min, options.dt_max);
  return options;
}

/// Eigenvalues (ascending imaginary parts) and eigenvectors, the columns of V, of the normal part of HiPPO-LegS: A + P P^T = -1/2 + skew.
/// LAPACK leaves the phase of an eigenvector open; here its first element is positive.
std::pair<at::Tensor, at::Tensor> s5_hippo_eigen(int64_t size) {
  const at::Tensor n = torch::arange(size, torch::kFloat64), root = torch::sqrt(2 * n + 1);
  const at::Tensor half = torch::outer(root, root) / 2, skew = half.triu(1) - half.tril(-1);
  const at::Tensor minus_i = torch::complex(torch::zeros({}, torch::kFloat64), -torch::ones({}, torch::kFloat64));
  const auto [imaginary, vectors] = torch::linalg_eigh(skew * minus_i);
  const at::Tensor first = vectors[0];
  return {torch::complex(torch::full_like(imaginary, -0.5), imaginary), vectors * (first.conj() / first.abs())};
}

/// The kept eigenvalues of all blocks (M), and the kept columns of the block-diagonal V (P, M).
std::pair<at::Tensor, at::Tensor> s5_initial_state(const S5Options& o) {
  const int64_t size = o.d_state / o.blocks, kept = o.conj_sym ? size / 2 : size;
  const auto [values, vectors] = s5_hippo_eigen(size);
  const std::vector<at::Tensor> blocks(static_cast<size_t>(o.blocks), vectors.narrow(1, 0, kept).contiguous());
  return {values.narrow(0, 0, kept).repeat({o.blocks}), torch::block_diag(blocks)};
}

/// x' = Lambda x + B u in continuous time, discretised by a step a state, y = 2 Re(C x) + D u (Re(C x) without conj_sym).
///
/// zoh: a = exp(Lambda dt), Bbar = (a - 1) / Lambda B; bilinear: a = (1 + Lambda dt / 2) / (1 - Lambda dt / 2), Bbar = dt B / (1 - Lambda
/// dt / 2). Shapes: u (B, L, D) -> (B, L, D); lambda_real, lambda_imag, log_dt (M), B (M, D, 2), C (directions, D, M, 2), D (1, D); M = P /
/// 2 or P. Random: Lambda = eigenvalues of J blocks of the normal part of HiPPO-LegS, V its eigenvectors; B = V* G with G (P, D) real, N(0,
/// 1 / D); C = G V with G (D, P) complex, N(0, 1 / P) each part; log_dt uniform in log [dt_min, dt_max]; D ~ N(0, 1). Source:
/// arXiv:2208.04933 sections 3, 4, appendix B (published code: s5/ssm.py)
class S5StateSpace : public Layer {
 public:
  explicit S5StateSpace(const S5Options& o) : options_(o) {
    lambda_real_ = register_parameter("lambda_real", torch::empty({o.stored()}));
    lambda_imag_ = register_parameter("lambda_imag", torch::empty({o.stored()}));
    log_dt_ = register_parameter("log_dt", torch::empty({o.stored()}));
    B_ = register_parameter("B", torch::empty({o.stored(), o.d_model, 2}));
    C_ = register_parameter("C", torch::empty({o.directions(), o.d_model, o.stored(), 2}));
    D_ = register_parameter("D", torch::empty({1, o.d_model}));
  }
  at::Tensor forward(const at::Tensor& u) const {
    const at::Tensor real = options_.clip_eigs ? lambda_real_.clamp_max(kLargestReal) : lambda_real_;
    const at::Tensor lambda = torch::complex(real, lambda_imag_), dt = torch::exp(log_dt_), half = lambda * dt / 2;
    const bool zoh = options_.discretization == "zoh";
    const at::Tensor a = zoh ? torch::exp(lambda * dt) : (1 + half) / (1 - half);
    const at::Tensor gain = zoh ? (a - 1) / lambda : dt / (1 - half);
    const at::Tensor B = gain.unsqueeze(-1) * torch::view_as_complex(B_);
    return mimo_forward({torch::stack({torch::real(a), torch::imag(a)}), torch::cat({torch::real(B), torch::imag(B)}), C_, D_,
                         options_.conj_sym ? 2.0 : 1.0},
                        u);
  }
  void reset_parameters(const Stream& init, const std::string& prefix) override {
    const torch::NoGradGuard no_grad;
    const S5Options& o = options_;
    const auto [lambda, V] = s5_initial_state(o);
    lambda_real_.copy_(torch::real(lambda));
    lambda_imag_.copy_(torch::imag(lambda));
    draw_uniform(log_dt_, init, prefix + "log_dt", std::log(o.dt_min), std::log(o.dt_max));
    const at::Tensor in = torch::empty({o.d_state, o.d_model}, torch::kFloat64),
                     out = torch::empty({o.directions(), o.d_model, o.d_state, 2}, torch::kFloat64);
    draw_normal(in, init, prefix + "B", std::sqrt(1 / static_cast<double>(o.d_model)));
    draw_normal(out, init, prefix + "C", std::sqrt(1 / static_cast<double>(o.d_state)));
    B_.copy_(torch::view_as_real(torch::matmul(V.conj().transpose(0, 1), in.to(torch::kComplexDouble)).resolve_conj()));
    C_.copy_(torch::view_as_real(torch::matmul(torch::view_as_complex(out), V)));
    draw_normal(D_, init, prefix + "D", 1.0);
  }
  ParameterRole role(const std::string& name) const override {
    static const std::map<std::string, ParameterRole> kRoles = {
        {"lambda_real", ParameterRole::kStateA}, {"lambda_imag", ParameterRole::kStateA}, {"log_dt", ParameterRole::kStateDt},
        {"B", ParameterRole::kStateB},           {"C", ParameterRole::kStateC},           {"D", ParameterRole::kStateD}};
    return kRoles.at(name);
  }

 private:
  S5Options options_;
  at::Tensor lambda_real_, lambda_imag_, log_dt_, B_, C_, D_;
};

class S5Block : public GatedBlock {
 public:
  S5Block(const S5Options& o, double dropout) : GatedBlock(o, dropout, o.half_gate()) {
    ssm_ = register_module("ssm", std::make_shared<S5StateSpace>(o));
  }

 protected:
  at::Tensor sequence_map(const at::Tensor& u) override { return ssm_->forward(u); }

 private:
  std::shared_ptr<S5StateSpace> ssm_;
};

Flops s5_flops(const OptionMap& given, int64_t length) {
  const S5Options o = s5_options(given);
  const double layer =
      mimo_flops(length, o.d_model, o.stored(), o.directions()) + static_cast<double>(length) * gate_flops(o.d_model, o.half_gate());
  return {0, static_cast<double>(o.n_layers) * layer};
}

OptionMap s5_size(int64_t n_layers, int64_t d_model, int64_t d_state) {
  return {{"n_layers", n_layers}, {"d_model", d_model}, {"d_state", d_state}};
}

}  // namespace

Architecture s5() {
  return {
      .name = "s5",
      .version = 1,
      .summary = "Simplified state space layer: one diagonal state space of all channels, computed by a scan; bidirectional or causal",
      .source = "arXiv:2208.04933 sections 3 and 4, appendix B",
      .options = schema_of<S5Options>(),
      .causal = {{"bidirectional", false}},
      .sizes = {{"100K", s5_size(4, 88, 64)},
                {"300K", s5_size(6, 144, 64)},
                {"1M", s5_size(6, 256, 128)},
                {"3M", s5_size(6, 416, 256)},
                {"10M", s5_size(6, 960, 256)}},
      .validate = [](const OptionMap& options) { s5_options(options); },
      .width = [](const OptionMap& options) { return s5_options(options).d_model; },
      .build_body = [](const OptionMap& options, const InputSpec&, double dropout) -> std::shared_ptr<Body> {
        return make_stack<S5Block>(s5_options(options), dropout);
      },
      .body_flops = s5_flops,
      .build_model = {},
      .model_flops = {},
  };
}

}  // namespace spt::models
