"""A doctor's instruments: tests that decide, for anybody's Transformer.

Each asks a model one question whose answer is known for every healthy one, so
none needs a reference to compare with. They read; they change no weight, no
gradient and no mode. A model that drops out is to be in eval mode.

Words for axes, the same in the book, the code and the tests:
    batch     sentences
    seq       tokens of a sentence
    row       positions of what comes out
    position  positions of what went in
"""

from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from companion.checks import check_device, check_int, check_tokens

ROUNDING = 1e-4
"""Rounding moves a number by less than this share of the largest one."""
MORE = 5
"""So many columns of padding more must change nothing."""


class Company(NamedTuple):
    """How far a sentence's numbers move at most, and on what occasion."""

    alone: float
    """Without the other sentences of its batch, and without padding."""
    elsewhere: float
    """At another place in the batch."""
    padded: float
    """With more padding behind it."""


def without_gradient(
    model: nn.Module, loss: Float[Tensor, ""]
) -> dict[str, int]:
    """Find the parameters that the loss does not depend on.

    A parameter is named if no path leads from it to ``loss``, or if its
    gradient is 0 in every number. ``parameter.grad`` stays as it was.

    Args:
        model: Whose parameters.
        loss: One number, with its graph.

    Returns:
        Name and size of each.

    Raises:
        ValueError: ``loss`` is not a single number with a graph behind it, or
            ``model`` has nothing to train.

    Example:
        >>> model = nn.ModuleList([nn.Linear(2, 1), nn.Linear(2, 1)])
        >>> without_gradient(model, model[0](torch.ones(2)).sum())
        {'1.weight': 2, '1.bias': 1}
    """
    if loss.numel() != 1 or not loss.requires_grad:
        raise ValueError(
            "loss: expected one number that has a gradient, got shape "
            f"{tuple(loss.shape)}, requires_grad={loss.requires_grad}"
        )
    named = {n: p for n, p in model.named_parameters() if p.requires_grad}
    if not named:
        raise ValueError("model: expected parameters to train, got none")
    found = torch.autograd.grad(
        loss, list(named.values()), allow_unused=True, retain_graph=True
    )
    return {
        name: parameter.numel()
        for (name, parameter), slope in zip(named.items(), found, strict=True)
        if slope is None or not slope.any()
    }


@torch.no_grad()
def moved_by(
    fn: Callable,
    tokens: Int[Tensor, "batch seq"],
    others: Int[Tensor, "batch seq"],
) -> Bool[Tensor, "row position"]:
    """Which rows of ``fn(tokens)`` move with which token, in any sentence.

    One position after the other gets its token from ``others``. ``fn`` returns
    (batch, row, ...): logits, or vectors.

    Raises:
        TypeError: ``tokens`` or ``others`` are no integers.
        ValueError: their shapes differ, or ``others`` has the same tokens at a
            position in every sentence.
    """
    _require_others(tokens, others)
    before, columns = fn(tokens), []
    for position in range(tokens.shape[1]):
        changed = tokens.clone()
        changed[:, position] = others[:, position]
        gap = (fn(changed) - before).abs()
        columns.append(gap.flatten(2).amax((0, 2)))
    moved = torch.stack(columns, -1)
    return moved > ROUNDING * moved.max()


@torch.no_grad()
def alone_and_in_company(
    fn: Callable, tokens: Int[Tensor, "batch seq"], pad: int
) -> Company:
    """Measure how far a sentence's numbers depend on the batch it is in.

    Rows of padding are not compared. In a healthy model all three are rounding.

    Args:
        fn: From ``tokens`` to (batch, seq, ...).
        tokens: Sentences, with padding at the end.
        pad: What pads.

    Returns:
        The three numbers.

    Raises:
        TypeError: ``tokens`` are no integers, or ``pad`` is no int.
        ValueError: There is one sentence only, or one without tokens.

    Example:
        >>> tokens = torch.tensor([[5, 6], [7, 0]])
        >>> found = alone_and_in_company(
        ...     lambda ids: ids[..., None].float(), tokens, 0
        ... )
        >>> max(found)
        0.0
    """
    check_tokens(tokens, "tokens")
    check_int(pad=pad)
    real = tokens != pad
    if len(tokens) < 2 or not real.any(1).all():
        raise ValueError(
            "tokens: expected two sentences or more, each with a token that "
            f"is not pad = {pad}, got {tokens.tolist()}"
        )
    together = fn(tokens)
    apart = torch.zeros_like(together)
    for place, sentence in enumerate(real):
        length = int(sentence.nonzero()[-1]) + 1
        alone = tokens[place : place + 1, :length]
        apart[place, :length] = fn(alone)[0]
    rolled = fn(tokens.roll(1, 0)).roll(-1, 0)
    longer = fn(F.pad(tokens, (0, MORE), value=pad))[:, : tokens.shape[1]]
    return Company(
        *(_gap(x[real], together[real]) for x in (apart, rolled, longer))
    )


@torch.no_grad()
def same_twice(fn: Callable, *args: object) -> float:
    """Measure how far the answers to one question differ at most.

    The random numbers go on from the first call to the second, as they do for
    a user.

    Args:
        fn: Returns a tensor.
        args: What it is called with.

    Returns:
        The largest difference; 0 in evaluation mode.

    Example:
        >>> same_twice(nn.Dropout(0.5).eval(), torch.ones(100))
        0.0
    """
    first = fn(*args).clone()
    return _gap(fn(*args), first)


def how_far(model: nn.Module, step: Callable[[], object]) -> float:
    """Measure how far ``step()`` moves the weights: the norm of what it adds.

    With plain SGD that is the learning rate times the norm of the gradient
    after clipping, so never more than rate · max_norm.

    Args:
        model: Whose weights.
        step: One update.

    Returns:
        The norm.

    Example:
        >>> model = nn.Linear(1, 1)
        >>> round(how_far(model, lambda: model.weight.data.add_(3)), 4)
        3.0
    """
    before = [p.detach().clone() for p in model.parameters()]
    step()
    moves = [
        (p.detach() - old).flatten()
        for p, old in zip(model.parameters(), before, strict=True)
    ]
    return torch.cat(moves).norm().item()


def first_difference(
    one: Float[Tensor, "batch seq *axes"],
    other: Float[Tensor, "batch seq *axes"],
) -> int | None:
    """Find the first position at which two computations part, or None.

    What differs by rounding does not differ: less than 0.0001 of the largest
    number.

    Args:
        one: What the first computed.
        other: What the second computed.

    Returns:
        The position, or None.

    Raises:
        ValueError: The shapes are not the same, or the devices.

    Example:
        >>> first_difference(torch.ones(1, 3), torch.tensor([[1.0, 1.0, 2.0]]))
        2
    """
    check_device("other", other, one)
    if one.shape != other.shape:
        raise ValueError(
            f"other: expected the shape of one, {tuple(one.shape)}, got "
            f"{tuple(other.shape)}"
        )
    gap = (one - other).detach().abs().unsqueeze(-1).flatten(2).amax((0, 2))
    # NaN is no rounding: it differs from everything.
    differs = ~(gap <= ROUNDING * one.detach().abs().max())
    return int(differs.nonzero()[0]) if differs.any() else None


def seen_before(
    train: Iterable[Hashable],
    test: Iterable[Hashable],
    key: Callable[[Hashable], Hashable] = lambda item: item,
) -> list[Hashable]:
    """Find what is tested and stands in training too, in the order of ``test``.

    Args:
        train: What is trained on.
        test: What is tested.
        key: What counts as the same: ``companion.data.groups.plain`` leaves
            out punctuation, spaces and capitals.

    Returns:
        The items of ``test``.

    Raises:
        ValueError: ``test`` is empty, so that nothing was looked for.

    Example:
        >>> seen_before(["I see", "we go"], ["i see", "you go"], key=str.lower)
        ['i see']
    """
    test = list(test)
    if not test:
        raise ValueError("test: expected something to look for, got nothing")
    known = {key(item) for item in train}
    return [item for item in test if key(item) in known]


def _require_others(tokens: Tensor, others: Tensor) -> None:
    check_tokens(tokens, "tokens")
    check_tokens(others, "others")
    if tokens.shape != others.shape:
        raise ValueError(
            f"others: expected the shape of tokens, {tuple(tokens.shape)}, "
            f"got {tuple(others.shape)}"
        )
    same = (tokens == others).all(0).nonzero()
    if len(same):
        raise ValueError(
            "others: expected another token somewhere at each position, got "
            f"the same ones at {int(same[0])}"
        )


def _gap(one: Tensor, other: Tensor) -> float:
    return (one - other).detach().abs().max().item()
