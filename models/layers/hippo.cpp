#include "models/layers/hippo.h"

#include <torch/torch.h>

#include "harness/base/error.h"

namespace spt::models {
namespace {

/// -i (A + P P^T + I/2), Hermitian.
at::Tensor legs_hermitian(int64_t d_state) {
  SPT_CHECK(d_state >= 2 && d_state % 2 == 0, "{} states are no conjugate pairs", d_state);
  const at::Tensor n = torch::arange(d_state, torch::kFloat64);
  const at::Tensor B = torch::sqrt(2 * n + 1), P = torch::sqrt(n + 0.5);
  const at::Tensor S = torch::outer(P, P) - torch::outer(B, B).tril(-1) - torch::diag(n + 1);
  const at::Tensor minus_i = torch::complex(torch::zeros({}, torch::kFloat64), -torch::ones({}, torch::kFloat64));
  return S * minus_i;
}

}  // namespace

HippoLegs hippo_legs(int64_t d_state) {
  const at::Tensor n = torch::arange(d_state, torch::kFloat64), B = torch::sqrt(2 * n + 1);
  return {-torch::outer(B, B).tril(-1) - torch::diag(n + 1), B};
}

at::Tensor hippo_legs_frequencies(int64_t d_state) { return torch::linalg_eigvalsh(legs_hermitian(d_state)); }

HippoLegsNplr hippo_legs_nplr(int64_t d_state) {
  const auto [values, vectors] = torch::linalg_eigh(legs_hermitian(d_state));
  const at::Tensor P = torch::sqrt(torch::arange(d_state, torch::kFloat64) + 0.5).to(torch::kComplexDouble);
  const int64_t half = d_state / 2;
  const at::Tensor rotated = torch::matmul(vectors.narrow(1, 0, half).conj().transpose(0, 1), P), w_imag = values.narrow(0, 0, half);
  return {torch::complex(torch::full_like(w_imag, -0.5), w_imag), rotated.abs()};
}

}  // namespace spt::models
