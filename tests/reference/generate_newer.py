"""Reference cases of lstm, long-conv, lru, mamba and s5, from their papers' equations alone.

usage: python generate_newer.py [FOLDER]     (default: cases/ beside this file; needs torch, nothing of this project)

Plain loops over positions in float64; gradients by automatic differentiation. Every function maps x (B, L, D) to y (B, L, D), real (B, L)
tells real positions from pads. Weights are drawn at random, so a case says nothing about how a network starts.
"""
import json
import math
import pathlib
import struct
import sys

import torch
from torch.nn.functional import gelu, silu, softplus


def layer_norm(x, w, name):
    x = x - x.mean(-1, keepdim=True)
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w[name + ".weight"] + w[name + ".bias"]


def rms_norm(x, w, name):
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w[name + ".weight"]


def stack(options, w, x, block):
    """Residual blocks; block(u, prefix) is the branch."""
    norm = rms_norm if options["norm"] == "rms" else layer_norm
    for i in range(options["n_layers"]):
        p = f"layers.{i}."
        if options["norm_position"] == "pre":
            x = x + block(norm(x, w, p + "norm"), p)
        else:
            x = norm(x + block(x, p), w, p + "norm")
    return norm(x, w, "final_norm") if options["norm_position"] == "pre" else x


def gate(w, p, s, half=False):
    v = gelu(s)
    o = v @ w[p + "output.weight"].T + w[p + "output.bias"]
    if half:
        return v * torch.sigmoid(o)
    a, b = o.chunk(2, -1)
    return a * torch.sigmoid(b)


def complex_of(pair):
    return torch.complex(pair[..., 0], pair[..., 1])


def lstm(options, w, x, real):
    """i, f, o = sigma(..), g = tanh(..), c = f c + i g, h = o tanh c; backwards from the last real position; 0 at pads."""
    for i in range(options["n_layers"]):
        ways = []
        for suffix in [f"l{i}", f"l{i}_reverse"][: 1 + options["bidirectional"]]:
            rows = []
            for row in range(x.shape[0]):
                n = int(real[row].sum())
                h = c = torch.zeros(w["rnn.weight_hh_" + suffix].shape[1], dtype=torch.float64)
                out = [torch.zeros_like(h)] * x.shape[1]
                for t in reversed(range(n)) if "reverse" in suffix else range(x.shape[1] if not options["bidirectional"] else n):
                    z = (w["rnn.weight_ih_" + suffix] @ x[row, t] + w["rnn.bias_ih_" + suffix]
                         + w["rnn.weight_hh_" + suffix] @ h + w["rnn.bias_hh_" + suffix])
                    zi, zf, zg, zo = z.chunk(4)
                    c = torch.sigmoid(zf) * c + torch.sigmoid(zi) * torch.tanh(zg)
                    h = torch.sigmoid(zo) * torch.tanh(c)
                    out[t] = h
                rows.append(torch.stack(out))
            ways.append(torch.stack(rows))
        x = torch.cat(ways, -1)
    return x


def long_conv(options, w, x, real):
    """y_t = sum_j k0_j u_{t-j} + sum_j k1_j u_{t+1+j} + D u_t with k = sign(w) max(|w| - squash, 0)."""
    def block(u, p):
        u = u * real[..., None]
        k = w[p + "ssm.kernel"]
        k = torch.sign(k) * torch.clamp(k.abs() - options["squash"], min=0)
        y, L = [], u.shape[1]
        for t in range(L):
            s = w[p + "ssm.D"][0] * u[:, t]
            for j in range(k.shape[2]):
                if t - j >= 0:
                    s = s + k[0, :, j] * u[:, t - j]
                if options["bidirectional"] and t + 1 + j < L:
                    s = s + k[1, :, j] * u[:, t + 1 + j]
            y.append(s)
        return gate(w, p, torch.stack(y, 1))
    return stack(options, w, x, block)


def recurrence(a, B, C, u):
    """x_t = a x_{t-1} + B u_t, Re(C x_t); for the second C from the end."""
    total = 0
    for direction in range(C.shape[0]):
        s = torch.zeros(u.shape[0], len(a), dtype=torch.complex128)
        out = [None] * u.shape[1]
        for t in range(u.shape[1]) if direction == 0 else reversed(range(u.shape[1])):
            s = a * s + u[:, t].to(torch.complex128) @ B.T
            out[t] = (s @ C[direction].T).real
        total = total + torch.stack(out, 1)
    return total


def lru(options, w, x, real):
    def block(u, p):
        u = u * real[..., None]
        p += "ssm."
        a = torch.exp(torch.complex(-torch.exp(w[p + "nu_log"]), torch.exp(w[p + "theta_log"])))
        B = torch.exp(w[p + "gamma_log"])[:, None] * complex_of(w[p + "B"])
        return gate(w, p[:-4], recurrence(a, B, complex_of(w[p + "C"]), u) + w[p + "D"] * u)
    return stack(options, w, x, block)


def s5(options, w, x, real):
    def block(u, p):
        u = u * real[..., None]
        p += "ssm."
        re = w[p + "lambda_real"]
        lam = torch.complex(torch.clamp(re, max=-1e-4) if options["clip_eigs"] else re, w[p + "lambda_imag"])
        dt = torch.exp(w[p + "log_dt"])
        if options["discretization"] == "zoh":
            a, b = torch.exp(lam * dt), (torch.exp(lam * dt) - 1) / lam
        else:
            a, b = (1 + dt / 2 * lam) / (1 - dt / 2 * lam), dt / (1 - dt / 2 * lam)
        y = recurrence(a, b[:, None] * complex_of(w[p + "B"]), complex_of(w[p + "C"]), u)
        y = (2 if options["conj_sym"] else 1) * y + w[p + "D"] * u
        return gate(w, p[:-4], y, options["activation"] == "half-glu")
    return stack(options, w, x, block)


def mamba(options, w, x, real):
    """Algorithm 2 (S6) inside the block of section 3.4; nothing looks ahead, so pads need no care."""
    rank, N, K = options["dt_rank"], options["d_state"], options["d_conv"]

    def block(u, p):
        v, z = (u @ w[p + "in_proj.weight"].T).chunk(2, -1)
        L, E = v.shape[1], v.shape[2]
        v = torch.cat([torch.zeros(v.shape[0], K - 1, E, dtype=torch.float64), v], 1)
        v = silu(sum(v[:, k:k + L] * w[p + "conv.weight"][:, 0, k] for k in range(K)) + w[p + "conv.bias"])
        r, B, C = (v @ w[p + "x_proj.weight"].T).split([rank, N, N], -1)
        dt = softplus(r @ w[p + "dt_proj.weight"].T + w[p + "dt_proj.bias"])
        A = -torch.exp(w[p + "A_log"])
        h, y = torch.zeros(v.shape[0], E, N, dtype=torch.float64), []
        for t in range(L):
            h = torch.exp(dt[:, t, :, None] * A) * h + dt[:, t, :, None] * B[:, t, None, :] * v[:, t, :, None]
            y.append((h * C[:, t, None, :]).sum(-1) + w[p + "D"] * v[:, t])
        return (torch.stack(y, 1) * silu(z)) @ w[p + "out_proj.weight"].T
    return stack(options, w, x, block)


STACK = {"n_layers": 2, "d_model": 4, "norm": "layer", "norm_position": "pre"}


def stack_weights(o, layer):
    """Shapes of a stack whose layers have the weights `layer`: name -> (shape, mean, deviation)."""
    D, norm = o["d_model"], {"weight": ((o["d_model"],), 1, 0.2)}
    if o["norm"] != "rms":
        norm["bias"] = ((D,), 0, 0.2)
    named = {f"layers.{i}.{n}": s for i in range(o["n_layers"]) for n, s in {**layer, **{"norm." + n: s for n, s in norm.items()}}.items()}
    return {**named, **({"final_norm." + n: s for n, s in norm.items()} if o["norm_position"] == "pre" else {})}


def gate_weights(D, half=False):
    return {"output.weight": ((D if half else 2 * D, D), 0, 0.5), "output.bias": ((D if half else 2 * D,), 0, 0.2)}


def lstm_case(**given):
    o = {"n_layers": 2, "d_model": 4, "bidirectional": True, **given}
    D, ways = o["d_model"], 1 + o["bidirectional"]
    H, w = D // ways, {}
    for i in range(o["n_layers"]):
        for suffix in [f"l{i}", f"l{i}_reverse"][:ways]:
            for n, shape in [("weight_ih_", (4 * H, D)), ("weight_hh_", (4 * H, H)), ("bias_ih_", (4 * H,)), ("bias_hh_", (4 * H,))]:
                w["rnn." + n + suffix] = (shape, 0, 0.7)
    return o, w


def long_conv_case(**given):
    o = {**STACK, "l_max": 7, "bidirectional": True, "squash": 0.1, "init": "geometric", **given}
    D = o["d_model"]
    layer = {"ssm.kernel": ((1 + o["bidirectional"], D, o["l_max"]), 0, 0.5), "ssm.D": ((1, D), 0, 1), **gate_weights(D)}
    return o, stack_weights(o, layer)


def lru_case(**given):
    o = {**STACK, "d_state": 3, "bidirectional": True, "r_min": 0.5, "r_max": 0.9, "max_phase": 3.0, **given}
    D, N = o["d_model"], o["d_state"]
    layer = {"ssm.nu_log": ((N,), -1.5, 0.5), "ssm.theta_log": ((N,), 0, 0.7), "ssm.gamma_log": ((N,), -0.5, 0.3),
             "ssm.B": ((N, D, 2), 0, 0.5), "ssm.C": ((1 + o["bidirectional"], D, N, 2), 0, 0.5), "ssm.D": ((1, D), 0, 1), **gate_weights(D)}
    return o, stack_weights(o, layer)


def s5_case(**given):
    o = {**STACK, "d_state": 6, "blocks": 1, "conj_sym": True, "bidirectional": True, "clip_eigs": False, "discretization": "zoh",
         "activation": "half-glu", "dt_min": 0.001, "dt_max": 0.1, **given}
    D, M = o["d_model"], o["d_state"] // (2 if o["conj_sym"] else 1)
    layer = {"ssm.lambda_real": ((M,), 0 if o["clip_eigs"] else -0.5, 0.15), "ssm.lambda_imag": ((M,), 0, 3), "ssm.log_dt": ((M,), -1.5, 0.5),
             "ssm.B": ((M, D, 2), 0, 0.7), "ssm.C": ((1 + o["bidirectional"], D, M, 2), 0, 0.7), "ssm.D": ((1, D), 0, 1),
             **gate_weights(D, o["activation"] == "half-glu")}
    return o, stack_weights(o, layer)


def mamba_case(**given):
    o = {**STACK, "norm": "rms", "d_state": 3, "d_conv": 4, "expand": 2, "dt_rank": 2, "dt_min": 0.001, "dt_max": 0.1, "causal": True, **given}
    D, N, R, E = o["d_model"], o["d_state"], o["dt_rank"], o["expand"] * o["d_model"]
    layer = {"in_proj.weight": ((2 * E, D), 0, 0.5), "conv.weight": ((E, 1, o["d_conv"]), 0, 0.5), "conv.bias": ((E,), 0, 0.3),
             "x_proj.weight": ((R + 2 * N, E), 0, 0.4), "dt_proj.weight": ((E, R), 0, 0.5), "dt_proj.bias": ((E,), -1, 0.5),
             "A_log": ((E, N), 0, 0.5), "D": ((E,), 1, 0.3), "out_proj.weight": ((D, E), 0, 0.4)}
    return o, stack_weights(o, layer)


# name -> (subject, function, (options, weights), source)
CASES = {
    "lstm_bidirectional": ("lstm", lstm, lstm_case(), "doi:10.1162/neco.1997.9.8.1735 with forget gates, gates in LibTorch's order"),
    "lstm_causal": ("lstm", lstm, lstm_case(n_layers=1, bidirectional=False), "doi:10.1162/neco.1997.9.8.1735 with forget gates"),
    "long_conv_bidirectional": ("long-conv", long_conv, long_conv_case(), "arXiv:2302.06646 section 3"),
    "long_conv_causal_post": ("long-conv", long_conv, long_conv_case(bidirectional=False, norm_position="post", l_max=5, squash=0.0),
                              "arXiv:2302.06646 section 3"),
    "lru_bidirectional": ("lru", lru, lru_case(), "arXiv:2303.06349 section 3"),
    "lru_causal_post": ("lru", lru, lru_case(bidirectional=False, norm_position="post"), "arXiv:2303.06349 section 3"),
    "mamba": ("mamba", mamba, mamba_case(), "arXiv:2312.00752 section 3, algorithm 2"),
    "mamba_layer_norm_post": ("mamba", mamba, mamba_case(norm="layer", norm_position="post", d_conv=2, expand=1, dt_rank=1, n_layers=1),
                              "arXiv:2312.00752 section 3, algorithm 2"),
    "s5_bidirectional": ("s5", s5, s5_case(), "arXiv:2208.04933 sections 3 and 4"),
    "s5_causal_bilinear": ("s5", s5, s5_case(bidirectional=False, discretization="bilinear", activation="glu", clip_eigs=True, n_layers=1),
                           "arXiv:2208.04933 sections 3 and 4"),
    "s5_no_conj_sym": ("s5", s5, s5_case(conj_sym=False, d_state=3, norm_position="post", n_layers=1), "arXiv:2208.04933 sections 3 and 4"),
}


def save(path, tensors):
    header, blobs, at = {}, [], 0
    for name, t in tensors.items():
        blob = t.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": "F64" if t.dtype == torch.float64 else "I64", "shape": list(t.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def write_case(folder, name, subject, function, case, source):
    options, shapes = case
    draw = torch.Generator().manual_seed(sum(map(ord, name)))
    normal = lambda shape: torch.randn(shape, generator=draw, dtype=torch.float64)
    B, L = 3, 7
    w = {n: (mean + std * normal(shape)).requires_grad_() for n, (shape, mean, std) in shapes.items()}
    x, lengths = normal((B, L, options["d_model"])).requires_grad_(), torch.tensor([L, 4, 1])
    real = (torch.arange(L) < lengths[:, None]).to(torch.float64)
    y = function(options, w, x, real)
    cotangent = normal(y.shape)
    loss = (y * cotangent).sum()
    loss.backward()
    assert all(math.isfinite(t.grad.abs().sum()) for t in [x, *w.values()])
    tensors = {"input.x": x, "input.lengths": lengths, "input.cotangent": cotangent, "output.y": y, "loss": loss, "grad.input.x": x.grad}
    tensors |= {"weight." + n: t for n, t in w.items()} | {"grad." + n: t.grad for n, t in w.items()}
    (folder / name).mkdir(parents=True, exist_ok=True)
    save(folder / name / "case.safetensors", tensors)
    text = {"case": name, "set": "newer", "kind": "architecture", "subject": subject, "options": options, "dtype": "float64", "profile": "both",
            "inputs": ["x", "lengths"], "outputs": ["y"], "tolerance": {"output": 1e-9, "gradient": 1e-9}, "source": source,
            "notes": "Written by tests/reference/generate_newer.py. Pads are masked."}
    (folder / name / "case.json").write_text(json.dumps(text, indent=1) + "\n")


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "cases"
    for case_name, (subject, function, case, source) in CASES.items():
        write_case(root, case_name, subject, function, case, source)
