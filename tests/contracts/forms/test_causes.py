"""What is told of a fault, or of what cannot be judged, is its cause."""

import pytest
import torch
from contracts.right import built
from contracts.right.transformer import EncoderDecoder
from torch import nn

from companion.blocks import EncoderLayer
from companion.contracts import check, check_model
from companion.contracts.multihead.multihead import Heads
from companion.contracts.transformer.translation_model import Translator
from companion.positions import sinusoidal
from companion.transformer.layers import DecoderLayer
from companion.words import say, understood

pytestmark = pytest.mark.once


class NearlyZero(nn.Module):
    """A layer whose mask hides with 1e-9 where -1e9 was meant."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(12, 36), nn.Linear(12, 12)
        self.norm = nn.LayerNorm(12)

    def forward(self, x, hide):
        parts = self.qkv(x).chunk(3, -1)
        q, k, v = (y.unflatten(-1, (3, 4)).transpose(1, 2) for y in parts)
        scores = (q @ k.mT / 2).masked_fill(hide[:, None], 1e-9)
        attended = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return self.norm(x + self.out(attended))


def test_a_score_of_nearly_zero_is_named_whatever_true_means():
    for said in ({}, {"mask": "hidden"}):
        report = check("encoder", built(NearlyZero), **said)
        messages = [fault.message for fault in report.faults]
        assert any("1e-9 is nearly 0" in text for text in messages), str(report)


class OverTheBatch(nn.Module):
    """A language model whose attention has the batch for the sequence."""

    def __init__(self):
        super().__init__()
        self.embed, self.places = nn.Embedding(11, 12), nn.Embedding(32, 12)
        self.attention = nn.MultiheadAttention(12, 3)
        self.head = nn.Linear(12, 11)

    def forward(self, tokens):
        x = self.embed(tokens) + self.places.weight[: tokens.shape[1]]
        return self.head(x + self.attention(x, x, x)[0])


def test_sentences_that_see_each_other_in_eval_mode_are_told_of_no_batch_norm():
    report = check("language_model", built(OverTheBatch).eval())
    assert len(report.faults) > 1
    messages = " ".join(fault.message for fault in report.faults)
    assert "BatchNorm" not in messages
    assert "in eval mode as in training mode" in messages


class PlacesAlongTheBatch(nn.Module):
    """It adds a vector to each sentence, and not to each position."""

    def __init__(self, d_model):
        super().__init__()
        self.register_buffer("table", sinusoidal(50, d_model)[:, None])

    def forward(self, x):
        return x + self.table[: len(x)]


def test_who_adds_positions_along_the_batch_is_told_of_no_sight():
    (one,) = check_model(PlacesAlongTheBatch(12)).unjudged
    assert one.reason.startswith("what it adds differs along what stands first")


class ByMethods(nn.Module):
    """It is called by its methods alone."""

    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(11, 12), nn.Linear(12, 11)

    def encode(self, src):
        return self.embed(src)

    def decode(self, tgt, memory):
        return self.head(self.embed(tgt) + memory.mean(1, keepdim=True))


def test_a_module_without_a_forward_is_told_what_to_mark():
    (one,) = check_model(ByMethods()).unjudged
    assert one.reason.startswith("it has no `forward`")


class HidesTheSource(Translator):
    """Rows of the target or of the source see the past of the source only."""

    def __init__(self, place):
        super().__init__()
        self.place = place

    def forward(self, src, tgt):
        given = (src != 0)[:, None, None]
        seen = {"encoder": given, "memory": given}
        rows = {"encoder": src, "memory": tgt}.get(self.place)
        if rows is not None:
            shape = rows.shape[1], src.shape[1]
            seen[self.place] = given & torch.ones(shape).bool().tril()
        order = torch.ones(tgt.shape[1], tgt.shape[1]).bool().tril()
        memory = self.encoded(src, seen["encoder"])
        return self.head(self.decoded(tgt, memory, order, seen["memory"]))


@pytest.mark.parametrize(
    ("place", "where"),
    [("encoder", "among the source tokens"), ("memory", "to the source")],
)
def test_a_source_that_is_hidden_from_some_rows_is_a_risk(place, where):
    report = check("translation_model", built(lambda: HidesTheSource(place)))
    assert report.passed  # By other rows each token moves each logit.
    (risk,) = report.risks
    assert f"An attention {where} hides some of them" in risk.message
    assert risk.cause.startswith("The causal mask is used for the source too")
    assert understood(say(risk.message)), say(risk.message)


class HidesAWord(HidesTheSource):
    """The mask of the source hides a word as well as the padding."""

    def __init__(self, word):
        super().__init__("")
        self.word = word

    def forward(self, src, tgt):
        given = ((src != 0) & (src != self.word))[:, None, None]
        order = torch.ones(tgt.shape[1], tgt.shape[1]).bool().tril()
        memory = self.encoded(src, (src != 0)[:, None, None])
        return self.head(self.decoded(tgt, memory, order, given))


@pytest.mark.parametrize("word", [1, 9])
def test_an_id_that_is_hidden_wherever_it_stands_is_a_risk(word):
    report = check("translation_model", built(lambda: HidesAWord(word)))
    assert report.passed
    (risk,) = report.risks
    assert f"An attention to the source hides the tokens {word} wh" in (
        risk.message
    )
    assert understood(say(risk.message)), say(risk.message)


def test_a_source_that_every_row_sees_is_none():
    report = check("translation_model", built(lambda: HidesTheSource("")))
    assert not report.failures


class WithoutAxis(nn.Module):
    """Attention whose softmax is not told over which axis it runs."""

    def __init__(self, heads=1):
        super().__init__()
        self.heads, self.softmax = heads, nn.Softmax()
        self.q, self.k, self.v = (nn.Linear(12, 12) for _ in "qkv")

    def forward(self, x, mask=None):
        q, k, v = (f(x) for f in (self.q, self.k, self.v))
        if self.heads > 1:
            q, k, v = (
                y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
                for y in (q, k, v)
            )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        y = self.softmax(scores) @ v
        return y.transpose(1, 2).flatten(2) if self.heads > 1 else y


@pytest.mark.filterwarnings("ignore:Implicit dimension")
def test_a_softmax_that_is_told_no_axis_is_named_with_that_it_takes():
    for heads, said in (
        (1, "axis 0 of (2, 5, 5), that of the sentences"),
        (3, "axis 1 of (2, 3, 5, 5), that of the heads"),
    ):
        report = check("multihead", built(lambda h=heads: WithoutAxis(h)))
        messages = " ".join(fault.message for fault in report.faults)
        assert f"A softmax runs over {said}" in messages, str(report)
        assert "Where no `dim` is given, PyTorch takes axis" in messages


class Narrowed(nn.Module):
    """Attention of one head, to itself or to a memory, that is narrower."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(12, 4) for _ in "qkv")

    def forward(self, x, mask=None, encoder_output=None):
        kv = x if encoder_output is None else encoder_output
        return (self.q(x) @ self.k(kv).mT / 2).softmax(-1) @ self.v(kv)


def test_attention_that_may_take_a_memory_is_no_decoder():
    (one,) = check_model(built(Narrowed)).unjudged
    assert "a decoder" not in one.reason
    assert "It returned shape (2, 5, 4) for (2, 5, 12)" in one.reason


def low(scores, hidden):
    return scores.masked_fill(hidden, -1e9)


class Masked(nn.Module):
    """Attention of one head, which fills what is hidden with -1e9."""

    def __init__(self, hidden):
        super().__init__()
        self.hidden, self.qkv = hidden, nn.Linear(12, 36)

    def forward(self, x, mask):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = low(q @ k.mT / 12**0.5, self.hidden(mask[:, 0]))
        return scores.softmax(-1) @ v


class MasksItself(EncoderDecoder):
    """Its target's mask hides what ``hidden`` says, (batch, row, key)."""

    def __init__(self, hidden):
        super().__init__(2)
        for layer in self.layers:
            layer["self"] = Masked(hidden)


def of_order(may):
    rows = may.shape[-1]
    return ~may | torch.eye(rows, dtype=torch.bool)


@pytest.mark.parametrize(
    ("hidden", "words"),
    [
        (of_order, "hides each row's own token too"),
        (lambda may: may, "The past is hidden and the future seen"),
    ],
)
def test_a_mask_that_hides_its_diagonal_or_the_past_is_named(hidden, words):
    report = check("translation_model", built(lambda: MasksItself(hidden)))
    message = report.faults[0].message
    assert words in message
    assert understood(say(message)), say(message)


class SourceUpsideDown(EncoderDecoder):
    """Its encoder sees the padding, and no word where there is some."""

    def masks(self, src, tgt):
        real, seen, memory = super().masks(src, tgt)
        return ~real | real.all(-1, keepdim=True), seen, memory


def test_a_mask_of_the_source_that_is_upside_down_is_named():
    report = check("translation_model", built(lambda: SourceUpsideDown(2)))
    padded = [f for f in report.faults if "Padding behind the" in f.contract]
    assert "a softmax hides the words" in padded[0].message
    assert understood(say(padded[0].message))


class Unweighed(Heads):
    """Its softmax is computed, and the scores are what weighs."""

    def weigh(self, scores, mask):
        scores = scores if mask is None else scores * mask
        scores.softmax(-1)
        return scores


def test_a_softmax_that_is_computed_for_nothing_is_named():
    report = check("multihead", built(Unweighed))
    causes = {fault.cause for fault in report.faults}
    assert all("its result is never used" in cause for cause in causes), causes
    assert all(understood(say(f.message)) for f in report.faults)


class AddNorm(nn.Module):
    """A sum and its norm, which is PyTorch's."""

    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x, more):
        return self.norm(x + more)


def test_a_sum_with_its_norm_is_more_than_a_norm():
    report = check_model(built(lambda: AddNorm(12)))
    [left] = report.unjudged
    assert left.reason == "it ends with a norm, and is more than a norm"


class OneQuery(nn.Module):
    """Its softmax is over the words of one sentence, for one query each."""

    def __init__(self):
        super().__init__()
        self.embed, self.step = nn.Embedding(11, 12), nn.GRUCell(24, 12)
        self.head = nn.Linear(12, 11)

    def forward(self, src, tgt):
        words = self.embed(src)
        words = words + words.cumsum(1)
        state, rows = torch.zeros(len(src), 12), []
        for token in tgt.T:
            scores = (words @ state[..., None])[..., 0] + words[..., 0]
            scores = scores.masked_fill(src == 0, -torch.inf)
            found = (scores.softmax(-1)[:, None] @ words)[:, 0]
            given = torch.cat([self.embed(token), found], -1)
            state = self.step(given, state)
            rows.append(self.head(state))
        return torch.stack(rows, 1)


def test_a_softmax_of_one_query_was_heard():
    report = check("translation_model", built(OneQuery))
    assert not report.faults, str(report)
    assert "could not be followed back" in " ".join(report.assumed)


class AddsByDistance(nn.Module):
    """Each head's scores lose a slope for each step from row to column."""

    def forward(self, scores):
        heads, rows, columns = scores.shape[-3:]
        steps = torch.arange(columns) - torch.arange(rows)[:, None]
        slopes = 0.5 ** torch.arange(1, heads + 1)
        return scores - slopes[:, None, None] * steps.abs()


def test_what_is_added_by_distance_alone_is_no_table_of_positions():
    (one,) = check_model(AddsByDistance()).unjudged
    assert "as in ALiBi" in one.reason


class MLP(nn.Module):
    """A network of two matrices, with its norm in front or without."""

    def __init__(self, norm, inner, last):
        super().__init__()
        self.first, self.inner, self.last = norm, inner, last
        self.up, self.down = nn.Linear(12, 31), nn.Linear(31, 12)

    def forward(self, x):
        return self.last(self.down(self.inner(self.up(self.first(x)))))


def fed(first, inner, last):
    part, *_ = check_model(built(lambda: MLP(first, inner, last))).parts
    assert part.judged.component == "feed_forward"
    return part.judged


def test_a_relu_that_comes_last_is_a_fault_in_what_adds_no_input():
    part = fed(nn.Identity(), nn.Identity(), nn.ReLU())
    assert [f.contract for f in part.report.faults] == [
        "The output takes both signs"
    ]
    assert "it adds its input" not in " ".join(part.assumed)


@pytest.mark.parametrize("norm", [nn.LayerNorm(12), nn.RMSNorm(12)])
def test_a_network_that_is_linear_behind_its_norm_lacks_its_relu(norm):
    (fault,) = fed(norm, nn.Identity(), nn.Identity()).report.faults
    assert "Behind its norm it is linear" in fault.message
    assert understood(say(fault.message))
    for bends in (nn.GELU(), nn.Tanh()):
        assert fed(norm, bends, nn.Identity()).report.passed


class OneOfTheTarget(Translator):
    """What it gathers from the source is one vector of the target."""

    def decoded(self, tgt, memory, mask, memory_mask):
        y = self.encoder[0](self.target(tgt), mask)
        weights = (y @ memory.mT).softmax(-1)
        return y + weights @ y[:, :1].expand_as(memory)


class Deep(Translator):
    """Six layers, whose weights are as small as GPT's."""

    def __init__(self):
        super().__init__()
        self.encoder.extend(EncoderLayer(12, 3, 31) for _ in "3456")
        self.decoder.extend(DecoderLayer(12, 3, 31) for _ in "3456")
        for weight in self.parameters():
            if weight.ndim > 1:
                nn.init.normal_(weight, std=0.02)


@pytest.mark.once
def test_rounding_is_no_influence_of_the_source_and_a_small_one_is():
    report = check("translation_model", built(OneOfTheTarget))
    (fault,) = [f for f in report.faults if "Every source" in f.contract]
    assert "The source is not used at all" in fault.message
    report = check("translation_model", built(Deep))
    assert not report.failures, str(report)


class FirstForAll(Translator):
    """The padding of one sentence is hidden in all, of source or target."""

    def __init__(self, which):
        super().__init__()
        self.which = which

    def masks(self, src, tgt):
        of = super().masks(src, tgt)
        if self.which == "tgt":
            return of._replace(tgt=of.tgt[:1])
        return of._replace(src=of.src[:1], cross=of.cross[:1])


@pytest.mark.parametrize(
    ("which", "contract", "words"),
    [
        ("src", "A short source", "Every sentence gets the mask of the first"),
        ("tgt", "Padding behind the target", "is the mask of one target used"),
    ],
)
def test_a_mask_of_the_first_sentence_for_all_is_a_fault(
    which, contract, words
):
    report = check("translation_model", built(lambda: FirstForAll(which)))
    (fault,) = report.faults
    assert fault.contract.startswith(contract)
    assert words in fault.message
    assert understood(say(fault.message))


class PyTorchs(nn.Module):
    """PyTorch's translator, whose padding of the source may be misread."""

    def __init__(self, padding):
        super().__init__()
        self.words, self.places = nn.Embedding(11, 12), nn.Embedding(32, 12)
        self.inner = nn.Transformer(12, 2, 2, 2, 31, batch_first=True)
        self.padding, self.head = padding, nn.Linear(12, 11)

    def forward(self, src, tgt):
        placed = (self.words(x) + self.places.weight[: x.shape[1]]
                  for x in (src, tgt))  # fmt: skip
        order = torch.ones(tgt.shape[1], tgt.shape[1]).bool().triu(1)
        pads = self.padding(src)
        return self.head(
            self.inner(
                *placed,
                tgt_mask=order,
                src_key_padding_mask=pads,
                memory_key_padding_mask=pads,
            )
        )


@pytest.mark.parametrize(
    ("padding", "words"),
    [
        (lambda src: src != 0, "The mask is upside down: a softmax hides"),
        (
            lambda src: (src == 0)[:1].expand_as(src),
            "Every sentence gets the mask of the first",
        ),
    ],
)
def test_what_pytorchs_own_attention_hides_is_heard(padding, words):
    report = check("translation_model", built(lambda: PyTorchs(padding)).eval())
    assert words in report.faults[0].message


class FirstOfTheMasks(Heads):
    """An axis is added to the mask, and only its first sentence is kept."""

    def weigh(self, scores, mask):
        if mask is None:
            return scores.softmax(-1)
        return scores.masked_fill(~mask[:1], -1e9).softmax(-1)


class OverTheQueries(Heads):
    """Its softmax has the mask, and runs over another axis."""

    def weigh(self, scores, mask):
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        return scores.softmax(2)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (FirstOfTheMasks, "Every sentence gets the mask of the first."),
        (OverTheQueries, "The softmax runs over the queries"),
    ],
)
def test_a_leak_of_heads_is_told_by_what_their_softmax_hears(make, words):
    report = check("multihead", built(make))
    assert words in report.faults[0].message, str(report)
