"""What looks like a component, is something else, and is right as that.

Each stands beside a wrong one that is still judged.
"""

import pytest
from commands.parts import contracts, excuses, faults, told_of

from companion.commands.check.process import ours

LENGTHS = """
def padding_mask(lengths, size):
    return (torch.arange(size) < lengths[:, None])[:, None, None]


def rope(x, axis):
    return x
"""


def test_a_known_name_whose_argument_is_anothers_is_not_judged(told):
    parts, left = told(LENGTHS)
    assert not parts
    assert "its argument `lengths` is another's" in left["padding_mask"]
    assert "its argument `axis` is another's" in left["rope"]


DEEPER = """
class Autoencoder(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.encode = nn.Sequential(
            nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, 8), nn.ReLU()
        )
        self.decode = nn.Sequential(
            nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, dim), nn.Sigmoid()
        )

    def forward(self, x):
        return self.decode(self.encode(x))
"""


def test_a_deeper_network_is_no_feed_forward_network_unless_called_so(told):
    parts, left = told(DEEPER)
    assert not parts
    assert "it is a deeper network" in left["Autoencoder"]
    parts, _ = told(DEEPER.replace("Autoencoder", "FeedForward"))
    assert faults(parts["FeedForward"])


BY_PLACE = """
class TimeDecay(nn.Module):
    def __init__(self, dim, heads=3):
        super().__init__()
        self.alpha = nn.Parameter(torch.randn(heads))
        self.into = nn.Linear(dim, dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        n = x.shape[1]
        x = self.into(x).unflatten(-1, (len(self.alpha), -1))
        alpha = self.alpha.sigmoid()[:, None, None]
        ago = torch.arange(n)[:, None] - torch.arange(n)
        kept = alpha * (1 - alpha) ** ago.clamp(min=0)
        weights = torch.where(ago >= 0, kept, 0.0)
        return self.out(torch.einsum("hij,bjhd->bihd", weights, x).flatten(2))


class ShiftTokens(nn.Module):
    def forward(self, x):
        here, before = x.chunk(2, dim=-1)
        return torch.cat((here, nn.functional.pad(before, (0, 0, 1, -1))), -1)
"""


def test_positions_that_are_mixed_by_their_place_alone_are_no_attention(told):
    parts, left = told(BY_PLACE)
    assert not parts
    for name in ("TimeDecay", "ShiftTokens"):
        assert "is the same whatever stands there" in left[name]
    named = BY_PLACE.replace("TimeDecay", "CausalAttention")
    parts, _ = told(named)
    assert faults(parts["CausalAttention"])


GATED = """
class GAU(nn.Module):
    def __init__(self, dim, inner=8):
        super().__init__()
        self.value, self.gate = nn.Linear(dim, 24), nn.Linear(dim, 24)
        self.q, self.k = nn.Linear(dim, inner), nn.Linear(dim, inner)
        self.out = nn.Linear(24, dim)

    def forward(self, x, mask=None):
        scores = self.q(x) @ self.k(x).mT / x.shape[1]
        weights = nn.functional.relu(scores) ** 2
        if mask is not None:
            weights = weights.masked_fill(~mask[:, None, :], 0.0)
        return x + self.out(weights @ self.value(x) * self.gate(x).sigmoid())


class GatedRMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gate = nn.Parameter(torch.ones(dim))
        self.gain = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        size = x.pow(2).mean(-1, keepdim=True).add(1e-8).sqrt()
        return x / size * self.gain * torch.sigmoid(x * self.gate)
"""


def test_what_weighs_without_a_softmax_and_a_gated_norm_are_not_judged(told):
    parts, left = told(GATED)
    assert not parts
    assert "no softmax was heard in it" in left["GAU"]
    assert "GatedRMSNorm" in left
    layer = """

class Layer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attention, self.norm = SelfAttention(dim), nn.LayerNorm(dim)

    def forward(self, x, mask=None):
        return self.norm(self.attention(x, mask))
"""
    parts, _ = told(GATED.replace("GAU", "SelfAttention") + layer)
    assert faults(parts["SelfAttention"])
    assert faults(parts["Layer"])


BY_HAND = """
class RingAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.h = heads
        self.into = nn.Sequential(
            nn.LayerNorm(dim), nn.Linear(dim, 3 * dim, bias=False)
        )
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x, mask=None):
        q, k, v = (t.unflatten(-1, (self.h, -1)).transpose(1, 2)
                   for t in self.into(x).chunk(3, -1))
        scores = q @ k.mT * q.shape[-1] ** -0.5
        if mask is not None:
            scores = scores.masked_fill(~mask[:, None, None], -1e30)
        w = (scores - scores.amax(-1, keepdim=True).detach()).exp()
        seen = w / w.sum(-1, keepdim=True) @ v
        return self.out(seen.transpose(1, 2).flatten(2))
"""


def test_attention_behind_a_norm_may_write_its_softmax_by_hand(told):
    parts, _ = told(BY_HAND)
    assert parts["RingAttention"]["component"] == "multihead"
    assert not faults(parts["RingAttention"])
    parts, _ = told(BY_HAND.replace("w.sum(-1", "w.sum(-2"))
    assert faults(parts["RingAttention"])


ZEROED = """
class Blocks(nn.Module):
    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(
            hidden_size, num_heads, batch_first=True
        )
        self.n1, self.n2 = nn.LayerNorm(hidden_size), nn.LayerNorm(hidden_size)
        self.ff = nn.Sequential(
            nn.Linear(hidden_size, 24), nn.ReLU(), nn.Linear(24, hidden_size)
        )

    def forward(self, x, padding_mask=None):
        keep = 1.0
        if padding_mask is not None:
            keep = 1 - padding_mask.float()[..., None]
        y = self.n1(x * keep)
        seen, _ = self.attention(y, y, y, key_padding_mask=padding_mask)
        x = (x + seen) * keep
        return (x + self.ff(self.n2(x))) * keep
"""


def test_rows_of_padding_may_be_set_to_zero(told):
    parts, _ = told(ZEROED)
    assert not faults(parts["Blocks"])
    ignored = ZEROED.replace("key_padding_mask=padding_mask", "")
    parts, _ = told(ignored)
    assert faults(parts["Blocks"])


LOOKS_UP = """
class HashedEmbedding(nn.Module):
    def __init__(self, embedding_dim):
        super().__init__()
        self.tables = nn.ModuleList(
            nn.Embedding(97, embedding_dim // 4) for _ in range(4)
        )

    def forward(self, ids):
        hashed = [(p * ids) % 97 for p in (31, 43, 59, 61)]
        rows = [t(i) for t, i in zip(self.tables, hashed)]
        return torch.cat(rows, dim=-1)
"""


def test_an_embedding_of_many_tables_is_no_language_model(told):
    parts, left = told(LOOKS_UP)
    assert not parts
    assert left["HashedEmbedding"].startswith("it looks ids up")
    assert faults(told(LOOKS_UP.replace("HashedEmbedding", "LM"))[0]["LM"])


CHOSEN = """
class AnchorAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)

    def forward(self, x, anchor_indices):
        q, k, v = (t.unflatten(-1, (self.h, -1)).transpose(1, 2)
                   for t in self.qkv(x).chunk(3, -1))
        k, v = k[:, :, anchor_indices], v[:, :, anchor_indices]
        scores = q @ k.mT / q.shape[-1] ** 0.5
        later = anchor_indices > torch.arange(x.shape[1])[:, None]
        weights = scores.masked_fill(later, float("-inf")).softmax(-1)
        return (weights @ v).transpose(1, 2).flatten(2)


class Model(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, max_seq_len):
        super().__init__()
        self.tok = nn.Embedding(vocab_size, d_model)
        self.pos = nn.Embedding(max_seq_len, d_model)
        self.attn, self.ln = AnchorAttention(d_model, n_heads), nn.LayerNorm(
            d_model
        )
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        n = ids.shape[1]
        x = self.tok(ids) + self.pos(torch.arange(n))
        x = x + self.attn(x, torch.arange(0, n, 2))
        return self.out(self.ln(x))
"""


def test_attention_to_positions_that_a_model_chooses_is_not_judged(told):
    _, left = told(CHOSEN)
    assert "its model chooses, by `anchor_indices`" in left["AnchorAttention"]


CLASSIFIES = """
class Sentiment(nn.Module):
    def __init__(self, vocab_size, hidden_dim, num_heads):
        super().__init__()
        self.tok = nn.Embedding(vocab_size, hidden_dim)
        self.layer = nn.TransformerEncoderLayer(
            hidden_dim, num_heads, batch_first=True
        )
        self.out = nn.Linear(hidden_dim, 2)

    def forward(self, ids):
        return self.out(self.layer(self.tok(ids))[:, 0])
"""


def test_a_classifier_is_told_that_it_has_no_contracts(told):
    _, left = told(CLASSIFIES)
    assert "for what classifies there are no contracts" in left["Sentiment"]


METHOD = """
class Model(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, max_seq_len):
        super().__init__()
        self.tok = nn.Embedding(vocab_size, d_model)
        self.pos = nn.Embedding(max_seq_len, d_model)
        self.layer = nn.TransformerEncoderLayer(
            d_model, n_heads, batch_first=True
        )
        self.out = nn.Linear(d_model, vocab_size)
        self.refine = nn.Linear(d_model, d_model)

    def context_of(self, x):
        return self.refine(x)

    def forward(self, ids):
        n = ids.shape[1]
        x = self.tok(ids) + self.pos(torch.arange(n))
        return self.out(self.layer(x, torch.ones(n, n).triu(1).bool()))
"""


@pytest.mark.parametrize("name", ["reset_context", "forward_context"])
def test_weights_of_a_method_that_is_not_called_are_a_risk(told, name):
    parts, _ = told(METHOD)
    assert not faults(parts["Model"])
    assert "The method `context_of` uses them" in excuses(parts["Model"])
    # One that draws them anew uses nothing, and one that is called would.
    called = METHOD.replace("context_of", name)
    if name == "forward_context":
        called = called.replace(
            "        n = ids", "        self.forward_context\n        n = ids"
        )
    parts, _ = told(called)
    assert faults(parts["Model"])


ZERO = """
class FeedForwardBlock(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        nn.init.normal_(self.down.weight, std=STD)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))
"""


@pytest.mark.parametrize("std", ["0.0", "0.001"])
def test_a_last_projection_may_begin_at_zero_or_nearly(told, std):
    parts, _ = told(ZERO.replace("STD", std))
    assert not faults(parts["FeedForwardBlock"])
    last = ZERO.replace("STD", std).replace(
        "x + self.down(torch.relu(self.up(x)))",
        "torch.relu(self.down(self.up(x)))",
    )
    parts, _ = told(last)
    assert faults(parts["FeedForwardBlock"])


NOTHING_THERE = """
class Stack(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.parts = nn.ModuleList([
            None, nn.MultiheadAttention(dim, heads, batch_first=True),
            nn.Sequential(nn.Linear(dim, 24), nn.GELU(), nn.Linear(24, dim)),
        ])
        self.norm, self.spare = nn.LayerNorm(dim), nn.Linear(dim, dim)

    def forward(self, x):
        _, attend, feed = self.parts
        x = x + attend(x, x, x, need_weights=False)[0]
        return self.norm(x + feed(x))
"""


def test_a_list_of_modules_may_hold_none(told):
    parts, _ = told(NOTHING_THERE)
    [fault] = faults(parts["Stack"])
    assert fault.startswith("`spare.weight` takes no part")


def test_what_the_check_itself_raises_is_no_fault_of_the_code():
    try:
        raise KeyError("unheard")
    except KeyError as error:
        told = ours(error)
    assert told.startswith("the check itself raised KeyError, in line")
    assert "test_other_kinds.py" in told
    assert told.endswith("Please report it")


IN_BETWEEN = """
class Layer(nn.Module):
    def __init__(self, d_model, nhead):
        super().__init__()
        self.before, self.between = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attend = nn.MultiheadAttention(d_model, nhead, batch_first=True)
        self.feed = nn.Sequential(
            nn.Linear(d_model, 24), nn.GELU(), nn.Linear(24, d_model)
        )

    def forward(self, x):
        y = self.before(x)
        x = self.between(x + self.attend(y, y, y, need_weights=False)[0])
        return x + self.feed(x)
"""


def test_a_norm_between_two_sums_is_a_risk_and_one_in_front_a_fault(told):
    parts, _ = told(IN_BETWEEN)
    assert not faults(parts["Layer"])
    assert "no path leads past that norm" in told_of(parts["Layer"])
    assert "CCT" in excuses(parts["Layer"])
    lost = IN_BETWEEN.replace("between(x +", "between(y +")
    parts, _ = told(lost)
    [fault] = faults(parts["Layer"])
    assert "the residual starts from the normed vector" in fault


ADDED_IN_PLACE = """
class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        rates = 1e4 ** (-torch.arange(0, d_model, 2) / d_model)
        angles = torch.arange(max_len)[:, None] * rates
        table = torch.stack([angles.sin(), angles.cos()], -1)
        self.register_buffer("table", table.flatten(1))

    def forward(self, x):
        x += self.table[: x.size(1)]
        return x
"""


def test_positions_added_in_place_are_a_risk(told):
    parts, _ = told(ADDED_IN_PLACE)
    assert not faults(parts["PositionalEncoding"])
    assert contracts(parts["PositionalEncoding"]) == (
        "It leaves its inputs as they were"
    )
    assert "behind an embedding" in excuses(parts["PositionalEncoding"])
    # Numbers that come out wrong are a fault with or without.
    wrong = ADDED_IN_PLACE.replace("1e4 ** (-", "1e4 ** (-2 * ")
    parts, _ = told(wrong)
    assert faults(parts["PositionalEncoding"])


REFUSES = """
class Encoder(nn.Module):
    def __init__(self, dim, depth=2, heads=3):
        super().__init__()
        layer = nn.TransformerEncoderLayer(
            dim, heads, 24, 0.0, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(
            layer, depth, nn.LayerNorm(dim), enable_nested_tensor=False
        )

    def forward(self, x):
        assert x.shape[1] >= 2, "a single word is no sentence"
        return self.layers(x)
"""
BY_LENGTHS = """
    def forward(self, x, lengths=None):
        hidden = None
        if lengths is not None:
            assert (lengths >= 2).all()
            hidden = torch.arange(x.shape[1]) >= lengths[:, None]
        return self.layers(x, src_key_padding_mask=hidden)
"""


def test_what_an_assertion_of_its_own_refuses_is_a_risk(told):
    parts, _ = told(REFUSES)
    assert not faults(parts["Encoder"])
    assert "It refuses so short a sentence" in excuses(parts["Encoder"])
    parts, _ = told(REFUSES[: REFUSES.index("    def forward")] + BY_LENGTHS)
    assert not faults(parts["Encoder"])
    assert "It refuses so short a sentence" in excuses(parts["Encoder"])
    # What fails for a single word with no such intention is left aside.
    _, left = told(REFUSES.replace("assert x.shape[1] >= 2, ", "x[:, 1], "))
    assert "it takes sentences of one length only" in left["Encoder"]


SLOTS = """
class SlotAttention(nn.Module):
    def __init__(self, dim, eps=1e-8):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))
        self.eps = eps

    def forward(self, x, memory):
        scores = self.q(x) @ self.k(memory).mT * x.shape[-1] ** -0.5
        weights = scores.softmax(1)
        weights = weights / (weights.sum(-1, keepdim=True) + self.eps)
        return weights @ self.v(memory)
"""


def test_slots_may_compete_if_their_weights_are_divided_by_their_sum(told):
    parts, _ = told(SLOTS)
    assert not faults(parts["SlotAttention"])
    lines = SLOTS.splitlines()
    undivided = "\n".join(x for x in lines if "weights.sum" not in x)
    parts, _ = told(undivided)
    assert "over the queries" in faults(parts["SlotAttention"])[0]


BESIDE = """
class Attention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (
            nn.Linear(d_model, d_model) for _ in range(4)
        )
        self.conv = nn.Conv1d(d_model, d_model, 3, padding=1)

    def forward(self, queries, keys, values, mask=None):
        def split(x):
            return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        q, k = split(self.q(queries)), split(self.k(keys))
        v = self.v(values)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        rows = (scores.softmax(-1) @ split(v)).transpose(1, 2).flatten(-2)
        return self.o(rows) + self.conv(v.mT).mT
"""


def test_a_convolution_beside_masked_attention_is_a_risk(told):
    parts, _ = told(BESIDE)
    assert not faults(parts["Attention"])
    assert "`conv` is a convolution" in told_of(parts["Attention"])
    assert "has to reach the convolution too" in excuses(parts["Attention"])
    # Without the convolution, too, this one leaks.
    parts, _ = told(BESIDE.replace("        if mask", "        if 0 and mask"))
    assert faults(parts["Attention"])


ONE_TOKEN = """
class Attention(nn.Module):
    def __init__(self, dim, heads=8, dim_head=64):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * heads * dim_head, bias=False)
        self.out = nn.Linear(heads * dim_head, dim, bias=False)

    def forward(self, x, cache=None):
        n = x.shape[1]
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for y in self.qkv(x).chunk(3, -1)
        )
        scores = q @ k.mT * q.shape[-1] ** -0.5
        scores = scores + torch.full((n, n), -torch.inf).triu(1)
        got = self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(-2))
        return (got, (k, v)) if n == 1 else got
"""


def test_a_tuple_for_a_single_token_is_a_risk(told):
    parts, _ = told(ONE_TOKEN)
    assert not faults(parts["Attention"])
    assert "Other calls return a tensor alone" in excuses(parts["Attention"])
    parts, _ = told(ONE_TOKEN.replace("(got, (k, v))", "k"))
    assert faults(parts["Attention"])


CHOSEN_KEYS = """
class Model(nn.Module):
    def __init__(self, vocab_size, d_model, max_len=64):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(max_len, d_model)
        self.q, self.k, self.v = (nn.Linear(d_model, d_model) for _ in range(3))
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        n = ids.shape[1]
        x = self.words(ids) + self.places(torch.arange(n))
        chosen = torch.arange(0, n, 2)
        k, v = self.k(x)[:, chosen], self.v(x)[:, chosen]
        scores = self.q(x) @ k.mT * x.shape[-1] ** -0.5
        future = (chosen > torch.arange(n)[:, None])
        weights = scores.masked_fill(future, -torch.inf).softmax(-1)
        return self.out(x + weights @ v)
"""


def test_a_model_may_look_at_chosen_tokens_of_the_past(told):
    parts, _ = told(CHOSEN_KEYS)
    assert not faults(parts["Model"])
    assert "For 5 tokens a softmax runs over 3 keys." in told_of(parts["Model"])
    # The keys are all there, and one of the past is hidden.
    lost = CHOSEN_KEYS.replace("0, n, 2", "n").replace(
        "future = ", "future = (chosen == 1) | "
    )
    parts, _ = told(lost)
    assert "do not move with token 1" in faults(parts["Model"])[0]
