"""Reference cases of kind interchange, subject gpt-neox, from Hugging Face's GPTNeoXModel.

usage: python generate_pythia.py [FOLDER]     (default: cases/ beside this file; needs torch and transformers, nothing of this project)

Weights and gradients are stored under Hugging Face's names. The model computes in float64, but for its rotary angles, which the library takes
in float32 whatever the model's type: they are replaced by the same formula in float64.
"""
import json
import pathlib
import sys

import torch
import transformers
from generate_newer import save

# name -> options of this project and Hugging Face's of the same model
CASES = {
    "interchange_gpt_neox_parallel": {"n_layers": 2, "d_model": 16, "n_heads": 2, "d_ff": 24, "rotary_fraction": 0.25, "parallel_residual": True},
    "interchange_gpt_neox_sequential": {"n_layers": 1, "d_model": 12, "n_heads": 3, "d_ff": 20, "rotary_fraction": 1.0, "parallel_residual": False},
}
VOCABULARY = 11


class Angles(torch.nn.Module):
    """cos and sin of p 10000^(-2m/r), twice over: what GPTNeoXRotaryEmbedding gives, in float64."""

    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, x, position_ids):
        frequency = 10000.0 ** (-torch.arange(0, self.width, 2, dtype=torch.float64) / self.width)
        angle = position_ids[..., None].to(torch.float64) * frequency
        angle = torch.cat([angle, angle], -1)
        return angle.cos(), angle.sin()


def write_case(folder, name, o):
    torch.manual_seed(sum(map(ord, name)))
    config = transformers.GPTNeoXConfig(
        vocab_size=VOCABULARY, hidden_size=o["d_model"], num_hidden_layers=o["n_layers"], num_attention_heads=o["n_heads"],
        intermediate_size=o["d_ff"], rotary_pct=o["rotary_fraction"], use_parallel_residual=o["parallel_residual"], hidden_act="gelu",
        max_position_embeddings=64, attention_dropout=0.0, hidden_dropout=0.0, attn_implementation="sdpa", use_cache=False)
    assert config.rope_parameters["partial_rotary_factor"] == o["rotary_fraction"] and config.rope_parameters["rope_theta"] == 10000.0
    model = transformers.GPTNeoXForCausalLM(config).double()
    ids = torch.randint(0, VOCABULARY, (3, 9))
    rotary = model.gpt_neox.rotary_emb
    width = int(o["rotary_fraction"] * (o["d_model"] // o["n_heads"]))
    published, ours = rotary(torch.zeros(1, dtype=torch.float64), torch.arange(9)[None]), Angles(width)(None, torch.arange(9)[None])
    assert all((a - b).abs().max() < 1e-6 for a, b in zip(published, ours))
    model.gpt_neox.rotary_emb = Angles(width)
    for parameter in model.parameters():  # norms and biases too: their initial values would hide mistakes
        parameter.data = 0.3 * torch.randn_like(parameter) + (1 if parameter.dim() == 1 else 0)
    y = model.gpt_neox(input_ids=ids, use_cache=False).last_hidden_state
    assert y.dtype == torch.float64
    cotangent = torch.randn_like(y)
    loss = (y * cotangent).sum()
    loss.backward()
    tensors = {"input.x": ids, "input.cotangent": cotangent, "output.y": y, "loss": loss}
    for n, p in model.named_parameters():
        tensors["weight." + n] = p
        if p.grad is not None:  # the output map plays no part
            tensors["grad." + n] = p.grad
    (folder / name).mkdir(parents=True, exist_ok=True)
    save(folder / name / "case.safetensors", tensors)
    text = {"case": name, "set": "interchange", "kind": "interchange", "subject": "gpt-neox",
            "options": {"encoder": {"kind": "embedding", "vocabulary": VOCABULARY}, "body": {"architecture": "pythia", **o},
                        "head": {"kind": "identity"}, "padding": "attended"},
            "dtype": "float64", "profile": "both", "inputs": ["x"], "outputs": ["y"], "tolerance": {"output": 1e-11, "gradient": 1e-10},
            "source": f"Hugging Face transformers {transformers.__version__}, GPTNeoXForCausalLM, last hidden state of gpt_neox",
            "notes": "Written by tests/reference/generate_pythia.py, which takes the rotary angles in float64. Weights and gradients have the "
                     "published names; the output map of the language model is dropped by the import."}
    (folder / name / "case.json").write_text(json.dumps(text, indent=1) + "\n")


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "cases"
    for case_name, options in CASES.items():
        write_case(root, case_name, options)
