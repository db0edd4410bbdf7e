"""What ``check`` takes a part for, how it builds it, and what it leaves alone.

The code is written anew, in the style of what was found in repositories.
"""

import pytest

from tests.commands.parts import excuses, faults, said, told_of

pytestmark = pytest.mark.once


HANDED_ON = """
class Gathers(nn.Module):
    def __init__(self, d_block, nh, dropout=0.5):
        super().__init__()
        self.nh, self.drop = nh, nn.Dropout(dropout)
        self.qkv = nn.Linear(d_block, 3 * d_block)
        self.out = nn.Linear(d_block, d_block)


class Softly(Gathers):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)

    def forward(self, x):
        parts = self.qkv(x).unflatten(-1, (3, self.nh, -1))
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        weights = self.drop((q @ k.mT / q.shape[-1] ** 0.5).softmax(-1))
        return self.out((weights @ v).transpose(1, 2).flatten(2))
"""


def test_words_that_a_class_hands_on_are_those_of_the_class_above(told):
    parts, left = told(HANDED_ON)
    assert left == {}  # What has no `forward` is no part.
    assert "Softly(d_block=12, nh=3, dropout=0.0)" in said(parts["Softly"])
    assert not faults(parts["Softly"])
    parts, _ = told(HANDED_ON.replace(" / q.shape[-1] ** 0.5", ""))
    assert "not divided" in " ".join(faults(parts["Softly"]))


POSITIONS_ALONE = """
class Positions(nn.Module):
    def __init__(self, d_model, max_len=512):
        super().__init__()
        rate = 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
        angle = torch.arange(max_len)[:, None] * rate
        table = torch.stack([angle.sin(), angle.cos()], -1).flatten(1)
        self.register_buffer("table", table[None])

    def forward(self, x):
        return self.table[:, : x.shape[1]]
"""


def test_positions_that_are_returned_alone_are_added_to_vectors(told):
    parts, _ = told(POSITIONS_ALONE)
    assert parts["Positions"]["component"] == "add_positions"
    assert "it returns positions alone" in said(parts["Positions"])
    assert not parts["Positions"]["found"]["failed"]
    parts, _ = told(POSITIONS_ALONE.replace("d_model)\n", "d_model / 2)\n"))
    [message] = faults(parts["Positions"])
    assert "turns by" in message
    parts, left = told(POSITIONS_ALONE.replace("Positions", "Angles"))
    assert parts == {}
    assert "a table of positions" in left["Angles"]


LEARNED_PAIRS = """
class Mixes(nn.Module):
    def __init__(self, d_model, num_heads, max_len):
        super().__init__()
        scores = torch.randn(num_heads, max_len, max_len)
        self.scores, self.heads = nn.Parameter(scores), num_heads
        self.v, self.o = (nn.Linear(d_model, d_model) for _ in "vo")

    def forward(self, x, mask=None):
        seq = x.shape[1]
        scores = self.scores[:, :seq, :seq]
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        v = self.v(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


def test_weights_that_are_learned_for_pairs_are_no_attention(told):
    parts, left = told(LEARNED_PAIRS)
    assert parts == {}
    assert "learned for each pair" in left["Mixes"]
    # Constant weights that nobody learns are a fault.
    parts, _ = told(
        LEARNED_PAIRS.replace(
            "[:, :seq, :seq]", ".mean().expand(seq, seq)"
        ).replace("torch.randn(num_heads, max_len, max_len)", "torch.randn(1)")
    )
    assert "as if all weights were constant" in " ".join(faults(parts["Mixes"]))


WITHIN_A_WINDOW = """
class Near(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, mask=None):
        parts = self.qkv(x).unflatten(-1, (3, self.heads, -1))
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        place = torch.arange(x.shape[1])
        far = place[:, None] - place
        hidden = far.abs() > 2
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            hidden = hidden | (mask == 0)
        weights = scores.masked_fill(hidden, -1e9).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))
"""


def test_attention_within_a_window_is_not_judged_by_what_all_see(told):
    parts, left = told(WITHIN_A_WINDOW)
    assert parts == {}
    assert "as within a window" in left["Near"]
    parts, _ = told(WITHIN_A_WINDOW.replace("far.abs() > 2", "far > 2"))
    assert faults(parts["Near"])


WARM = """
class NoamOpt:
    def __init__(self, d_model, warmup, optimizer):
        self.sizes, self.optimizer, self.steps = (d_model, warmup), optimizer, 0

    def step(self):
        self.steps += 1
        width, warmup = self.sizes
        ramp = self.steps * warmup**-1.5
        for group in self.optimizer.param_groups:
            group["lr"] = width**-0.5 * max(self.steps**-0.5, ramp)
        self.optimizer.step()
"""


def test_a_rate_that_takes_the_larger_part_is_told_so(told):
    parts, _ = told(WARM)
    assert "The larger of the two is taken" in faults(parts["NoamOpt"])[0]
    parts, _ = told(WARM.replace("max(", "min("))
    assert not faults(parts["NoamOpt"])


DIES = """
class Dies(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.map = nn.Linear(d_model, d_model)

    def forward(self, x):
        os._exit(1)


class Feeds(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.up = nn.Linear(d_model, 2 * d_model)
        self.down = nn.Linear(2 * d_model, d_model)

    def forward(self, x):
        return self.down(self.up(x).relu())
"""


def test_what_ends_its_process_is_not_judged_if_nobody_says_what_it_is(told):
    parts, left = told(DIES)
    assert {*parts} == {"Feeds"}
    assert "Its process ended" in left["Dies"]


TWO_AXES = """
class Gathers(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, mask=None):
        parts = self.qkv(x).unflatten(-1, (3, self.heads, -1))
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(MASK, -1e9)
        weights = scores.softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(x.shape))
"""


@pytest.mark.parametrize("laid", ["mask[None, None]", "mask.unsqueeze(0)"])
def test_a_mask_of_two_axes_is_given_as_such(told, laid):
    parts, _ = told(TWO_AXES.replace("MASK", f"~{laid}"))
    assert "its masks are (seq, seq)" in said(parts["Gathers"])
    assert not faults(parts["Gathers"])
    parts, _ = told(TWO_AXES.replace("MASK", f"~{laid}.mT"))
    assert faults(parts["Gathers"])


def test_a_mask_that_mixes_up_everything_in_four_axes_is_one_of_two(told):
    parts, _ = told(TWO_AXES.replace("MASK", "mask[None, None]"))
    assert not faults(parts["Gathers"])
    assert "Only you know" in said(parts["Gathers"])


OF_NUMBERS = """
class Translates(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, max_len):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(max_len, d_model)
        self.core = nn.Transformer(
            d_model, n_heads, 1, 1, 2 * d_model, 0.0, batch_first=True
        )
        self.head = nn.Linear(d_model, vocab_size)

    def read(self, ids):
        return self.words(ids) + self.places(torch.arange(ids.shape[1]))

    def forward(self, src_ids, src_mask, decoder_input):
        hidden = None if src_mask.all() else (1 - src_mask).bool()
        later = torch.ones(2 * decoder_input.shape[1:]).triu(1).bool()
        return self.head(
            self.core(
                self.read(src_ids),
                self.read(decoder_input),
                tgt_mask=later,
                src_key_padding_mask=hidden,
                memory_key_padding_mask=hidden,
            )
        )
"""


def test_a_translator_may_want_a_mask_of_numbers(told):
    parts, _ = told(OF_NUMBERS)
    assert "as numbers 1 and 0" in said(parts["Translates"])
    assert not faults(parts["Translates"])
    forgotten = "memory_key_padding_mask=hidden,"
    parts, _ = told(OF_NUMBERS.replace(forgotten, ""))
    assert "Padding" in "".join(
        name
        for group in parts["Translates"]["found"]["failed"]
        for name in group["names"]
    )


CONVOLUTIONS = """
class CausalConv(nn.Module):
    def __init__(self, dim, kernel_size=4):
        super().__init__()
        self.pad = kernel_size - 1
        self.conv = nn.Conv1d(dim, dim, kernel_size, groups=dim)

    def forward(self, x):
        x = nn.functional.pad(x.mT, (self.pad, 0))
        return self.conv(x).mT


class ConvModule(nn.Module):
    def __init__(self, d_model, kernel_size=31):
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.up = nn.Linear(d_model, 2 * d_model)
        self.conv = nn.Conv1d(
            d_model, d_model, kernel_size, padding=kernel_size // 2
        )

    def forward(self, x, pad_mask=None):
        y = nn.functional.glu(self.up(self.norm(x)))
        if pad_mask is not None:
            y = y.masked_fill(pad_mask[..., None], 0)
        return nn.functional.silu(self.conv(y.mT).mT)


class PreNet(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.ids = nn.Embedding(vocab_size, d_model)
        self.conv = nn.Conv1d(d_model, d_model, 3, padding=1)

    def forward(self, ids):
        return self.conv(self.ids(ids).mT).relu().mT
"""


def test_a_convolution_is_no_attention_and_no_language_model(told):
    parts, left = told(CONVOLUTIONS)
    assert parts == {}
    for name in ("CausalConv", "ConvModule", "PreNet"):
        assert "no softmax was heard" in left[name], left[name]


CAUSAL_MODEL = """
class Convolves(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.ids = nn.Embedding(vocab_size, d_model)
        self.conv = nn.Conv1d(d_model, d_model, 5, padding=4)
        self.out, self.idle = (nn.Linear(d_model, vocab_size) for _ in "ab")

    def forward(self, ids):
        return self.out(self.conv(self.ids(ids).mT)[..., :-4].relu().mT)
"""


def test_of_a_convolution_too_an_idle_weight_is_told(told):
    parts, _ = told(CAUSAL_MODEL)
    [message] = faults(parts["Convolves"])
    assert "`idle.weight` takes no part" in message
    parts, left = told(CAUSAL_MODEL.replace(":-4", "2:-2"))
    assert parts == {}
    assert "no softmax was heard" in left["Convolves"]


OTHER_ARGUMENTS = """
def softmax(scores, adjacency, dim=-1):
    weights = scores.exp() * adjacency
    return weights / weights.sum(dim, keepdim=True)


def padding_mask(mask, dtype):
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, -1e9)


def combine_masks(*masks):
    return torch.stack(masks).all(0)


def quantize(model, weight_bit_width):
    for name, child in model.named_children():
        quantize(child, weight_bit_width)


def bleu(hypotheses: list[str], references: list[str]) -> float:
    said = [line.split() for line in hypotheses]
    return len(said) / len(references)
"""


def test_a_function_with_a_usual_name_may_take_other_arguments(told):
    parts, left = told(OTHER_ARGUMENTS)
    assert parts == {}
    for name, argument in (
        ("softmax", "adjacency"),
        ("padding_mask", "dtype"),
        ("combine_masks", "masks"),
        ("quantize", "model"),
        ("bleu", "hypotheses"),
    ):
        assert f"its argument `{argument}` is another's" in left[name]
    parts, _ = told(
        "def softmax(scores, dim):\n    return scores.exp() / scores.sum(dim)\n"
    )
    assert faults(parts["softmax"])


FLASH = """
def flash_attention(q, k, v, causal=False, block=4):
    b, h, n, d = q.shape
    top = q.new_full((b, h, n, 1), -torch.inf)
    total, out = torch.zeros_like(top), torch.zeros(b, h, n, v.shape[-1])
    for i in range(0, k.shape[2], block):
        scores = q @ k[:, :, i : i + block].mT / d**0.5
        if causal:
            keys = torch.arange(i, i + scores.shape[-1])
            later = keys > torch.arange(n)[:, None]
            scores = scores.masked_fill(later, -torch.inf)
        new = torch.maximum(top, scores.amax(-1, keepdim=True))
        parts, shrink = (scores - new).exp(), (top - new).exp()
        total = total * shrink + parts.sum(-1, keepdim=True)
        out = out * shrink + parts @ v[:, :, i : i + block]
        top = new
    return out / total
"""


def test_flash_attention_of_heads_may_leave_memory_to_autograd(told):
    parts, _ = told(FLASH)
    found = parts["flash_attention"]
    assert "an axis for one head" in said(found)
    assert not faults(found)
    told_of = " ".join(g["message"] for g in found["found"]["failed"])
    assert "begins in the upper left corner" in told_of
    assert "numbers are kept" in told_of
    parts, _ = told(FLASH.replace("out * shrink", "out"))
    assert faults(parts["flash_attention"])


SECOND_RESULT = """
class Layer(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = nn.MultiheadAttention(
            d_model, num_heads, batch_first=True
        )
        self.up = nn.Linear(d_model, 2 * d_model)
        self.down = nn.Linear(2 * d_model, d_model)
        self.halt = nn.Linear(d_model, 1)

    def forward(self, x, key_padding_mask=None):
        h = self.n1(x)
        x = x + self.attn(h, h, h, key_padding_mask=key_padding_mask)[0]
        x = x + self.down(self.up(self.n2(x)).relu())
        return x, self.halt(x.mean(1))
"""


def test_weights_of_a_second_result_are_a_risk(told):
    parts, _ = told(SECOND_RESULT)
    assert not faults(parts["Layer"])
    assert "in what else is returned" in excuses(parts["Layer"])
    parts, _ = told(SECOND_RESULT.replace("x, self.halt(x.mean(1))", "x, None"))
    assert "`halt.weight` takes no part" in faults(parts["Layer"])[0]


COPIES = """
import copy


class Layer(nn.Module):
    def __init__(self, attention, feed):
        super().__init__()
        self.attention, self.feed = attention, feed

    def forward(self, x, mask=None):
        seen = self.attention(x, x, x, key_padding_mask=mask)[0]
        return x + self.feed(x + seen)


class Stack(nn.Module):
    def __init__(self, d_model, n_heads, n_layers):
        super().__init__()
        self.attention = nn.MultiheadAttention(
            d_model, n_heads, batch_first=True
        )
        self.feed = nn.Sequential(
            nn.Linear(d_model, 24), nn.ReLU(), nn.Linear(24, d_model)
        )
        self.layer = Layer(self.attention, self.feed)
        self.layers = nn.ModuleList(
            copy.deepcopy(self.layer) for _ in range(n_layers)
        )
        self.norm = nn.LayerNorm(d_model)
        for p in self.parameters():
            if p.ndim > 1:
                nn.init.xavier_uniform_(p)

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)
"""


def test_a_template_whose_parts_have_other_names_is_one(told):
    parts, _ = told(COPIES)
    messages = " ".join(faults(parts["Stack"]))
    assert "takes no part" not in messages
    apart = COPIES.replace("self.layer = Layer", "layer = Layer")
    parts, _ = told(apart.replace("deepcopy(self.layer)", "deepcopy(layer)"))
    assert "takes no part" in " ".join(faults(parts["Stack"]))


DRAWN = """
class Relative(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.table = torch.randn(63, d_model // n_heads)

    def forward(self, x):
        parts = self.qkv(x).unflatten(-1, (3, self.heads, -1))
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        place = torch.arange(x.shape[1])
        near = self.table[place - place[:, None] + 31]
        scores = q @ k.mT + torch.einsum("bhqd,qkd->bhqk", q, near)
        weights = (scores / q.shape[-1] ** 0.5).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))
"""


def test_a_table_that_is_drawn_and_not_saved_is_a_fault(told):
    parts, _ = told(DRAWN)
    [message] = faults(parts["Relative"])
    assert message.startswith("`table` is a plain tensor whose numbers are")
    for kept in (
        "nn.Parameter(torch.randn(63, d_model // n_heads))",
        "torch.linspace(0, 1, 252).view(63, 4)",
    ):
        drawn = "torch.randn(63, d_model // n_heads)"
        parts, _ = told(DRAWN.replace(drawn, kept))
        assert not faults(parts["Relative"])


UNHEARD = """
def turn(x):
    rate = 10000.0 ** -(torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angle = torch.arange(x.shape[-2])[:, None] * rate
    a, b = x.chunk(2, -1)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([a * cos - b * sin, a * sin + b * cos], -1)


class CausalAttention(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.heads = n_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, mask=None):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).unbind(2)
        TURN
        later = torch.ones(2 * x.shape[1:2]).triu(1).bool()
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(later, -1e9)
        HEAR
        weights = scores.softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))
"""
FRONT = "q, k, v = (y.transpose(1, 2) for y in (q, k, v))"
TURNED = "q, k = turn(q), turn(k)"
READ = "if mask is not None: scores = scores.masked_fill(mask == 0, -1e9)"


def test_a_mask_that_is_never_read_and_heads_that_are_turned_are_risks(told):
    wrong = UNHEARD.replace("TURN", f"{TURNED}; {FRONT}")
    parts, _ = told(wrong.replace("HEAR", "pass"))
    [part] = parts.values()
    assert not faults(part)
    assert "Whatever `mask` hides, nothing changes" in told_of(part)
    assert "so that each head gets an angle" in told_of(part)
    right = UNHEARD.replace("TURN", f"{FRONT}; {TURNED}")
    parts, _ = told(right.replace("HEAR", READ))
    [part] = parts.values()
    assert not faults(part)
    assert "nothing changes" not in told_of(part)
    assert "each head gets an angle" not in told_of(part)


FORCED = """
class Translates(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model):
        super().__init__()
        self.src = nn.Embedding(src_vocab, d_model, padding_idx=0)
        self.tgt = nn.Embedding(tgt_vocab, d_model)
        self.cell = nn.GRUCell(d_model, d_model)
        self.out = nn.Linear(d_model, tgt_vocab)

    def forward(self, src, tgt, teacher_forcing_ratio=0.5):
        place = torch.arange(1, src.shape[1] + 1)[:, None]
        state, token, rows = (self.src(src) * place).sum(1), tgt[:, 0], []
        for i in range(tgt.shape[1]):
            state = self.cell(self.tgt(token), state)
            rows.append(self.out(state))
            own = torch.rand(1).item() < teacher_forcing_ratio
            if i + 1 < tgt.shape[1]:
                token = tgt[:, i + 1] if own else rows[-1].argmax(-1)
        return torch.stack(rows, 1)
"""


def test_a_translator_with_a_teacher_always_gets_the_right_token(told):
    parts, _ = told(FORCED)
    part = parts["Translates"]
    assert "`teacher_forcing_ratio` was 1.0" in said(part)
    assert not faults(part), faults(part)
    parts, _ = told(FORCED.replace("teacher_forcing_ratio", "chance"))
    assert "The second call differs" in faults(parts["Translates"])[0]


ON_A_GPU = HANDED_ON.replace(
    "dropout=0.5):", 'dropout=0.5, device="cuda"):'
).replace("self.nh, self.drop =", "self.device = device; self.nh, self.drop =")


def test_a_device_by_default_is_not_taken(told):
    parts, _ = told(
        ON_A_GPU.replace("self.qkv(x)", "self.qkv(x.to(self.device))")
    )
    assert "device='cpu'" in said(parts["Softly"])
    assert not faults(parts["Softly"])


OF_A_KIND = """
from dataclasses import dataclass


@dataclass
class BaseConfig:
    name: str = "a"

    def __init__(self, **kwargs):
        self.name = kwargs.get("name", "a")


class NetConfig(BaseConfig):
    def __init__(self, hidden_size=2048, intermediate_size=8192, **kwargs):
        self.hidden_size = hidden_size
        self.intermediate_size = intermediate_size
        super().__init__(**kwargs)


class Net(nn.Module):
    def __init__(self, config: NetConfig):
        super().__init__()
        self.up = nn.Linear(config.hidden_size, config.intermediate_size)
        self.down = nn.Linear(config.intermediate_size, config.hidden_size)

    def forward(self, x):
        return self.down(self.up(x).relu())
"""


def test_a_configuration_with_its_own_init_is_made_small(told):
    parts, _ = told(OF_A_KIND)
    assert "hidden_size=12, intermediate_size=24" in said(parts["Net"])
    assert not faults(parts["Net"])


ANOTHER = """
class Crosses(nn.Module):
    def __init__(self, emb_size, head):
        super().__init__()
        self.heads = head
        self.q, self.k, self.v = (nn.Linear(emb_size, emb_size) for _ in "qkv")

    def forward(self, x_q, x_k_v, attn_mask):
        given = (self.q, x_q), (self.k, x_k_v), (self.v, x_k_v)
        q, k, v = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part, x in given
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        hidden = attn_mask.unsqueeze(1).expand(-1, self.heads, -1, -1)
        weights = scores.masked_fill(hidden, -1e9).softmax(-1)
        return (weights @ v).transpose(1, 2).flatten(2)
"""


def test_two_sequences_with_a_mask_that_has_to_be_given_are_understood(told):
    parts, _ = told(ANOTHER)
    assert "it was called as (x, x, mask)" in said(parts["Crosses"])
    assert not faults(parts["Crosses"])


OVER_HEADS = """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).unbind(2)
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return self.out((weights @ v).flatten(2))
"""


def test_attention_by_its_name_that_compares_heads_is_no_network(told):
    parts, _ = told(OVER_HEADS)
    assert parts["MultiHeadAttention"]["component"] == "multihead"
    [message] = faults(parts["MultiHeadAttention"])
    assert "the scores compare the heads of one position" in message
    # Without that name it may be a network with weights of its own.
    parts, _ = told(OVER_HEADS.replace("MultiHeadAttention", "Mixture"))
    assert parts["Mixture"]["component"] == "feed_forward"


OLD_CHECKPOINT = """
from torch.utils.checkpoint import checkpoint


class Saves(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def gather(self, q, k, v):
        return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v

    def forward(self, x):
        parts = self.qkv(x).unflatten(-1, (3, self.heads, -1))
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        y = checkpoint(self.gather, q, k, v, use_reentrant=True)
        return self.out(y.transpose(1, 2).flatten(2))
"""


def test_a_checkpoint_whose_gradients_cannot_be_asked_is_no_fault(told):
    parts, _ = told(OLD_CHECKPOINT)
    assert not parts["Saves"]["found"]["failed"]
    parts, _ = told(
        OLD_CHECKPOINT.replace("q, k, v, use", "q, k.detach(), v, use")
    )
    assert faults(parts["Saves"])


FIXED_WIDTH = """
class SimpleRMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = dim**0.5

    def forward(self, x):
        return nn.functional.normalize(x, dim=-1) * self.scale
"""


def test_a_norm_that_knows_its_width_is_built_for_each(told):
    parts, _ = told(FIXED_WIDTH)
    assert not faults(parts["SimpleRMSNorm"])
    parts, _ = told(FIXED_WIDTH.replace("dim**0.5", "dim**0.5 / 2"))
    assert "The mean square of a vector is not 1" in " ".join(
        faults(parts["SimpleRMSNorm"])
    )


BY_INDEX = """
def attention(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores[..., ~mask] = -1e9
    return scores.softmax(-1) @ v


def masked_softmax(scores, mask):
    scores = scores.clone()
    scores[mask == 0] = -torch.inf
    return scores.softmax(-1)
"""


def test_a_mask_that_is_an_index_refuses_other_shapes_and_is_not_wrong(told):
    parts, left = told(BY_INDEX)
    assert not faults(parts["attention"])
    assert "does not match the shape" in told_of(parts["attention"])
    assert "could not be called as one" in left["masked_softmax"]
    parts, _ = told(BY_INDEX.replace("-1e9", "-1.0"))
    assert faults(parts["attention"])


PICTURE = """
class Reduces(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.heads, self.q = num_heads, nn.Linear(dim, dim)
        self.kv, self.out = nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)

    def forward(self, x, H, W):
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for y in (self.q(x), *self.kv(x).chunk(2, -1))
        )
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))
"""


def test_the_height_of_a_picture_is_no_mask(told):
    parts, left = told(PICTURE)
    assert parts == {}
    assert "no usual call was understood" in left["Reduces"]
    parts, _ = told(PICTURE.replace("x, H, W", "x, mask=None"))
    assert "The mask is not used" in told_of(parts["Reduces"])
