"""Norms whose arguments or numbers mean something of their own.

Each stands beside a wrong one that differs in a line, so that it is judged.
"""

import pytest
from commands.parts import contracts, excuses, faults, said

SCALE_NORM = """
class ScaleNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.g = nn.Parameter(torch.ones(1) * dim**0.5)
        self.eps = eps

    def forward(self, x):
        return self.g * x / x.norm(dim=-1, keepdim=True).clamp(min=self.eps)
"""


def test_one_number_that_knows_the_width_is_no_gain(told):
    parts, left = told(SCALE_NORM)
    assert left == {}
    assert contracts(parts["ScaleNorm"]) == "It agrees with PyTorch"
    assert not faults(parts["ScaleNorm"])
    # Twice as long a vector is no norm's; over another axis it is a fault.
    _, left = told(SCALE_NORM.replace("self.g * x", "2 * self.g * x"))
    assert "ScaleNorm" in left
    over_all = SCALE_NORM.replace("x.norm(dim=-1,", "x.norm(dim=(-1, -2),")
    parts, left = told(over_all.replace("ScaleNorm", "RMSNorm"))
    assert left or faults(parts["RMSNorm"])


SHARE = """
class NAME(nn.Module):
    def __init__(self, dim, p=DEFAULT, eps=1e-8):
        super().__init__()
        self.counts = dim if p < 0 else max(1, int(dim * p))
        self.gain, self.eps = nn.Parameter(torch.ones(dim)), eps

    def forward(self, x):
        squares = x[..., : self.counts].square().mean(-1, keepdim=True)
        return self.gain * x * (squares + self.eps).rsqrt()
"""


@pytest.mark.parametrize("name", ["RMSNorm", "PartialRMSNorm"])
def test_the_p_of_a_norm_is_no_rate_of_dropout(told, name):
    text = SHARE.replace("NAME", name)
    parts, left = told(text.replace("DEFAULT", "-1.0"))
    assert left == {}
    assert not faults(parts[name])
    assert f"built as {name}(dim=12)" in said(parts[name])


def test_a_norm_of_a_part_of_the_width_is_not_judged_if_it_says_so(told):
    text = SHARE.replace("DEFAULT", "0.25")
    _, left = told(text.replace("NAME", "PartialRMSNorm"))
    assert "PartialRMSNorm" in left
    parts, _ = told(text.replace("NAME", "RMSNorm"))
    assert faults(parts["RMSNorm"])


OF_AXIS_2 = """
class ScaleNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.scale, self.eps = dim**-0.5, eps
        self.g = nn.Parameter(torch.ones(1))

    def forward(self, x):
        length = x.norm(dim=2, keepdim=True) * self.scale
        return x / length.clamp(min=self.eps) * self.g
"""


def test_a_norm_of_vectors_with_three_axes_alone_is_a_risk(told):
    parts, left = told(OF_AXIS_2)
    assert left == {}
    assert not faults(parts["ScaleNorm"])
    assert "any number of axes" in contracts(parts["ScaleNorm"])
    # Over the positions it is no norm of vectors.
    parts, left = told(OF_AXIS_2.replace("dim=2", "dim=1"))
    assert parts == {}
    assert "no softmax was heard" in left["ScaleNorm"]


def test_vectors_of_another_length_are_told_so(told):
    _, left = told(OF_AXIS_2.replace(" * self.scale", ""))
    assert left["ScaleNorm"].startswith("each vector comes out with one length")


IN_PLACE = """
class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))

    def forward(self, x):
        kind = x.dtype
        x = CAST
        x.mul_(torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps))
        return x.to(kind) * self.weight
"""
UNTOUCHED = "It leaves its inputs as they were"


def test_what_works_in_place_on_a_copy_in_half_precision_is_a_risk(told):
    parts, _ = told(IN_PLACE.replace("CAST", "x.float()"))
    assert not faults(parts["RMSNorm"])
    assert UNTOUCHED in contracts(parts["RMSNorm"])
    assert "as a cast such as `.float()` makes one" in excuses(parts["RMSNorm"])
    parts, _ = told(IN_PLACE.replace("CAST", "x"))
    [fault, *_] = faults(parts["RMSNorm"])
    assert "It changes `x` in place" in fault
