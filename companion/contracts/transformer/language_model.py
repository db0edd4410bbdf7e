"""Contracts of a language model: logits for the next token, from the past.

Row i of the logits is for the token after position i, so it may know the
tokens 0 … i. A Transformer's decoder, an LSTM, a convolution over the past:
what is inside cannot be seen. Many sentences are tried, since in one an
attention may look at a single token.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from companion.blocks import PARTS, EncoderLayer
from companion.contracts.engine.compare import (
    Broken,
    after,
    is_float,
    same,
    seeded,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded, OtherNumbers
from companion.contracts.engine.influence import (
    local_window,
    of_a_window,
    rounding,
)
from companion.contracts.engine.levels import RISK
from companion.contracts.engine.masking import causal
from companion.contracts.engine.modules.common import module_kept, module_of
from companion.contracts.engine.scale import (
    HeardScores,
    alike_in_rows,
    divided_by_the_root_of_a_head,
    hidden_from,
    hides_all,
    hides_no_more,
    over_another_axis,
    written_out,
)
from companion.contracts.positions.turned import hear_turning
from companion.contracts.transformer.activations import (
    Straight,
    activation_between,
)
from companion.contracts.transformer.residuals import (
    require_own_weights,
    require_paths,
    require_sums,
)
from companion.masks import causal_mask
from companion.multihead import MultiHeadAttention

__all__ = [
    "LANGUAGE_MODEL",
    "NO_MASK",
    "past_the_sublayers",
    "sentences_apart",
    "to_what_was_left",
]

BATCH, SEQ, WORDS = 32, 5, 10

SHARE = 1e-5
"""Rounding moves a row by less than this share of what its own token does.

Small, since with weights as small as GPT's the order counts for 1e-4 only.
"""


def sentences(seed: int, batch: int = 2, seq: int = SEQ) -> Tensor:
    """Tokens 1 … 9."""
    generator = seeded(seed)
    return torch.randint(1, WORDS, (batch, seq), generator=generator)


def replaced(tokens: Tensor, position: int | slice) -> Tensor:
    """``tokens``, with other ones of 1 … 9 at ``position``."""
    other, words = tokens.clone(), WORDS - 1
    steps = 1 + torch.arange(len(tokens)) % (words - 1)
    moved = (tokens.T - 1 + steps).T % words + 1
    other[:, position] = moved[:, position]
    return other


def gaps(one: Tensor, other: Tensor) -> Tensor:
    """How far each row of logits moved, in any sentence: (row,)."""
    # NaN stays NaN, which is no movement, and another contract's business.
    return (one - other).detach().abs().nan_to_num(0).amax((0, -1))


def token_reach(
    fn: Guarded, args: tuple, which: int = 0, wanted: Tensor | None = None
) -> Tensor:
    """Map which row moves with which token of an argument: (row, position).

    In the sentence, and with the other token, that moves it most.

    Args:
        fn: A model.
        args: What it is called with.
        which: The argument whose tokens change.
        wanted: The map that is expected. If it comes out of one call with all
            changes in one batch, there is no need for a call for each.
    """
    if wanted is not None and moves_as(fn, args, which, wanted):
        return wanted
    before, *after = (fn.raw(*one) for one in changes(args, which))
    return moved_rows(before, after)


def moves_as(fn: Guarded, args: tuple, which: int, wanted: Tensor) -> bool:
    """Tell whether rows move as wanted where all changes are one batch."""
    got = fn.at_once(changes(args, which))
    if got is None:
        return False
    before, *after = got
    return torch.equal(moved_rows(before, after), wanted)


def changes(args: tuple, which: int) -> list[tuple]:
    """List arguments, and the same with each token of one changed in turn."""
    found = [args]
    for position in range(args[which].shape[-1]):
        changed = list(args)
        changed[which] = replaced(args[which], position)
        found.append((*changed,))
    return found


def moved_rows(before: Tensor, after: list[Tensor]) -> Tensor:
    """Map which row moved in which of several results: (row, result)."""
    moved = torch.stack([gaps(one, before) for one in after], -1)
    return moved > max(SHARE * float(moved.max()), rounding(before))


def whole_gap(fn: Guarded, args: tuple, which: int, before: Tensor) -> Tensor:
    """How far a row moves at most, if every token of an argument changes.

    Args:
        fn: A model.
        args: What it is called with.
        which: The argument whose tokens change.
        before: Its logits before.
    """
    changed = list(args)
    changed[which] = replaced(args[which], slice(None))
    return gaps(fn.raw(*changed), before).max()


def read_logits(fn: Guarded, result: object, args: tuple) -> Tensor:
    """Logits for the ids 0 … 9 at least, one row a token of the last input."""
    fn.require_tensor(result, args)
    fn.require_shape(result, args)
    if result.shape[-1] < WORDS:
        raise OtherNumbers(
            f"It returned {result.shape[-1]} logits for each position: the "
            f"ids go up to {WORDS - 1}, so that there are {WORDS} at least."
        )
    return result


LANGUAGE_MODEL = Component(
    name="language_model",
    weights=True,
    signature="language_model(tokens)",
    returns="logits (batch, seq, vocab)",
    axes=("position", "logit"),
    shape=lambda tokens: (*tokens.shape, None),
    dtype=torch.float32,
    read=read_logits,
    cases=lambda: {"for two sentences": (sentences(2),)},
    shape_hints={
        "Only one position has logits: a language model predicts the next "
        "token at each, and for what classifies there are no contracts.": (
            lambda tokens: (len(tokens), None)
        ),
        "Are positions and batch swapped, or positions and vocabulary?": (
            lambda tokens: (tokens.shape[1], len(tokens), None)
        ),
        "The vocabulary comes last: `cross_entropy` wants it second, and gets "
        "`logits.transpose(1, 2)`.": lambda tokens: (
            len(tokens),
            None,
            tokens.shape[1],
        ),
    },
)

NO_MASK = (
    "Every row sees all tokens: is the causal mask missing, if only in one "
    "layer?"
)

NEXT = (
    "The mask is off by one: a row sees the very token that it is to predict."
)

TURNED = "The past is hidden and the future seen: is the mask upside down?"
NOT_ITSELF = (
    "The mask hides each row's own token too, so that row 0 may see nobody, "
    "and its equally low scores become equal weights: keep the diagonal."
)
LEAKING = "Does every layer get the causal mask?"

ELSEWHERE = (
    "Each softmax hides the future, so that the mask is in order: inside "
    "attention, does a `view` mix positions and heads for want of a transpose? "
    "Or does a norm or a mean run over the positions?"
)

LOST = (
    "Each softmax hides the future and no more, so that the mask is in order: "
    "where heads are split and joined, does a `view` mix positions and heads "
    "for want of a transpose?"
)

SHIFTED = (
    "The row does not know the token at its own position: is the input "
    "shifted twice, or the diagonal hidden? What is given whole targets, and "
    "shifts them itself, wants `adapters.shifts_itself`."
)

NO_CONTEXT = "Each row knows its own token only: does nothing look back?"

NO_ORDER = (
    "Tokens {} and {} changed places, and the last row did not notice: are "
    "positions added?"
)


def who(seen: Tensor) -> dict[str, Tensor]:
    """Hint -> who moves with whom after the mistake."""
    past = causal(len(seen))
    return {
        NO_MASK: past | True,
        TURNED: past.mT,
        SHIFTED: past.tril(-1),
        NO_CONTEXT: past & past.mT,
    }


def why(seen: Tensor, otherwise: str) -> str:
    """The mistake after which rows move as ``seen``."""
    # Off by one in each layer, a row sees as far ahead as there are layers.
    ahead = (torch.ones_like(seen).tril(k) for k in range(1, len(seen) - 1))
    if any(torch.equal(seen, mask) for mask in ahead):
        return NEXT
    hints = (h for h, other in who(seen).items() if torch.equal(other, seen))
    return next(hints, otherwise)


def require_causal(fn: Guarded, args: tuple, which: int, what: str) -> None:
    """Raise Broken for a row of logits that knows its future."""
    past = causal(args[which].shape[-1])
    seen = token_reach(fn, args, which, past)
    leaks = seen & ~past
    if leaks.any():
        row, position = leaks.nonzero()[0].tolist()
        hint = why(seen, LEAKING)
        if hint in (NO_MASK, LEAKING):
            heard = why_heard(*hidden_along(fn, args, which))
            hint = softmax_over(fn, args) or heard or hint
        raise Broken(
            f"The logits of position {row} move with {what} {position}, which "
            f"is in their future. {hint}",
            *drawn(seen),
            hint,
        )


def softmax_over(fn: Guarded, args: tuple) -> str:
    """Say over which axis a softmax of scores runs, if not over the keys."""
    return over_another_axis(fn, tuple(x[:2] for x in args))


def why_heard(found: list[Tensor], may: Tensor) -> str:
    """Name the mistake that is heard in what each attention hides, if one is.

    Args:
        found: What each attention over the tokens hides.
        may: Who may see whom, (batch, row, key).
    """
    if any(torch.equal(x, written_out(may, x)) for x in found):
        return TURNED
    if not hides_all(found, may):
        return ""
    own = any(x.diagonal(dim1=-2, dim2=-1).all() for x in found)
    return NOT_ITSELF if own else ELSEWHERE


def hidden_along(
    fn: Guarded, args: tuple, which: int
) -> tuple[list[Tensor], Tensor]:
    """Return what each attention over an argument hides, and who may see."""
    args = tuple(x[:2] for x in args)  # To listen to many takes long.
    may = causal(args[which].shape[1]).expand(2, -1, -1)
    return hidden_from(fn, args, may), may


def require_past(fn: Guarded, args: tuple, which: int, what: str) -> None:
    """Raise Broken for a row of logits that does not know its past."""
    past = causal(args[which].shape[-1])
    seen = token_reach(fn, args, which, past)
    missing = past & ~seen
    if missing.any():
        row, position = missing.nonzero()[-1].tolist()
        hint = why(seen, "") or softmax_over(fn, args)
        if not hint and hides_no_more(*hidden_along(fn, args, which)):
            hint = LOST
        raise Broken(
            f"The logits of position {row} do not move with {what} {position}, "
            f"whatever it is. {hint}".rstrip(),
            *drawn(seen),
            hint,
        )


def drawn(seen: Tensor) -> tuple:
    """Who moves with whom, and who may: what ``Broken`` is to show."""
    return seen.float(), causal(len(seen)).float(), ("row", "moves with")


def require_order(
    fn: Guarded, args: tuple, which: int, hint: str, at: int = 0
) -> None:
    """Raise Broken if it does not matter which of two tokens comes first."""
    swapped, two = list(args), slice(at, at + 2)
    swapped[which] = args[which].clone()
    swapped[which][:, two] = args[which][:, two].flip(1)
    before = fn.raw(*args)
    moved = gaps(fn.raw(*swapped), before)[-1]
    if moved <= SHARE * whole_gap(fn, args, which, before):
        raise Broken(hint)


ONLY_MASKED = (
    "Tokens that are all the same have the same logits everywhere, and each "
    "row has one score for all of them: nothing but the causal mask knows "
    "places. Are positions added, or distances, and have they the right sign?"
)
WITHOUT = (
    "Some decoders are trained without positions on purpose: from the number "
    "of tokens that the mask lets them see they learn to count."
)


def require_places(fn: Guarded, args: tuple, which: int) -> None:
    """Raise Broken if only the causal mask tells one place from another.

    Then tokens that are alike have alike rows. So they have where distances
    count in the scores alone, but there the scores differ.
    """
    args = tuple(x[:2] for x in args)
    same, seq = list(args), args[which].shape[1]
    same[which] = args[which][:, :1].expand(-1, seq).contiguous()
    with HeardScores() as heard:
        got = fn.raw(*same)
    moved = gaps(got, got[:, :1].expand_as(got)).max()
    # The whole gap takes two calls more, and is for what may be broken.
    if moved > 1e-3 * got.abs().max() or not alike_in_rows(heard, seq):
        return
    if moved <= SHARE * whole_gap(fn, args, which, fn.raw(*args)):
        if sizes := tables_by_ids(fn, args, which):
            raise Broken(PLACES_BY_IDS.format(", ".join(map(str, sizes))))
        raise Broken(ONLY_MASKED, level=RISK, why=WITHOUT)


PLACES_BY_IDS = (
    "The ids of the tokens look up several tables (rows: {}). Is one of them "
    "for positions? These are looked up by places, `torch.arange(seq)`."
)


class LookedUp(TorchFunctionMode):
    """Notes how many rows each table has that certain ids look up.

    Args:
        ids: They.
    """

    def __init__(self, ids: Tensor):
        super().__init__()
        self.ids, self.sizes = ids, set[int]()

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if getattr(func, "__name__", "") == "embedding" and len(args) > 1:
            ids, table = args[:2]
            if torch.equal(ids.reshape(-1), self.ids.reshape(-1)):
                self.sizes.add(len(table))
        return func(*args, **(kwargs or {}))


def tables_by_ids(fn: Guarded, args: tuple, which: int) -> list[int]:
    """Return the sizes of the tables that ids look up, if they differ."""
    with LookedUp(args[which]) as looked_up:
        fn.raw(*args)
    return sorted(looked_up.sizes) if len(looked_up.sizes) > 1 else []


@LANGUAGE_MODEL.before_reference
def sentences_apart(fn: Guarded) -> None:
    """A sentence has the logits that it has alone."""
    tokens = sentences(13, 3)
    alone = torch.cat([fn(one[None]) for one in tokens])
    says = (
        "In a batch a sentence has other logits than alone: do sentences see "
        "each other, or are positions counted along the batch?"
    )
    same(fn, fn(tokens), alone, says)


@LANGUAGE_MODEL.before_reference
@after(sentences_apart)
def future(fn: Guarded) -> None:
    """No logit knows a token of its future."""
    require_causal(fn, (sentences(3, BATCH),), 0, "token")


@LANGUAGE_MODEL.contract
def past(fn: Guarded) -> None:
    """Every token of the past can move a logit."""
    try:
        require_past(fn, (sentences(5, BATCH),), 0, "token")
    except Broken as broken:
        if width := window(fn):
            raise of_a_window(width) from None
        named = broken.cause != broken.message
        if not named and (keys := fewer_keys(fn)):
            says = FEWER_KEYS.format(SEQ, keys)
            raise Broken(says, cause=says, level=RISK, why=CHOSEN) from None
        raise


FEWER_KEYS = "For {} tokens a softmax runs over {} keys."
CHOSEN = (
    "It is right if it looks at chosen or pooled positions on purpose, and not "
    "at each token of the past."
)


def fewer_keys(fn: Guarded) -> int:
    """Return how many keys each token has, if less than there are tokens."""
    with HeardScores() as heard:
        fn.raw(sentences(5, BATCH))
    keys = {x.shape[-1] for x in heard.scores if x.shape[-2:-1] == (SEQ,)}
    return min(keys) if keys and min(keys) < SEQ else 0


def window(fn: Guarded) -> int:
    """Return how many tokens before its own a row knows, if that is a window.

    As many in a longer sentence; 0 if it is none.
    """
    seen = token_reach(fn, (sentences(5, BATCH),))
    if not local_window(seen):
        return 0
    try:
        longer = token_reach(fn, (sentences(5, BATCH, SEQ + 2),))
    except Broken:
        return 0
    return local_window(seen, longer)


@LANGUAGE_MODEL.contract
def order(fn: Guarded) -> None:
    """The order of the past counts."""
    args = (sentences(7, BATCH),)
    try:
        require_order(fn, args, 0, NO_ORDER.format(0, 1))
    except Broken:
        width, at = window(fn), SEQ - 3
        if not width:
            if knows_order_in_the_first_layer(fn, args):
                return
            raise
        # Of a single token beside its own a row knows no order.
        if width > 1:
            require_order(fn, args, 0, NO_ORDER.format(at, at + 1), at)
    require_places(fn, args, 0)


def knows_order_in_the_first_layer(fn: Guarded, args: tuple) -> bool:
    """Tell whether order counts, with weights that are not small.

    Where they are, positions that turn queries and keys move the logits less
    than rounding does. Of several layers one is left: the causal mask alone
    tells a second one of the order.
    """
    module = module_of(fn)
    if module is None:
        return False
    with module_kept(module), the_first_layer_alone(module):
        for gain in (1.0, 3.0):
            for matrix in (p for p in module.parameters() if p.ndim > 1):
                size = matrix.detach().square().mean().sqrt()
                wide = gain / (size * matrix.shape[-1] ** 0.5 + 1e-12)
                matrix.data.mul_(max(float(wide), 1.0))
            try:
                require_order(fn, args, 0, "")
            except Broken:
                continue
            return True
    return False


@contextlib.contextmanager
def the_first_layer_alone(module: nn.Module) -> Iterator[None]:
    """Have all layers of a list return what they get, but for the first."""
    layers = [
        layer
        for one in module.modules()
        if isinstance(one, nn.ModuleList | nn.Sequential)
        for layer in [*one][1:]
        if type(layer) is type(one[0])
    ]
    with contextlib.ExitStack() as hooks:
        for layer in layers:
            lists = isinstance(layer, nn.ModuleList)
            for part in layer if lists else [layer]:
                hook = part.register_forward_hook(as_it_came, with_kwargs=True)
                hooks.callback(hook.remove)
        yield


def as_it_came(
    part: nn.Module, args: tuple, named: dict, result: object
) -> object:
    """Put what a layer got in place of what it returns, where that fits."""
    several = isinstance(result, tuple)
    first = result[0] if several and result else result
    for x in (*args, *named.values()):
        if is_float(x) and is_float(first) and x.shape == first.shape:
            return (x, *result[1:]) if several else x
    return result


@LANGUAGE_MODEL.contract
def prefix(fn: Guarded) -> None:
    """The logits of a beginning are those of the whole."""
    tokens = sentences(11)
    whole = fn(tokens)
    for seq in (1, 2, 4):
        says = (
            f"The first {seq} tokens alone have other logits than within 5: "
            "does the length, or the end, count?"
        )
        same(fn, fn(tokens[:, :seq]), whole[:, :seq], says)


@LANGUAGE_MODEL.contract
def logits(fn: Guarded) -> None:
    """It returns logits, not probabilities."""
    require_logits(fn(sentences(17, BATCH)))


def require_logits(got: Tensor) -> None:
    """Raise Broken if every row is positive and sums to 1."""
    sums = got.sum(-1)
    if (got >= 0).all() and torch.allclose(sums, torch.ones_like(sums)):
        raise Broken(
            "Every row is positive and sums to 1: leave the softmax to "
            "`cross_entropy`, which has one of its own.",
            got,
        )


@LANGUAGE_MODEL.contract
@after(future, past)
def by_distance(fn: Guarded) -> None:
    """What turns vectors by their positions leaves the distance alone."""
    tokens = sentences(59, seq=TURNED_SEQ)[:, :1].expand(-1, TURNED_SEQ)
    try:
        told = hear_turning(lambda: fn.raw(tokens.contiguous()), TURNED_SEQ)
    except Broken:
        return  # So long may no sentence be.
    if told:
        raise Broken(told)


TURNED_SEQ = 7
"""So long is no other axis."""


@LANGUAGE_MODEL.contract
def past_the_sublayers(fn: Guarded) -> None:
    """A path leads past every sub-layer."""
    tokens = sentences(53, BATCH)
    others = replaced(tokens, slice(None))

    def moves() -> Tensor:
        one, other = fn.raw(tokens).detach(), fn.raw(others).detach()
        return (one - other).abs()

    require_paths(fn, moves, lambda: fn.raw(tokens))


@LANGUAGE_MODEL.contract
@after(past, past_the_sublayers)
def to_what_was_left(fn: Guarded) -> None:
    """Every sub-layer adds to what the one before it left."""
    tokens = sentences(61, BATCH)
    others = replaced(tokens, slice(1))

    def moves() -> Tensor:
        one, other = fn.raw(tokens).detach(), fn.raw(others).detach()
        return (one - other)[:, -1].abs()

    require_sums(fn, moves, lambda: fn.raw(tokens))


@LANGUAGE_MODEL.contract
def layers_of_their_own(fn: Guarded) -> None:
    """Each layer has weights of its own."""
    require_own_weights(fn, lambda: fn.raw(sentences(53)))


LANGUAGE_MODEL.contract(divided_by_the_root_of_a_head(lambda: (sentences(19),)))
LANGUAGE_MODEL.contract(activation_between(lambda: (sentences(23),)))


# Known mistakes


class Language(nn.Module):
    """Two layers under a causal mask, over tokens with learned positions."""

    def __init__(self):
        super().__init__()
        self.embed, self.places = nn.Embedding(11, 12), nn.Embedding(16, 12)
        self.layers = nn.ModuleList(EncoderLayer(12, 2, 31) for _ in "12")
        self.head = nn.Linear(12, 11)

    def embedded(self, tokens):
        """Each token with its place."""
        return self.embed(tokens) + self.places.weight[: tokens.shape[1]]

    def mask(self, length, layer):
        """Who may look at whom in a layer; True = may attend."""
        return causal_mask(length)

    def forward(self, tokens):
        """Logits (batch, seq, vocab)."""
        x = self.embedded(tokens)
        for i, layer in enumerate(self.layers):
            x = layer(x, self.mask(tokens.shape[1], i))
        return self.head(x)


@LANGUAGE_MODEL.mistake(
    symptom="the loss goes to 0 in an hour, and it writes nonsense",
)
class EncoderThatPredicts(Language):
    """An encoder with logits at its end, and nothing that hides the future."""

    def mask(self, length, layer):
        return None


@LANGUAGE_MODEL.mistake(
    symptom="the loss goes to 0, and the maps that are drawn, those of layer "
    "0, look right",
)
class MaskInTheFirstLayerOnly(Language):
    """Layer 0 hides the future, and layer 1 reads it."""

    def mask(self, length, layer):
        return None if layer else causal_mask(length)


@LANGUAGE_MODEL.mistake(
    symptom="the loss is near 0, as each row reads its own answer",
)
class ReadsItsOwnAnswer(Language):
    """The mask would be right if the input had been shifted once more."""

    def mask(self, length, layer):
        return torch.ones(length, length, dtype=torch.bool).tril(1)


@LANGUAGE_MODEL.mistake(
    symptom="the loss falls fast and the output is a fixed sentence",
)
class TriangleTurnedRound(Language):
    """Every row sees its future, and nothing of its past."""

    def mask(self, length, layer):
        return causal_mask(length).mT


@LANGUAGE_MODEL.mistake(
    symptom="a loss below that of any honest model, and what it writes "
    "changes as it goes on",
)
class CentredOverTheSentence(Language):
    """Takes the mean of the whole sentence from every row, future included."""

    def embedded(self, tokens):
        x = super().embedded(tokens)
        return x - x.mean(1, keepdim=True)


@LANGUAGE_MODEL.mistake(
    symptom="two matrices may be multiplied into one, and nothing changes",
)
class NoActivation(Language):
    """`Linear(d_model, d_ff)`, and at once `Linear(d_ff, d_model)`."""

    def __init__(self):
        super().__init__()
        for layer in self.layers:
            layer.feed_forward = Straight(12, 31)


@LANGUAGE_MODEL.mistake(
    symptom="the loss stays high, as each row must guess two tokens ahead",
)
class ShiftsWhatIsShifted(Language):
    """Puts a start token before an input that begins with one."""

    def forward(self, tokens):
        return super().forward(F.pad(tokens, (1, -1)))


@LANGUAGE_MODEL.mistake(
    symptom="the loss of a table of word pairs, whatever the depth",
)
class EachForItself(Language):
    """Lets a position look at nothing but itself."""

    def mask(self, length, layer):
        return torch.eye(length, dtype=torch.bool)


@LANGUAGE_MODEL.mistake(
    symptom="word order does not matter much, and grammar is poor",
)
class BagOfWords(Language):
    """Adds up what it has read, and adds no positions."""

    def __init__(self):
        super().__init__()
        del self.places, self.layers

    def forward(self, tokens):
        return self.head(self.embed(tokens).cumsum(1).tanh())


@LANGUAGE_MODEL.mistake(
    symptom="right in batches of one, and all sentences differ by their place "
    "in a batch",
)
class PositionsAlongTheBatch(Language):
    """Counts positions along axis 0, as for (seq, batch, d_model)."""

    def embedded(self, tokens):
        places = self.places.weight[: len(tokens), None]
        return self.embed(tokens) + places


@LANGUAGE_MODEL.mistake(
    symptom="it scores well, and with each word that it says it forgets where "
    "the others stood",
)
class CountsFromTheEnd(Language):
    """The last token has place 0, so that all places move with each word."""

    def embedded(self, tokens):
        places = self.places.weight[: tokens.shape[1]]
        return self.embed(tokens) + places.flip(0)


@LANGUAGE_MODEL.mistake(
    symptom="the loss stops just below log(vocab), and goes no further",
)
class SoftmaxAtTheEnd(Language):
    """Probabilities, of which `cross_entropy` takes the softmax again."""

    def forward(self, tokens):
        return super().forward(tokens).softmax(-1)


@LANGUAGE_MODEL.mistake(
    symptom="it tests worse than it trains, and no two answers agree",
)
class DropsOutForEver(Language):
    """Drops from its embeddings, by a function that is not told of `eval`."""

    def embedded(self, tokens):
        return F.dropout(super().embedded(tokens), 0.1, training=True)


@LANGUAGE_MODEL.mistake(
    symptom="half of the layers never get a gradient, and no one notices",
)
class ReturnsInTheLoop(Language):
    """The line that returns stands one step too far to the right."""

    def forward(self, tokens):
        x = self.embedded(tokens)
        for layer in self.layers:
            x = layer(x, causal_mask(tokens.shape[1]))
            return self.head(x)


class DividedTwice(MultiHeadAttention):
    """Queries are scaled by hand, and the scores are divided once more."""

    def queries(self, *args):
        q = super().queries(*args)
        return q / q.shape[-1] ** 0.5


@LANGUAGE_MODEL.mistake(
    symptom="the loss is a little higher than that of the same model elsewhere",
)
class ScalesTwice(Language):
    """The line that scaled by hand stayed when a fused function came."""

    def __init__(self):
        super().__init__()
        parts = PARTS._replace(attention=DividedTwice)
        layers = (EncoderLayer(12, 2, 31, parts=parts) for _ in "12")
        self.layers = nn.ModuleList(layers)
