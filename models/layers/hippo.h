#pragma once

#include <ATen/core/Tensor.h>

namespace spt::models {

/// HiPPO-LegS in closed form, float64: x' = A x + B u.
///
/// A[n, k] = -sqrt((2n+1)(2k+1)) for n > k, -(n+1) for n = k, 0 above (N, N); B[n] = sqrt(2n+1) (N).
/// Source: arXiv:2008.07669 eq. (29); arXiv:2111.00396 eq. (2).
struct HippoLegs {
  at::Tensor A, B;
};
HippoLegs hippo_legs(int64_t d_state);

/// Imaginary eigenvalues of S = A + P P^T, P[n] = sqrt(n + 1/2), whose real parts are all -1/2: (N) ascending, in pairs of either sign.
at::Tensor hippo_legs_frequencies(int64_t d_state);

/// A = V (diag(w) - P P*) V*, unitary V: one representative of each conjugate pair, imaginary part ascending and negative.
///
/// Eigenvectors have no phase of their own; theirs makes P real and positive, so the answer does not hang on the linear algebra library.
/// B = sqrt(2) P in these coordinates. Shapes: w (N/2) complex128, P (N/2) float64. Source: arXiv:2111.00396 theorem 1, appendix C.4.
struct HippoLegsNplr {
  at::Tensor w, P;
};
HippoLegsNplr hippo_legs_nplr(int64_t d_state);

}  // namespace spt::models
