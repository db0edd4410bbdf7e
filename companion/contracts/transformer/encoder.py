"""Contracts of an encoder: layers of attention over vectors that have places.

It gets embedded tokens with their positions added, so that it knows of no
order itself. How many layers and heads it has, whether its norms stand before
or after its sub-layers and how wide it is inside cannot be seen from outside.
Sizes are 2 sentences of 5 positions, and width 12.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from companion.blocks import PARTS, EncoderLayer
from companion.contracts.engine.compare import (
    Broken,
    after,
    draw,
    furthest,
    same,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.families import (
    INSIDE,
    UNDER_A_MASK,
    batch_independence,
    fully_masked_row_has_finite_gradients,
    keeps_alike,
    keeps_order,
    known_inside,
    require_no_order,
)
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.influence import (
    reach,
    reach_without_a_mask,
    require_moved,
    require_silent,
)
from companion.contracts.engine.levels import NOTE, RISK, risk
from companion.contracts.engine.masking import (
    EACH_OTHERS,
    EMPTY,
    HIDES_ROWS,
    NAN_WHATEVER,
    THE_FIRSTS,
    attended,
    causal,
    hides_rows,
    is_nan_whatever,
    require_finite_row,
    sends_masks,
    unless_any_is_causal,
)
from companion.contracts.engine.modules.common import (
    apart_in_training,
    matrices_in_use,
    module_kept,
    module_of,
    network_pairs,
    no_way_past,
    ways_past_each_other,
)
from companion.contracts.engine.relative import (
    CONVOLVES,
    NEIGHBOURS,
    WITHOUT_PLACES,
    by_sinusoids,
    orders_inside,
    unless_a_convolution_sees_it,
)
from companion.contracts.engine.scale import (
    A_SCORE,
    OVER_QUERIES,
    attentions,
    divided_by_the_root_of_a_head,
    hidden_from,
    hidden_score,
    hides_all,
    mask_meets_scores,
    over_another_axis,
    the_firsts_mask,
)
from companion.contracts.transformer.activations import (
    Straight,
    activation_between,
)
from companion.contracts.transformer.residuals import attending
from companion.masks import causal_mask
from companion.multihead import MultiHeadAttention

__all__ = ["ENCODER"]

BATCH, SEQ, WIDTH = 2, 5, 12


def arguments(seed: int, seq: int = SEQ) -> Tensor:
    """Vectors near 1, in 2 sentences."""
    return draw(BATCH, seq, WIDTH, seed=seed)


def padding(*lengths: int) -> Tensor:
    """(batch, 1, 1, seq): True where a sentence has a word."""
    real = torch.arange(SEQ) < torch.tensor(lengths)[:, None]
    return real[:, None, None]


def backwards() -> Tensor:
    """(batch, 1, seq, seq): sentence 0 sees its past, sentence 1 its future."""
    return torch.stack([causal(SEQ), causal(SEQ).mT])[:, None]


ENCODER = Component(
    name="encoder",
    weights=True,
    signature="encoder(x, mask=None)",
    returns="one vector for each position (batch, seq, d_model)",
    axes=("row", "feature"),
    shape=lambda x, mask=None: x.shape,
    shape_hints={
        "Is this one vector for a whole sentence? Each position keeps its "
        "own.": lambda x, mask=None: (len(x), x.shape[-1]),
        "Only the axes of batch and positions are swapped: the batch is "
        "first.": lambda x, mask=None: (x.shape[1], len(x), x.shape[2]),
    },
    cases=lambda: {
        "without a mask": (arguments(2),),
        "with a padding mask": (arguments(3), padding(3, 4)),
    },
)

IGNORED = "The mask is not used: without it nothing changes."

NOT_KEPT = (
    "Whatever attention says, a position keeps its own vector: is the residual "
    "connection around it missing?"
)

NOT_EVERYWHERE = (
    "The mask counts, but not everywhere: does every layer get it, not only "
    "the first? Does a norm run over the positions?"
)

IN_ONE = (
    "The mask counts, and hides less than it should: does it reach the scores, "
    "as -∞, before the softmax over the keys? Does a norm run over the "
    "positions?"
)

NO_SCORES = (
    "The mask counts, and reaches no scores before a softmax: put -∞ into the "
    "hidden scores. What multiplies the weights afterwards leaves a sum that "
    "still counts the hidden keys."
)

MIXED = (
    "Without a mask, too, not every row sees every position: inside attention, "
    "does a `view` mix positions and heads for want of a transpose?"
)

JOINED = (
    "Without a mask, too, reordering the positions does not reorder the rows: "
    "inside attention, does a `view` mix positions and heads for want of a "
    "transpose?"
)

UPSIDE_DOWN = "The mask is upside down: True means may attend."

ADDS = (
    "`{}` adds positions inside: reordering them changes their rows, and "
    "without this table it does not."
)
DOES_BOTH = (
    "`{}` adds positions inside, and `{}` is a convolution over them: "
    "reordering them changes their rows, and without both it does not."
)
DISTANCES_TOO = (
    "`{}` holds numbers for distances, and `{}` is a convolution over "
    "positions: reordering them changes their rows, and without both it does "
    "not."
)

MISTAKEN = {
    UPSIDE_DOWN: lambda may: ~may,
    "The mask is transposed: its last axis is the key's.": (lambda may: may.mT),
    THE_FIRSTS: lambda may: may[:1].expand_as(may),
    EACH_OTHERS: lambda may: may | may.flip(0),
}
"""Hint -> who would then see whom."""


def with_itself(mask: Tensor) -> Tensor:
    """(batch, row, position): who moves a row of residual sums, if allowed."""
    may = mask.expand(BATCH, 1, SEQ, SEQ)[:, 0]
    return may | torch.eye(SEQ, dtype=torch.bool)


def require_masked(fn: Guarded, x: Tensor, mask: Tensor, how: str) -> None:
    """Raise Broken unless rows move with whom ``mask`` lets them see.

    Who may see somebody may see whom he sees, so layers add nobody.
    """
    may = with_itself(mask)
    seen = reach(fn, x, mask, wanted=may)
    rows = attended(mask.expand(BATCH, 1, SEQ, SEQ)[:, 0])
    silent, heard = may | ~rows, may & rows
    if (seen & ~silent).any() or (heard & ~seen).any():
        nan = fn.asks_why and is_nan_whatever(fn, x, mask)
        why = why_leaked(fn, x, seen, mask) if fn.asks_why else ""
        why = NAN_WHATEVER if nan else why
        require_silent(seen, silent, how, why)
        require_moved(seen, heard, "which the mask allows", why)


def why_leaked(fn: Guarded, x: Tensor, seen: Tensor, mask: Tensor) -> str:
    """The mistake that makes rows move as ``seen`` under ``mask``."""
    if torch.equal(seen | torch.eye(SEQ, dtype=torch.bool), with_itself(mask)):
        return NOT_KEPT
    by_rows = getattr(fn.form, "row_by_row_asked", False)
    if by_rows and hides_rows(fn, x, padding(3, 4)):
        return HIDES_ROWS
    if furthest(fn.raw(x, torch.ones_like(mask)), fn.raw(x, mask)) is None:
        return IGNORED
    # One mask alone may have two explanations.
    both = [
        (m, reach(fn, arguments(5), m)) for m in (padding(3, 4), backwards())
    ]
    for hint, mistake in MISTAKEN.items():
        if all(explains(mistake, *found) for found in both):
            return hint
    if fits_turned_round(fn):
        return UPSIDE_DOWN
    return why_heard(fn, x) or within(fn, x, mask)


def why_heard(fn: Guarded, x: Tensor) -> str:
    """Name the mistake by what its softmaxes hear, if they show one."""
    pads = padding(3, 4)
    may = pads.expand(BATCH, 1, SEQ, SEQ)[:, 0]
    if the_firsts_mask(hidden_from(fn, (x, pads), may), may):
        return THE_FIRSTS
    return over_another_axis(fn, (x,))


def within(fn: Guarded, x: Tensor, mask: Tensor) -> str:
    """What may be wrong inside attention; else it is where layers get it."""
    may = mask.expand(BATCH, 1, SEQ, SEQ)[:, 0]
    if not reach(fn, x, wanted=may | True).all():
        return MIXED
    score = hidden_score(fn, (x, mask), may)
    if score is None:  # Where True means that a key is hidden.
        score = hidden_score(fn, (x, mask), ~may)
    if score is not None:
        return A_SCORE.format(score)
    if not mask_meets_scores(fn, (x, mask), may):
        return NO_SCORES
    if mixes_positions(fn, x, hidden_from(fn, (x, mask), may), may):
        table, kernel, _ = orders_inside(fn, x)
        if not (table or kernel):
            return JOINED
    return IN_ONE if len(attentions(fn, (x,))) == 1 else NOT_EVERYWHERE


def mixes_positions(
    fn: Guarded, x: Tensor, found: list[Tensor], may: Tensor
) -> bool:
    """Tell whether rows leak where positions are mixed up, not by the mask.

    Positions known inside make another order count as well. With those alike
    ones have alike rows, or some attention does not get the mask.

    Args:
        fn: An encoder.
        x: Its vectors.
        found: What each attention hides, as far as that was heard.
        may: Who may see whom, (batch, row, key).
    """
    if keeps_order(fn, x) or keeps_alike(fn, x):
        return False
    return hides_all(found, may) or not found


def fits_turned_round(fn: Guarded) -> bool:
    """Whether the opposite of a mask is read as the mask.

    As it was sent, it may leave a row nobody to see: of -∞ alone that is NaN,
    which the next layer hands on to all.
    """
    return all(
        torch.equal(reach(fn, arguments(5), ~mask), with_itself(mask))
        for mask in (padding(3, 4), backwards())
    )


def explains(mistake: Callable, mask: Tensor, seen: Tensor) -> bool:
    """Whether rows moved as if ``mistake`` had been made with the mask."""
    other = mistake(mask.expand(BATCH, 1, SEQ, SEQ))
    # What a row with nobody to see does differs from softmax to softmax.
    some = other.any(-1)[:, 0]
    return torch.equal(seen[some], with_itself(other)[some])


ENCODER.before_reference(
    batch_independence(
        "No sentence sees another",
        lambda: (arguments(17),),
        lambda x: (torch.cat([x[:1] + draw(SEQ, WIDTH, seed=19), x[1:]]),),
        why="is the batch taken for positions, or does a norm run over it?",
    )
)


@ENCODER.before_reference
@sends_masks
def keeps_itself(fn: Guarded) -> None:
    """A position keeps its own vector, whomever it looks at."""
    only_first = torch.zeros(BATCH, 1, SEQ, SEQ, dtype=torch.bool)
    only_first[..., 0] = True
    may = with_itself(only_first)
    seen = reach(fn, arguments(13), only_first, wanted=may)
    itself = torch.eye(SEQ, dtype=torch.bool).expand_as(seen)
    if getattr(fn.form, "row_by_row_asked", False):
        # Of such masks the hidden rows are padding, and may be set to 0.
        itself = itself & seen.any(-1, keepdim=True)
    how = "though it looks at position 0 only"
    lost = (itself & ~seen).any()
    nan = lost and is_nan_whatever(fn, arguments(13), only_first)
    require_moved(seen, itself, how, NAN_WHATEVER if nan else NOT_KEPT)


@ENCODER.before_reference
@sends_masks
@unless_any_is_causal
@unless_a_convolution_sees_it
def pads(fn: Guarded) -> None:
    """In no layer does a word see the padding of its sentence."""
    how = "which the mask hides"
    require_masked(fn, arguments(5), padding(3, 4), how)


@ENCODER.before_reference
@sends_masks
@unless_any_is_causal
@unless_a_convolution_sees_it
def pairs(fn: Guarded) -> None:
    """In no layer does a position see what its own row of the mask hides."""
    how = "which the mask hides"
    require_masked(fn, arguments(7), backwards(), how)


@ENCODER.contract
def everybody(fn: Guarded) -> None:
    """Without a mask every position sees every position."""
    seen = reach_without_a_mask(fn, arguments)
    why = "Is a mask at work that nobody gave?"
    if torch.equal(seen, with_itself(torch.zeros(BATCH, 1, SEQ, SEQ).bool())):
        why = "Each sees itself only: does attention run over the positions?"
    require_moved(seen, torch.ones_like(seen), "although there is no mask", why)


@ENCODER.contract
def order(fn: Guarded) -> None:
    """Reordering the positions reorders the rows."""
    why = (
        "`x` brings its positions along, and an encoder knows no order: does "
        "it add positions again, or are heads and positions mixed up?"
    )
    try:
        require_no_order(fn, arguments(23), why)
    except Broken as broken:
        raise why_in_order(fn, broken) from None


def why_in_order(fn: Guarded, broken: Broken) -> Broken:
    """Make of a lost order the note that names what knows it, if it is known.

    Where lengths go in, and no mask, positions inside are taken for distances.
    """
    x = arguments(23)
    table, kernel, distance = orders_inside(fn, x)
    if fn.takes_no_mask and (table or not kernel):
        return broken
    unnamed = fn.takes_no_mask or not broken.level
    known = knows_by(table, kernel, distance, broken) if unnamed else None
    return known or by_sinusoids(fn, x, broken) or broken


def knows_by(
    table: str, kernel: str, distance: str, broken: Broken
) -> Broken | None:
    """Make of a lost order the note that names what knows it, if it is known.

    Args:
        table: The name of a table of positions, if there is one.
        kernel: That of a convolution.
        distance: That of numbers for distances, beside a convolution.
        broken: What was found.
    """
    names = [name for name in (table, distance, kernel) if name]
    if not names:
        return None
    told, why = {
        (True, False): (ADDS, WITHOUT_PLACES),
        (False, True): (CONVOLVES, NEIGHBOURS),
        (True, True): (DOES_BOTH, f"{WITHOUT_PLACES} {NEIGHBOURS}"),
    }[bool(table), bool(kernel)]
    if distance:
        told, why = DISTANCES_TOO, f"{INSIDE} {NEIGHBOURS}"
    got = broken.got, broken.expected
    said = told.format(*names)
    return Broken(said, *got, cause=told, level=NOTE, why=why)


@ENCODER.contract
@sends_masks
@unless_any_is_causal
def all_true(fn: Guarded) -> None:
    """A mask that hides nothing changes nothing."""
    x = arguments(31)
    mask = torch.ones(BATCH, 1, 1, SEQ, dtype=torch.bool)
    same(fn, fn(x, mask), fn(x), "Every entry of the mask is True.")


@ENCODER.contract
@sends_masks
@unless_any_is_causal
@unless_a_convolution_sees_it
def as_if_absent(fn: Guarded) -> None:
    """Hidden positions might as well not be there."""
    x = arguments(29)
    got = fn(x, padding(3, 3))[:, :3]
    why = (
        "Positions 3 and 4 are hidden from all, and still change the rows "
        "before them."
    )
    try:
        same(fn, got, fn(x[:, :3]), why)
    except Broken as broken:
        known = known_inside(fn, x, broken)
        if known is None or known.cause != UNDER_A_MASK:
            raise
        # Distances of another length are others, unless the mask is causal.
        raise known from None


@ENCODER.contract
@risk(EMPTY)
@sends_masks
def nobody_to_see(fn: Guarded) -> None:
    """A sentence of nothing but padding is finite."""
    got = fn.raw(arguments(37), padding(3, 0))
    require_finite_row(fn, got)


ENCODER.contract(
    fully_masked_row_has_finite_gradients(
        lambda: (arguments(37), padding(3, 0)),
        "A sentence of nothing but padding has finite gradients",
    )
)


@ENCODER.contract
def any_size(fn: Guarded) -> None:
    """It takes sentences of any length, one at a time too."""
    for seq in (1, 3, 11):
        x = arguments(41, seq)
        alone = torch.cat([fn(x[:1]), fn(x[1:])])
        why = f"Of {seq} positions, each sentence alone gives other rows."
        same(fn, fn(x), alone, why)


@ENCODER.contract
@after(pads)
def normalised(fn: Guarded) -> None:
    """What leaves the stack is normalised."""
    x, times, module = arguments(43), 1000, module_of(fn)
    with module_kept(module):
        if module is not None:
            # A BatchNorm normalises in this mode only. It is not one norm too
            # few, and another contract's business.
            module.train()
        short, long = (fn.raw(y).detach().norm() for y in (x, times * x))
    if long > times / 10 * short:
        says = (
            f"Vectors {times} times as long came in, and {long / short:.0f} "
            "times as long they left: a sum leaves as it is. In a stack whose "
            "norms come first (pre-LN), one more norm stands after the last "
            "layer. Is this one layer of such a stack? Then check the stack."
        )
        single = len(attentions(fn, (x,))) == 1
        level, why = (NOTE, ONE_LAYER) if single else ("", "")
        raise Broken(says, level=level, why=why)
    if long < 1.5 * short and apart(fn) and adds_to_the_normed(fn):
        if furthest(fn.raw(x), fn.raw(2 * x)) is not None:
            raise Broken(NORMED_BETWEEN, level=RISK, why=AS_IN_CCT)
        raise Broken(NORMED_STREAM)


def apart(fn: Guarded) -> bool:
    """Tell whether no norm runs over the batch, not in training mode either."""
    try:
        if module_of(fn) is not None:
            apart_in_training(fn)
    except Broken:
        return False
    return True


ONE_LAYER = (
    "One attention is at work here, and of a single pre-LN layer nobody asks "
    "for the norm that follows the last one."
)
NORMED_BETWEEN = (
    "A sum leaves that starts from what a norm returned, `x = norm(x)` and "
    "then `x + f(x)`: between the sub-layers no path leads past that norm."
)
AS_IN_CCT = (
    "It is right where it is meant so, as in the layers of the compact "
    "convolutional transformer (CCT); pre-LN is `x + f(norm(x))`."
)
NORMED_STREAM = (
    "A sum leaves that no norm has seen, and yet it does not matter how long "
    "the vectors were that came in: the residual starts from the normed "
    "vector. Write `x + f(norm(x))`; after `x = norm(x)` the sum `x + f(x)` "
    "has lost what came in, and no path leads past the norms."
)


def on_a_quadric(fn: Guarded) -> bool:
    """Tell whether a norm made the vectors that leave, whatever follows it.

    A norm's lie on a sphere or an ellipsoid, and a linear map leaves them on
    one: some quadratic form of them is 1. Of a sum there is none.
    """
    y = many(fn)
    one, other = torch.triu_indices(WIDTH, WIDTH)
    form = torch.cat([y[:, one] * y[:, other], y], 1)
    wanted = torch.ones(len(y), 1, dtype=y.dtype)
    fitted = form @ torch.linalg.lstsq(form, wanted).solution
    return bool((fitted - wanted).abs().max() < 0.01)


def many(fn: Guarded) -> Tensor:
    """Return more vectors that leave than a quadratic form has terms."""
    terms = WIDTH * (WIDTH + 3) // 2
    batch = 2 * terms // SEQ
    got = fn.raw(draw(batch, SEQ, WIDTH, seed=47))
    return got.detach().flatten(0, 1).double()


def adds_to_the_normed(fn: Guarded) -> bool:
    """Tell whether a sum leaves that started from what a norm had returned.

    Without what the last sub-layer says, which its last matrix makes, only
    what the norm returned is left. A map that leads out of the stack leaves
    nothing then.
    """
    module = module_of(fn)
    if module is None or on_a_quadric(fn):
        return False
    matrices = [*matrices_in_use(fn, arguments(43)).values()]
    # Of wider vectors only a part is seen here, and that lies on no quadric.
    if getattr(module, "narrows", False) and not grows(fn, matrices[-1]):
        return False
    with module_kept(module):
        matrices[-1].data.zero_()
        if is_of_a_norm(fn):
            return True
    return attends_to_the_normed(fn, module, matrices)


def grows(fn: Guarded, matrix: Tensor) -> bool:
    """Tell whether vectors leave that grow with the last matrix in use.

    A sum does, and what a norm makes of it does not.
    """
    x, times = arguments(43), 1e6
    usual = fn.raw(x).detach().norm()
    with module_kept(module_of(fn)):
        matrix.data.mul_(times)
        return bool(fn.raw(x).detach().norm() > 10 * usual)


def attends_to_the_normed(
    fn: Guarded, module: nn.Module, matrices: list[Tensor]
) -> bool:
    """Tell whether an earlier sum started from what a norm had returned.

    Then a norm's vectors are left without any sub-layer. So they are, too,
    where vectors only enter through a norm; but then each sub-layer has one
    more in front, and without that it says the same of all vectors.

    Args:
        fn: An encoder.
        module: The module that it is.
        matrices: Those in use in it.
    """
    with module_kept(module):
        for matrix in matrices:
            matrix.data.zero_()
        if not is_of_a_norm(fn):
            return False
        inner = without_effect(fn, module)
    with module_kept(module):
        for vector in inner:
            vector.data.zero_()
        return bool(inner) and not is_of_a_norm(fn)


def without_effect(fn: Guarded, module: nn.Module) -> list[Tensor]:
    """Return the vectors of those norms that change nothing of the result.

    None, where a norm has no vectors: then nobody can tell.
    """
    found, x = [], arguments(43)
    before = fn.raw(x)
    for part in module.modules():
        own = [*part.parameters(recurse=False)]
        named_so = "norm" in type(part).__name__.lower()
        if named_so and not [*part.parameters()]:
            return []
        if not own or any(p.ndim != 1 for p in own):
            continue
        with module_kept(part):
            for vector in own:
                vector.data.add_(1)
            if torch.equal(fn.raw(x), before):
                found += own
    return found


def is_of_a_norm(fn: Guarded) -> bool:
    """Tell whether vectors leave that differ, and that a norm made."""
    return bool(many(fn).std(0).min() > 0.01) and on_a_quadric(fn)


@ENCODER.contract
def past_the_networks(fn: Guarded) -> None:
    """A path leads past every sub-layer."""
    module = module_of(fn)
    lost = no_way_past(fn, arguments(53)) if module is not None else []
    if lost:
        one, *others = lost
        more = f" So it is with {len(others)} more." if others else ""
        raise Broken(
            f"With `{one}` at 0 nothing of `x` leaves the stack: what a "
            "sub-layer says replaces what came in. Is the residual connection "
            f"around it missing, `x + f(x)`?{more}"
        )
    if module is not None and ways_past_each_other(fn, arguments(53)):
        raise Broken(PAST_ONE_ONLY, cause=PAST_ONE_ONLY)
    if module is not None and heard_by_networks_only(fn, arguments(53)):
        raise Broken(LEFT_BEHIND, cause=LEFT_BEHIND)


def heard_by_networks_only(fn: Guarded, x: Tensor) -> bool:
    """Tell whether attention moves rows only through the networks behind it.

    What stands in a module that attends is part of that, whatever its shape.
    """
    module = module_of(fn)
    attends = attending([module], lambda: fn.raw(x))
    matrices = matrices_in_use(fn, x)
    networks = [
        matrices[name]
        for pair in network_pairs(matrices)
        if not any(attends(holder(module, name)) for name in pair)
        for name in pair
    ]
    if not networks:
        return False
    with module_kept(module):
        for matrix in networks:
            matrix.data.zero_()
        seen = reach(fn, x)
    # Where nothing comes through, a network may lead into the stack.
    if seen[:, APART].any() or not seen.any():
        return False
    return bool(reach(fn, x)[:, APART].any())


APART = ~torch.eye(SEQ, dtype=torch.bool, device="cpu")


def holder(module: nn.Module, name: str) -> nn.Module:
    """Return what holds the layer that a matrix belongs to."""
    return module.get_submodule(".".join(name.split(".")[:-2]))


LEFT_BEHIND = (
    "With the matrices of its networks at 0 no position moves another: a sum "
    "starts from what came into the layer, and not from what attention left. "
    "Write `x = x + attend(norm1(x))`, and then `x = x + network(norm2(x))`."
)
PAST_ONE_ONLY = (
    "With all its matrices at 0 nothing of `x` leaves the stack, and with any "
    "of them alone something does: a sum starts from what a sub-layer "
    "returned, and not from what came in. Write `x = x + attend(norm1(x))`, "
    "and then `x = x + network(norm2(x))`."
)


ENCODER.contract(divided_by_the_root_of_a_head(lambda: (arguments(59),)))
ENCODER.contract(activation_between(lambda: (arguments(67),)))


@ENCODER.contract
def over_the_keys(fn: Guarded) -> None:
    """Each softmax of scores runs over the keys."""
    over = over_another_axis(fn, (arguments(61),))
    if over.startswith(OVER_QUERIES):
        raise Broken(over, cause=over, level=RISK, why=COMPETE)
    if over:
        raise Broken(over, cause=over)


COMPETE = (
    "It is right where those that ask compete for what they gather, as slots "
    "do."
)


# Known mistakes


class OverTheSentence(nn.LayerNorm):
    """One mean and one variance for all positions."""

    def forward(self, x):
        return F.layer_norm(x, x.shape[1:]) * self.weight + self.bias


class OverTheBatch(nn.BatchNorm1d):
    """BatchNorm, which wants the features second."""

    def forward(self, x):
        return super().forward(x.mT).mT


class Stack(nn.Module):
    """Two layers, one after the other."""

    parts = PARTS

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            EncoderLayer(12, 3, 29, parts=self.parts) for _ in "12"
        )

    def forward(self, x, mask=None):
        """What every position has come to mean."""
        for layer in self.layers:
            x = layer(x, mask)
        return x


@ENCODER.mistake(
    symptom="words listen to padding only, and no word notices another",
)
class MaskUpsideDown(Stack):
    """Takes True for hidden, and is given True for may attend."""

    def forward(self, x, mask=None):
        return super().forward(x, None if mask is None else ~mask)


@ENCODER.mistake(
    symptom="right in batches of one, and wrong where lengths differ",
)
class MaskOfTheFirstSentence(Stack):
    """Only the mask of sentence 0 is kept, and it broadcasts."""

    def forward(self, x, mask=None):
        return super().forward(x, None if mask is None else mask[:1])


@ENCODER.mistake(
    symptom="rows change with what is hidden from them, and with the length",
)
class NormOverTheSentence(Stack):
    """A sentence is taken for a sample, and normalised as a whole."""

    parts = PARTS._replace(norm=OverTheSentence)


@ENCODER.mistake(
    symptom="half of the gains stay at exactly 1, however long it trains",
)
class OneNormForBothSums(Stack):
    """Each layer has two norms, and the first of them works twice."""

    def forward(self, x, mask=None):
        for layer in self.layers:
            norm = layer.attention_residual.norm
            x = norm(x + layer.self_attention(x, mask))
            x = norm(x + layer.feed_forward(x))
        return x


@ENCODER.mistake(
    symptom="the loss jumps with the lengths in a batch, and in use it "
    "answers otherwise than in training",
)
class BatchNormInDisguise(Stack):
    """What is called norm is a BatchNorm, and in evaluation mode harmless."""

    parts = PARTS._replace(norm=OverTheBatch)


@ENCODER.mistake(
    symptom="the deeper the stack, the longer its vectors; what reads them "
    "gets most from the last layers' noise",
)
class PreNormWithoutTheLast(Stack):
    """Each sub-layer reads what is normalised, and the sum leaves as it is."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            EncoderLayer(12, 3, 29, norm_first=True) for _ in "12"
        )


@ENCODER.mistake(
    symptom="a sentence means something else in every batch, though the maps "
    "of the first layer look right",
)
class MaskInTheFirstLayerOnly(Stack):
    """The loop hands the mask to the first layer, and to no other."""

    def forward(self, x, mask=None):
        first, second = self.layers
        return second(first(x, mask))


@ENCODER.mistake(
    symptom="it works with padding; under a causal mask the loss is too good",
)
class TakesEveryMaskForPadding(Stack):
    """Keeps one row of the mask, as padding needs no more."""

    def forward(self, x, mask=None):
        return super().forward(x, None if mask is None else mask[..., -1:, :])


@ENCODER.mistake(symptom="a tagger that does not know how the sentence goes on")
class CausalUnlessTold(Stack):
    """The layers come from a decoder, whose mask is the default."""

    def forward(self, x, mask=None):
        mask = causal_mask(x.shape[1]) if mask is None else mask
        return super().forward(x, mask)


@ENCODER.mistake(
    symptom="from a few layers on all positions are alike, and nothing learns",
)
class ForgetsItself(Stack):
    """What attention says replaces what a position was."""

    def forward(self, x, mask=None):
        for layer in self.layers:
            said = layer.self_attention(x, mask)
            x = layer.attention_residual.norm(said)
            x = layer.feed_forward_residual(x, layer.feed_forward)
        return x


@ENCODER.mistake(
    symptom="as many weights as planned, and the loss of half as many layers",
)
class TheSameLayerTwice(Stack):
    """The loop counts the layers, and calls number 0 each time."""

    def forward(self, x, mask=None):
        for _ in self.layers:
            x = self.layers[0](x, mask)
        return x


@ENCODER.mistake(
    symptom="the same sentence means something else each time, in use too",
)
class DropoutOnTheStream(Stack):
    """Drops from the stream itself, and goes on when training is over."""

    def forward(self, x, mask=None):
        return F.dropout(super().forward(x, mask), 0.1, training=True)


@ENCODER.mistake(symptom="it trains; positions count double, and words less")
class AddsPositionsAgain(Stack):
    """Positions were added with the embeddings, and are again here."""

    def forward(self, x, mask=None):
        place = torch.arange(x.shape[1])[:, None] * torch.ones(x.shape[2])
        return super().forward(x + place.sin(), mask)


@ENCODER.mistake(
    symptom="the loss is NaN at the first batch that has an empty sentence",
)
class InfinityForWhatIsHidden(Stack):
    """Hides by -∞, and a row that sees nobody is 0/0."""

    def forward(self, x, mask=None):
        hidden = torch.zeros(())
        if mask is not None:
            hidden = torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)
        for layer in self.layers:
            attend = layer.self_attention
            q, k = attend.queries(x), attend.keys(x)
            weights = (q @ k.mT / q.shape[-1] ** 0.5 + hidden).softmax(-1)
            said = (weights @ attend.values(x)).transpose(1, 2).flatten(2)
            x = layer.attention_residual.norm(x + attend.out_proj(said))
            x = layer.feed_forward_residual(x, layer.feed_forward)
        return x


@ENCODER.mistake(
    symptom="it trains as post-LN does, badly when it is deep, though its "
    "norms come first",
)
class StartsFromTheNormed(Stack):
    """The name of the stream is given to what is normalised.

    What came in is gone, and the sum starts from the norm.
    """

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer.attention_residual.norm(x)
            x = x + layer.self_attention(x, mask)
            x = layer.feed_forward_residual.norm(x)
            x = x + layer.feed_forward(x)
        return x


@ENCODER.mistake(
    symptom="two layers train, six do not, and the warm-up is blamed",
)
class NetworkWithoutResidual(Stack):
    """The network's result replaces what came in, where it should add."""

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer.attention_residual(
                x, lambda y, layer=layer: layer.self_attention(y, mask)
            )
            x = layer.feed_forward_residual.norm(layer.feed_forward(x))
        return x


@ENCODER.mistake(
    symptom="half of its weights never get a gradient, and it says nothing",
)
class ThrowsItsNetworksAway(Stack):
    """Each network is called, and what it returns gets no name."""

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer.attention_residual(
                x, lambda y, layer=layer: layer.self_attention(y, mask)
            )
            layer.feed_forward(x)
            x = layer.feed_forward_residual.norm(x)
        return x


@ENCODER.mistake(
    symptom="six layers are no better than one, and only the last one learns",
)
class EachLayerReadsTheInput(Stack):
    """The loop calls each layer on `x`, and keeps what the last one says."""

    def forward(self, x, mask=None):
        for layer in self.layers:
            out = layer(x, mask)
        return out


class ByTheNumberOfHeads(MultiHeadAttention):
    """Scaled by the root of axis 1, once that of the heads is there."""

    def queries(self, *args):
        q = super().queries(*args)
        return q * (q.shape[-1] / q.shape[1]) ** 0.5


@ENCODER.mistake(
    symptom="attention is sharper than it should be, and with fewer heads more "
    "so",
)
class DividedByTheHeads(Stack):
    """`size(1)` was the width once, before the heads were cut."""

    parts = PARTS._replace(attention=ByTheNumberOfHeads)


@ENCODER.mistake(
    symptom="two matrices may be multiplied into one, and nothing changes",
)
class NoActivation(Stack):
    """`Linear(d_model, d_ff)`, and at once `Linear(d_ff, d_model)`."""

    parts = PARTS._replace(feed_forward=Straight)


class AmongTheHeads(MultiHeadAttention):
    """Axis 1 is that of the heads, and over it the softmax runs."""

    def _attend(self, q, k, v, mask):
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(1)
        return (weights if mask is None else weights * mask) @ v


@ENCODER.mistake(
    symptom="what a row gathers grows with the length of its sentence",
)
class SharedAmongTheHeads(Stack):
    """`F.softmax(scores)` without `dim` takes axis 1 of four."""

    parts = PARTS._replace(attention=AmongTheHeads)


@ENCODER.mistake(
    symptom="the last gain and bias are 1 and 0 for ever, and in no list of "
    "parameters",
)
class LastNormMadeAnew(Stack):
    """A norm is built where it is used, and forgotten with the call."""

    def forward(self, x, mask=None):
        return nn.LayerNorm(12)(super().forward(x, mask))
