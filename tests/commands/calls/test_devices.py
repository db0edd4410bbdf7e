"""Code that names a GPU is judged on the CPU, and torch is left as it was."""

import pytest
import torch
from commands.parts import faults
from torch import Tensor

from companion import check

NAMED = """
import math

device = torch.device("cuda:0")
chosen = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_default_device("cuda")


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=100):
        super().__init__()
        rates = torch.arange(0, d_model, 2, device=device) / d_model
        at = torch.arange(max_len, device="cuda")[:, None]
        angles = at * torch.exp(-math.log(10000.0) * rates)
        self.pe = torch.stack([angles.sin(), angles.cos()], -1).flatten(1)

    def forward(self, x):
        return x + self.pe[: x.size(1)].cuda()


def causal_mask(n):
    return torch.ones_like(torch.empty(n, n, device=0)).tril().bool().to(chosen)


def padding_mask(ids, pad):
    nothing = ids.new_full((1, 1), pad, device=device)
    return (ids != nothing).to(device, non_blocking=True)[:, None, None]


@torch.jit.script
def layer_norm(x, gain, bias, eps: float):
    one = torch.ones(1)
    x = (x - x.mean(-1, keepdim=True)) * one.to(x.device)
    return gain * x / (x.var(-1, False, True) + eps).sqrt() + bias


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return x * (x.square().mean(-1, True) + self.eps).rsqrt() * self.weight


norm = RMSNorm(6).cuda().to(device)
"""


def test_what_names_a_gpu_is_judged_on_the_cpu(told):
    parts, left = told(NAMED)
    assert left == {}
    assert {part["component"] for part in parts.values()} == {
        "add_positions",
        "causal_mask",
        "layer_norm",
        "padding_mask",
        "rms_norm",
    }
    assert not any(map(faults, parts.values()))


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("causal_mask", "tril()", "triu()"),
        ("padding_mask", "[:, None, None]", "[:, None, :, None]"),
        ("PositionalEncoding", "angles.sin(), ", "angles.cos(), "),
        ("layer_norm", "x.mean(-1", "x.mean(0"),
    ],
)
def test_and_its_faults_are_found_there(told, name, right, wrong):
    parts, _ = told(NAMED.replace(right, wrong, 1))
    assert faults(parts[name])


def past(n: int) -> Tensor:
    """Make a causal mask on a GPU."""
    return torch.ones(n, n, device="cuda").tril().bool().cuda()


def stops(n: int) -> Tensor:
    """Make one, and raise."""
    raise ValueError(past(n).device)


@pytest.mark.parametrize("make", [past, stops])
def test_devices_are_what_they_are_before_and_after_a_check(make):
    was = torch.ones, Tensor.to, Tensor.cuda, torch.cuda.is_available
    assert check("causal_mask", make).passed == (make is past)
    assert was == (torch.ones, Tensor.to, Tensor.cuda, torch.cuda.is_available)
    assert "to" not in vars(Tensor)
