"""Masks that are added to the scores, where check expects True and False."""

import pytest
import torch
from contracts.right import RIGHT, built
from contracts.right.standins import WIDTH, Projected, Stack
from torch import nn

from companion.contracts import adapters, check

pytestmark = pytest.mark.once

LOWEST = torch.finfo(torch.float32).min


def added(q, k, v, mask=None):
    scores = q @ k.mT / k.shape[-1] ** 0.5
    if mask is not None:
        scores = (scores + mask).clamp_min(torch.finfo(scores.dtype).min)
    return scores.softmax(-1) @ v


def added_softmax(scores, mask):
    low = torch.finfo(scores.dtype).min
    return (scores + mask).clamp_min(low).softmax(-1)


class Added(Projected):
    """Multi-head attention of x; ``axis`` says which mask it wants."""

    axis = True

    def forward(self, x, mask=None):
        q, k, v = (self.heads(p(x)) for p in (self.wq, self.wk, self.wv))
        if mask is not None and self.axis:
            mask = mask.unsqueeze(1)
        out = added(q, k, v, mask).transpose(1, 2)
        return self.wo(out.reshape(len(x), -1, WIDTH))


class AddedByKeyword(Added):
    def forward(self, query, key, value, *, attn_mask=None):
        return super().forward(query, attn_mask)


class AddedWrongly(Added):
    """The mask is turned on the diagonal."""

    def forward(self, x, mask=None):
        return super().forward(x, None if mask is None else mask.mT)


class Layers(nn.Module):
    """An encoder of one layer, the norm behind."""

    def __init__(self):
        super().__init__()
        self.attend = Added()
        self.norm, self.last = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 31), nn.Linear(31, WIDTH)

    def forward(self, x, src_mask=None):
        x = self.norm(x + self.attend(x, src_mask))
        return self.last(x + self.down(self.up(x).relu()))


@pytest.mark.parametrize(
    ("component", "make"),
    [
        ("attention", lambda: added),
        ("masked_softmax", lambda: added_softmax),
        ("multihead", lambda: built(Added).eval()),
        ("multihead", lambda: built(AddedByKeyword).eval()),
        ("encoder", lambda: built(Layers).eval()),
    ],
)
def test_a_mask_that_is_added_is_told_its_adapter_and_is_no_guess(
    component, make
):
    yours = make()
    report = check(component, yours)
    assert not report.passed
    assert report.assumed[-1] == (
        "If your masks are added to the scores, 0 where a row may attend and "
        "−∞ where not, no contract finds a fault. Say so: "
        "`adapters.mask_added(…)`."
    )
    assert check(component, adapters.mask_added(yours)).passed


def test_what_is_wrong_with_an_added_mask_stays_wrong():
    yours = built(AddedWrongly).eval()
    told = " ".join(check("multihead", yours).assumed)
    assert "mask_added" not in told
    assert not check("multihead", adapters.mask_added(yours)).passed


def test_a_mask_that_is_not_used_is_told_no_adapter():
    def unused(q, k, v, mask=None):
        return added(q, k, v)

    assert check("attention", unused).assumed == ()


class WithAnAddedMask(Stack):
    """A language model whose mask, 0 and −∞, may be left out."""

    def forward(self, tokens, mask=None):
        if mask is None:
            mask = torch.zeros(1, 1)
        assert mask.is_floating_point() or (mask.dtype == torch.bool)
        may = (1.0 + mask) > 0.5
        return self.head(self.states(tokens, may))


class GivenAnAddedMask(WithAnAddedMask):
    def forward(self, tokens, mask):
        return super().forward(tokens, mask)


def test_a_language_model_with_an_added_mask_is_told_both_adapters():
    yours = built(WithAnAddedMask)
    report = check("language_model", yours)
    assert not report.passed
    assert report.assumed[-1] == (
        "If it is to be given a causal mask that is added to the scores, no "
        "contract finds a fault. Say so: "
        "`adapters.with_causal_mask(adapters.mask_added(…))`."
    )
    both = adapters.with_causal_mask(adapters.mask_added(yours))
    assert check("language_model", both).passed
    given = built(GivenAnAddedMask)
    report = check("language_model", given)
    assert "`adapters.mask_added(…)`" in report.assumed[-1]
    assert check("language_model", adapters.mask_added(given)).passed


def test_ids_are_no_number_type_for_a_mask_that_is_added():
    tokens, may = torch.ones(2, 3, dtype=torch.long), torch.eye(3).bool()
    mask = adapters.mask_added(lambda tokens, mask: mask)(tokens, may)
    assert mask.dtype == torch.float32
    assert mask[0].tolist() == [0.0, -torch.inf, -torch.inf]


def test_right_attention_is_asked_nothing_about_its_masks():
    for component in ("attention", "masked_softmax", "multihead", "encoder"):
        for right in RIGHT[component]:
            assert "added" not in " ".join(check(component, right).assumed)
