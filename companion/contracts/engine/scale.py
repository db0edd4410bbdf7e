"""What attention does to its scores, heard while a module runs.

How wide a head is cannot be seen from outside, and so neither can a wrong
number under the root. But the products that a module computes pass by a
listener: which numbers two vectors have in common, and by how much their
product differs from what enters the softmax, whether that is PyTorch's or
written by hand. Where it cannot be told how queries and keys came about, say
behind a norm of each head, nothing is said.
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from companion.contracts.engine.compare import (
    Broken,
    NotTried,
    is_float,
    number,
)
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.levels import NOTE, RISK

__all__ = [
    "A_SCORE",
    "BY_THE_ROOT",
    "FUSED",
    "HIDDEN",
    "LINEAR",
    "OVER_QUERIES",
    "PRODUCTS",
    "SOFTMAX",
    "UNUSED",
    "WHOLE",
    "Heard",
    "HeardScores",
    "alike_in_rows",
    "as_drawn",
    "attentions",
    "axis_heard",
    "divided_by_the_root_of_a_head",
    "each_others_masks",
    "hidden_from",
    "hidden_from_each",
    "hidden_score",
    "hides_all",
    "hides_no_more",
    "mask_meets_scores",
    "over_another_axis",
    "softmax_unused",
    "the_firsts_mask",
    "written_out",
]

LINEAR = {"linear", "addmm", "conv1d"}
SUMS = {"add", "__add__", "__radd__", "add_", "__iadd__"}
PRODUCTS = {
    "matmul", "__matmul__", "__rmatmul__", "bmm", "einsum", "baddbmm",
}  # fmt: skip
SOFTMAX = {"softmax", "_safe_softmax"}
WHOLE = {"multi_head_attention_forward"}
FUSED = "scaled_dot_product_attention"

NEAR = 1e-3
"""Two factors that differ by less are the same."""

HIDDEN = -1e3
"""What is lower was put there by a mask."""

OTHERS = (
    "Some models learn this factor, or choose another with their initial "
    "weights."
)
FOLDED = (
    "T5 leaves the division out, and draws smaller weights for the queries "
    "instead."
)
A_SCORE = (
    "Hidden scores become {:.3g} before the softmax, a score like any other: "
    "put -∞ into them, or a large negative number. 1e-9 is nearly 0, where "
    "-1e9 is meant."
)
TRAINED = (
    "The weights of its queries and keys are no longer as they were drawn, and "
    "may hold this factor themselves, as those of a trained T5 do. In a model "
    "that is trained anew it is a fault."
)


class Product(NamedTuple):
    """A product of queries with keys, and how long their vectors are."""

    queries: Tensor
    keys: Tensor
    width: int
    result: Tensor | None = None
    factor: float = 1.0


class Projected(NamedTuple):
    """What a linear map returned.

    Attributes:
        result: Its numbers, as they were then: they may be changed in place.
        width: How wide its input was.
        weight: Its matrix.
        tensor: What others will be given.
    """

    result: Tensor
    width: int
    weight: Tensor | None
    tensor: Tensor


@dataclass
class Attention:
    """One attention: its scores' product, and by what it is multiplied.

    Attributes:
        factor: By how much what enters the softmax is larger than the product
            of queries and keys as they were projected; None if unknown.
        head: How long the vectors of a head are.
        width: How wide the vectors are that queries are made of.
        seq: How many keys there are.
        batch: How many sentences there are.
        small: Whether queries are smaller than keys by the root of ``head``.
        drawn: Whether its weights may be as they were first drawn.
        whole: Whether PyTorch's own function does all of it, and divides.
    """

    factor: float | None = None
    head: int = 0
    width: int = 0
    seq: int = 0
    batch: int = 0
    small: bool = False
    drawn: bool = True
    whole: bool = False

    @property
    def known(self) -> bool:
        """Whether it can be told by what its scores are multiplied."""
        return self.whole or self.factor is not None


@dataclass
class Heard(TorchFunctionMode):
    """Listens to the products and the softmaxes of a call.

    Attributes:
        flat: Whether there is another one of which nothing is known.
        lone: Whether there is one of a single sentence, as in a loop.
    """

    batch: int
    products: list[Product] = field(default_factory=list)
    projected: list[Projected] = field(default_factory=list)
    found: list[Attention] = field(default_factory=list)
    scores: list[Tensor] = field(default_factory=list)
    hidden: list[Tensor] = field(default_factory=list)
    grown: list[Tensor] = field(default_factory=list)
    flat: bool = False
    lone: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        got, name = func(*args, **kwargs), getattr(func, "__name__", "")
        try:
            self.hear(name, args, kwargs, got)
        except Exception:
            self.flat = True  # What we cannot read is no mistake of theirs.
        return got

    def hear(self, name: str, args: tuple, kwargs: dict, got: Any) -> None:
        """Listen to one call of a function."""
        if name == FUSED:
            self.hear_fused(args, kwargs)
            return
        if name in WHOLE:
            self.hear_whole(args, kwargs)
            return
        # Tensors may be named.
        args = (*args, *filter(is_float, kwargs.values()))
        if name in SOFTMAX:
            self.hear_softmax(args, kwargs)
        elif name == "exp" and is_float(got):
            self.hear_exp(args)
        elif name in PRODUCTS and is_float(got):
            self.hear_product(name, args, got)
        elif name in LINEAR and is_float(got):
            self.hear_linear(name, args, got)
        elif name in SUMS and is_float(got):
            self.hear_sum(args, got)

    def hear_linear(self, name: str, args: tuple, got: Tensor) -> None:
        """Keep what a linear map returned."""
        first = next((a for a in args if is_float(a)), got)
        place = 2 if name == "addmm" else 1
        weight = args[place] if len(args) > place else None
        self.keep(got, first.shape[-1] if first.ndim else 1, weight)

    def hear_sum(self, args: tuple, got: Tensor) -> None:
        """Keep the sum of a bias and what a linear map returned."""
        known = [p for p in self.projected for a in args if a is p.tensor]
        if known:
            self.keep(got, known[-1].width, known[-1].weight)

    def keep(self, got: Tensor, width: int, weight: object) -> None:
        """Keep the result of a linear map."""
        matrix = weight.detach() if is_float(weight) else None
        numbers = got.detach().clone()
        self.projected.append(Projected(numbers, width, matrix, got))

    def hear_product(self, name: str, args: tuple, got: Tensor) -> None:
        """Keep a product of two tensors, and how many numbers it sums."""
        if name == "einsum":
            pair = args[1] if isinstance(args[1], list | tuple) else args[1:]
            width = summed(args[0], pair)
        else:
            pair = args[1:3] if name == "baddbmm" else args[:2]
            pair = pair[::-1] if name == "__rmatmul__" else pair
            width = pair[0].shape[-1] if pair[0].ndim else 0
            # It also adds something, and may multiply the product.
            got = torch.bmm(*pair) if name == "baddbmm" else got
        if len(pair) != 2 or not width:
            return
        one, other = (x.detach() for x in pair)
        if min(one.ndim, other.ndim) > 2:
            # Scores are often divided in place.
            given = [x.detach().clone() for x in (one, other, got)]
            self.products.append(Product(*given[:2], width, given[2]))
        self.keep(got, one.shape[-1], other)

    def hear_fused(self, args: tuple, kwargs: dict) -> None:
        """Judge a call of PyTorch's attention."""
        order = "query", "key", "value", "attn_mask", "dropout_p", "is_causal"
        named = dict(zip(order, args, strict=False)) | kwargs
        queries, keys = (named[n].detach() for n in ("query", "key"))
        head, rows = queries.shape[-1], queries.shape[:-1]
        factor = kwargs.get("scale") or head**-0.5
        one = Product(queries, keys, head, None, factor)
        self.judge(one, keys.shape[-2])
        mask, plain = named.get("attn_mask"), (Tensor, nn.Parameter, type(None))
        if type(mask) in plain and not queries.is_nested:
            causal = bool(named.get("is_causal"))
            self.hear_mask(mask, (*rows, keys.shape[-2]), causal=causal)

    def hear_mask(
        self, mask: Tensor | None, shape: tuple[int, ...], *, causal: bool
    ) -> None:
        """Keep what a mask hides; other kinds of masks cannot be looked at."""
        if mask is None:
            mask = torch.ones(shape[-2:], dtype=torch.bool)
            mask = mask.tril() if causal else mask
        hides = mask < HIDDEN if is_float(mask) else ~mask
        shape = torch.broadcast_shapes(shape, hides.shape)
        self.hidden.append(hides.expand(shape))

    def hear_whole(self, args: tuple, kwargs: dict) -> None:
        """Keep what the masks hide that PyTorch's own function is given.

        It has the sequence first, and its True hides.
        """
        self.found.append(Attention(whole=True))
        given = SIGNATURE.bind(*args, **kwargs).arguments
        query, key = given["query"], given["key"]
        if query.ndim != 3:
            return
        hides = torch.zeros(query.shape[1], len(query), len(key)).bool()
        padding, order = given.get("key_padding_mask"), given.get("attn_mask")
        bare = padding is None and not given.get("need_weights", True)
        if given.get("is_causal") and bare:
            # Then PyTorch does not look at the mask, however large it is.
            self.hidden.append(torch.ones_like(hides).triu(1))
            return
        if padding is not None:
            hides = hides | as_hidden(padding)[:, None]
        if order is not None and order.ndim == 3:
            hides = hides.repeat_interleave(len(order) // len(hides), 0)
        if order is not None:
            hides = hides | as_hidden(order)
        self.hidden.append(hides)

    def hear_softmax(self, args: tuple, kwargs: dict) -> None:
        """Judge the softmax of a product's multiple."""
        scores = args[0].detach().clone()
        if scores.ndim < 3:  # Of one query, or no attention's at all.
            self.flat = True
            self.lone |= scores.ndim == 2 and len(scores) == scores.shape[1] > 1
            return
        self.scores.append(scores)
        self.hidden.append(scores < HIDDEN)
        dim = kwargs.get("dim", args[1] if len(args) > 1 else -1)
        dim = dim if isinstance(dim, int) else -1
        dim -= scores.ndim if dim >= 0 else 0
        product = self.behind(scores, dim)
        if product is None:
            self.found.append(Attention())
        else:
            self.judge(product, scores.shape[dim])

    def hear_exp(self, args: tuple) -> None:
        """Judge a softmax by hand; it may take the same powers twice."""
        scores = args[0].detach()
        self.hidden.append(scores < HIDDEN)
        product = self.behind(scores, -1) if scores.ndim > 2 else None
        if product is None or any(product.result is x for x in self.grown):
            return
        self.grown.append(product.result)
        self.judge(product, scores.shape[-1])

    def behind(self, scores: Tensor, dim: int) -> Product | None:
        """Find the product that scores are made of, with its factor.

        Where a loop makes the scores of each head, it is that of the last.
        """
        loops = range(2) if scores.ndim > 3 else ()
        parts = [scores, *(scores.select(axis, -1) for axis in loops)]
        for product in reversed(self.products):
            for part in parts:
                factor = multiple(part, product.result, dim, self.batch)
                if factor:
                    return product._replace(factor=factor)
        return None

    def judge(self, product: Product, seq: int) -> None:
        """Find out by what queries and keys were multiplied before."""
        found = Attention(None, product.width, seq=seq, batch=self.batch)
        queries = self.origin(product.queries)
        keys = self.origin(product.keys)
        if queries and keys:
            (one, whence, large), (other, other_whence, size) = queries, keys
            found.factor = product.factor * one * other
            found.width = whence.width
            if whence.width == product.width:
                # One projection may serve all heads.
                found.width = max(whence.width, self.joined(product, seq))
            found.small = large < size * product.width**-0.25
            found.drawn = as_drawn(whence.weight) and as_drawn(
                other_whence.weight
            )
        self.found.append(found)

    def joined(self, product: Product, seq: int) -> int:
        """Return how wide the keys of all heads are together."""
        return product.keys.numel() // (self.batch * seq)

    def origin(self, x: Tensor) -> tuple[float, Projected, float] | None:
        """Return the multiple, the projection and the spread of ``x``.

        Heads are a part of a projection's numbers in another order, so that
        each number of ``x``, divided by the right factor, is found there. What
        was turned by its position is found by its length, which that leaves.
        """
        for projected in reversed(self.projected):
            y = projected.result.flatten()
            if factor := found_in(y, x.flatten()):
                return factor, projected, float(x.std()) / factor
        for projected in reversed(self.projected):
            y = projected.result.flatten()
            for axis in (-1, -2):
                width = x.shape[axis]
                if width < 2 or y.numel() % width:
                    continue
                ones, others = x.norm(dim=axis), y.view(-1, width).norm(dim=-1)
                if factor := found_in(others, ones.flatten()):
                    return factor, projected, float(x.std()) / factor
        return None


SIGNATURE = inspect.signature(F.multi_head_attention_forward)


def as_hidden(mask: Tensor) -> Tensor:
    """Tell what a mask hides that is added to scores, or whose True hides."""
    return mask < HIDDEN if is_float(mask) else mask.bool()


class Blanked(TorchFunctionMode):
    """Returns zeros for what a softmax returns."""

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        got = func(*args, **(kwargs or {}))
        blank = getattr(func, "__name__", "") in SOFTMAX and is_float(got)
        return torch.zeros_like(got) if blank else got


UNUSED = (
    "A softmax is computed, and its result is never used: do the scores "
    "themselves weigh the values? Is it stored under another name?"
)


def softmax_unused(fn: Guarded, args: tuple) -> bool:
    """Tell whether softmaxes are heard, and their results count nowhere.

    Args:
        fn: What is checked.
        args: The arguments.
    """
    with HeardMasks(len(args[0])) as heard:
        before = fn.raw(*args).detach()
    if not heard.scores or any(one.whole for one in heard.found):
        return False
    with Blanked():
        return torch.equal(fn.raw(*args).detach(), before)


class HeardMasks(Heard):
    """Listens to what is hidden alone, which takes a fraction of the time."""

    def hear_product(self, name: str, args: tuple, got: Tensor) -> None:
        """Let it pass."""

    def keep(self, got: Tensor, width: int, weight: object) -> None:
        """Let it pass."""

    def judge(self, product: Product, seq: int) -> None:
        """Let it pass."""


class HeardAxes(TorchFunctionMode):
    """Notes over which axis each softmax runs that has queries and keys.

    One over the queries is not noted if its weights are then divided by their
    sum over the keys, as slots do that compete for what they attend to.
    """

    def __init__(self):
        super().__init__()
        self.found: list[tuple[int, tuple[int, ...], bool]] = []
        self.weights: list[Tensor] = []

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        named = kwargs or {}
        if getattr(func, "__name__", "") in SOFTMAX and args:
            shape = tuple(args[0].shape)
            dim = named.get("dim", args[1] if len(args) > 1 else None)
            if len(shape) > 2 or (len(shape) == 2 and shape[0] == shape[1] > 1):
                axis = dim if isinstance(dim, int) else implied(len(shape))
                self.found.append((axis % len(shape), shape, dim is None))
                self.weights.append(func(*args, **named).detach())
        got = func(*args, **named)
        if is_float(got):
            self.hear_division(got.detach())
        return got

    def hear_division(self, got: Tensor) -> None:
        """Forget a softmax whose weights were divided by their sums since."""
        for i, weights in reversed([*enumerate(self.weights)]):
            axis, shape, _ = self.found[i]
            if axis != len(shape) - 2 or got.shape != weights.shape:
                continue
            sums = weights.sum(-1, keepdim=True)
            # What sums to 1 by chance needs no division.
            divided = not torch.allclose(sums, sums**0, atol=1e-3)
            if divided and torch.allclose(got, weights / sums, atol=1e-4):
                del self.found[i], self.weights[i]


class Nudged(TorchFunctionMode):
    """Moves the first of the last axis in what one softmax returns.

    Args:
        which: The number of the softmax, of those over the axis before it.
    """

    def __init__(self, which: int):
        super().__init__()
        self.left = which

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        with HeardAxes() as heard:
            got = func(*args, **(kwargs or {}))
        over = [axis == len(shape) - 2 for axis, shape, _ in heard.found]
        if any(over):
            self.left -= 1
            if self.left == -1:
                first = torch.eye(got.shape[-1], device=got.device)[0]
                got = got + first
        return got


def keys_stand_first(call: Callable[[], object], number: int) -> bool:
    """Tell whether scores are (…, key, query), so that axis -2 is the keys'.

    What the last of these softmaxes returns for one query moves one row then.

    Args:
        call: What computes rows, (batch, row, …), and some such scores.
        number: How many softmaxes run over axis -2.
    """
    before = call()
    with Nudged(number - 1):
        after = call()
    if not (isinstance(before, Tensor) and isinstance(after, Tensor)):
        return False
    if before.ndim < 3 or before.shape != after.shape:
        return False
    moved = (after - before).abs().flatten(2).amax((0, -1))
    return bool(moved[0] > 0) and not moved[1:].any()


def implied(axes: int) -> int:
    """Return the axis that PyTorch takes where a softmax is told none."""
    return 0 if axes in (0, 1, 3) else 1


def over_another_axis(fn: Guarded, args: tuple) -> str:
    """Say over which axis a softmax of scores runs, if not over the keys."""
    return axis_heard(lambda: fn.raw(*args), len(args[0]))


def axis_heard(call: Callable[[], object], batch: int) -> str:
    """Say the same of what a call does; queries and keys are as many there."""
    with HeardAxes() as heard:
        call()
    before_last = [axis == len(shape) - 2 for axis, shape, _ in heard.found]
    number = sum(before_last)
    turned = number > 0 and keys_stand_first(call, number)
    for axis, shape, implicit in heard.found:
        if turned and axis == len(shape) - 2:
            continue
        said = NO_DIM.format(axis, len(shape)) if implicit else ""
        if shape[-1] != shape[-2]:  # Others may have the keys elsewhere.
            continue
        several = len(shape) > 2
        sentences = several and axis == 0 and shape[0] % batch == 0
        if sentences or (axis == 1 and len(shape) == 4):
            over = OVER_AXIS.format(axis, shape, THOSE[axis])
        elif axis == len(shape) - 2:
            over = OVER_QUERIES
        else:
            continue
        return f"{over} {said}".rstrip()
    return ""


OVER_AXIS = (
    "A softmax runs over axis {} of {}, {}: it belongs over the keys, `dim=-1`."
)
THOSE = "that of the sentences", "that of the heads"
OVER_QUERIES = (
    "The softmax runs over the queries: it belongs over the keys, `dim=-1`."
)
NO_DIM = "Where no `dim` is given, PyTorch takes axis {} of {}."


@dataclass
class HeardScores(TorchFunctionMode):
    """Listens to all scores from which a softmax makes weights.

    Attributes:
        scores: They, as they enter it.
        unlike: Of how many keys those are that differ, where PyTorch's own
            function keeps their scores to itself.
        deaf: Whether there is another attention whose scores are not known.
    """

    scores: list[Tensor] = field(default_factory=list)
    unlike: set[int] = field(default_factory=set)
    deaf: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        got, name = func(*args, **kwargs), getattr(func, "__name__", "")
        try:
            self.hear(name, args, kwargs)
        except Exception:
            self.deaf = True  # What we cannot read is no mistake of theirs.
        return got

    def hear(self, name: str, args: tuple, kwargs: dict) -> None:
        """Listen to one call of a function."""
        given = (*args, *kwargs.values())
        first = next((a for a in given if is_float(a)), None)
        if name in SOFTMAX | {"exp"} and first is not None:
            self.scores.append(first.detach().clone())
        elif name == FUSED:
            self.hear_fused(args, kwargs)
        elif name in WHOLE:
            self.hear_whole(args, kwargs)

    def hear_fused(self, args: tuple, kwargs: dict) -> None:
        """Compute the scores in PyTorch's attention, if its mask is plain."""
        order = "query", "key", "value", "attn_mask", "dropout_p", "is_causal"
        named = dict(zip(order, args, strict=False)) | kwargs
        query, key, mask = (named.get(n) for n in ("query", "key", "attn_mask"))
        plain = type(mask) in (Tensor, nn.Parameter, type(None))
        if not plain or query.is_nested or query.ndim < 3:
            self.deaf = True
            return
        query, key = query.detach(), key.detach()
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        scores = query @ key.mT * query.shape[-1] ** -0.5
        if named.get("is_causal"):
            future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(future, -torch.inf)
        if is_float(mask):
            scores = scores + mask.detach()
        elif mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        self.scores.append(scores)

    def hear_whole(self, args: tuple, kwargs: dict) -> None:
        """Take for scores what PyTorch's function adds, if its keys are alike.

        They have the sequence first.
        """
        query, key, mask = args[0], args[1].detach(), kwargs.get("attn_mask")
        if not torch.allclose(key, key[:1].expand_as(key)):
            self.unlike.add(len(key))
        scores = torch.zeros(len(query), len(key))
        # One of another shape is not looked at, as beside `is_causal`.
        if is_float(mask) and mask.shape[-2:] == scores.shape:
            scores = scores + mask.detach()
        self.scores.append(scores)


def alike_in_rows(heard: HeardScores, seq: int) -> bool:
    """Tell whether a row's scores are the same for all keys that it sees.

    Args:
        heard: What was heard, of which some is over as many rows as keys.
        seq: How many those are.
    """
    square = (seq, seq)
    own = [x for x in heard.scores if x.ndim > 1 and x.shape[-2:] == square]
    if heard.deaf or seq in heard.unlike or not own:
        return False
    for scores in own:
        seen = scores > HIDDEN
        most = scores.masked_fill(~seen, -torch.inf).amax(-1)
        least = scores.masked_fill(~seen, torch.inf).amin(-1)
        apart = most - least > 1e-6 + 1e-5 * most.abs()
        if (apart & seen.any(-1)).any():
            return False
    return True


def as_drawn(weight: Tensor | None) -> bool:
    """Tell whether a matrix spreads as one of the usual draws does.

    Of what is no matrix nothing is known, and so it may be.
    """
    if weight is None or weight.ndim < 2:
        return True
    rows, columns = weight.flatten(1).shape
    own = weight.flatten()
    size, most = float(own.square().mean()) ** 0.5, float(own.abs().max())
    chance = 4 * (2 * own.numel()) ** -0.5
    usual = [(2 / (rows + columns)) ** 0.5]
    usual += [(2 / fan) ** 0.5 for fan in (rows, columns)]
    if most < 2 * size:  # All numbers up to a bound are as likely.
        usual += [(3 * fan) ** -0.5 for fan in (rows, columns)]
        chance *= 0.65
    else:
        usual += [0.02, 1.0, rows**-0.5, columns**-0.5]
        tails = float((own / size).pow(4).mean()) - 3
        if abs(tails) > 6 * (24 / own.numel()) ** 0.5:
            return False
    return any(abs(size / one - 1) < max(chance, 0.01) for one in usual)


def found_in(y: Tensor, x: Tensor) -> float:
    """Return by what numbers of ``y`` were multiplied to make ``x``, or 0."""
    if min(x.numel(), y.numel()) < 8:
        return 0.0
    # Equal numbers, as the lengths behind a norm are, fit any other.
    if x.max() - x.min() < 0.01 * x.abs().max():
        return 0.0
    ordered = y.sort().values
    for factor in multiples(x, ordered):
        # Of a number near 0 the rounding is not small beside it.
        if (contains(ordered, x / factor) | (x.abs() < 0.01)).all():
            return factor
    return 0.0


def multiples(x: Tensor, ordered: Tensor) -> list[float]:
    """Return by what numbers were multiplied, if ``x`` is a multiple of some.

    The largest of ``x`` is a multiple of one of them, and the next largest
    are the same multiple of others.
    """
    first, *rest = x[x.abs().topk(4).indices]
    factors = first / ordered
    factors = factors[(factors > 0.01) & (factors < 100)]
    fits = [contains(ordered, other / factors) for other in rest]
    return factors[torch.stack(fits).all(0)].tolist()


def contains(ordered: Tensor, values: Tensor) -> Tensor:
    """Tell which of ``values`` are among ``ordered``."""
    at = torch.searchsorted(ordered, values.contiguous())
    above = ordered[at.clamp(max=len(ordered) - 1)]
    below = ordered[(at - 1).clamp(min=0)]
    gap = torch.minimum((above - values).abs(), (below - values).abs())
    return gap <= 1e-5 * values.abs()


def summed(equation: str, pair: tuple) -> int:
    """Return how many numbers of two tensors a sum with letters runs over."""
    if not isinstance(equation, str) or len(pair) != 2:
        return 0
    inputs, _, output = equation.replace(" ", "").partition("->")
    both = inputs.split(",")
    if not output or len(both) != 2 or "." in inputs:
        return 0 if "..." not in inputs else pair[0].shape[-1]
    shared = (set(both[0]) & set(both[1])) - set(output)
    sizes = dict(zip(both[0], pair[0].shape, strict=False))
    return math.prod(sizes[letter] for letter in shared) if shared else 0


def multiple(
    scores: Tensor, product: Tensor | None, dim: int, batch: int
) -> float:
    """Return by what a product was multiplied to make scores, or 0.

    A number added to a whole row changes no softmax. What is added for each
    distance is the same in all sentences.
    """
    if product is None or product.numel() != scores.numel():
        return 0.0
    product = product.reshape(scores.shape)
    seen = scores > HIDDEN
    pair = [centred(x, seen, dim) for x in (scores, product)]
    if factor := ratio(*pair):
        return factor
    if batch < 2 or len(scores) % batch:
        return 0.0
    seen = seen.unflatten(0, (batch, -1))
    both = seen & seen[:1]
    return ratio(*(less_the_first(x, both) for x in pair))


def less_the_first(x: Tensor, seen: Tensor) -> Tensor:
    """Subtract from each sentence what the first one has."""
    x = x.unflatten(0, (len(seen), -1))
    return (x - x[:1]).masked_fill(~seen, 0)


def ratio(one: Tensor, other: Tensor) -> float:
    """Return by what ``other`` was multiplied to make ``one``, or 0."""
    size = (other * other).sum()
    if not size > 0:
        return 0.0
    factor = (one * other).sum() / size
    rest = (one - factor * other).abs().max()
    small = bool(rest <= 1e-4 * (1 + one.abs().max()))
    return float(factor) if small and factor > 0 else 0.0


def centred(x: Tensor, seen: Tensor, dim: int) -> Tensor:
    """Subtract from each row the mean of what is seen; the rest is 0."""
    x = x.masked_fill(~seen, 0)
    mean = x.sum(dim, keepdim=True) / seen.sum(dim, keepdim=True).clamp(min=1)
    return (x - mean).masked_fill(~seen, 0)


def attentions(fn: Guarded, args: tuple) -> list[Attention]:
    """Return what is heard of each attention while ``fn`` runs."""
    first = next((a for a in args if isinstance(a, Tensor)), None)
    batch = 1 if first is None else len(first)
    with Heard(batch) as heard:
        fn.raw(*args)
    return heard.found


def hidden_score(fn: Guarded, args: tuple, may: Tensor) -> float | None:
    """Return the one score that hidden keys have in a softmax, if it counts.

    Args:
        fn: What is checked.
        args: The arguments, with a mask.
        may: Who may see whom, (batch, row, key).
    """
    with HeardMasks(len(may)) as heard:
        fn.raw(*args)
    for scores in heard.scores:
        if scores.ndim == 4 and scores.shape[-2:] == may.shape[-2:]:
            hidden = scores[~may[:, None].expand_as(scores)]
            one = float(hidden[0])
            if (hidden == one).all() and abs(one) < 50:
                return one
    return None


def mask_meets_scores(fn: Guarded, args: tuple, may: Tensor) -> bool:
    """Tell whether a mask lowers scores of any softmax.

    So it may if one is heard without a mask only: then it is in other hands.

    Args:
        fn: What is checked.
        args: The arguments, with a mask.
        may: Who may see whom, (batch, row, key).
    """
    with HeardMasks(len(may)) as plain:
        fn.raw(args[0])
    with HeardMasks(len(may)) as heard:
        fn.raw(*args)
    if len(plain.scores) != len(heard.scores):
        return True
    fitting = [
        scores[~may[:, None].expand_as(scores)]
        for scores in heard.scores
        if scores.ndim == 4 and scores.shape[-2:] == may.shape[-2:]
    ]
    return not fitting or any((x < HIDDEN).any() for x in fitting)


def hidden_from(fn: Guarded, args: tuple, may: Tensor) -> list[Tensor]:
    """Return what is hidden in each attention over so many rows and keys.

    Args:
        fn: What is checked.
        args: The arguments.
        may: Who may see whom, (batch, row, key).

    Returns:
        True where a key is hidden, (batch × heads, row, key).
    """
    return hidden_from_each(fn, args, [may])[0]


def hidden_from_each(
    fn: Guarded, args: tuple, each: list[Tensor]
) -> list[list[Tensor]]:
    """Do what ``hidden_from`` does for several shapes, in one call."""
    batch = len(each[0])
    with HeardMasks(batch) as heard:
        fn.raw(*args)
    flat = [x.flatten(0, -3) for x in heard.hidden if x.ndim > 2]
    return [
        [
            x
            for x in flat
            if x.shape[1:] == may.shape[1:] and len(x) % batch == 0
        ]
        for may in each
    ]


def hides_all(found: list[Tensor], may: Tensor) -> bool:
    """Tell whether each attention hides from each row what it may not see."""
    return bool(found) and all(
        bool((x | written_out(may, x)).all()) for x in found
    )


def hides_no_more(found: list[Tensor], may: Tensor) -> bool:
    """Tell whether each attention hides just what a row may not see."""
    return bool(found) and all(
        torch.equal(x, ~written_out(may, x)) for x in found
    )


def each_others_masks(found: list[Tensor], may: Tensor) -> bool:
    """Tell whether some attention's heads have the masks in turn.

    Where batch and heads are one axis, the heads of a sentence come one after
    the other, and so must its masks.
    """
    return any(
        torch.equal(x, ~may.repeat(len(x) // len(may), 1, 1))
        and not torch.equal(x, ~written_out(may, x))
        for x in found
    )


def the_firsts_mask(found: list[Tensor], may: Tensor) -> bool:
    """Tell whether some attention has the first mask for all sentences."""
    first = may[:1].expand_as(may)
    return any(
        torch.equal(x, ~written_out(first, x))
        and not torch.equal(x, ~written_out(may, x))
        for x in found
    )


def written_out(may: Tensor, like: Tensor) -> Tensor:
    """Write a mask out for each head: (batch × heads, row, key)."""
    return may.repeat_interleave(len(like) // len(may), 0)


def is_near(one: float, other: float) -> bool:
    """Tell whether two factors are the same."""
    return math.isclose(one, other, rel_tol=NEAR)


def mistaken(one: Attention) -> dict[str, float]:
    """Return hint -> by what the mistake multiplies."""
    head, width = one.head, one.width
    heads = max(width // head, 1)
    roots = f"divide its scores by √{head}"
    return {
        f"The scores of each head are divided by √{width}, the root of "
        f"d_model: a head compares vectors of {head} numbers, so {roots}. "
        "With many heads attention stays too even.": width**-0.5,
        f"The scores are not divided by anything: a head compares vectors of "
        f"{head} numbers, so {roots}, or the softmax saturates.": 1.0,
        f"The scores of a head are divided by {head}, its width, and not by "
        "the root of that. Is the root forgotten, or is it divided twice? "
        "`scaled_dot_product_attention` divides already.": 1 / head,
        f"The scores of a head are multiplied by √{width}, the root of "
        f"d_model: {roots}.": width**0.5,
        f"The scores of a head are multiplied by √{head}: divide by it.": head
        ** 0.5,
        f"The scores are divided by √{heads}, the root of the number of "
        f"heads: the width of a head counts, √{head}.": heads**-0.5,
        f"The scores are divided by √{one.seq}, the root of the number of "
        f"positions: the width of a head counts, √{head}. Which axis does "
        "`size` name?": one.seq**-0.5,
        f"The scores are divided by √{one.batch}, the root of the number of "
        f"sentences: the width of a head counts, √{head}. Which axis does "
        "`size` name?": one.batch**-0.5,
    }


BY_THE_ROOT = "The scores of a head are divided by the root of its width"
UNHEARD = "Nobody can tell from outside, and no softmax was heard in it"
UNKNOWN = (
    "What enters its softmax could not be followed back to queries and keys"
)


NEVER_SPLIT = (
    "The scores are divided by √{0}, as those of heads of {0} numbers, and "
    "whole vectors of {1} are compared: they are never split into heads."
)


def numbers_kept(fn: Guarded) -> set[int]:
    """Return the whole numbers that a module keeps, such as its heads."""
    module = getattr(fn.given, "__self__", fn.given)
    parts = module.modules() if isinstance(module, nn.Module) else ()
    return {n for part in parts for n in vars(part).values() if type(n) is int}


def require_root(one: Attention, kept: set[int]) -> None:
    """Raise Broken unless an attention divides by the root of its width.

    Args:
        one: The attention.
        kept: The whole numbers that its module keeps.
    """
    if one.factor is None or is_near(one.factor, one.head**-0.5):
        return
    for hint, factor in mistaken(one).items():
        if is_near(one.factor, factor):
            folded = factor == 1.0 and one.small
            level, why = (NOTE, FOLDED) if folded else ("", "")
            if factor == 1.0 and not folded and not one.drawn:
                level, why = RISK, TRAINED
            raise Broken(hint, level=level, why=why)
    few = round(one.factor**-2)
    whole = one.head == one.width and 1 < few < one.width
    meant = {few, one.width / few} & kept if whole else ()
    if meant and is_near(one.factor, few**-0.5):
        raise Broken(NEVER_SPLIT.format(few, one.head))
    raise Broken(
        f"The scores of a head of width {one.head} are multiplied by "
        f"{number(torch.tensor(one.factor))}: 1/√{one.head} is "
        f"{one.head**-0.5:.4g}.",
        level=NOTE,
        why=OTHERS,
    )


def divided_by_the_root_of_a_head(args: Callable[[], tuple]) -> Callable:
    """Make: scores are divided by the root of the width of a head.

    Args:
        args: The arguments, without a mask.
    """

    def holds(fn: Guarded) -> None:
        given = args()
        with Heard(len(given[0])) as heard:
            fn.raw(*given)
        found = heard.found
        if not any(one.known for one in found):
            raise NotTried(UNKNOWN if found or heard.flat else UNHEARD)
        for one in found:
            require_root(one, numbers_kept(fn))

    holds.__doc__ = f"{BY_THE_ROOT}."
    return holds
