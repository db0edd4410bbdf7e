"""Contracts of an encoder–decoder: logits of the target, given the source.

Row i of the logits is for the target token after position i, and may know the
target tokens 0 … i and all of the source, padding excepted. What is inside
cannot be seen. Sources have 5 tokens, and targets 4.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from companion.blocks import PARTS, EncoderLayer
from companion.contracts.engine.compare import Broken, finite, furthest, same
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.levels import NOTE, RISK
from companion.contracts.engine.masking import (
    EACH_OTHERS,
    THE_FIRSTS,
    causal,
    hides_padding,
)
from companion.contracts.engine.scale import (
    Heard,
    divided_by_the_root_of_a_head,
    each_others_masks,
    hidden_from_each,
    hides_all,
    the_firsts_mask,
    written_out,
)
from companion.contracts.transformer.activations import (
    Straight,
    activation_between,
)
from companion.contracts.transformer.language_model import (
    BATCH,
    ELSEWHERE,
    SHARE,
    WORDS,
    drawn,
    gaps,
    read_logits,
    replaced,
    require_causal,
    require_logits,
    require_order,
    require_past,
    require_places,
    sentences,
    token_reach,
    whole_gap,
)
from companion.contracts.transformer.residuals import (
    require_own_weights,
    require_paths,
)
from companion.masks import causal_mask, combine_masks
from companion.multihead import MultiHeadAttention
from companion.transformer.layers import DecoderLayer

__all__ = ["TRANSLATION_MODEL"]

SRC, TGT, PAD = 5, 4, 0
UNUSED = "The source is not used at all: is there attention to the memory?"

CAUSAL = (
    "The causal mask is used for the source too: the source is all known "
    "before the first target token is."
)

ONE_TOKEN = "Only one token of the source arrives: attend to all of the memory."

PADDED = (
    "Do the encoder and the attention to the memory both get the mask of the "
    "source's padding?"
)

NO_PATH = (
    "With the weights of `{}` at 0 nothing of the target reaches the logits: "
    "what it says replaces what came in. Is the residual connection around it "
    "missing, `x + f(x)`?"
)

TURNED = (
    "The mask is upside down: a softmax hides the words, and the padding is "
    "what it sees."
)

PADDING_HIDDEN = (
    "Each softmax hides the padding, so that the masks are in order: inside "
    "attention, does a `view` mix positions and heads for want of a transpose? "
    "Or does a norm or a mean run over the positions?"
)

NOBODY = (
    "A row of a mask hides every key: all its scores are -∞, and the softmax "
    "of that is 0/0. Hide the keys that are padding, and not its rows."
)

PADDING_IS_NAN = (
    "Only the rows of padding are NaN, which no translation reads; but a loss "
    "has NaN gradients of them, even if it leaves them out."
)

UNGIVEN = "{0} was not given, for no usual mask of padding fits."

BY_ADAPTER = "An adapter gives it, `lambda src, tgt: yours(src, tgt, {0}=…)`."

GIVEN = "It is right if it hides the padding once it is given its mask."

SOURCE_ORDER = (
    "Source tokens 0 and 1 changed places, and the last row did not notice: "
    "are positions added to the source?"
)

TARGET_ORDER = (
    "Target tokens 0 and 1 changed places, and the last row did not notice: "
    "are positions added to the target?"
)


def pairs(seed: int, batch: int = 2) -> tuple[Tensor, Tensor]:
    """Sources and targets of the tokens 1 … 9, without padding."""
    return sentences(seed, batch, SRC), sentences(seed + 1, batch, TGT)


TRANSLATION_MODEL = Component(
    name="translation_model",
    weights=True,
    signature="translation_model(src, tgt)",
    returns="logits (batch, tgt, vocab)",
    axes=("position", "logit"),
    shape=lambda src, tgt: (*tgt.shape, None),
    dtype=torch.float32,
    read=read_logits,
    cases=lambda: {"for two pairs": pairs(2)},
    shape_hints={
        "There is one row for each source token: are source and target "
        "swapped, or queries and memory?": lambda src, tgt: (*src.shape, None),
        "Only the last position has logits: each one predicts its next "
        "token.": lambda src, tgt: (len(tgt), None),
        "Is the batch not first?": lambda src, tgt: (
            tgt.shape[1],
            len(tgt),
            None,
        ),
        "The vocabulary comes last: `cross_entropy` wants it second, and gets "
        "`logits.transpose(1, 2)`.": lambda src, tgt: (
            len(tgt),
            None,
            tgt.shape[1],
        ),
    },
)


@TRANSLATION_MODEL.before_reference
def sentences_apart(fn: Guarded) -> None:
    """A pair has the logits that it has alone."""
    src, tgt = pairs(31, 3)
    alone = [fn(src[i : i + 1], tgt[i : i + 1]) for i in range(3)]
    why = (
        "In a batch a pair has other logits than alone: do sentences see each "
        "other, or are positions counted along the batch?"
    )
    same(fn, fn(src, tgt), torch.cat(alone), why)


@TRANSLATION_MODEL.before_reference
def future(fn: Guarded) -> None:
    """No logit knows a target token of its future."""
    try:
        require_causal(fn, pairs(3, BATCH), 1, "target token")
    except Broken as broken:
        if broken.cause == ELSEWHERE and all_get_the_firsts(fn):
            broken.message = broken.message.replace(ELSEWHERE, THE_FIRSTS)
            broken.cause = THE_FIRSTS
        raise


@TRANSLATION_MODEL.before_reference
def source(fn: Guarded) -> None:
    """Every source token can move every logit."""
    args = pairs(5, BATCH)
    every = torch.ones(TGT, SRC, dtype=torch.bool)
    seen = token_reach(fn, args, 0, every)
    missing = ~seen
    if missing.any():
        row, position = missing.nonzero()[0].tolist()
        hint = why_deaf(fn, seen)
        raise Broken(
            f"The logits of position {row} do not move with source token "
            f"{position}, whatever it is. {hint}".rstrip(),
            seen.float(),
            every.float(),
            ("row", "moves with"),
            hint,
        )
    require_all_seen(fn, args[1])


def require_all_seen(fn: Guarded, tgt: Tensor) -> None:
    """Raise Broken if an attention hides source tokens that are no padding.

    They may move every logit all the same, by the encoder's vectors of others.
    """
    where = "among the source tokens", "to the source"
    src = torch.stack([torch.arange(SRC) + 1, WORDS - 1 - torch.arange(SRC)])
    for (_, each), words in zip(
        hidden_sources(fn, src, tgt), where, strict=True
    ):
        for hidden in each:
            part = hidden.float().mean(0)
            if ids := ids_hidden(hidden, src):
                told = ", ".join(map(str, ids))
                says = HIDES_IDS.format(words, told, PAD)
                raise Broken(says, cause=says, level=RISK, why=NO_WORDS)
            if (part == 1).any():
                why = CAUSAL if is_triangle(part == 1) else ""
                raise Broken(
                    f"An attention {words} hides some of them from some rows, "
                    f"and none is padding. {why}".rstrip(),
                    part,
                    torch.zeros_like(part),
                    ("row", "is hidden"),
                    why,
                    level=RISK,
                    why=ON_PURPOSE,
                )


HIDES_IDS = (
    "An attention {} hides the tokens {} wherever they stand, and padding is "
    "{} alone: may a mask be made of the wrong ids?"
)
NO_WORDS = "It is right if they are marks that no word is to look at."


def ids_hidden(hidden: Tensor, src: Tensor) -> list[int]:
    """List the ids that an attention hides from all rows, and nothing else.

    Args:
        hidden: What it hides, (batch × head, row, key).
        src: The tokens, (batch, key).
    """
    heads = len(hidden) // len(src)
    keys = hidden.all(1)
    if not heads or keys.shape[1] != src.shape[1]:
        return []
    tokens = src.repeat_interleave(heads, 0)
    ids = tokens[keys].unique()
    everywhere = torch.equal(torch.isin(tokens, ids), keys)
    alike = torch.equal(hidden, keys[:, None].expand_as(hidden))
    return ids.tolist() if everywhere and alike else []


def is_triangle(hidden: Tensor) -> bool:
    """Tell whether just what comes after each row is hidden."""
    return torch.equal(hidden, torch.ones_like(hidden).triu(1))


ON_PURPOSE = (
    "A translator that begins before it has heard the whole sentence hides the "
    "rest on purpose, and so does one that looks at a window."
)


def why_deaf(fn: Guarded, seen: Tensor) -> str:
    """How rows come to move with some source tokens only, or nothing."""
    if not seen.any():
        heard = hidden_sources(fn, *unequal()) if fn.asks_why else []
        return TURNED if turned(heard) else UNUSED
    if torch.equal(seen, torch.ones_like(seen).tril()):
        return CAUSAL
    return ONE_TOKEN if seen.any(0).sum() == 1 else ""


@TRANSLATION_MODEL.contract
def past(fn: Guarded) -> None:
    """Every target token of the past can move a logit."""
    args = pairs(7, BATCH)
    seen = token_reach(fn, args, 1, causal(TGT))
    if torch.equal(seen, causal(TGT) & (torch.arange(TGT) > 0)):
        raise Broken(
            "No logits move with target token 0, whatever it is: the model "
            "begins with a start token of its own.",
            *drawn(seen),
            level=NOTE,
            why="A target always begins with the same token, so that nothing "
            "is lost where the model knows it.",
        )
    if not torch.equal(seen, causal(TGT)):
        require_past(fn, args, 1, "target token")


@TRANSLATION_MODEL.contract
def source_order(fn: Guarded) -> None:
    """The order of the source counts."""
    require_order(fn, pairs(11, BATCH), 0, SOURCE_ORDER)


@TRANSLATION_MODEL.contract
def target_order(fn: Guarded) -> None:
    """The order of the target's past counts."""
    require_order(fn, pairs(13, BATCH), 1, TARGET_ORDER)
    require_places(fn, pairs(13, BATCH), 1)


@TRANSLATION_MODEL.contract
def past_the_layers(fn: Guarded) -> None:
    """In the decoder a path leads past every sub-layer."""
    src, tgt = pairs(43)
    both = torch.cat([tgt, replaced(tgt, slice(None))])

    def moves() -> Tensor:
        one, other = fn.raw(src.repeat(2, 1), both).detach().chunk(2)
        return (one - other).abs()

    require_paths(fn, moves, lambda: fn.raw(src, tgt), NO_PATH)


@TRANSLATION_MODEL.contract
def layers_of_their_own(fn: Guarded) -> None:
    """Each layer has weights of its own."""
    require_own_weights(fn, lambda: fn.raw(*pairs(47)))


@TRANSLATION_MODEL.contract
@hides_padding("source")
def source_padding(fn: Guarded) -> None:
    """Padding behind the source changes nothing."""
    src, tgt = pairs(17, BATCH)
    longer = F.pad(src, (0, 2), value=PAD)
    padded = fn.raw(longer, tgt)
    require_seen(fn, longer, tgt, padded)
    before = fn(src, tgt)
    moved = gaps(padded, before)
    # Of another length the same sums round otherwise.
    if moved.max() > 100 * SHARE * whole_gap(fn, (src, tgt), 0, before):
        row, why = int(moved.argmax()), why_read(fn, longer, tgt)
        raise asked(
            fn,
            longer,
            tgt,
            Broken(
                f"Two tokens of padding (id {PAD}) behind the source move the "
                f"logits of position {row}, by up to {moved[row]:.2g}. {why}",
                cause=why,
            ),
        )


def why_read(fn: Guarded, src: Tensor, tgt: Tensor) -> str:
    """Name the mistake after which padding of the source counts."""
    heard = hidden_sources(fn, src, tgt) if fn.asks_why else []
    if any(each_others_masks(hidden, may) for may, hidden in heard):
        return EACH_OTHERS
    if turned(heard):
        return TURNED
    if heard and all_get_the_firsts(fn):
        return THE_FIRSTS
    kept = all(hides_all(hidden, may) for may, hidden in heard)
    return PADDING_HIDDEN if heard and kept else PADDED


def turned(heard: list[tuple[Tensor, list[Tensor]]]) -> bool:
    """Tell whether some attention over the source sees its padding alone."""
    return any(
        torch.equal(x, written_out(may, x)) for may, each in heard for x in each
    )


def all_get_the_firsts(fn: Guarded) -> bool:
    """Tell whether some attention has the first source's mask for all."""
    heard = hidden_sources(fn, *unequal())
    return any(the_firsts_mask(hidden, may) for may, hidden in heard)


def hidden_sources(
    fn: Guarded, src: Tensor, tgt: Tensor
) -> list[tuple[Tensor, list[Tensor]]]:
    """Return what each attention over the source hides, beside what it may see.

    First those whose rows are the source's own, then those of the target's.
    """
    src, tgt = src[:2], tgt[:2]  # To listen to many sentences takes long.
    # A decoder that shifts by itself reads a token more, which must not make
    # its rows as many as the source's.
    tgt = tgt[:, : src.shape[1] - 2]
    may = [
        (src != PAD)[:, None].expand(-1, rows, -1)
        for rows in (src.shape[1], tgt.shape[1])
    ]
    return [*zip(may, hidden_from_each(fn, (src, tgt), may), strict=True)]


def unequal() -> tuple[Tensor, Tensor]:
    """Sources of 2 and of 5 tokens, and their targets."""
    src, tgt = pairs(19)
    src[0, 2:] = PAD
    return src, tgt


@TRANSLATION_MODEL.contract
@hides_padding("source")
def unequal_sources(fn: Guarded) -> None:
    """A short source beside a long one has the logits that it has alone."""
    short, tgt = unequal()
    got = fn.raw(short, tgt)
    alone = torch.cat([fn(short[:1, :2], tgt[:1]), fn(short[1:], tgt[1:])])
    require_seen(fn, short, tgt, got)
    if furthest(got, alone) is not None:
        why = why_read(fn, short, tgt)
        says = f"Its padding, or the other sentence, counts. {why}"
        try:
            same(fn, got, alone, says, cause=why)
        except Broken as broken:
            raise asked(fn, short, tgt, broken) from None


def asked(fn: Guarded, src: Tensor, tgt: Tensor, broken: Broken) -> Broken:
    """Make a question of a leak, if a mask is left out that nobody else makes.

    Args:
        fn: What is checked.
        src: Sources with padding.
        tgt: Their targets.
        broken: What was found.
    """
    left = getattr(fn.form, "ungiven", ())
    if not left or makes_a_mask(fn, src, tgt):
        return broken
    names = " and ".join(f"`{name}`" for name in left)
    told = f"{UNGIVEN.format(names)} {BY_ADAPTER.format(left[0])}"
    broken.message = broken.message.replace(broken.cause, told)
    broken.cause, broken.level, broken.why = told, RISK, GIVEN
    return broken


def makes_a_mask(fn: Guarded, src: Tensor, tgt: Tensor) -> bool:
    """Tell whether some attention hides some of the source's padding."""
    return any(
        (hidden & ~may.repeat_interleave(len(hidden) // len(may), 0)).any()
        for may, each in hidden_sources(fn, src, tgt)
        for hidden in each
    )


@TRANSLATION_MODEL.contract
@hides_padding("target")
def target_padding(fn: Guarded) -> None:
    """Padding behind the target changes no row before it."""
    src, tgt = pairs(23)
    longer = F.pad(tgt, (0, 3), value=PAD)
    got = fn.raw(src, longer)
    require_seen(fn, src, longer, got[:, :TGT])
    why = "Three tokens of padding (id 0) behind the target move earlier rows."
    same(fn, got[:, :TGT], fn(src, tgt), why)
    require_own_padding(fn, src, tgt)
    try:
        finite(fn, got, NOBODY, cause=NOBODY)
    except Broken as broken:
        broken.level, broken.why = RISK, PADDING_IS_NAN
        raise


def require_own_padding(fn: Guarded, src: Tensor, tgt: Tensor) -> None:
    """Raise Broken if the padding of a target hides tokens of another."""
    short = tgt.clone()
    short[0, 2:] = PAD
    got, alone = fn.raw(src, short)[1:], fn(src[1:], tgt[1:])
    same(fn, got, alone, ONE_FOR_ALL, cause=ONE_FOR_ALL)


ONE_FOR_ALL = (
    "The padding of target 0 changes the logits of target 1: is the mask of "
    "one target used for all?"
)


def require_seen(fn: Guarded, src: Tensor, tgt: Tensor, got: Tensor) -> None:
    """Raise Broken if ``got`` is NaN, say for scores that are all -∞."""
    if got.isfinite().all():
        return
    with Heard(2) as heard:
        fn.raw(src[:2], tgt[:2])
    if any(x.all(-1).any() for x in heard.hidden):
        finite(fn, got, NOBODY, cause=NOBODY)
    fn(src, tgt)


@TRANSLATION_MODEL.contract
def prefix(fn: Guarded) -> None:
    """The logits of a target's beginning are those of the whole."""
    src, tgt = pairs(29)
    whole = fn(src, tgt)
    for seq in range(1, TGT):
        why = (
            f"The first {seq} target tokens alone have other logits than "
            f"within {TGT}, so serial decoding would not say the same."
        )
        same(fn, fn(src, tgt[:, :seq]), whole[:, :seq], why)


@TRANSLATION_MODEL.contract
def logits(fn: Guarded) -> None:
    """It returns logits, not probabilities."""
    require_logits(fn(*pairs(37, BATCH)))


TRANSLATION_MODEL.contract(divided_by_the_root_of_a_head(lambda: pairs(41)))
TRANSLATION_MODEL.contract(activation_between(lambda: pairs(43)))


# Known mistakes


class Translator(nn.Module):
    """Two layers of encoder, two of decoder, and learned positions."""

    def __init__(self):
        super().__init__()
        self.src, self.tgt = nn.Embedding(11, 12), nn.Embedding(11, 12)
        self.places = nn.Embedding(16, 12)
        sizes = 12, 3, 31
        self.encoder = nn.ModuleList(EncoderLayer(*sizes) for _ in "12")
        self.decoder = nn.ModuleList(DecoderLayer(*sizes) for _ in "12")
        self.head = nn.Linear(12, 11)

    def placed(self, x):
        """Vectors with their positions."""
        return x + self.places.weight[: x.shape[1]]

    def source(self, src):
        """The source's tokens with their places."""
        return self.placed(self.src(src))

    def target(self, tgt):
        """The target's tokens with their places."""
        return self.placed(self.tgt(tgt))

    def masks(self, src, tgt):
        """For the source, the target and the memory; the padding is 0."""
        return combine_masks(src, tgt, 0)

    def encoded(self, src, mask):
        """The memory."""
        x = self.source(src)
        for layer in self.encoder:
            x = layer(x, mask)
        return x

    def decoded(self, tgt, memory, mask, memory_mask):
        """What each target position knows."""
        y = self.target(tgt)
        for layer in self.decoder:
            y = layer(y, memory, mask, memory_mask)
        return y

    def forward(self, src, tgt):
        """Logits (batch, tgt, vocab)."""
        own, mask, memory_mask = self.masks(src, tgt)
        memory = self.encoded(src, own)
        return self.head(self.decoded(tgt, memory, mask, memory_mask))


@TRANSLATION_MODEL.mistake(
    symptom="the loss goes to 0, and translations are one word over and over",
)
class DecoderWithoutCausalMask(Translator):
    """The target is masked as the source is, for its padding only."""

    def masks(self, src, tgt):
        hides_pads = (tgt != 0)[:, None, None]
        return super().masks(src, tgt)._replace(tgt=hides_pads)


@TRANSLATION_MODEL.mistake(
    symptom="it writes a word, reads it with those behind it, and no score is "
    "what it was in training",
)
class CausalInTrainingOnly(Translator):
    """The causal mask is left out where there is no future yet, in use.

    But the prefix is read anew, and its rows see each other.
    """

    def masks(self, src, tgt):
        masks = super().masks(src, tgt)
        hides_pads = (tgt != 0)[:, None, None]
        return masks if self.training else masks._replace(tgt=hides_pads)


@TRANSLATION_MODEL.mistake(
    symptom="the loss is near 0 at once: each row copies its own answer",
)
class ReadsItsOwnAnswer(Translator):
    """Sees one token of the future: the one that the row has to say."""

    def masks(self, src, tgt):
        length = tgt.shape[1]
        seen = torch.ones(length, length, dtype=torch.bool).tril(1)
        return super().masks(src, tgt)._replace(tgt=seen)


@TRANSLATION_MODEL.mistake(
    symptom="two matrices may be multiplied into one, and nothing changes",
)
class NoActivation(Translator):
    """`Linear(d_model, d_ff)`, and at once `Linear(d_ff, d_model)`."""

    def __init__(self):
        super().__init__()
        for layer in (*self.encoder, *self.decoder):
            layer.feed_forward = Straight(12, 31)


@TRANSLATION_MODEL.mistake(
    symptom="the loss stays high, as each row must guess two tokens ahead",
)
class ShiftsWhatIsShifted(Translator):
    """Puts a start token before a target that begins with one."""

    def target(self, tgt):
        return super().target(F.pad(tgt, (1, -1), value=1))


@TRANSLATION_MODEL.mistake(
    symptom="fluent sentences that have nothing to do with the source",
)
class AsksTheTargetTwice(Translator):
    """Cross-attention gets the target for its keys, and not the memory."""

    def decoded(self, tgt, memory, mask, memory_mask):
        y = self.target(tgt)
        for layer in self.decoder:
            y = layer(y, y, mask, mask)
        return y


@TRANSLATION_MODEL.mistake(
    symptom="what stands late in the source is translated badly, or not",
)
class CausalAllOver(Translator):
    """One triangle for every attention, whoever asks whom."""

    def masks(self, src, tgt):
        past = torch.ones(tgt.shape[1], src.shape[1], dtype=torch.bool).tril()
        own, seen, cross = super().masks(src, tgt)
        return own & causal_mask(src.shape[1]), seen, cross & past


@TRANSLATION_MODEL.mistake(
    symptom="layers of the encoder never get a gradient, and it translates "
    "word by word",
)
class MemoryOfTheFirstLayer(Translator):
    """All layers of the decoder read what layer 0 of the encoder made."""

    def encoded(self, src, mask):
        return self.encoder[0](self.source(src), mask)


@TRANSLATION_MODEL.mistake(
    symptom="the same source is translated otherwise in every batch",
)
class EncoderReadsPadding(Translator):
    """The decoder does not look at padding, but every word has."""

    def masks(self, src, tgt):
        return super().masks(src, tgt)._replace(src=None)


@TRANSLATION_MODEL.mistake(
    symptom="short sources in long batches are translated with words that "
    "nobody said",
)
class DecoderReadsPadding(Translator):
    """The memory mask is left at its default, and that is none."""

    def masks(self, src, tgt):
        return super().masks(src, tgt)._replace(cross=None)


@TRANSLATION_MODEL.mistake(
    symptom="right in batches of one, and worse the more lengths differ",
)
class OneMaskForTheBatch(Translator):
    """Hides only what is padding in every sentence of the batch."""

    def masks(self, src, tgt):
        own = (src != 0).any(0)[None, None, None]
        return super().masks(src, tgt)._replace(src=own, cross=own)


@TRANSLATION_MODEL.mistake(
    symptom="the words are right, and their order is that of no language",
)
class SourceWithoutPositions(Translator):
    """Only the target gets positions."""

    def source(self, src):
        return self.src(src)


@TRANSLATION_MODEL.mistake(
    symptom="the same source has another translation each time, searched "
    "greedily too",
)
class DropsOutForEver(Translator):
    """Drops from its embeddings, by a function that is not told of `eval`."""

    def placed(self, x):
        return F.dropout(super().placed(x), 0.1, training=True)


@TRANSLATION_MODEL.mistake(
    symptom="half of the model never gets a gradient, and it translates word "
    "by word",
)
class MemoryIsTheEmbedding(Translator):
    """The encoder is called, and the decoder is given the source itself."""

    def encoded(self, src, mask):
        super().encoded(src, mask)
        return self.source(src)


@TRANSLATION_MODEL.mistake(
    symptom="it trains, and the encoder stays as it was drawn",
)
class MemoryCutOff(Translator):
    """The encoder runs under `no_grad`, as it does while decoding."""

    def encoded(self, src, mask):
        with torch.no_grad():
            return super().encoded(src, mask)


class Undivided(MultiHeadAttention):
    """Scores as they are: what divides them is multiplied in again."""

    def queries(self, *args):
        q = super().queries(*args)
        return q * q.shape[-1] ** 0.5


@TRANSLATION_MODEL.mistake(
    symptom="each word looks at one word of the source from the first step on, "
    "and seldom at the right one",
)
class SourceAskedTooLoudly(Translator):
    """Self-attention divides its scores, and cross-attention forgot to."""

    def __init__(self):
        super().__init__()
        parts = PARTS._replace(cross_attention=Undivided)
        layers = (DecoderLayer(12, 3, 31, parts=parts) for _ in "12")
        self.decoder = nn.ModuleList(layers)
