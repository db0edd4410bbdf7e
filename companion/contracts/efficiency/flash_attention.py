"""Attention that never holds all its scores, forward or backward.

Lengths are those of usual blocks, 16 to 128, one more, and primes, which no
block divides. ``causal`` ends in the lower right corner, where the last query
sees all keys.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from companion.attention import masked_softmax
from companion.contracts.engine.compare import (
    Broken,
    draw,
    finite,
    gradients,
    same,
)
from companion.contracts.engine.component import Component, title
from companion.contracts.engine.families import (
    equivariance,
    half_precision,
    large_scores_stay_finite,
    leading_axes,
    require_factor,
)
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.levels import FAULT, RISK, risk
from companion.contracts.engine.masking import hides_at_once, visible
from companion.contracts.engine.report import Failure, Report
from companion.contracts.engine.universal import recognised_mistake
from companion.efficiency import kept_for_backward

__all__ = ["FLASH_ATTENTION", "as_published"]


def qkv(
    seed: int, query: int = 3, key: int = 5, d_k: int = 11, d_v: int = 7
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw queries, keys and values."""
    return (
        draw(2, query, d_k, seed=seed),
        draw(2, key, d_k, seed=seed + 100),
        draw(2, key, d_v, seed=seed + 200),
    )


def cases() -> dict[str, tuple]:
    """Return what a function and the oracle must agree on."""
    square = tuple(draw(2, 5, 5, seed=s) for s in (3, 5, 7))
    return {
        "for all to see": (*qkv(2), False),
        "causal, with as many queries as keys": (*square, True),
        "causal, with keys of a cache": (*qkv(11), True),
        "for 67 positions": (*qkv(13, 67, 67), False),
        "causal, for 131 positions": (*qkv(17, 131, 131), True),
    }


def corner(q: Tensor, k: Tensor) -> Tensor:
    """Return who sees whom: the last query sees all keys."""
    query, key = q.shape[-2], k.shape[-2]
    return torch.ones(query, key, dtype=torch.bool).tril(key - query)


def plain(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> Tensor:
    """Attend with all scores at once; zeros for who sees nobody."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if not causal:
        return scores.softmax(-1) @ v
    return masked_softmax(scores, corner(q, k)) @ v


FLASH_ATTENTION = Component(
    name="flash_attention",
    signature="flash_attention(q, k, v, causal)",
    returns="the output (..., query, d_v)",
    axes=("row", "feature"),
    shape=lambda q, k, v, causal: (*q.shape[:-1], v.shape[-1]),
    oracle=plain,
    reference="plain attention",
    agrees="It agrees with plain attention",
    cases=cases,
    shape_hints={
        "Are these the weights, before they meet the values?": (
            lambda q, k, v, causal: (*q.shape[:-1], k.shape[-2])
        )
    },
)


@FLASH_ATTENTION.before_reference
def future(fn: Guarded) -> None:
    """If causal, no row sees its future, in whatever block."""
    args = (*(draw(2, 37, 7, seed=s) for s in (31, 37, 41)), True)
    past = corner(*args[:2])
    if hides_at_once(fn, args, ~past):
        return
    sees = visible(fn, args, 2)
    leaks = (sees & ~past).nonzero()
    if len(leaks):
        row, key = leaks[0].tolist()
        known = recognised_mistake(fn)
        why = known[0] if known else "Is `causal` heard, in every tile?"
        raise Broken(
            f"Row {row} sees key {key}, which is in its future. {why}",
            sees.float(),
            past.float(),
            ("row", "sees key"),
            why,
        )


@FLASH_ATTENTION.contract
def every_length(fn: Guarded) -> None:
    """Every length will do, whatever the block is."""
    for query, key in ((1, 1), (1, 130), (16, 64), (65, 33), (128, 129)):
        args = (*qkv(43, query, key), False)
        why = f"For {query} queries and {key} keys it is not plain attention."
        same(fn, fn(*args), plain(*args), why)


@FLASH_ATTENTION.contract
def right_scale(fn: Guarded) -> None:
    """The scores are divided by √d_k, whatever d_k is."""
    for d_k in (2, 11, 64):
        q = draw(1, 1, d_k, seed=19)
        # The dot products are 1 and 0, and the values show the weights.
        k = torch.cat([q / (q * q).sum(), torch.zeros_like(q)], -2)
        weights = fn(q, k, torch.eye(2).unsqueeze(0), False)
        require_factor(weights[0, 0], d_k**-0.5, f"d_k = {d_k}")


BACKWARD = (
    "In a backward pass each tile of weights is computed once more from the "
    "log of the row's sum; the gradient of a score is its weight times "
    "(gradient of the weight - Σ output · gradient of the output)."
)


@FLASH_ATTENTION.contract
def gradients_agree(fn: Guarded) -> None:
    """Its gradients are those of plain attention."""
    for causal, query, key in (
        (False, 3, 5), (True, 5, 5), (True, 3, 5), (True, 67, 67),
    ):  # fmt: skip
        args = (*qkv(47, query, key), causal)
        upstream = [draw(2, query, 7, seed=53)]
        expected = gradients(plain, args, upstream)
        got = gradients(fn.raw, args, upstream) or (None,) * 3
        words = f"{query} queries and {key} keys{', causal' * causal}"
        for name, mine, other in zip("qkv", got, expected, strict=True):
            if mine is None:
                raise Broken(f"For {words} no gradient reaches `{name}`.")
            why = f"The gradient of `{name}` is wrong, for {words}. {BACKWARD}"
            finite(fn, mine, why, other)
            same(fn, mine, other, why, cause=BACKWARD)


KEPT = (
    "Keep inputs, output and one number a row, and compute the tiles once "
    "more in a `torch.autograd.Function`."
)


@FLASH_ATTENTION.contract
def no_score_matrix(fn: Guarded) -> None:
    """Nothing that it keeps for its backward pass is (query, key)."""
    for causal in (False, True):
        query, key = 83, 97
        kept = kept_for_backward(fn.call, *qkv(59, query, key), causal)
        large = next((x for x in kept if math.prod(x) >= query * key), None)
        if large is not None:
            raise Broken(
                f"For {query} queries and {key} keys autograd keeps a tensor "
                f"of shape {large}: as many numbers as there are scores. {KEPT}"
            )


@FLASH_ATTENTION.contract
def kept_is_linear(fn: Guarded) -> None:
    """Twice the length keeps twice as much for the backward pass."""

    def numbers(length: int) -> int:
        args = (*qkv(61, length, length), False)
        return sum(map(math.prod, kept_for_backward(fn.call, *args)))

    short, long = numbers(96), numbers(192)
    # Lists of tiles grow fourfold; whatever is linear, twice.
    if long > 3 * short:
        raise Broken(
            f"For 96 positions {short:,} numbers are kept, and for twice as "
            f"many {long / short:.1f} times as many: are all tiles kept, one "
            f"by one? {KEPT}",
            cause=KEPT,
        )


EMPTY_ROWS = (
    "Nobody who decodes has more queries than keys; padding in front of a "
    "causal mask leaves such rows too."
)


@FLASH_ATTENTION.contract
@risk(EMPTY_ROWS)
def nobody_to_see(fn: Guarded) -> None:
    """If causal, queries before the first key get zeros, finite gradients."""
    args = (*qkv(67, 7, 3), True)
    why = "The first 4 of 7 queries see none of 3 keys."
    got = fn.raw(*args)
    finite(fn, got, why)
    same(fn, got, plain(*args), why)
    for name, x in zip(
        "qkv",
        gradients(fn.raw, args, [torch.ones_like(got)]) or (),
        strict=False,
    ):
        if x is not None:
            finite(fn, x, f"It is the gradient of `{name}`. {why}")


def far() -> tuple[Tensor, Tensor, Tensor, bool]:
    """Return queries, keys and values with scores of ±10⁴, late and early."""
    q = torch.tensor([[2.0, 0, 0, 0], [-2.0, 0, 0, 0]])
    k = torch.zeros(70, 4)
    # 0, and far into another block the largest.
    k[1, 0], k[2, 0], k[67, 0] = 5e3, -1e4, 1e4
    return q, k, draw(70, 7, seed=109), False


FLASH_ATTENTION.contract(large_scores_stay_finite(far))


def twelve() -> tuple[Tensor, Tensor, Tensor, bool]:
    """Return queries, keys and values with scores near 12."""
    # exp(12) is more than float16 can hold; 8 · 6 / √16 = 12 it can.
    q, k, v = qkv(113, d_k=16)
    q[..., 0], k[..., 0] = 8, 6
    return q, k, v, False


FLASH_ATTENTION.contract(half_precision(twelve))
FLASH_ATTENTION.contract(
    leading_axes(
        "(query, d_k)",
        ((), (2,), (2, 3)),
        lambda lead: (
            draw(*lead, 3, 11, seed=89),
            draw(*lead, 5, 11, seed=97),
            draw(*lead, 5, 7, seed=101),
            False,
        ),
        lambda fn, got, args: torch.cat(
            [
                fn(*block, False)
                for block in zip(
                    *(x.reshape(-1, 1, *x.shape[-2:]) for x in args[:3]),
                    strict=True,
                )
            ]
        ).reshape(got.shape),
    )
)
FLASH_ATTENTION.contract(
    equivariance(
        "It takes tensors that are transposed views, as split heads are",
        lambda: (*qkv(127), False),
        lambda q, k, v, causal: (
            *(x.mT.contiguous().mT for x in (q, k, v)),
            causal,
        ),
        why="The strides of the inputs matter.",
    )
)


# Known mistakes, in the order in which they are recognised


UPPER_LEFT = (
    "The triangle begins in the upper left corner. It ends in the lower "
    "right one: with 3 queries and 5 keys the first query sees 3 keys."
)


class Tiles:
    """Attention tile by tile, right but for what a mistake puts in."""

    block = 8
    rescale_sum = rescale_output = True

    def blocks(self, length: int) -> list[slice]:
        """Cut a length into blocks."""
        starts = range(0, length, self.block)
        return [slice(i, min(i + self.block, length)) for i in starts]

    def scale(self, q: Tensor) -> float:
        """Return what multiplies the scores."""
        return q.shape[-1] ** -0.5

    def seen(self, rows: slice, keys: slice, query: int, key: int) -> Tensor:
        """Tell who sees whom in one tile."""
        at = torch.arange(rows.start, rows.stop).unsqueeze(-1) + key - query
        return torch.arange(keys.start, keys.stop) <= at

    def scores(self, q, k, rows, keys, causal):
        """Compute one tile of scores."""
        tile = q[..., rows, :] @ k[..., keys, :].mT * self.scale(q)
        if not causal:
            return tile
        seen = self.seen(rows, keys, q.shape[-2], k.shape[-2])
        return tile.masked_fill(~seen, -math.inf)

    def low(self, maximum: Tensor) -> Tensor:
        """Return what is subtracted: 0 where nothing was seen yet."""
        return maximum.masked_fill(maximum == -math.inf, 0)

    def sweep(self, q, k, v, rows, causal):
        """Return maximum, sum and output of a block of queries."""
        maximum = q.new_full((*q.shape[:-2], rows.stop - rows.start), -math.inf)
        total = torch.zeros_like(maximum)
        output = q.new_zeros(*maximum.shape, v.shape[-1])
        for keys in self.blocks(k.shape[-2]):
            tile = self.scores(q, k, rows, keys, causal)
            largest = torch.maximum(maximum, tile.amax(-1)).detach()
            low = self.low(largest)
            factor = (maximum - low).exp()
            parts = (tile - low.unsqueeze(-1)).exp()
            total = total * (factor if self.rescale_sum else 1) + parts.sum(-1)
            if self.rescale_output:
                output = output * factor.unsqueeze(-1)
            output = output + parts @ v[..., keys, :]
            maximum = largest
        return maximum, total, output

    def finish(self, total: Tensor, output: Tensor) -> Tensor:
        """Divide by the sum."""
        return output / total.masked_fill(total == 0, 1).unsqueeze(-1)

    def forward(self, q, k, v, causal):
        """Return the output, and the log of each row's sum."""
        found, sums = [], []
        for rows in self.blocks(q.shape[-2]):
            maximum, total, output = self.sweep(q, k, v, rows, causal)
            found.append(self.finish(total, output))
            log = maximum + total.log()
            sums.append(log.masked_fill(log == -math.inf, math.inf))
        return torch.cat(found, -2), torch.cat(sums, -1)

    def weights(self, q, k, rows, keys, causal, sums):
        """Compute one tile of weights once more."""
        tile = self.scores(q, k, rows, keys, causal)
        return (tile - sums[..., rows].unsqueeze(-1)).exp()

    def common(self, output, upstream):
        """Return what a row's softmax takes off all gradients of scores."""
        return (output * upstream).sum(-1, keepdim=True)

    def of_keys(self, of_scores, q_tile, scale):
        """Return what a tile adds to the gradient of its keys."""
        return of_scores.mT @ q_tile * scale

    def backward(self, q, k, v, causal, output, sums, upstream):
        """Return the gradients of queries, keys and values."""
        of_q, of_k, of_v = map(torch.zeros_like, (q, k, v))
        common, scale = self.common(output, upstream), self.scale(q)
        for keys in self.blocks(k.shape[-2]):
            for rows in self.blocks(q.shape[-2]):
                weights = self.weights(q, k, rows, keys, causal, sums)
                up = upstream[..., rows, :]
                of_weights = up @ v[..., keys, :].mT
                of_scores = weights * (of_weights - common[..., rows, :])
                q_tile = q[..., rows, :]
                of_v[..., keys, :] += weights.mT @ up
                of_k[..., keys, :] += self.of_keys(of_scores, q_tile, scale)
                of_q[..., rows, :] += of_scores @ k[..., keys, :] * scale
        return of_q, of_k, of_v

    def __call__(self, q, k, v, causal):
        """Attend."""
        return Recomputed.apply(self, q, k, v, causal)


class Recomputed(torch.autograd.Function):
    """Keeps inputs, output and sums, and calls tiles."""

    @staticmethod
    def forward(ctx, tiles, q, k, v, causal):
        """Attend, and keep what is needed."""
        output, sums = tiles.forward(q, k, v, causal)
        ctx.save_for_backward(q, k, v, output, sums)
        ctx.tiles, ctx.causal = tiles, causal
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx, upstream):
        """Compute the tiles once more."""
        q, k, v, output, sums = ctx.saved_tensors
        found = ctx.tiles.backward(q, k, v, ctx.causal, output, sums, upstream)
        return None, *found, None


def tiled(kind: type[Tiles]) -> Callable:
    """Make a function of tiles with a mistake in them."""

    def attention(q, k, v, causal):
        return kind()(q, k, v, causal)

    attention.__name__, attention.__doc__ = kind.__name__, kind.__doc__
    return attention


def mistake(hint: str = "", symptom: str = "") -> Callable[[type], type]:
    """Register tiles with a mistake, under the name of their class."""

    def register(kind: type[Tiles]) -> type[Tiles]:
        FLASH_ATTENTION.mistake(hint=hint, symptom=symptom)(tiled(kind))
        return kind

    return register


@mistake(
    hint="The scores are not scaled: divide them by √d_k.",
    symptom="attention is all or nothing from the start, and hardly learns",
)
class Unscaled(Tiles):
    """√d_k is forgotten, in the forward and in the backward pass."""

    def scale(self, q):
        """Return nothing to speak of."""
        return 1.0


@mistake(
    hint="The sum is not rescaled as the maximum grows: multiply it by "
    "exp(old maximum - new maximum).",
    symptom="outputs shrink in rows whose largest score comes late",
)
class SumNotRescaled(Tiles):
    """What earlier blocks added to the sum stays as it was."""

    rescale_sum = False


@mistake(
    hint="The output is not rescaled as the maximum grows: multiply it by "
    "exp(old maximum - new maximum), as the sum.",
    symptom="outputs grow without bound in rows whose largest score comes late",
)
class OutputNotRescaled(Tiles):
    """The sum is rescaled, and the values that were gathered are not."""

    rescale_output = False


@mistake(
    hint="Neither sum nor output is rescaled as the maximum grows: multiply "
    "both by exp(old maximum - new maximum).",
    symptom="a mean of the right values, with the first blocks too loud or too "
    "soft",
)
class NothingRescaled(Tiles):
    """Blocks are added up, though each stands below a maximum of its own."""

    rescale_sum = rescale_output = False


@mistake(
    hint=UPPER_LEFT,
    symptom="right in training; with a cache a new token sees the first key "
    "only",
)
class UpperLeftCorner(Tiles):
    """Query 0 is where key 0 is, as with `is_causal` of PyTorch."""

    def seen(self, rows, keys, query, key):
        """Begin in the other corner."""
        return super().seen(rows, keys, key, key)


@mistake(
    hint="`causal` is not used: every row sees its future.",
    symptom="next to no loss in training, and nonsense when it must write",
)
class CausalUnused(Tiles):
    """`causal` is taken, and passed on to nobody."""

    def scores(self, q, k, rows, keys, causal):
        """Hide nothing."""
        return super().scores(q, k, rows, keys, False)


@mistake(
    hint="Each tile has a triangle of its own: a tile below the diagonal is "
    "seen whole, and one above it not at all. Compare positions, not places in "
    "a tile.",
    symptom="words of the block before are half deaf, and the future leaks in",
)
class TriangleInEveryTile(Tiles):
    """`tril` of each tile, wherever it stands."""

    block = 4

    def seen(self, rows, keys, query, key):
        """Forget where the tile is."""
        size = rows.stop - rows.start, keys.stop - keys.start
        return torch.ones(size, dtype=torch.bool).tril()


@mistake(
    hint="Whole blocks are hidden or seen: within the tiles on the diagonal "
    "every position has a past of its own.",
    symptom="each word sees as many of its successors as its block has left",
)
class WholeTilesOnly(Tiles):
    """Tiles above the diagonal are skipped, and those on it seen whole."""

    block = 4

    def seen(self, rows, keys, query, key):
        """Ask of the tile and not of its positions."""
        size = rows.stop - rows.start, keys.stop - keys.start
        past = keys.start < rows.stop + key - query
        return torch.full(size, past)


@mistake(
    hint="The mask is off by one: a row sees the position after its own.",
    symptom="the loss is near 0, as each row reads its own answer",
)
class OffByOne(Tiles):
    """`<` where it should be `<=`, the other way round."""

    def seen(self, rows, keys, query, key):
        """See one key more."""
        return super().seen(rows, keys, query, key + 1)


@mistake(
    hint="The last keys are left out where the block does not divide their "
    "number.",
    symptom="right for lengths that the block divides, deaf to the end of "
    "others",
)
class LastKeysLeftOut(Tiles):
    """`key // block` blocks of keys."""

    def sweep(self, q, k, v, rows, causal):
        """Leave the rest away."""
        whole = max(k.shape[-2] // self.block * self.block, 1)
        if not causal:
            k, v = k[..., :whole, :], v[..., :whole, :]
        return super().sweep(q, k, v, rows, causal)


@mistake(
    hint="The output is not divided by the sum of its row.",
    symptom="long rows get long vectors",
)
class NeverDivided(Tiles):
    """The last line of the algorithm is missing."""

    def finish(self, total, output):
        """Forget to divide."""
        return output


@mistake(symptom="the output is right, and queries and keys learn nonsense")
class SumOfTheRowForgotten(Tiles):
    """The gradient of a score is its weight times the gradient of that."""

    def common(self, output, upstream):
        """Take off nothing."""
        return torch.zeros_like(upstream[..., :1])


@mistake(symptom="the output is right, and keys learn √d_k times too fast")
class ScaleForgottenBackwards(Tiles):
    """The gradient of the keys is not divided by √d_k."""

    def of_keys(self, of_scores, q_tile, scale):
        """Forget the scale."""
        return of_scores.mT @ q_tile


@mistake(symptom="the output is causal, and what is learned is not")
class FutureSeenBackwards(Tiles):
    """The tiles that are computed once more have no mask."""

    def weights(self, q, k, rows, keys, causal, sums):
        """Hide nothing."""
        return super().weights(q, k, rows, keys, False, sums)


@FLASH_ATTENTION.mistake(
    symptom="right in every number, and out of memory at twice the length",
)
def all_scores_at_once(q, k, v, causal):
    """Plain attention: autograd keeps all weights, query by key."""
    return plain(q, k, v, causal)


@FLASH_ATTENTION.mistake(
    symptom="tiles in the forward pass, and as much memory as ever in training",
)
def tiles_that_autograd_keeps(q, k, v, causal):
    """The loop over tiles, and no backward pass of its own."""
    return Tiles().forward(q, k, v, causal)[0]


@mistake(symptom="NaN as soon as a score is beyond 88")
class NoMaximum(Tiles):
    """Exponentials are added up as they come."""

    def sweep(self, q, k, v, rows, causal):
        """Subtract nothing."""
        total = output = 0.0
        for keys in self.blocks(k.shape[-2]):
            parts = self.scores(q, k, rows, keys, causal).exp()
            total = total + parts.sum(-1)
            output = output + parts @ v[..., keys, :]
        return torch.zeros_like(total), total, output


@mistake(symptom="fine, until a row has nobody to see: then all is NaN")
class NanWhereNobodyIsSeen(Tiles):
    """-∞ - (-∞), and 0 / 0."""

    def low(self, maximum):
        """Subtract -∞ too."""
        return maximum

    def finish(self, total, output):
        """Divide by 0 too."""
        return output / total.unsqueeze(-1)


IN_THE_CORNER = (
    "It is right with as many queries as keys, and PyTorch's `is_causal` "
    "begins there as well; with a cache there are more keys."
)
IN_TRAINING = (
    "It is a matter of memory, in training alone: what it computes is right."
)


OF_PYTORCH = (
    "It hands all over to PyTorch's own, which chooses how: on a GPU, and with "
    "four axes, it has ways that keep no scores."
)


def as_published(report: Report, fn: object) -> Report:
    """Make risks of what flash attention elsewhere may do on purpose.

    Its triangle may begin where PyTorch's does, which shows with more keys than
    queries; and it may leave the backward pass to autograd, or all to PyTorch.

    Args:
        report: Of a function that only its name says to be one.
        fn: The function.
    """
    names = getattr(getattr(fn, "__code__", None), "co_names", ())
    of_pytorch = F.scaled_dot_product_attention.__name__ in names
    corner = next((f for f in report.failures if UPPER_LEFT in f.message), None)
    failures = []
    for one in report.failures:
        if one.level == FAULT and one.contract == title(kept_is_linear):
            one = replace(one, level=RISK, why=IN_TRAINING)
        elif of_pytorch and one.contract == title(no_score_matrix):
            one = replace(one, level=RISK, why=OF_PYTORCH)
        elif one.level == FAULT and corner and of_the_corner(one, corner):
            said = {"message": corner.message, "cause": corner.cause}
            one = replace(one, level=RISK, why=IN_THE_CORNER, **said)
        failures.append(one)
    return replace(report, failures=failures)


def of_the_corner(one: Failure, corner: Failure) -> bool:
    """Tell whether a failure comes of where the triangle begins."""
    return one.cause == corner.cause or MORE_KEYS in one.message


MORE_KEYS = "for 3 queries and 5 keys, causal"
"""What is said of a gradient that is wrong there, and right for a square."""
