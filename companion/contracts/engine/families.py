"""Contracts that several components share, each written once.

Each function makes one contract, to be registered where the component stands:

    ATTENTION.contract(half_precision(lambda: qkv(113)))

``args`` is a function without arguments, since inputs are drawn anew for each
check. A title is the contract's name, as it stands in reports.
"""

import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from companion.contracts.engine.compare import (
    Broken,
    draw,
    finite,
    furthest,
    is_float,
    number,
    place,
    require_half_precision,
    same,
)
from companion.contracts.engine.guard import Guarded, Raised
from companion.contracts.engine.influence import reach, require_silent
from companion.contracts.engine.levels import FAULT, NOTE, RISK, risk
from companion.contracts.engine.masking import (
    EMPTY,
    EMPTY_NAN,
    causal,
    require_finite_gradients,
    require_hidden,
    require_zeros_in_row_one,
    sends_masks,
    some_mask,
    visible,
)
from companion.contracts.engine.modules.common import module_kept, module_of
from companion.contracts.engine.universal import level_of_known

__all__ = [
    "DISTANCES",
    "HALF",
    "LARGE_SCORES",
    "PLACES",
    "THREE_AXES",
    "UNDER_A_MASK",
    "alone_as_in_the_batch",
    "batch_independence",
    "block_by_block",
    "equivariance",
    "fully_masked_row_gets_zeros",
    "fully_masked_row_has_finite_gradients",
    "future_hidden",
    "half_precision",
    "hidden_score_changes_nothing",
    "is_linear_once_normed",
    "keeps_alike",
    "keeps_order",
    "known_inside",
    "large_scores_stay_finite",
    "leading_axes",
    "mask_broadcasts",
    "no_weight_is_negative",
    "normed",
    "part_as_in_the_whole",
    "positions_apart",
    "require_factor",
    "require_mean",
    "require_no_order",
    "require_not_linear",
    "rows_sum_to_one",
]

Arguments = Callable[[], tuple]
Contract = Callable[[Guarded], None]

HALF = (
    "In float32 nothing of it shows; it bites once the model runs in float16 "
    "or under autocast."
)
LARGE = (
    "Scores of ±100 are right, and no larger ones are met in a model that "
    "trains well."
)

THREE_AXES = (
    "A Transformer sends its norms (batch, seq, d_model); it bites where "
    "queries and keys are normed head by head, with one axis more."
)

LARGE_SCORES = (
    "`exp` makes ∞ of a large score, and 0 of every low one: subtract each "
    "row's own largest score first, as `torch.softmax` does."
)


def titled(title: str) -> Callable[[Contract], Contract]:
    """Name a contract."""

    def name(holds: Contract) -> Contract:
        holds.__doc__ = f"{title}."
        return holds

    return name


# Of any component


def equivariance(
    title: str,
    args: Arguments,
    change: Callable[..., tuple],
    result: Callable[[Tensor], Tensor] = lambda y: y,
    *,
    why: str,
) -> Contract:
    """Make: where the arguments change, the result changes likewise.

    Args:
        title: The contract's name.
        args: The arguments before the change.
        change: From the arguments, others.
        result: What that makes of the result; by default nothing.
        why: The likely mistake, where the two differ.
    """

    @titled(title)
    def holds(fn: Guarded) -> None:
        usual = args()
        same(fn, fn(*change(*usual)), result(fn(*usual)), why)

    return holds


def half_precision(*several: Arguments) -> Contract:
    """Make: float16 and bfloat16 give nearly what float32 gives."""

    @titled("It works in half precision")
    @risk(HALF)
    def holds(fn: Guarded) -> None:
        for args in several:
            given = args()
            try:
                require_half_precision(fn, *given)
            except Broken as broken:
                if right_with_large_weights(fn, given):
                    broken.level, broken.why = RISK, ITS_WEIGHTS
                raise

    return holds


ITS_WEIGHTS = (
    "With its weights in float32, as under autocast, it is right; it bites "
    "once `.half()` makes them float16, too."
)


def right_with_large_weights(fn: Guarded, args: tuple) -> bool:
    """Tell whether a norm is right if only its vectors are of a small type."""
    if fn.component.name not in ("layer_norm", "rms_norm"):
        return False
    x, *weights = args
    try:
        for dtype in (torch.float16, torch.bfloat16):
            small = x.to(dtype)
            got = fn.raw(small, *weights).float()
            same(fn, got, fn(small.float(), *weights), "", 0.05)
    except Broken:
        return False
    return True


def block_by_block(axes: int, last: int = 2) -> Callable:
    """Make the expected result of blocks that do not touch each other.

    Args:
        axes: How many of the arguments have leading axes.
        last: How many axes a block has.
    """

    def expected(fn: Guarded, got: Tensor, args: tuple) -> Tensor:
        blocks = [x.reshape(-1, 1, *x.shape[-last:]) for x in args[:axes]]
        each = [fn(*b, *args[axes:]) for b in zip(*blocks, strict=True)]
        return torch.cat(each).reshape(got.shape)

    return expected


def has_another_convention(fn: Guarded) -> bool:
    """Tell whether it returns what a known mistake does that is only a note."""
    return any(
        level_of_known(fn, mistake.hint)[0] == NOTE
        for mistake in fn.component.mistakes
        if mistake.level == NOTE
    )


def normed(oracle: Callable) -> Callable[[Guarded, Tensor, tuple], Tensor]:
    """Make: what a norm returns, in its own convention if it has another.

    Args:
        oracle: Returns what the usual convention returns.
    """

    def expected(fn: Guarded, got: Tensor, args: tuple) -> Tensor:
        right = oracle(*args)
        if furthest(got, right) is None or not has_another_convention(fn):
            return right
        x, *rest = args
        usual = x.reshape(1, -1, x.shape[-1])
        return fn(usual, *rest).reshape(x.shape)

    return expected


def leading_axes(
    before: str,
    leads: Sequence[tuple[int, ...]],
    args: Callable[[tuple[int, ...]], tuple],
    expected: Callable[[Guarded, Tensor, tuple], Tensor],
    what: str = "it is block by block",
    rare: str = "",
    *,
    unseen: bool = False,
) -> Contract:
    """Make: it takes any number of axes before those named ``before``.

    Args:
        before: The axes that it looks at.
        leads: The sizes of the axes before them.
        args: From such sizes, the arguments.
        expected: From the guard, the result and the arguments, what is right.
        what: Who returns what is right, in words.
        rare: Why it is only a risk to raise for all but two such axes, if it
            is.
        unseen: Whether it is also a risk to return wrong numbers there; they
            go unnoticed, and else are a fault.
    """

    def require(fn: Guarded, lead: tuple[int, ...]) -> None:
        usual = args(lead)
        got = fn(*usual)
        why = f"With {len(lead)} axes before {before} it is not what {what}."
        same(fn, got, expected(fn, got, usual), why)

    def is_rare(fn: Guarded, lead: tuple[int, ...]) -> bool:
        try:
            require(fn, lead)
        except Raised:
            return len(lead) != 2
        except Broken:
            # Two are compared with the oracle anyway.
            return unseen or len(lead) == 2
        return True

    @titled(f"It takes any number of axes before {before}")
    def holds(fn: Guarded) -> None:
        try:
            for lead in leads:
                require(fn, lead)
        except Broken as broken:
            at_most = unseen or isinstance(broken, Raised)
            may = rare and at_most and not broken.level
            if may and all(is_rare(fn, lead) for lead in leads):
                broken.level, broken.why = RISK, rare
            raise

    return holds


def batch_independence(
    title: str,
    args: Arguments,
    change: Callable[..., tuple],
    *,
    why: str,
    unit: str = "sentence",
    changed: int = 0,
) -> Contract:
    """Make: of two sentences, one does not move with the other.

    Args:
        title: The contract's name.
        args: Two sentences.
        change: From the arguments, others that differ in one sentence only.
        why: The likely mistake, where the other sentence moves.
        unit: What a sentence is called here.
        changed: Which of the two differs.
    """
    kept = 1 - changed

    @titled(title)
    def holds(fn: Guarded) -> None:
        usual = args()
        before, after = fn(*usual), fn(*change(*usual))
        if furthest(after[kept], before[kept]) is not None:
            whole = before.ndim < 3
            raise Broken(
                f"Only {unit} {changed} was changed, and {unit} {kept} moved: "
                f"{why}",
                after if whole else after[kept],
                before if whole else before[kept],
            )

    return holds


def alone_as_in_the_batch(
    title: str, args: Arguments, *, why: str, batched: int | None = None
) -> Contract:
    """Make: a sentence has the result that it has alone.

    Args:
        title: The contract's name.
        args: The arguments of several sentences.
        why: The likely mistake, where it differs.
        batched: How many of the arguments have an axis for the batch; by
            default all.
    """

    @titled(title)
    def holds(fn: Guarded) -> None:
        usual = args()
        rows, shared = usual[:batched], usual[len(usual[:batched]) :]
        alone = [
            fn(*(x[i : i + 1] for x in rows), *shared)
            for i in range(len(rows[0]))
        ]
        same(fn, fn(*usual), torch.cat(alone), why)

    return holds


def part_as_in_the_whole(
    title: str,
    args: Arguments,
    part: Callable[..., tuple],
    result: Callable[[Tensor], Tensor] = lambda y: y,
    *,
    why: str,
) -> Contract:
    """Make: the first positions of the first sentences, alone, are the same.

    Args:
        title: The contract's name.
        args: The arguments of at least 3 sentences of 11 positions.
        part: From a number of sentences, a number of positions and the
            arguments, those of the part.
        result: From that part of the whole result, what is expected.
        why: The likely mistake, with ``{seq}`` and ``{batch}`` in it.
    """

    @titled(title)
    def holds(fn: Guarded) -> None:
        usual = args()
        whole = fn(*usual)
        for batch, seq in ((3, 1), (1, 11), (1, 1), (2, 5)):
            got = fn(*part(batch, seq, *usual))
            said = why.format(seq=seq, batch=batch)
            same(fn, got, result(whole[:batch, :seq]), said)

    return holds


def positions_apart(args: Arguments, why: str) -> Contract:
    """Make: no row moves with another position."""

    @titled("No position sees another")
    def holds(fn: Guarded) -> None:
        seen = reach(fn, *args())
        alone = torch.eye(seen.shape[-1], dtype=torch.bool).expand_as(seen)
        require_silent(seen, alone, "which is another position", why)

    return holds


def require_not_linear(fn: Guarded, x: Tensor, y: Tensor, why: str) -> None:
    """Raise Broken with ``why`` if f(x + y) = f(x) + f(y) - f(0)."""
    for size in (1.0, 3.0, 10.0):
        bend = fn(size * (x + y)) - fn(size * x) - fn(size * y) + fn(0 * x)
        if bend.abs().max() > 1e-3 * (fn(size * x) - fn(0 * x)).abs().max():
            return
    raise Broken(why)


def is_linear_once_normed(
    fn: Callable[[Tensor], Tensor], x: Tensor, y: Tensor
) -> bool:
    """Tell whether vectors of mean 0 and variance 1 are mapped linearly.

    A norm leaves them as they are. Behind one in front, nothing else bends.
    """
    x, y = (v - v.mean(-1, keepdim=True) for v in (x, y))
    x = F.normalize(x, dim=-1)
    y = F.normalize(y - (x * y).sum(-1, keepdim=True) * x, dim=-1)
    for size in (1.0, 3.0, 10.0):
        # At right angles, so that their sum over √2 is such a vector, too.
        length, root = size * x.shape[-1] ** 0.5, 2**0.5
        one, other, both, none = (
            fn(length * v) for v in (x, y, (x + y) / root, 0 * x)
        )
        bend = root * both - one - other + (2 - root) * none
        if not bend.abs().max() <= 1e-3 * (one - none).abs().max():
            return False
    return True


# Of positions that attention may know inside

DISTANCES = (
    "It knows how far apart positions are: reordering them changes their rows, "
    "and moving all of them on does not."
)
INSIDE = (
    "It is right if positions are to be known inside, as with RoPE, ALiBi or a "
    "learned number for each distance."
)
PLACES = (
    "Reordering the positions changes their rows: where they stand is known "
    "inside, or a `view` mixes them up."
)
EITHER = (
    "It is right if positions are to be known inside, as with RoPE, or in an "
    "encoder that adds them itself."
)
UNDER_A_MASK = (
    "It knows how far apart positions are under a causal mask only: without "
    "one, moving all of them on changes their rows. Is it made for a causal "
    "mask?"
)
ALWAYS_CAUSAL = (
    "It is right if it always gets one: judge `adapters.with_causal_mask(…)` "
    "of it, as `causal_attention`."
)
ITS_COPY = (
    "Reordering the positions reorders the rows, and saying them twice changes "
    "them: is the diagonal of the scores hidden, so that a row sees its copy "
    "and not itself, or does the number of positions count?"
)
NOT_ITSELF = (
    "It is right if no position is to see itself, or if the length is to count."
)
BEFORE = 3
"""How many vectors stand in front, to have the others move on."""
ORDER = torch.tensor([3, 0, 4, 2, 1], device="cpu")


def known_inside(fn: Guarded, x: Tensor, broken: Broken) -> Broken | None:
    """Make of what breaks a contract about order what it may be instead.

    A note of attention that knows distances, and a risk where it does so under
    a causal mask only. Without a mask nobody can have the positions move on:
    then a risk, if alike ones get alike rows. In an encoder they need not, for
    it may add positions itself. Where the order is kept it knows none, but each
    row may leave out its own position.
    """
    whole = torch.ones(*x.shape[:2], x.shape[1], dtype=torch.bool)
    if not reach(fn, x, wanted=whole).all():
        return None  # A mask is built in.
    if fn.takes_no_mask:
        told, level, why = PLACES, RISK, EITHER
        known = fn.component.name == "encoder" or keeps_alike(fn, x)
    else:
        told, level, why = DISTANCES, NOTE, INSIDE
        known = knows_distances(fn, x)
        if not known and is_made_for_a_causal_mask(fn, x):
            told, level, why, known = UNDER_A_MASK, RISK, ALWAYS_CAUSAL, True
    if not known:
        return None
    if keeps_order(fn, x):
        told, level, why = ITS_COPY, RISK, NOT_ITSELF
    got = broken.got, broken.expected
    return Broken(told, *got, cause=told, level=level, why=why)


def require_mean(fn: Guarded, x: Tensor, why: str) -> None:
    """Raise Broken with ``why`` unless alike positions get the row of one."""
    one = x[:, :1]
    got = fn(one.expand_as(x).contiguous())
    same(fn, got, fn(one).expand_as(got), why)


def adds_by_distance(fn: Guarded, x: Tensor) -> bool:
    """Tell whether numbers for distances are added to what is gathered.

    Then alike positions get other rows than one alone, and nobody can tell
    whether weights sum to 1. Of vectors of 0, and without a bias, nothing else
    tells one row from another.
    """
    module = module_of(fn)
    if module is None:
        return False
    with module_kept(module):
        for vector in module.parameters():
            if vector.ndim == 1:
                vector.data.zero_()
        try:
            rows = fn.raw(0 * x)
            return furthest(rows, rows[:, :1].expand_as(rows)) is not None
        except Broken:
            return False


def keeps_alike(fn: Guarded, x: Tensor) -> bool:
    """Tell whether alike positions get the row that one of them has alone."""
    try:
        require_mean(fn, x, "")
    except Broken:
        return False
    return True


def knows_distances(fn: Guarded, x: Tensor) -> bool:
    """Tell whether rows stay as they are where all positions move on.

    Vectors stand in front for that, and a mask hides them. Which way round the
    mask is read is another contract's business.
    """
    longer = moved_on(x)
    seq = longer.shape[1]
    words = (torch.arange(seq) >= BEFORE).expand(len(x), 1, 1, -1)
    for mask in (words, ~words):
        try:
            later = fn.raw(longer, mask)[:, BEFORE:]
        except Broken:
            return knows_them_within(fn, x)
        if furthest(later, fn.raw(x)) is None:
            return True
    return False


def knows_them_within(fn: Guarded, x: Tensor) -> bool:
    """Tell the same of what takes sentences of one length only.

    Its last vectors stand in front instead, and are hidden either way.
    """
    kept = x.shape[1] - BEFORE + 1
    moved = x.roll(-kept, 1)
    place = torch.arange(x.shape[1])
    first = (place < kept).expand(len(x), 1, 1, -1)
    last = first.flip(-1)
    for turned in (False, True):
        try:
            before = fn.raw(x, first ^ turned)[:, :kept]
            later = fn.raw(moved, last ^ turned)[:, -kept:]
        except Broken:
            return False
        if furthest(later, before) is None:
            return True
    return False


def moved_on(x: Tensor) -> Tensor:
    """Put vectors in front, so that all positions move on."""
    return torch.cat([draw(len(x), BEFORE, x.shape[-1], seed=71), x], 1)


def is_made_for_a_causal_mask(fn: Guarded, x: Tensor) -> bool:
    """Tell whether it knows distances under a causal mask.

    What a mask is to hide has to be hidden, be it the future or padding: else
    there is more to say than that.
    """
    longer = moved_on(x)
    seq = longer.shape[1]
    # What stands in front sees itself, for a row of nothing may be NaN.
    words = (torch.arange(seq) >= BEFORE) | torch.eye(seq, dtype=torch.bool)
    past = (words & causal(seq)).expand(len(x), 1, -1, -1)
    own = causal(x.shape[1])
    pads = (torch.arange(x.shape[1]) < 2)[None]
    try:
        later = fn.raw(longer, past)[:, BEFORE:]
        if furthest(later, fn.raw(x, past[..., BEFORE:, BEFORE:])) is not None:
            return False
        return not any(
            moves_with_others(fn, x, may.expand(len(x), 1, -1, -1))
            for may in (own, pads)
        )
    except Broken:
        return False


def moves_with_others(fn: Guarded, x: Tensor, may: Tensor) -> bool:
    """Tell whether a row moves with more than itself and what it may see."""
    own = may[:, 0] | torch.eye(x.shape[1], dtype=torch.bool)
    return bool((reach(fn, x, may, wanted=own) & ~own).any())


def keeps_order(fn: Guarded, x: Tensor) -> bool:
    """Tell whether reordering the positions reorders the rows."""
    return furthest(fn(x[:, ORDER]), fn(x)[:, ORDER]) is None


def require_no_order(fn: Guarded, x: Tensor, why: str) -> None:
    """Raise Broken with ``why`` if another order makes other rows.

    Of attention that knows distances it is a note.
    """
    try:
        same(fn, fn(x[:, ORDER]), fn(x)[:, ORDER], why)
    except Broken as broken:
        raise known_inside(fn, x, broken) or broken from None


# Of weights that come out of a softmax


def rows_sum_to_one(args: Arguments) -> Contract:
    """Make: every row of weights sums to 1."""

    @titled("Every row sums to 1")
    def holds(fn: Guarded) -> None:
        weights = fn(*args())
        sums = weights.sum(-1)
        index = furthest(sums, torch.ones_like(sums))
        if index is not None:
            where = place(index, fn.component.axes[:-1])
            raise Broken(
                f"{where.capitalize()} sums to {sums[index]:.4g}, not to 1.",
                weights,
            )

    return holds


def require_at_large(require: Callable, large: tuple, usual: tuple) -> None:
    """Raise what ``require`` raises of ``large``, a risk if only of that.

    Between both stand arguments with scores a hundred times smaller, which are
    met: what is wrong for them too is a fault.
    """
    try:
        require(large)
    except Broken as broken:
        met = tuple(
            one + 0.01 * (other - one) if is_float(one) else one
            for one, other in zip(usual, large, strict=True)
        )
        try:
            require(met)
        except Broken:
            broken.level = FAULT
        else:
            broken.level, broken.why = RISK, LARGE
        raise


def no_weight_is_negative(args: Arguments) -> Contract:
    """Make: every weight is at least 0."""

    @titled("No weight is negative")
    def holds(fn: Guarded) -> None:
        weights = fn(*args())
        if (weights < 0).any():
            index = tuple((weights < 0).nonzero()[0].tolist())
            where = place(index, fn.component.axes)
            raise Broken(
                f"{where.capitalize()} is {weights[index]:.4g}: an exponential "
                "is never negative, so where is `exp`?",
                weights,
            )

    return holds


def large_scores_stay_finite(args: Arguments) -> Contract:
    """Make: scores of ±10⁴ give what the oracle gives."""

    @titled("Scores of ±10⁴ give finite weights")
    def holds(fn: Guarded) -> None:
        def require(large: tuple) -> None:
            got, expected = fn.raw(*large), fn.component.oracle(*large)
            finite(fn, got, LARGE_SCORES, expected)
            same(fn, got, expected, "Large scores are not told apart.")

        first, *rest = args()
        require_at_large(require, (first, *rest), (0 * first, *rest))

    return holds


def require_factor(weights: Tensor, factor: float, where: str) -> None:
    """Raise Broken unless ``weights`` are softmax(factor · [1, 0])."""
    found = (weights[0] / weights[1]).log().detach()
    if not math.isclose(found.item(), factor, rel_tol=1e-3):
        raise Broken(
            f"For {where} a score is multiplied by {number(found)}, expected "
            f"{factor:.4g}."
        )


# Of what takes a mask as its last argument, True = may attend


def future_hidden(
    args: Arguments, sees: Callable = lambda fn, args: visible(fn, args, 2)
) -> Contract:
    """Make: with a causal mask, the last of ``args``, no row sees its future.

    Args:
        args: The arguments, the causal mask last.
        sees: From the guard and the arguments, which row sees which key; by
            default, which row moves with which value.
    """

    @titled("With a causal mask no row sees its future")
    def holds(fn: Guarded) -> None:
        usual = args()
        seen = sees(fn, usual)
        require_hidden(fn, seen, usual, "which is in its future")

    return holds


def hidden_score_changes_nothing(
    args: Arguments, loud: Callable[..., tuple], why: str
) -> Contract:
    """Make: a large score that the mask hides moves no row.

    Args:
        args: The arguments.
        loud: From them, those with a hidden score of 10⁴.
        why: The likely mistake.
    """

    @titled("A hidden score of 10⁴ changes nothing")
    def holds(fn: Guarded) -> None:
        usual = args()
        expected = fn(*usual)

        def require(args: tuple) -> None:
            got = fn.raw(*args)
            finite(fn, got, why, expected)
            same(fn, got, expected, why)

        require_at_large(require, loud(*usual), usual)

    return holds


def mask_broadcasts(
    title: str,
    args: Arguments,
    shapes: Sequence[tuple[int, ...]],
    full: tuple[int, ...],
) -> Contract:
    """Make: a mask of each shape counts as if it were written out."""

    @titled(title)
    @sends_masks
    def holds(fn: Guarded) -> None:
        usual = args()
        for shape in shapes:
            mask = some_mask(*shape)
            why = f"A mask of shape {shape} is not spread over the scores."
            expected = fn(*usual, mask.expand(full))
            same(fn, fn(*usual, mask), expected, why)

    return holds


def fully_masked_row_gets_zeros(
    args: Arguments, uniform: Callable[..., Tensor]
) -> Contract:
    """Make: row 1, which the mask hides everything from, is 0.

    Args:
        args: The arguments of one block, the mask last.
        uniform: From the arguments, what equal weights would make of row 1.
    """

    @titled("A row that may attend to nothing gets zeros")
    @risk(EMPTY)
    def holds(fn: Guarded) -> None:
        usual = args()
        require_zeros_in_row_one(fn, fn.raw(*usual), uniform(*usual))

    return holds


def fully_masked_row_has_finite_gradients(
    args: Arguments,
    title: str = "A row that may attend to nothing has finite gradients",
) -> Contract:
    """Make: where the mask hides everything, no gradient is NaN."""

    @titled(title)
    @risk(EMPTY_NAN)
    @sends_masks
    def holds(fn: Guarded) -> None:
        require_finite_gradients(fn, *args())

    return holds
