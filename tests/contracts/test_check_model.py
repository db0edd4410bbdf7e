"""A whole model: what it is, which of its parts are judged, and why not."""

from types import SimpleNamespace

import pytest
import torch
from contracts.right import built
from torch import nn
from torch.nn.utils import skip_init

from companion.contracts import check, check_model
from companion.contracts.discovery import verdict
from companion.contracts.discovery.make import NotBuilt, make
from companion.contracts.discovery.readings import is_open
from companion.transformer import Transformer, TransformerConfig

pytestmark = pytest.mark.once


def translator(vocab=11, **sizes):
    sizes = {"d_model": 24, "num_heads": 3, "d_ff": 17, "num_layers": 2} | sizes
    vocabs = {"src_vocab_size": vocab, "tgt_vocab_size": vocab}
    return Transformer(TransformerConfig(**sizes, **vocabs, pad=0))


def components(report):
    return {part.name: part.judged.component for part in report.parts}


def test_a_translator_and_its_parts_are_judged_at_any_width():
    model = translator().train()
    report = check_model(model)
    assert model.training
    assert report.kind == "translation_model"
    assert report.passed
    assert components(report) == {
        "": "translation_model",
        "positions": "add_positions",
        "encoder": "encoder",
        "encoder.layers.0": "encoder",
        "encoder.layers.0.self_attention": "multihead",
        "encoder.layers.0.attention_residual.norm": "layer_norm",
        "encoder.layers.0.feed_forward": "feed_forward",
        # Beside a memory that stays the same.
        "decoder": "encoder",
        "decoder.layers.0": "encoder",
    }
    assert "self_attention (MultiHeadAttention), and 5 more like it" in str(
        report
    )
    left = {one.name: one.reason for one in report.unjudged}
    assert "it looks ids up" in left["tgt_embedding"]
    assert "decoder" not in left
    page = report._repr_mimebundle_()["text/html"]
    assert page.count("companion-check") >= len(report.parts)


class Wide(nn.Module):
    """Attention of a usual kind, which may have a mistake."""

    def __init__(self, n_embd, n_head, join=True):
        super().__init__()
        self.n_head, self.right = n_head, join
        self.qkv = nn.Linear(n_embd, 3 * n_embd)
        self.proj = nn.Linear(n_embd, n_embd)

    def forward(self, x, mask=None):
        batch, seq, width = x.shape
        q, k, v = (
            part.unflatten(-1, (self.n_head, -1)).transpose(1, 2)
            for part in self.qkv(x).chunk(3, -1)
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(x.dtype).min)
        y = scores.softmax(-1) @ v
        y = y.transpose(1, 2) if self.right else y
        return self.proj(y.reshape(batch, seq, width))


class Causal(nn.Module):
    """A language model, causal if it is told."""

    def __init__(self, config, causal=True, **more):
        super().__init__()
        width = config.n_embd
        self.causal = causal
        self.wte = nn.Embedding(config.vocab_size, width)
        self.wpe = nn.Embedding(config.block_size, width)
        self.attn = Wide(width, config.n_head, **more)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, config.vocab_size)

    def forward(self, idx):
        seq = idx.shape[1]
        x = self.wte(idx) + self.wpe.weight[:seq]
        mask = torch.ones(seq, seq).tril().bool() if self.causal else None
        return self.head(x + self.attn(self.norm(x), mask))


CONFIG = SimpleNamespace(vocab_size=13, n_embd=20, n_head=4, block_size=16)


def test_a_language_model_is_told_from_one_whose_purpose_does_not_show():
    report = check_model(Causal(CONFIG))
    assert report.kind == "language_model"
    assert report.parts[0].judged.report.passed
    assert components(report)["attn"] == "multihead"
    report = check_model(Causal(CONFIG, causal=False))
    [whole] = [one for one in report.unjudged if not one.name]
    assert "every row sees all tokens" in whole.reason
    assert "Only you know" in whole.reason


class Gaps(Causal):
    """Fills gaps; what is padding, it is told."""

    def __init__(self, *, forgets):
        super().__init__(CONFIG, causal=False)
        self.forgets = forgets

    def forward(self, input_ids, attention_mask=None):
        x = self.wte(input_ids) + self.wpe.weight[: input_ids.shape[1]]
        mask = attention_mask
        if mask is not None:
            mask = None if self.forgets else mask[:, None, None] > 0
        return self.head(x + self.attn(self.norm(x), mask))


@pytest.mark.parametrize("forgets", [True, False])
def test_a_mask_that_an_encoder_of_ids_forgets_is_told(forgets):
    [whole] = check_model(Gaps(forgets=forgets)).unjudged
    said = "Whatever `attention_mask` hides, no number changes"
    assert (said in whole.reason) == forgets
    assert whole.reason.startswith("ids go in, a row of numbers for each")


def test_a_mistake_in_a_part_of_another_width_is_named():
    report = check_model(Causal(CONFIG, join=False))
    assert not report.passed
    found = {part.name: part.judged.report for part in report.parts}
    [first, *_] = found["attn"].faults
    assert "where heads are split or joined" in first.message


class Hiding(Wide):
    """What is True in its masks is hidden."""

    def forward(self, x, mask=None):
        return super().forward(x, None if mask is None else ~mask)


class Named(Wide):
    """The name of its argument says that True hides."""

    def forward(self, x, key_padding_mask=None):
        may = None if key_padding_mask is None else ~key_padding_mask
        return super().forward(x, may)


@pytest.mark.parametrize(
    ("make", "word", "asks", "wrong", "says"),
    [
        (Wide, None, False, False, ""),
        (Wide, "shown", False, False, ""),
        (Wide, "hidden", False, True, "If True shows in your masks after all"),
        (Hiding, None, True, False, ""),
        (Hiding, "shown", False, True, "If True hides in your masks after all"),
        (Hiding, "hidden", False, False, "as `mask` says"),
        (Named, None, False, False, "hides, as `key_padding_mask` says"),
    ],
)
def test_what_true_means_is_asked_unless_it_was_said(
    make, word, asks, wrong, says
):
    report = check_model(make(18, 3), mask=word)
    [part] = report.parts
    assert bool(report.faults) == wrong
    assert report.passed != wrong
    assert is_open(part.judged.report) == asks
    assert says in str(part).replace("\n   ", " ")
    upside_down = [
        f for f in report.failures if f.contract.startswith("With a causal")
    ]
    assert [f.level for f in upside_down] == ["risk"] * asks + ["fault"] * wrong


@pytest.mark.parametrize("word", [None, "shown", "hidden"])
def test_a_model_that_makes_its_masks_itself_is_right_either_way(word):
    report = check_model(Causal(CONFIG), mask=word)
    [whole, *_] = report.parts
    assert whole.judged.component == "language_model"
    assert whole.judged.report.passed
    assert not is_open(whole.judged.report)


def test_a_fault_beside_hidden_masks_is_told_in_the_reading_that_fits_better():
    report = check_model(Hiding(18, 3, join=False))
    assert not report.passed
    assert "It has faults whatever True means" in str(report)
    assert {f.cause for f in report.faults} == {report.faults[0].cause}
    assert "where heads are split or joined" in report.faults[0].message


@pytest.mark.bad_input
def test_another_word_about_masks_is_refused():
    with pytest.raises(ValueError, match=r"^mask: expected .* got 'True'"):
        check_model(Wide(18, 3), mask="True")


def test_a_vocabulary_that_is_too_small_is_told():
    small = SimpleNamespace(**vars(CONFIG) | {"vocab_size": 7, "block_size": 9})
    report = check_model(Causal(small))
    assert report.kind == ""
    [whole] = [one for one in report.unjudged if not one.name]
    assert "its vocabulary has 9 tokens at most" in whole.reason
    assert "build it with 10 at least" in whole.reason
    assert components(report)["attn"] == "multihead"


@pytest.mark.bad_input
@pytest.mark.parametrize("what", [Wide, torch.softmax, "model"])
def test_what_is_no_module_is_refused(what):
    with pytest.raises(TypeError, match="model: expected a module"):
        check_model(what)


def test_a_class_is_built_from_the_names_of_its_arguments():
    built, said = make(Wide, {})
    assert said == "Wide(n_embd=12, n_head=3)"
    assert built.n_head == 3
    _, said = make(Causal, {})
    sizes = "n_embd=12, vocab_size=11, block_size=32, n_head=3"
    assert said == f"Causal(config=Sizes({sizes}))"

    class Odd(nn.Module):
        def __init__(self, who_knows): ...

    with pytest.raises(NotBuilt, match="what its argument `who_knows` is"):
        make(Odd, {})


class Needing(nn.Module):
    """A length is None unless it is given, and no table has so many rows."""

    def __init__(self, h_dim, max_len=None, scale=None):
        super().__init__()
        self.table, self.scale = nn.Embedding(max_len, h_dim), scale


class Choosing(Needing):
    """What is None is chosen inside."""

    def __init__(self, h_dim, max_len=None, scale=None):
        super().__init__(h_dim, max_len or 7, scale)


def test_a_size_that_may_be_none_is_given_where_none_raises():
    built, said = make(Needing, {})
    assert said == "Needing(h_dim=12, max_len=32)"
    assert built.table.weight.shape == (32, 12)
    assert built.scale is None
    built, said = make(Choosing, {})
    assert said == "Choosing(h_dim=12)"
    assert len(built.table.weight) == 7


class LeftEmpty(nn.Module):
    """Leaves its matrix to others to draw, and keeps what is not drawn."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.enter = skip_init(nn.Linear, d_model, d_ff)
        self.kept = torch.empty(7)


class AllItsOwn(LeftEmpty):
    """So is a matrix that no part of it can draw."""

    def __init__(self, d_model, d_ff):
        super().__init__(d_model, d_ff)
        self.leave = nn.Parameter(torch.empty(d_ff, d_model))


def test_weights_that_a_class_leaves_empty_are_drawn_as_pytorch_does():
    built, said = make(LeftEmpty, {})
    assert said.endswith("with weights that `reset_parameters()` drew")
    assert 0.1 < built.enter.weight.abs().max() < 12**-0.5
    assert not built.kept.any()
    with pytest.raises(NotBuilt, match="nothing draws its `leave`"):
        make(AllItsOwn, {})
    assert not torch.are_deterministic_algorithms_enabled()


class Endless(Causal):
    def forward(self, idx):
        while True:
            pass


class Leaves(Causal):
    def forward(self, idx):
        raise SystemExit(3)


class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.LazyLinear(12)

    def forward(self, x):
        return self.up(x).relu()


class Shouts(nn.Module):
    def forward(self, x):
        raise ValueError("\x1b[2Jno\u202e")


@pytest.mark.bad_input
@pytest.mark.parametrize(
    ("model", "says"),
    [
        (lambda: Endless(CONFIG), "had not come back after 0.5 seconds"),
        (lambda: Leaves(CONFIG), "raised SystemExit"),
        (Lazy, "its parameters have no shape yet: call it once"),
        (Shouts, "`: [2Jno"),
        (nn.Module, "NotImplementedError"),
    ],
)
def test_a_model_that_cannot_be_called_is_not_judged_and_the_reason_told(
    model, says, monkeypatch
):
    monkeypatch.setattr(verdict, "SECONDS", 0.5)
    report = check_model(model())
    [whole] = [one for one in report.unjudged if not one.name]
    assert says.replace("0.5", "5") in whole.reason
    assert not set("\x1b\u202e") & set(str(report))


def test_attention_with_its_mask_built_in_is_judged_as_such():
    class Past(Wide):
        def forward(self, x):
            seq = x.shape[1]
            return super().forward(x, torch.ones(seq, seq).tril().bool())

    class Model(Causal):
        def __init__(self, config, **more):
            super().__init__(config)
            self.attn = Past(config.n_embd, config.n_head, **more)

        def forward(self, idx):
            x = self.wte(idx) + self.wpe.weight[: idx.shape[1]]
            return self.head(x + self.attn(self.norm(x)))

    report = check_model(Model(CONFIG))
    assert report.passed
    assert components(report)["attn"] == "causal_attention"


class SelfAttention(Wide):
    """Its weights are e to the score, and nothing divides by their sum."""

    def forward(self, x, mask=None):
        q, k, v = (
            part.unflatten(-1, (self.n_head, -1)).transpose(1, 2)
            for part in self.qkv(x).chunk(3, -1)
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return self.proj((scores.exp() @ v).transpose(1, 2).flatten(2))


def test_attention_whose_weights_are_no_averages_is_no_encoder():
    (part,) = check_model(SelfAttention(12, 3)).parts
    assert part.judged.component == "multihead"
    assert any("sum to 1" in f.message for f in part.judged.report.faults)


def test_attention_that_is_given_the_causal_mask_is_judged_in_its_place():
    class Given(Wide):
        def forward(self, x, hidden):
            return super().forward(x, ~hidden)

    class Model(Causal):
        def __init__(self, config, **more):
            super().__init__(config)
            self.attn = Given(config.n_embd, config.n_head, **more)

        def forward(self, idx):
            seq = idx.shape[1]
            x = self.wte(idx) + self.wpe.weight[:seq]
            hidden = torch.ones(1, 1, 1, seq, seq).triu(1).bool()[0]
            return self.head(x + self.attn(self.norm(x), hidden))

    for join in (True, False):
        report = check_model(Model(CONFIG, join=join))
        [attention] = [p for p in report.parts if p.name == "attn"]
        assert attention.judged.report.passed == join


class NormInTheCall(Wide):
    """Its norm is never trained, for each call makes another."""

    def forward(self, x, mask=None):
        return super().forward(nn.LayerNorm(x.shape[-1])(x), mask)


class NormInTheFirstCall(Wide):
    """Its norm is made late, and kept."""

    def forward(self, x, mask=None):
        if not hasattr(self, "norm"):
            self.norm = nn.LayerNorm(x.shape[-1])
        x = nn.Identity()(self.norm(x))
        return super().forward(x, mask)


def test_a_module_that_each_call_makes_anew_is_heard():
    before = nn.Module.__init__
    found = check("multihead", NormInTheCall(12, 3))
    [said] = [f.message for f in found.failures if "takes part" in f.contract]
    assert said.startswith("A LayerNorm is made anew in each call, so its")
    found = check("multihead", NormInTheFirstCall(12, 3))
    assert "Every weight of a module takes part" in found.held
    assert nn.Module.__init__ is before


class Bound(nn.Module):
    """A translator whose mask of the source has as many rows as the source.

    It raises where the two sentences differ in length.
    """

    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(11, 12), nn.Embedding(16, 12)
        self.head = nn.Linear(12, 11)

    def vectors(self, ids):
        """Vectors of ids, with their places."""
        return self.embed(ids) + self.place(torch.arange(ids.shape[1]))

    def forward(self, src, tgt):
        x, y = self.vectors(src), self.vectors(tgt)
        real = (src != 0)[:, None].expand(-1, src.shape[1], -1)
        past = torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool).tril()
        attend = nn.functional.scaled_dot_product_attention
        y = y + attend(y, y, y, past)
        return self.head(y + attend(y, x, x, real))


def test_a_translator_that_raises_is_told_so_and_not_of_a_causal_mask():
    report = check_model(built(Bound))
    (one,) = report.unjudged
    assert "causal mask" not in one.reason
    assert "It raised RuntimeError" in one.reason
    assert "`Bound.forward`" in one.reason


class Segments(Bound):
    """As BERT: beside each token stands the number of its sentence."""

    def forward(self, tokens, segment_ids):
        x = self.vectors(tokens) + self.embed(segment_ids)
        attend = nn.functional.scaled_dot_product_attention
        return self.head(x + attend(x, x, x))


class ForItsLoss(Bound):
    """A language model that wants its targets, and has lost its mask."""

    def forward(self, tokens, targets):
        x = self.vectors(tokens)
        x = x + nn.functional.scaled_dot_product_attention(x, x, x)
        logits = self.head(x)
        loss = nn.functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten()
        )
        return logits, loss


class ShortlySegments(Segments):
    """The same, called in short."""

    def forward(self, tokens, seg):
        return super().forward(tokens, seg)


@pytest.mark.parametrize("make", [Segments, ShortlySegments, ForItsLoss])
def test_what_reads_one_sentence_is_still_told_of_a_causal_mask(make):
    (one,) = check_model(built(make)).unjudged
    assert "the causal mask is missing" in one.reason
