"""Multi-head attention, whatever weights it has of its own.

How many heads there are is not asked: one is right too, and from outside nobody
can count them. Only the width under the root is that of a head, which a
listener hears where it can. Sizes are 2 sentences of 5 positions, and width 12,
which 2, 3, 4 and 6 heads divide.
"""

import contextlib
import itertools
import re
from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from companion.attention import masked_softmax
from companion.contracts.engine.compare import (
    TOLERANCE,
    Broken,
    after,
    draw,
    furthest,
    same,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.families import (
    INSIDE,
    PLACES,
    adds_by_distance,
    fully_masked_row_has_finite_gradients,
    keeps_order,
    known_inside,
    mask_broadcasts,
    require_mean,
    require_no_order,
    require_not_linear,
)
from companion.contracts.engine.forms.styles import MEMORY
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
from companion.contracts.engine.modules.common import modules_behind
from companion.contracts.engine.relative import (
    CONVOLVES,
    NEIGHBOURS,
    by_sinusoids,
    orders_inside,
    require_far_distances,
    unless_a_convolution_sees_it,
)
from companion.contracts.engine.scale import (
    A_SCORE,
    UNUSED,
    divided_by_the_root_of_a_head,
    hidden_from,
    hidden_score,
    over_another_axis,
    softmax_unused,
    the_firsts_mask,
)
from companion.contracts.positions.turned import (
    ANGLES,
    hear_turning,
    turned_by_distance,
)
from companion.multihead import merge_heads, split_heads

__all__ = ["MULTIHEAD", "everybody"]

BATCH, SEQ, WIDTH = 2, 5, 12
EYE = torch.eye(SEQ, dtype=torch.bool, device="cpu")


def arguments(seed: int, seq: int = SEQ) -> Tensor:
    """Draw vectors near 1, in 2 sentences."""
    return draw(BATCH, seq, WIDTH, seed=seed)


def padding(*lengths: int, seq: int = SEQ) -> Tensor:
    """Make (batch, 1, 1, seq): True where a sentence has a word."""
    return (torch.arange(seq) < torch.tensor(lengths)[:, None])[:, None, None]


def fully_masked() -> Tensor:
    """Make a mask (seq, seq) with which row 1 may see nothing."""
    mask = causal(SEQ)
    mask[1] = False
    return mask


MULTIHEAD = Component(
    name="multihead",
    weights=True,
    signature="multihead(x, mask=None)",
    returns="the output (batch, seq, d_model)",
    axes=("row", "feature"),
    shape=lambda x, mask=None: x.shape,
    shape_hints={
        "Are these the weights, before they meet the values?": (
            lambda x, mask=None: (*x.shape[:2], x.shape[1])
        ),
        "The batch appears twice: a mask (batch, 1, 1, seq) has an axis for "
        "the heads, and so must the scores.": (
            lambda x, mask=None: (len(x), *x.shape)
        ),
    },
    cases=lambda: {
        "without a mask": (arguments(2),),
        "with a causal mask": (arguments(3), causal(SEQ)),
        "with a padding mask": (arguments(5), padding(3, 5)),
    },
)

IGNORED = "The mask is not used: without it nothing changes."
AFTERWARDS = (
    "The mask multiplies the weights after the softmax, whose sum still counts "
    "the hidden keys: put -∞ into the hidden scores before it."
)
COUNTED = (
    "Does the mask reach the scores, as -∞, before the softmax over the keys?"
)

ALONG = (
    "`{}` has a row for each position: reordering the positions changes their "
    "rows, and with equal rows in it it does not."
)
AS_IN_LINFORMER = (
    "It is right if keys and values are mixed along the positions, as in "
    "Linformer, or if positions are to be known inside."
)

MISTAKEN = {
    "The mask is upside down: True means may attend.": lambda may: ~may,
    "The mask is transposed: its rows are the queries, its last axis the "
    "keys.": lambda may: may.mT,
    THE_FIRSTS: lambda may: may[:1].expand_as(may),
    EACH_OTHERS: lambda may: may | may.flip(0),
}
"""Hint -> who would then see whom."""


def allowed(mask: Tensor) -> Tensor:
    """Return who may see whom in each sentence: (batch, row, key)."""
    four = mask[(None,) * (4 - mask.ndim)]
    return four.expand(BATCH, 1, SEQ, SEQ)[:, 0]


def looks_like(seen: Tensor, may: Tensor) -> bool:
    """Tell whether rows move as if ``may`` were the mask, where that is known.

    What a row with nobody to see does differs from softmax to softmax. A row
    also moves with its own query, unless all weight is on one key.
    """
    keys = may.sum(-1, keepdim=True)
    known = (may | ~EYE | (keys == 1)) & (keys > 0)
    return torch.equal(seen[known], may[known])


def alike_if_masked(rows: Tensor, may: Tensor) -> bool:
    """Tell whether rows that may see nobody are the same in each sentence.

    Zeros, NaN or equal weights over all: none of them has a say.
    """
    none_seen = ~may.any(-1)
    pairs = zip(rows.detach(), none_seen, strict=True)
    return all(
        torch.allclose(
            row[none], row[none][:1], TOLERANCE, TOLERANCE, equal_nan=True
        )
        for row, none in pairs
        if none.any()
    )


def why_leaked(fn: Guarded, x: Tensor, seen: Tensor, mask: Tensor) -> str:
    """Name the mistake that makes rows move as ``seen`` under ``mask``."""
    by_rows = getattr(fn.form, "row_by_row_asked", False)
    if by_rows and hides_rows(fn, x, padding(2, 4)):
        return HIDES_ROWS
    if is_nan_whatever(fn, x, mask):
        return NAN_WHATEVER
    if furthest(fn.raw(x, torch.ones_like(mask)), fn.raw(x, mask)) is None:
        return IGNORED
    if counts_afterwards(fn, x):
        unused = UNUSED if softmax_unused(fn, (x, mask)) else ""
        return unused or over_another_axis(fn, (x, mask)) or AFTERWARDS
    for hint, mistake in MISTAKEN.items():
        other = mistake(allowed(mask))
        if looks_like(seen, other) and alike_if_masked(fn.raw(x, mask), other):
            return hint
    return why_heard(fn, x, mask)


def why_heard(fn: Guarded, x: Tensor, mask: Tensor) -> str:
    """Name the mistake by what its softmax hears; else ask for the mask."""
    pads = padding(2, 4)
    may = allowed(pads)
    if the_firsts_mask(hidden_from(fn, (x, pads), may), may):
        return THE_FIRSTS
    if over := over_another_axis(fn, (x, mask)):
        return over
    score = hidden_score(fn, (x, mask), allowed(mask))
    return COUNTED if score is None else A_SCORE.format(score)


def counts_afterwards(fn: Guarded, x: Tensor) -> bool:
    """Tell whether each True adds the same, whatever else is True.

    Under a mask that comes before the softmax it takes its share from others.
    """
    past, none = causal(SEQ), torch.zeros(SEQ, SEQ, dtype=torch.bool)
    halves = fn.raw(x, past) + fn.raw(x, ~past)
    return furthest(halves, fn.raw(x, ~none) + fn.raw(x, none)) is None


def require_masked(fn: Guarded, x: Tensor, mask: Tensor, how: str) -> None:
    """Raise Broken unless rows move with what ``mask`` lets them see."""
    may = allowed(mask)
    seen = reach(fn, x, mask, wanted=may)
    silent, heard = may | EYE | ~attended(may), may & attended(may)
    if (seen & ~silent).any() or (heard & ~seen).any():
        why = why_leaked(fn, x, seen, mask)
        require_silent(seen, silent, how, why)
        require_moved(seen, heard, "which the mask allows", why)


@MULTIHEAD.before_reference
def order(fn: Guarded) -> None:
    """Reordering the positions reorders the rows."""
    x = arguments(17)
    if keeps_order(fn, x):
        return
    why = (
        "Attention knows no order: where heads are split or joined, does a "
        "`view` mix positions and heads for want of a transpose?"
    )
    if not reach(fn, x).triu(1).any():
        why = (
            "No row sees what comes after it, although there is no mask. If "
            'it is built in, try `check("causal_attention", …)`.'
        )
    try:
        require_no_order(fn, x, why)
    except Broken as broken:
        known = known_by_its_name(fn, x, broken)
        raise known or by_their_distances(fn, broken) from None


BY_DISTANCE = (
    "It knows how far apart positions are: reordering them changes their rows, "
    "and of two equal vectors only the distance decides the score."
)


def by_their_distances(fn: Guarded, broken: Broken) -> Broken:
    """Make a note of a risk where positions are turned, or a fault.

    No `view` that mixes them up leaves such scores. By two angles, as in a
    picture, more than the distance may count.
    """
    if broken.cause != PLACES:
        return broken
    x = arguments(67, 7)[:, :1].expand(-1, 7, -1).contiguous()
    told = hear_turning(lambda: fn.raw(x), 7)
    if told not in ("", ANGLES):
        return Broken(told, cause=told)
    if not turned_by_distance(lambda: fn.raw(x), 7):
        return broken
    got = broken.got, broken.expected
    return Broken(BY_DISTANCE, *got, cause=BY_DISTANCE, level=NOTE, why=INSIDE)


def known_by_its_name(fn: Guarded, x: Tensor, broken: Broken) -> Broken | None:
    """Make a risk of what a learned row for each position explains.

    With a mask there would be more to ask than that. What sinusoids explain, or
    a convolution beside the attention, is a note.
    """
    if broken.level:
        return None
    got = broken.got, broken.expected
    if known := by_sinusoids(fn, x, broken):
        return known
    table, kernel, distances = orders_inside(fn, x)
    if kernel and not (table or distances):
        says = CONVOLVES.format(kernel)
        return Broken(says, *got, cause=CONVOLVES, level=NOTE, why=NEIGHBOURS)
    if not (table and fn.takes_no_mask):
        return None
    says = ALONG.format(table)
    return Broken(says, *got, cause=says, level=RISK, why=AS_IN_LINFORMER)


@MULTIHEAD.before_reference
def everybody(fn: Guarded) -> None:
    """Without a mask every row sees every position."""
    x = arguments(13)
    seen = reach_without_a_mask(fn, arguments)
    why = "Is a mask at work that nobody gave?"
    if torch.equal(seen, EYE.expand_as(seen)):
        why = (
            "Each row sees itself only: the scores compare the heads of one "
            "position, not the positions of one head. Transpose to (batch, "
            "head, seq, head_dim) first."
        )
        if furthest(fn(x)[:1], fn(x[:1])) is not None:
            why = (
                "Each row sees its own place in other sentences: the axes are "
                "read as (seq, batch, d_model), and the batch comes first. "
                "PyTorch's module needs `batch_first=True`."
            )
    require_moved(seen, torch.ones_like(seen), "although there is no mask", why)


@MULTIHEAD.before_reference
# Where positions are mixed up, no mask can be judged.
@after(order)
@sends_masks
@unless_a_convolution_sees_it
def future(fn: Guarded) -> None:
    """With a causal mask no row sees its future."""
    how = "which is in its future"
    require_masked(fn, arguments(7), causal(SEQ), how)


@MULTIHEAD.before_reference
@after(order)
@sends_masks
@unless_any_is_causal
@unless_a_convolution_sees_it
def pads(fn: Guarded) -> None:
    """No row sees the padding of its own sentence."""
    how = "which the mask hides"
    require_masked(fn, arguments(11), padding(2, 4), how)


@MULTIHEAD.contract
@after(future)
@sends_masks
@unless_any_is_causal
def all_true(fn: Guarded) -> None:
    """A mask that hides nothing changes nothing."""
    x = arguments(43)
    mask = torch.ones(SEQ, SEQ, dtype=torch.bool)
    why = "Every entry of the mask is True: all may attend."
    same(fn, fn(x, mask), fn(x), why)


@MULTIHEAD.contract
@after(order)
def twice(fn: Guarded) -> None:
    """Saying everything twice changes no row."""
    x = arguments(19)
    why = (
        "The positions stand there twice, so each weight halves and counts "
        "twice: do the weights of a row sum to 1?"
    )
    try:
        same(fn, fn(torch.cat([x, x], 1))[:, :SEQ], fn(x), why)
    except Broken as broken:
        told = told_of_the_softmax(fn, broken)
        if told is not broken:
            raise told from None
        if softmax_unused(fn, (x,)):
            raise Broken(UNUSED) from None
        if known := known_by_its_name(fn, x, broken):
            raise known from None
        if norm := norm_of_weights(fn, x):
            raise Broken(
                NORMED_WEIGHTS.format(norm),
                broken.got,
                broken.expected,
                cause=NORMED_WEIGHTS,
                level=NOTE,
                why=RE_ATTENTION,
            ) from None
        milder = known_inside(fn, x, broken)
        if milder is None:
            raise
        if not adds_by_distance(fn, x):
            require_mean(fn, x, why)
        raise by_their_distances(fn, milder) from None
    # With as many queries and keys, what a mask would show is not seen here.
    if fn.takes_no_mask and (over := over_another_axis(fn, (x,))):
        raise Broken(over, cause=over)


NORMED_WEIGHTS = (
    "`{}` is a norm that the weights go through behind the softmax, so that "
    "those of a row need not sum to 1: without it saying everything twice "
    "changes no row."
)
RE_ATTENTION = "It is meant so in re-attention, as DeepViT has it."


def norm_of_weights(fn: Guarded, x: Tensor) -> str:
    """Name a norm that weights go through, if all is in order without it."""
    lengths = SEQ, 2 * SEQ
    norms: dict[str, nn.Module] = {}
    # What is given may be anything, and break whoever looks into it.
    with contextlib.suppress(Exception):
        for module in modules_behind(fn.given):
            for name, part in module.named_modules():
                if "norm" in type(part).__name__.lower():
                    norms[name] = part
    passed: set[nn.Module] = set()

    def let_weights_pass(part: nn.Module, args: tuple, got: object) -> object:
        given = args[0] if args else None
        shape = given.shape if isinstance(given, Tensor) else ()
        if len(shape) == 4 and any(shape.count(n) > 1 for n in lengths):
            passed.add(part)
            return given
        return got

    with contextlib.ExitStack() as hooks:
        for part in norms.values():
            hook = part.register_forward_hook(let_weights_pass)
            hooks.callback(hook.remove)
        try:
            again = fn(torch.cat([x, x], 1))[:, :SEQ]
            explained = furthest(again, fn(x)) is None
        except Broken:
            explained = False
    named = (name for name, part in norms.items() if part in passed)
    return next(named, "") if explained else ""


def told_of_the_softmax(fn: Guarded, broken: Broken) -> Broken:
    """Say of what is broken that a softmax runs over no keys, if it does."""
    if over := over_another_axis(fn, (arguments(19),)):
        return Broken(over, cause=over)
    return broken


@MULTIHEAD.contract
@after(pads, twice)
@sends_masks
@unless_any_is_causal
@unless_a_convolution_sees_it
def as_if_absent(fn: Guarded) -> None:
    """Hidden positions might as well not be there."""
    x = arguments(23)
    got = fn(x, padding(3, 3))[:, :3]
    why = (
        "Positions 3 and 4 are hidden from all, and still change the rows "
        "before them, by being there."
    )
    same(fn, got, fn(x[:, :3]), why)


@MULTIHEAD.contract
def content(fn: Guarded) -> None:
    """The weights depend on what stands there."""
    why = (
        "The output is a linear function of `x`, as if all weights were "
        "constant: do queries and keys meet, in a softmax?"
    )
    require_not_linear(fn, arguments(29), arguments(31), why)
    require_arguments_heard(fn)


MULTIHEAD.contract(
    after(pads)(
        mask_broadcasts(
            "A mask may be (seq, seq), (batch, 1, 1, seq) or "
            "(batch, 1, seq, seq)",
            lambda: (arguments(41),),
            ((SEQ, SEQ), (BATCH, 1, 1, SEQ), (1, 1, SEQ, SEQ)),
            (BATCH, 1, SEQ, SEQ),
        )
    )
)


@MULTIHEAD.contract
@after(everybody, content)
def any_size(fn: Guarded) -> None:
    """It takes sentences of any length, one at a time too."""
    for seq in (1, 3, 11):
        x = arguments(47, seq)
        alone = torch.cat([fn(x[:1]), fn(x[1:])])
        why = f"Of {seq} positions, each sentence alone gives other rows."
        try:
            same(fn, fn(x), alone, why)
        except Broken as broken:
            raise told_of_the_softmax(fn, broken) from None
    require_far_distances(fn, WIDTH)
    require_any_memory(fn)


ITS_OWN = (
    "It is right if what asks and what is asked are always one sequence; a "
    "translator's decoder asks the source."
)


def require_arguments_heard(fn: Guarded) -> None:
    """Raise Broken if it is called as (x, x, x) and does not hear each."""
    x, other = arguments(59), arguments(61)
    if not takes_keys(fn, x):
        return
    usual = fn.raw(x)
    _, keys_at, values_at = places_of(fn)
    for at, keys, values, says in (
        (keys_at, other, x, NO_KEYS),
        (values_at, x, other, NO_VALUES),
    ):
        # With small weights keys move the rows by a little.
        if torch.equal(gathered(fn, x, keys, values), usual):
            names = fn.form.wants.names
            # Of `*args` only the place is known.
            says = says.format((*names, *"123"[len(names) :])[at])
            raise Broken(says, cause=says, level=RISK, why=ITS_OWN)
    if gathers_its_queries(fn, x):
        roles = fn.form.wants.named("q"), fn.form.wants.named("v")
        says = EXCHANGED.format(*roles)
        raise Broken(says, cause=says, level=RISK, why=ITS_OWN)


EXCHANGED = (
    "The rows are a linear function of its argument `{0}`, and none of `{1}`: "
    "called as (x, x, x), it gathers `{0}`, and `{1}` asks. Are the two "
    "exchanged?"
)


def gathers_its_queries(fn: Guarded, x: Tensor) -> bool:
    """Tell whether what is called queries is gathered, and values ask."""
    names = {fn.form.wants.named(role) for role in "qkv"}
    if len(names) != 3 or not names <= {*fn.form.wants.names[:3]}:
        return False  # Then the places tell, and nothing contradicts these.
    one, two = arguments(67), arguments(71)

    def linear(gathers: Callable[[Tensor], Tensor]) -> bool:
        between = (gathers(one) + gathers(two)) / 2
        return furthest(gathers((one + two) / 2), between) is None

    return linear(lambda q: gathered(fn, q, x, x)) and not linear(
        lambda v: gathered(fn, x, x, v)
    )


NO_KEYS = (
    "Its argument `{}` changes nothing: called as (x, x, x), it gives the same "
    "rows with other vectors there. Are keys made of the queries?"
)
NO_VALUES = (
    "Its argument `{}` changes nothing: called as (x, x, x), it gives the same "
    "rows with other vectors there. Are values made of the queries or of the "
    "keys?"
)


def require_any_memory(fn: Guarded) -> None:
    """Raise Broken unless keys may be more than queries, if it takes some.

    Of a memory in which everything stands twice, rows gather what they gather
    of it once.
    """
    x, other = arguments(59), arguments(61)
    if vectors_taken(fn, x) < 2:
        return
    twice = torch.cat([other, other], 1)
    try:
        swapped, got = gathered_either_way(fn, x, twice)
    except Broken as broken:
        said = getattr(broken, "what", "") or broken.message
        says = (
            f"For {SEQ} queries and {2 * SEQ} keys: {said} Are keys and values "
            "split into heads by the length of the queries?"
        )
        raise Broken(says, level=RISK, why=ITS_OWN) from None
    says = (
        f"For {SEQ} queries it was given {2 * SEQ} keys and values, each "
        "twice, and its rows are not those that it gives once."
    )
    if not keeps_order(fn, x):
        return  # What stands there twice may count by where it stands.
    try:
        same(fn, got, gathered_of(fn, x, other, swapped=swapped), says)
    except Broken as broken:
        broken.level, broken.why = RISK, ITS_OWN
        raise


def gathered_either_way(
    fn: Guarded, x: Tensor, memory: Tensor
) -> tuple[bool, Tensor]:
    """Return what ``x`` gathers, and whether the memory stands first.

    Names need not tell. With more vectors than ``x`` has, it shows.
    """
    try:
        return False, gathered_of(fn, x, memory)
    except Broken:
        if takes_keys(fn, x):
            raise
        with contextlib.suppress(Broken):
            return True, gathered_of(fn, x, memory, swapped=True)
        raise


def takes_keys(fn: Guarded, x: Tensor) -> bool:
    """Tell whether it is called as (x, x, x)."""
    return vectors_taken(fn, x) > 2


def vectors_taken(fn: Guarded, x: Tensor) -> int:
    """Count how often it is given ``x``: three times as (x, x, x, mask)."""
    form = fn.form
    if form is None or form.style is None or form.whole:
        return 1
    if form.absent == "full":  # Its masks are made for keys as for queries.
        return 1
    if any("mask" in name for name in form.wants.names[:3]):
        return 1
    named = {"x": x} if form.absent == "omitted" else {"x": x, "mask": None}
    given, _ = form.style(form.wants, named) or ((), {})
    return len([*itertools.takewhile(lambda one: one is x, given[:3])])


def places_of(fn: Guarded) -> tuple[int, int, int]:
    """Return where queries, keys and values go in, if the names say so."""
    names = fn.form.wants.names[:3]
    known = [fn.form.wants.named(role) for role in "qkv"]
    if {*known} != {*names}:
        return 0, 1, 2
    q, k, v = map(names.index, known)
    return q, k, v


def gathered_of(
    fn: Guarded, x: Tensor, memory: Tensor, *, swapped: bool = False
) -> Tensor:
    """Return what ``x`` gathers from other vectors.

    Args:
        fn: The attention.
        x: What asks.
        memory: What is asked.
        swapped: Whether that stands where its name says that it does not.
    """
    if takes_keys(fn, x):
        return gathered(fn, x, memory, memory)
    usual = fn.form

    def style(wants: object, named: dict) -> tuple:
        (asks, _, *rest), words = usual.style(wants, named)
        pair = (memory, asks) if memory_first != swapped else (asks, memory)
        return (*pair, *rest), words

    memory_first = bool(re.fullmatch(MEMORY, usual.wants.names[0]))
    fn.form = replace(usual, style=style)
    try:
        return fn.raw(x)
    finally:
        fn.form = usual


def gathered(fn: Guarded, x: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Return what ``x`` gathers from keys and values of their own."""
    usual, places = fn.form, places_of(fn)

    def style(wants: object, named: dict) -> tuple:
        (asks, _, _, *rest), words = usual.style(wants, named)
        by_place = dict(zip(places, (asks, keys, values), strict=True))
        return (by_place[0], by_place[1], by_place[2], *rest), words

    fn.form = replace(usual, style=style)
    try:
        return fn.raw(x)
    finally:
        fn.form = usual


@MULTIHEAD.contract
@risk(EMPTY)
@sends_masks
@unless_any_is_causal
def fully_masked_row(fn: Guarded) -> None:
    """A row that may attend to nothing is finite, and sees nothing."""
    x, mask = arguments(37), fully_masked()
    require_finite_row(fn, fn.raw(x, mask))
    future(fn)  # Else a row may see what no row is to see.
    seen, may = reach(fn, x, mask), torch.ones(BATCH, SEQ, SEQ).bool()
    may[:, 1] = False
    why = (
        "Equally low scores become equal weights: set hidden weights to 0 "
        "after the softmax."
    )
    require_silent(seen, may, "and may attend to nothing", why)


MULTIHEAD.contract(
    fully_masked_row_has_finite_gradients(
        lambda: (arguments(37), fully_masked())
    )
)


MULTIHEAD.contract(divided_by_the_root_of_a_head(lambda: (arguments(53),)))


# Known mistakes


class Heads(nn.Module):
    """Three heads of width 4, right but for what a mistake puts in."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(12, 12) for _ in range(4))

    def split(self, x):
        """(batch, seq, d_model) to (batch, head, seq, head_dim)."""
        return split_heads(x, 3)

    def scores(self, q, k):
        """How well each query fits each key."""
        return q @ k.mT / q.shape[-1] ** 0.5

    def weigh(self, scores, mask):
        """The weights of scores (batch, head, query, key)."""
        return (
            scores.softmax(-1) if mask is None else masked_softmax(scores, mask)
        )

    def join(self, heads):
        """The way back from ``split``."""
        return merge_heads(heads)

    def forward(self, x, mask=None):
        """What each position gathers."""
        q, k, v = (self.split(p(x)) for p in (self.q, self.k, self.v))
        weights = self.weigh(self.scores(q, k), mask)
        return self.o(self.join(weights @ v))


class PyTorchs(nn.Module):
    """PyTorch's own module, which someone calls in a wrong way."""

    def __init__(self, batch_first=True):
        super().__init__()
        self.inner = nn.MultiheadAttention(12, 3, batch_first=batch_first)

    def forward(self, x, mask=None):
        """``mask`` is as the module wants it: True = hidden, one a head."""
        return self.inner(x, x, x, attn_mask=mask, need_weights=False)[0]


@MULTIHEAD.mistake(symptom="the loss is far too good, and it writes nonsense")
class UpsideDown(PyTorchs):
    """A mask where True = may attend goes to a module that hides True."""

    def forward(self, x, mask=None):
        if mask is not None:
            mask = mask.expand(len(x), 3, x.shape[1], x.shape[1])
            mask = mask.flatten(0, 1)
        return super().forward(x, mask)


@MULTIHEAD.mistake(
    symptom="a sentence comes out otherwise if its batch has longer ones"
)
class PaddingHidesQueries(Heads):
    """The padding mask stands on the queries: pads ask nobody, but answer."""

    def forward(self, x, mask=None):
        if mask is not None and mask.shape[-2] == 1:
            mask = mask.mT
        return super().forward(x, mask)


@MULTIHEAD.mistake(
    symptom="right for a batch of one; else sentences see each other's padding"
)
class RepeatedInTheWrongOrder(PyTorchs):
    """Batch and heads become one axis, and the masks repeat as a batch."""

    def forward(self, x, mask=None):
        if mask is not None:
            seq = x.shape[1]
            mask = mask.expand(len(x), 1, seq, seq)[:, 0]
            mask = ~mask.repeat(3, 1, 1)
        return super().forward(x, mask)


@MULTIHEAD.mistake(
    symptom="it learns as much as without attention; odd in batches of one"
)
class PositionsFirst(PyTorchs):
    """Without `batch_first` each word asks its peers in other sentences."""

    def __init__(self):
        super().__init__(batch_first=False)


@MULTIHEAD.mistake(
    symptom="early words get small vectors, for most of their row is hidden"
)
class MultipliedAfterwards(Heads):
    """The mask wipes weights out after the softmax."""

    def weigh(self, scores, mask):
        weights = scores.softmax(-1)
        return weights if mask is None else weights * mask


@MULTIHEAD.mistake(symptom="the future leaks through the sums of the columns")
class SoftmaxOverTheQueries(Heads):
    """Columns sum to 1: each key shares itself out among the queries."""

    def weigh(self, scores, mask):
        if mask is None:
            return scores.softmax(-2)
        lowest = torch.finfo(scores.dtype).min
        weights = scores.masked_fill(~mask, lowest).softmax(-2)
        return weights.masked_fill(~mask, 0)


@MULTIHEAD.mistake(
    symptom="trains like a network without attention: order never matters"
)
class HeadsAttendToHeads(Heads):
    """The transpose is missing twice: heads of one word ask each other."""

    def split(self, x):
        return x.unflatten(-1, (3, -1))

    def weigh(self, scores, mask):
        return scores.softmax(-1)

    def join(self, heads):
        return heads.flatten(2)


@MULTIHEAD.mistake(
    symptom="trains, and stays behind: a word's place decides what it sees"
)
class SplitByViewAlone(Heads):
    """Cut into heads by one `view`, and joined as is right."""

    def split(self, x):
        return x.reshape(len(x), 3, -1, 4)


@MULTIHEAD.mistake(
    symptom="each word gets parts of what was gathered for other words"
)
class JoinedByViewAlone(Heads):
    """Joined by `reshape` without the transpose back."""

    def join(self, heads):
        return heads.reshape(len(heads), -1, 12)


@MULTIHEAD.mistake(
    symptom="one empty sentence in a batch, and all weights are NaN at once"
)
class NanInEmptyRows(Heads):
    """Hidden scores become -∞, and a row of nothing else NaN."""

    def weigh(self, scores, mask):
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return scores.softmax(-1)


@MULTIHEAD.mistake(symptom="the same sentence is answered otherwise each time")
class DropoutLeftOn(Heads):
    """`F.dropout` is on unless it is told that training is over."""

    def weigh(self, scores, mask):
        return F.dropout(super().weigh(scores, mask), 0.5)


@MULTIHEAD.mistake(symptom="attention stays flatter, the more heads there are")
class DividedByTheWholeWidth(Heads):
    """The root of d_model, which is known where the heads are not yet cut."""

    def scores(self, q, k):
        return q @ k.mT / 12**0.5


@MULTIHEAD.mistake(
    symptom="from the first step each word looks at one other, and learns "
    "slowly to look elsewhere"
)
class Undivided(Heads):
    """The division is forgotten, as in a sketch of the formula."""

    def scores(self, q, k):
        return q @ k.mT


@MULTIHEAD.mistake(
    symptom="after a move to the fused function it is a little worse, and no "
    "test of shapes knows why"
)
class DividedByHandAndByTheFunction(Heads):
    """Queries are scaled by hand, and the fused function scales once more."""

    def forward(self, x, mask=None):
        q, k, v = (self.split(p(x)) for p in (self.q, self.k, self.v))
        q = q / q.shape[-1] ** 0.5
        heads = F.scaled_dot_product_attention(q, k, v, mask)
        return self.o(self.join(heads))


@MULTIHEAD.mistake(
    symptom="as if there were no mask, and yet it is there and has its shape"
)
class ABillionthForABillion(Heads):
    """The minus of -1e9 went to the exponent: 1e-9 is a score like others."""

    def weigh(self, scores, mask):
        if mask is not None:
            scores = scores.masked_fill(~mask, 1e-9)
        return scores.softmax(-1)


@MULTIHEAD.mistake(
    symptom="a quarter of the weights stays as it was drawn, and scores are "
    "the same both ways"
)
class KeysByTheMatrixOfQueries(Heads):
    """A line was copied, and its name not changed: W_K is never called."""

    def __init__(self):
        super().__init__()
        self.unused, self.k = self.k, self.q


@MULTIHEAD.mistake(symptom="it trains; no head can use what another one found")
class NeverMixed(Heads):
    """W_O is built, and the joined heads are returned as they are."""

    def forward(self, x, mask=None):
        q, k, v = (self.split(p(x)) for p in (self.q, self.k, self.v))
        return self.join(self.weigh(self.scores(q, k), mask) @ v)
