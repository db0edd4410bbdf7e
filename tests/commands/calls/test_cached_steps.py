"""A step with a module's own cache is what the whole sequence gives."""

import pytest
from commands.parts import excuses, faults, told_of

ATTENTION = """
class CausalAttention(nn.Module):
    def __init__(self, d_model, n_heads, max_len=64):
        super().__init__()
        self.heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        triangle = torch.ones(max_len, max_len).tril().bool()
        self.register_buffer("may", triangle)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x, layer_past=None, use_cache=False):
        q, k, v = map(self.split, self.qkv(x).chunk(3, -1))
        if layer_past is not None:
            k = torch.cat([layer_past[0], k], 2)
            v = torch.cat([layer_past[1], v], 2)
        new, end = x.shape[1], k.shape[2]
        scores = q @ k.mT / q.shape[-1] ** 0.5
        scores = scores.masked_fill(~self.may[ROWS, :end], -torch.inf)
        rows = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return self.out(rows), (k, v) if use_cache else None
"""
RIGHT = ATTENTION.replace("ROWS", "end - new : end")
FIRST_ROW = ATTENTION.replace("ROWS", ":new")
BY_PYTORCH = """
        rows = nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=CAUSAL
        )
        rows = rows.transpose(1, 2).flatten(2)
"""


def fused(causal):
    begin, rest = RIGHT.split("        new, end =")
    _, end = rest.split(".flatten(2)\n")
    return begin + BY_PYTORCH.replace("CAUSAL", causal) + end


@pytest.mark.parametrize(
    "wrong", [FIRST_ROW, fused("True")], ids=["sliced", "is_causal"]
)
def test_a_step_that_sees_the_first_position_alone_is_a_fault(told, wrong):
    parts, left = told(wrong)
    assert left == {}
    [fault] = faults(parts["CausalAttention"])
    assert "Given `layer_past` as it returned it" in fault
    assert "the last position sees the first one" in fault


@pytest.mark.parametrize(
    "right",
    [
        RIGHT,
        fused("layer_past is None"),
        # The caller says where the step stands, and the mask goes by that.
        FIRST_ROW.replace(":new,", "at : at + new,")
        .replace("use_cache=False", "use_cache=False, start_pos=0")
        .replace("new, end =", "at, new, end = start_pos,"),
    ],
    ids=["cut behind the cache", "no mask for a step", "start_pos"],
)
def test_a_step_that_is_what_the_whole_gives_is_right(told, right):
    parts, left = told(right)
    assert left == {}
    assert told_of(parts["CausalAttention"]) == ""


MODEL = """
class Block(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(2))
        self.attention = CausalAttention(d_model, n_heads)
        self.up = nn.Linear(d_model, 4 * d_model)
        self.down = nn.Linear(4 * d_model, d_model)

    def forward(self, x, past, use_cache):
        rows, kept = self.attention(self.norms[0](x), past, use_cache)
        x = x + rows
        return x + self.down(self.up(self.norms[1](x)).relu()), kept


class GPT(nn.Module):
    def __init__(self, vocab_size, d_model=32, n_heads=4, n_layers=2):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(64, d_model)
        blocks = [Block(d_model, n_heads) for _ in range(n_layers)]
        self.blocks = nn.ModuleList(blocks)
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, ids, past_key_values=None, use_cache=False):
        past = past_key_values or [None] * len(self.blocks)
        at = BEGIN
        places = torch.arange(at, at + ids.shape[1], device=ids.device)
        x, kept = self.words(ids) + self.places(places), []
        for block, one in zip(self.blocks, past):
            x, more = block(x, one, use_cache)
            kept.append(more)
        return self.out(x), kept if use_cache else None
"""
BEHIND = "past[0][0].shape[2] if past_key_values else 0"


def test_a_model_that_counts_a_steps_place_from_0_is_a_risk(told):
    parts, _ = told(RIGHT + MODEL.replace("BEGIN", "0"))
    model = parts["GPT"]
    assert not faults(model)
    assert "Is its place counted from 0 again" in told_of(model)
    assert "if its cache is meant for something else" in excuses(model)


def test_a_model_with_the_first_row_of_a_mask_in_each_step_is_wrong(told):
    parts, _ = told(FIRST_ROW + MODEL.replace("BEGIN", BEHIND))
    [fault] = faults(parts["GPT"])
    assert "Given `past_key_values`" in fault
    assert "sees the first one" in fault


def test_a_model_whose_steps_give_what_the_whole_gives_is_right(told):
    parts, left = told(RIGHT + MODEL.replace("BEGIN", BEHIND))
    assert [*left] == ["Block"]
    assert told_of(parts["GPT"]) == told_of(parts["CausalAttention"]) == ""
