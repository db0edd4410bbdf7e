"""A line between the contracts and code that wants to be called otherwise.

    from companion.contracts import adapters, check

    print(check("multihead", adapters.mask_added(mine)))

``check`` finds the usual forms of a call itself; these are for the rest. Each
takes a learner's function or module, and returns what the contracts call. Of a
module the weights are still seen. What a mask looks like on the learner's side
stands first in each docstring.
"""

import copy
import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = [
    "KeepsItsCache",
    "StepModel",
    "added_from",
    "causal_from_added",
    "drops_last_token",
    "each_sentence_alone",
    "first_of",
    "four_axes_only",
    "from_flat_logits",
    "from_numpy",
    "heads_after_positions",
    "key_padding",
    "mask_added",
    "mask_each_head",
    "mask_turned",
    "one_row_a_token",
    "one_sentence",
    "padding_from_keys",
    "padding_is",
    "probabilities_of",
    "rope_of_tables",
    "rope_with_tables",
    "sequence_first",
    "shifts_itself",
    "smoothed_by",
    "table_of",
    "valid_lengths",
    "with_causal_mask",
    "with_masks",
    "without_residual",
    "without_scale",
]

Yours = Callable[..., Any]


class _Adapted(nn.Module):
    """A module behind an adapter, whose weights can still be found."""

    def __init__(self, yours: nn.Module, call: Yours):
        super().__init__()
        self.yours, self.call = yours, call
        self.train(yours.training)

    def forward(self, *args: Any, **named: Any) -> Any:
        """Call it in its own way."""
        return self.call(*args, **named)


def _as_given(yours: Yours, call: Yours) -> Yours:
    """Return ``call``, as a module if the learner's code is one."""
    return _Adapted(yours, call) if isinstance(yours, nn.Module) else call


def _first(result: Any) -> Any:
    """Take the first of several things that come back."""
    several = isinstance(result, tuple | list) and result
    return result[0] if several else result


def _in_its_form(yours: Yours, call: Yours) -> Yours:
    """Return ``call``, which takes all that the learner's code takes.

    So that ``check`` can find out how that wants to be called.
    """
    inner = yours.forward if isinstance(yours, nn.Module) else yours

    @functools.wraps(inner)
    def called(*args: Any, **named: Any) -> Any:
        return call(*args, **named)

    if not isinstance(yours, nn.Module):
        return called
    adapted = _Adapted(yours, call)
    # Where a signature is looked for.
    adapted.forward = called
    return adapted


def _written_out(mask: Tensor, batch: int, rows: int) -> Tensor:
    """Write a mask out: (batch, query, key)."""
    four = mask[(None,) * (4 - mask.ndim)]
    return four.expand(batch, 1, rows, four.shape[-1])[:, 0]


# Masks that are given


def mask_added(yours: Yours) -> Yours:
    """Mask: as the contracts' own, with 0 for True and −∞ for False.

    For what adds its mask to the scores: ``yours(…, mask)``.

    Example:
        >>> from companion.contracts import check
        >>> def mine(q, k, v, mask=None):
        ...     scores = q @ k.mT / q.shape[-1] ** 0.5
        ...     scores = scores if mask is None else scores + mask
        ...     lowest = torch.finfo(scores.dtype).min
        ...     weights = scores.clamp_min(lowest).softmax(-1)
        ...     return weights @ v
        >>> "no row sees its future" in str(check("attention", mine).failures)
        True
        >>> report = check("attention", mask_added(mine))
        >>> "With a causal mask no row sees its future" in report.held
        True
    """

    def added(x: Any, kind: torch.dtype) -> Any:
        if not _is_mask(x):
            return x
        return torch.zeros(x.shape).masked_fill(~x, -torch.inf).to(kind)

    def call(*args: Any, **named: Any) -> Any:
        first = next(iter((*args, *named.values())))
        # Of ids the scores are what PyTorch makes by default.
        floats = first.is_floating_point()
        kind = first.dtype if floats else torch.get_default_dtype()
        words = {name: added(x, kind) for name, x in named.items()}
        return yours(*(added(x, kind) for x in args), **words)

    return _in_its_form(yours, call)


def mask_turned(yours: Yours) -> Yours:
    """Mask: as the contracts' own, but True hides.

    The same as ``check(…, mask="hidden")``, for a mark in a file. A mask that
    is returned is turned round too.

    Example:
        >>> from companion.contracts import check
        >>> mine = lambda length: torch.ones(length, length).triu(1).bool()
        >>> check("causal_mask", mask_turned(mine)).passed
        True
    """

    def turned(x: Any) -> Any:
        if type(x) in (tuple, list):
            return type(x)(map(turned, x))
        return ~x if _is_mask(x) else x

    def call(*args: Any, **named: Any) -> Any:
        words = {name: turned(x) for name, x in named.items()}
        return turned(yours(*map(turned, args), **words))

    return _in_its_form(yours, call)


def mask_each_head(yours: Yours, heads: int) -> Yours:
    """Mask: (batch × heads, seq, seq), the heads of a sentence in a row.

    Example:
        >>> from companion.contracts import check
        >>> layer = nn.MultiheadAttention(12, 3, batch_first=True)
        >>> def mine(x, mask=None):
        ...     return layer(x, x, x, attn_mask=mask, need_weights=False)[0]
        >>> check("multihead", mask_each_head(mine, 3), mask="hidden").passed
        True
    """

    def call(x: Tensor, mask: Tensor | None = None) -> Any:
        if mask is None:
            return yours(x)
        written = _written_out(mask, len(x), x.shape[1])
        return yours(x, written.repeat_interleave(heads, 0))

    return _as_given(yours, call)


def each_sentence_alone(yours: Yours) -> Yours:
    """Mask: (seq, seq), the same for the whole batch.

    Sentences with masks of their own are asked one at a time.

    Example:
        >>> from companion.contracts import check
        >>> layer = nn.MultiheadAttention(12, 3, batch_first=True)
        >>> def mine(x, mask=None):
        ...     return layer(x, x, x, attn_mask=mask, need_weights=False)[0]
        >>> check("multihead", each_sentence_alone(mine), mask="hidden").passed
        True
    """

    def call(x: Tensor, mask: Tensor | None = None) -> Any:
        if mask is None:
            return yours(x)
        written = _written_out(mask, len(x), x.shape[1])
        pairs = zip(x.split(1), written, strict=True)
        return torch.cat([yours(one, its) for one, its in pairs])

    return _as_given(yours, call)


def key_padding(yours: Yours) -> Yours:
    """Mask: (batch, key), True where a sentence has a word.

    For attention ``yours(q, k, v, mask)``, or ``yours(x, mask)``. Each row of
    the contracts' masks is such a mask, so that rows are asked one at a time.
    With ``check(…, mask="hidden")`` True stands where padding is.

    Example:
        >>> from companion.contracts import check
        >>> layer = nn.MultiheadAttention(12, 3, batch_first=True)
        >>> def mine(x, hidden=None):
        ...     return layer(x, x, x, hidden, need_weights=False)[0]
        >>> check("multihead", key_padding(mine), mask="hidden").passed
        True
    """

    def call(*args: Any) -> Any:
        *vectors, mask = args if _is_mask(args[-1]) else (*args, None)
        if mask is None:
            return yours(*vectors)
        rows = vectors[0].shape[1]
        written = _written_out(mask, len(vectors[0]), rows)
        parts = [
            yours(*vectors, written[:, i])[:, i : i + 1] for i in range(rows)
        ]
        return torch.cat(parts, 1)

    return _as_given(yours, call)


def valid_lengths(yours: Yours) -> Yours:
    """Mask: (batch,), how many of the first keys count.

    For attention ``yours(q, k, v, lengths)``, or ``yours(x, lengths)``. It
    knows no order of keys, so that those which a row may see are put first, and
    it is called once for each row. Give ``each_sentence_alone`` what takes
    ``x`` and a mask.

    Example:
        >>> from companion.contracts import check
        >>> def mine(q, k, v, lengths=None):
        ...     scores = q @ k.mT / q.shape[-1] ** 0.5
        ...     if lengths is not None:
        ...         gone = torch.arange(k.shape[1]) >= lengths[:, None, None]
        ...         scores = scores.masked_fill(gone, -1e4)
        ...     return scores.softmax(-1) @ v
        >>> report = check("attention", valid_lengths(mine))
        >>> "A masked key cannot leak into any row" in report.held
        True
    """

    def call(*args: Any) -> Tensor:
        vectors = [x for x in args if x is not None and not _is_mask(x)]
        mask = next(filter(_is_mask, args), None)
        if len(vectors) == 1:
            return _of_itself(yours, *vectors, mask)
        q, k, v = vectors
        lead = q.shape[:-2]
        q, k, v = (x.reshape(-1, *x.shape[-2:]) for x in (q, k, v))
        if mask is None:
            found = yours(q, k, v)
            return found.reshape(*lead, *found.shape[1:])
        written = mask.expand(*lead, q.shape[1], k.shape[1]).reshape(
            len(q), q.shape[1], -1
        )

        def ask(order: Tensor, counts: Tensor) -> Tensor:
            place = order[..., None]
            keys = k.gather(1, place.expand_as(k))
            values = v.gather(1, place.expand(*place.shape[:2], v.shape[2]))
            return yours(q, keys, values, counts)

        found = rows_by_lengths(written, ask)
        return found.reshape(*lead, *found.shape[1:])

    return _as_given(yours, call)


def _of_itself(yours: Yours, x: Tensor, mask: Tensor | None) -> Tensor:
    """Ask what takes ``x`` and lengths, the positions in another order."""
    if mask is None:
        return yours(x)

    def ask(order: Tensor, counts: Tensor) -> Tensor:
        place = order[..., None].expand_as(x)
        found = yours(x.gather(1, place), counts)
        back = order.argsort()[..., None]
        return found.gather(1, back.expand(*back.shape[:2], found.shape[2]))

    return rows_by_lengths(_written_out(mask, len(x), x.shape[1]), ask)


def rows_by_lengths(
    may: Tensor, ask: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Ask for one row of each sentence at a time, by lengths.

    It is another row of each: so lengths that go to a wrong sentence show.

    Args:
        may: Which row sees which key, (batch, row, key).
        ask: Takes the order of the keys with those in front that the row of
            each sentence may see, and how many these are; returns all rows.
    """
    batch, rows, _ = may.shape
    sentences = torch.arange(batch, device=may.device)
    found = []
    for i in range(rows):
        row = (sentences + i) % rows
        shown = may[sentences, row]
        order = (~shown).int().argsort(stable=True)
        found.append(ask(order, shown.sum(-1))[sentences, row])
    asked = torch.arange(rows, device=may.device) - sentences[:, None]
    return torch.stack(found, 1)[sentences[:, None], asked % rows]


def _is_mask(x: object) -> bool:
    return isinstance(x, Tensor) and x.dtype == torch.bool


# Masks that are made


def causal_from_added(yours: Yours) -> Yours:
    """Mask returned: numbers, 0 where a row may attend and −∞ where not.

    For ``causal_mask``, and for ``padding_mask`` and ``combine_masks`` too.

    Example:
        >>> from companion.contracts import check
        >>> def mine(length):
        ...     return torch.full((length, length), -torch.inf).triu(1)
        >>> check("causal_mask", causal_from_added(mine)).passed
        True
    """

    def shown(masks: Any) -> Any:
        if isinstance(masks, tuple | list):
            return tuple(map(shown, masks))
        return masks == 0

    return _as_given(yours, lambda *args: shown(yours(*args)))


def padding_from_keys(yours: Yours) -> Yours:
    """Mask returned: (batch, seq), True where a sentence has a word.

    With ``check(…, mask="hidden")`` True stands where padding is, as in
    PyTorch's ``key_padding_mask``.

    Example:
        >>> from companion.contracts import check
        >>> mine = lambda tokens, pad: tokens == pad
        >>> check("padding_mask", padding_from_keys(mine), mask="hidden").passed
        True
    """
    return _as_given(
        yours, lambda tokens, pad: yours(tokens, pad)[:, None, None, :]
    )


# Axes


def sequence_first(yours: Yours) -> Yours:
    """Mask: as the contracts' own, without an axis for the batch in front.

    For what takes and gives (seq, batch, d_model), or tokens (seq, batch).

    Example:
        >>> from companion.contracts import check
        >>> table = torch.randn(64, 1, 12)
        >>> mine = lambda x: x + table[:len(x)]
        >>> check("add_positions", sequence_first(mine)).passed
        True
    """

    def swapped(x: object) -> object:
        if isinstance(x, tuple | list):
            return type(x)(map(swapped, x)) if type(x) is tuple else x
        swaps = isinstance(x, Tensor) and x.ndim > 1 and not _is_mask(x)
        return x.transpose(0, 1) if swaps else x

    def call(*args: Any, **named: Any) -> Any:
        words = {name: swapped(x) for name, x in named.items()}
        return swapped(yours(*map(swapped, args), **words))

    return _in_its_form(yours, call)


def one_sentence(yours: Yours) -> Yours:
    """Mask: (seq, seq), that of the sentence.

    For what takes and gives one sentence, (seq, d_model), and no batch.

    Example:
        >>> from companion.contracts import check
        >>> def mine(q, k, v, mask=None):
        ...     queries, width = q.shape
        ...     return F.scaled_dot_product_attention(q, k, v, mask)
        >>> check("attention", one_sentence(mine)).passed
        True
    """

    def call(*args: Any, **named: Any) -> Any:
        return _one_by_one(yours, args, named)

    return _in_its_form(yours, call)


def four_axes_only(yours: Yours) -> Yours:
    """Mask: (batch, 1, query, key), or (query, key).

    For attention whose vectors must be (batch, head, seq, head_dim).

    Example:
        >>> from companion.contracts import check
        >>> def mine(q, k, v, mask=None):
        ...     batch, head, seq, width = q.shape
        ...     return F.scaled_dot_product_attention(q, k, v, mask)
        >>> check("attention", four_axes_only(mine)).passed
        True
    """

    def call(*args: Any) -> Tensor:
        vectors = [x for x in args if not _is_mask(x)]
        lead = vectors[0].shape[:-2]
        four = [x.reshape(-1, 1, *x.shape[-2:]) for x in vectors]
        masks = [
            x if x.ndim < 3 else _over(x, lead) for x in args if _is_mask(x)
        ]
        result = _first(yours(*four, *masks))
        return result.reshape(*lead, *result.shape[-2:])

    return _as_given(yours, call)


def _over(mask: Tensor, lead: torch.Size) -> Tensor:
    """Write a mask out over leading axes: (batch, 1, query, key)."""
    full = mask.expand(*lead, *mask.shape[-2:])
    return full.reshape(-1, 1, *mask.shape[-2:])


def heads_after_positions(yours: Yours) -> Yours:
    """Mask: none, or as the contracts' own.

    For ``rope`` and attention on (batch, seq, head, head_dim).

    Example:
        >>> from companion.contracts import check
        >>> from companion.positions import rotate
        >>> def mine(x, positions):
        ...     batch, seq, head, width = x.shape
        ...     return rotate(x.transpose(1, 2), positions).transpose(1, 2)
        >>> check("rope", heads_after_positions(mine)).passed
        True
    """

    def turned(x: Any) -> Any:
        if not isinstance(x, Tensor) or not x.is_floating_point():
            return x
        lead = x.shape[:-3] if x.ndim > 3 else ()
        four = x.reshape(-1, *x.shape[-3:]) if lead else x
        return four[(None,) * (4 - four.ndim)].transpose(1, 2)

    def call(first: Tensor, *rest: Any) -> Tensor:
        result = _first(yours(turned(first), *map(turned, rest)))
        result = result.transpose(1, 2)
        return result.reshape(*first.shape[:-2], *result.shape[-2:])

    return _as_given(yours, call)


# What comes back


def first_of(yours: Yours) -> Yours:
    """Mask: as the contracts' own. The first of several results is taken.

    Example:
        >>> from companion.contracts import check
        >>> mine = lambda scores, dim: (scores.softmax(dim), "more")
        >>> check("softmax", first_of(mine)).passed
        True
    """
    return _as_given(yours, lambda *args: yours(*args)[0])


def from_flat_logits(yours: Yours) -> Yours:
    """Mask: none. Logits of a model, (batch × seq, vocab), get their axes back.

    Example:
        >>> tokens = torch.tensor([[1, 2, 3]])
        >>> from_flat_logits(lambda tokens: torch.ones(3, 7))(tokens).shape
        torch.Size([1, 3, 7])
    """

    def call(*args: Any) -> Tensor:
        return yours(*args).reshape(*args[-1].shape, -1)

    return _as_given(yours, call)


def probabilities_of(yours: Yours) -> Yours:
    """Mask: none. Probabilities become their logarithms, which are logits.

    Only for what is trained with a loss that takes probabilities.

    Example:
        >>> mine = lambda tokens: torch.tensor([[[0.25, 0.75]]])
        >>> probabilities_of(mine)(None).softmax(-1)
        tensor([[[0.2500, 0.7500]]])
    """
    return _as_given(yours, lambda *args: yours(*args).log())


# Arrays


def from_numpy(yours: Yours, *, batch: bool = True) -> Yours:
    """Mask: as the contracts' own, an array of True and False.

    For what takes arrays of NumPy, and returns one or a tuple of them.
    Gradients, which NumPy does not have, are measured from differences, so that
    contracts about them say nothing of your code.

    Args:
        yours: The function.
        batch: Whether it takes a batch; if not, each sentence goes alone.

    Example:
        >>> from companion.contracts import check
        >>> def mine(x, axis):
        ...     e = np.exp(x - x.max(axis, keepdims=True))
        ...     return e / e.sum(axis, keepdims=True)
        >>> check("softmax", from_numpy(mine)).passed
        True
    """

    def call(*args: Any, **named: Any) -> Any:
        if batch:
            return _with_arrays(yours, args, named)
        return _one_by_one(
            lambda *one, **words: _with_arrays(yours, one, words), args, named
        )

    return _in_its_form(yours, call)


def _one_by_one(yours: Yours, args: tuple, named: dict) -> Any:
    """Call with each sentence alone, and join what comes back."""
    first = next(iter((*args, *named.values())))
    lead = first.shape[:-1] if not first.is_floating_point() else (
        first.shape[:-2]
    )  # fmt: skip
    if not lead:
        return yours(*args, **named)
    rows = []
    for place in itertools.product(*map(range, lead)):
        one = [_at(x, place, len(lead)) for x in args]
        words = {n: _at(x, place, len(lead)) for n, x in named.items()}
        rows.append(yours(*one, **words))
    return _stacked(rows, lead)


def _stacked(rows: list, lead: tuple[int, ...]) -> Any:
    """Join the results of single sentences; of each of several results."""
    if isinstance(rows[0], tuple):
        columns = zip(*rows, strict=True)
        return tuple(_stacked([*column], lead) for column in columns)
    stacked = torch.stack(rows)
    return stacked.reshape(*lead, *stacked.shape[1:])


def _at(x: Any, place: tuple[int, ...], axes: int) -> Any:
    """Take what belongs to one sentence; of a mask too."""
    if not isinstance(x, Tensor) or x.ndim <= axes:
        return x
    if _is_mask(x):
        if x.ndim == 2:
            return x
        extra = x.shape[: x.ndim - 2]
        spread = zip(extra, (*place, *(0,) * len(extra)), strict=False)
        return x[tuple(0 if size == 1 else i for size, i in spread)]
    return x[place]


def _with_arrays(yours: Yours, args: Any, named: dict) -> Any:
    """Call a function of arrays with tensors."""
    words = list(named)
    given = (*args, *named.values())

    def plain(*tensors: Any) -> Any:
        arrays = [_array(x) for x in tensors]
        rest = dict(zip(words, arrays[len(args) :], strict=True))
        found = yours(*arrays[: len(args)], **rest)
        like = next((x for x in tensors if isinstance(x, Tensor)), None)
        return _tensor(found, like)

    class Measured(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *tensors: Any) -> Any:
            ctx.save_for_backward(
                *(x for x in tensors if isinstance(x, Tensor))
            )
            ctx.given = [None if isinstance(x, Tensor) else x for x in tensors]
            ctx.where = [isinstance(x, Tensor) for x in tensors]
            return plain(*tensors)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            saved = iter(ctx.saved_tensors)
            tensors = [
                next(saved) if there else x
                for there, x in zip(ctx.where, ctx.given, strict=True)
            ]
            return tuple(
                _slopes(plain, tensors, i, grads)
                if needed and there and tensors[i].is_floating_point()
                else None
                for i, (needed, there) in enumerate(
                    zip(ctx.needs_input_grad, ctx.where, strict=True)
                )
            )

    wants = any(isinstance(x, Tensor) and x.requires_grad for x in given)
    return Measured.apply(*given) if wants else plain(*given)


def _tensor(found: Any, like: Tensor | None) -> Any:
    """Make a tensor of an array, also of those in a tuple."""
    if isinstance(found, tuple):
        return tuple(_tensor(x, like) for x in found)
    if not isinstance(found, np.ndarray | np.generic):
        return found
    result = torch.from_numpy(np.array(found))
    if like is None or not result.is_floating_point():
        return result
    floats = like.is_floating_point()
    return result.to(like.dtype if floats else torch.float32)


def _array(x: Any) -> Any:
    """Make an array of a tensor; NumPy has no bfloat16."""
    if not isinstance(x, Tensor):
        return x
    return (x.float() if x.dtype == torch.bfloat16 else x).detach().numpy()


def _slopes(plain: Yours, tensors: list, i: int, grads: tuple) -> Tensor:
    """Measure the gradient of one input, from small steps."""
    exact = [
        x.double() if isinstance(x, Tensor) and x.is_floating_point() else x
        for x in tensors
    ]
    found = torch.zeros(exact[i].numel(), dtype=torch.float64)
    for place in range(len(found)):
        ends = []
        for step in (1e-5, -1e-5):
            moved = exact[i].clone().flatten()
            moved[place] += step
            moved = moved.view(exact[i].shape)
            given = (*exact[:i], moved, *exact[i + 1 :])
            result = plain(*given)
            ends.append(result if isinstance(result, tuple) else (result,))
        found[place] = sum(
            ((high - low) / 2e-5 * grad).sum()
            for high, low, grad in zip(*ends, grads, strict=True)
            if isinstance(high, Tensor) and high.is_floating_point()
        )
    return found.view(exact[i].shape).to(tensors[i].dtype)


# Whole models


def with_causal_mask(yours: Yours, axes: int = 2) -> Yours:
    """Mask: (seq, seq), or with ``axes`` 3 or 4 (batch, seq, seq), (…, 1, …).

    For a language model ``yours(tokens, mask)`` that is given its causal mask,
    or attention ``yours(x, mask)``; True = may attend. Turn it round in a line
    of your own if True hides.

    Example:
        >>> from companion.transformer import Transformer
        >>> shape = lambda tokens, mask: mask.shape
        >>> with_causal_mask(shape, 4)(torch.ones(2, 5))
        torch.Size([2, 1, 5, 5])
    """

    def call(tokens: Tensor) -> Tensor:
        seq = tokens.shape[1]
        mask = torch.ones(seq, seq, dtype=torch.bool).tril()
        if axes > 2:
            mask = mask.expand(len(tokens), *[1] * (axes - 3), seq, seq)
        return yours(tokens, mask)

    return _as_given(yours, call)


def with_masks(yours: Yours, axes: int = 4, pad: int = 0) -> Yours:
    """Masks: source (batch, 1, 1, src) and target (batch, 1, tgt, tgt).

    For a translator ``yours(src, tgt, src_mask, tgt_mask)``; True = may attend.
    With ``axes`` 3 they have no axis for the heads.

    Example:
        >>> shapes = lambda src, tgt, a, b: (tuple(a.shape), tuple(b.shape))
        >>> with_masks(shapes, 3)(torch.ones(2, 5), torch.ones(2, 4))
        ((2, 1, 5), (2, 4, 4))
    """

    def call(src: Tensor, tgt: Tensor) -> Tensor:
        heads = (None,) * (axes - 3)
        keys = (slice(None), *heads, None)
        past = torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool).tril()
        return yours(src, tgt, (src != pad)[keys], (tgt != pad)[keys] & past)

    return _as_given(yours, call)


def padding_is(yours: Yours, pad: int) -> Yours:
    """Mask: none. For ids whose padding is always ``pad``, and not 0.

    Both ids change places in all that is given; the contracts' padding is
    then theirs.

    Example:
        >>> from companion.contracts import check
        >>> def mine(tokens, pad):
        ...     return (tokens != 1)[:, None, None, :]
        >>> check("padding_mask", padding_is(mine, 1)).passed
        True
    """

    def exchanged(x: Any, zero: int) -> Any:
        if not isinstance(x, Tensor) or x.is_floating_point():
            return x
        if x.dtype is torch.bool:
            return x  # A mask.
        moved = torch.where(x == zero, -1, x)
        moved = torch.where(moved == pad, zero, moved)
        return torch.where(moved == -1, pad, moved)

    def call(*args: Any) -> Any:
        zero = args[-1] if type(args[-1]) is int else 0
        given = [exchanged(x, zero) for x in args]
        if type(args[-1]) is int:
            given[-1] = pad
        return yours(*given)

    return _as_given(yours, call)


def drops_last_token(yours: Yours) -> Yours:
    """Mask: none. For a model that leaves out the last target token itself.

    One more token stands behind the target then, and is left out.

    Example:
        >>> mine = lambda src, tgt: F.one_hot(tgt[:, :-1])
        >>> tokens = torch.ones(2, 4, dtype=torch.long)
        >>> drops_last_token(mine)(tokens, tokens).shape
        torch.Size([2, 4, 2])
    """

    def call(*args: Any) -> Any:
        *others, last = args
        return yours(*others, F.pad(last, (0, 1), value=1))

    return _as_given(yours, call)


def shifts_itself(yours: Yours) -> Yours:
    """Mask: none. For a model that gets whole targets, and shifts them itself.

    With a start token in front, and without the last one: then the logits of a
    position do not know its own token, which they are to predict. One more
    token stands behind the target here, and the first row of logits, which
    knows the start token only, is left out.

    Example:
        >>> mine = lambda tgt: F.one_hot(F.pad(tgt[:, :-1], (1, 0)), 5)
        >>> tokens = torch.tensor([[3, 2, 4]])
        >>> shifts_itself(mine)(tokens).argmax(-1)
        tensor([[3, 2, 4]])
    """

    def longer(x: Tensor) -> Tensor:
        return F.pad(x, (0, 1), value=1)

    def call(*args: Any, **named: Any) -> Any:
        # The targets come last with the contracts, but for what is no tensor.
        ids = [name for name, x in named.items() if isinstance(x, Tensor)]
        if ids:
            named = {**named, ids[-1]: longer(named[ids[-1]])}
        else:
            last = max(i for i, x in enumerate(args) if isinstance(x, Tensor))
            args = (*args[:last], longer(args[last]), *args[last + 1 :])
        found = yours(*args, **named)
        found = found["logits"] if isinstance(found, dict) else found
        return _without_first_row(getattr(found, "logits", found))

    return _in_its_form(yours, call)


def _without_first_row(x: Any) -> Any:
    """Leave out the first row of logits, also of those in a tuple."""
    if type(x) in (tuple, list):
        return tuple(map(_without_first_row, x))
    return x[:, 1:] if isinstance(x, Tensor) and x.ndim == 3 else x


# Parts


def without_residual(yours: nn.Module, norm: str = "layer_norm") -> nn.Module:
    """Mask: as the contracts' own. For a part that adds ``x``, and norms it.

    Inside, what is called ``norm`` is left out, and ``x`` is subtracted again.
    For attention and feed-forward networks whose residual is inside.

    Example:
        >>> from companion.contracts import check
        >>> class Mine(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.up, self.down = nn.Linear(12, 31), nn.Linear(31, 12)
        ...         self.layer_norm = nn.LayerNorm(12)
        ...     def forward(self, x):
        ...         return self.layer_norm(x + self.down(self.up(x).relu()))
        >>> check("feed_forward", without_residual(Mine())).passed
        True
    """
    inner = copy.deepcopy(yours)
    owner, _, name = norm.rpartition(".")
    part = inner.get_submodule(owner)
    if not isinstance(getattr(part, name, None), nn.Module):
        held = [n for n, _ in inner.named_children()]
        raise ValueError(
            f"norm: expected the name of a module inside, one of {held}, got "
            f"{norm!r}"
        )
    setattr(part, name, nn.Identity())

    def call(*args: Any, **named: Any) -> Tensor:
        x, *_ = (*args, *named.values())
        result = inner(*args, **named)
        return (result[0] if isinstance(result, tuple) else result) - x

    return _in_its_form(inner, call)


def added_from(yours: Yours) -> Yours:
    """Mask: none. For positions alone, ``yours(x)``, which are added to ``x``.

    Example:
        >>> from companion.contracts import check
        >>> table = torch.randn(64, 12)
        >>> mine = lambda x: table[:x.shape[1]]
        >>> check("add_positions", added_from(mine)).passed
        True
    """
    return _as_given(yours, lambda x: x + yours(x))


def without_scale(yours: Yours) -> Yours:
    """Mask: none. For positions that multiply ``x`` by √d_model first.

    Example:
        >>> from companion.contracts import check
        >>> table = torch.randn(64, 12)
        >>> mine = lambda x: x * 12 ** 0.5 + table[:x.shape[1]]
        >>> check("add_positions", without_scale(mine)).passed
        True
    """
    return _as_given(yours, lambda x: yours(x / x.shape[-1] ** 0.5))


def table_of(make: Callable[[int], nn.Module]) -> Yours:
    """Mask: none. For sinusoids inside a module that adds them.

    Args:
        make: From d_model, the module.

    Example:
        >>> from companion.contracts import check
        >>> from companion.positions import SinusoidalPositions
        >>> check("sinusoidal", table_of(SinusoidalPositions)).passed
        True
    """

    def sinusoidal(length: int, d_model: int) -> Tensor:
        return make(d_model).eval()(torch.zeros(1, length, d_model))[0]

    return sinusoidal


def rope_with_tables(
    yours: Yours, *, pairs: str = "halves", base: float = 10000.0
) -> Yours:
    """Mask: none. For ``yours(x, cos, sin)``, tables (seq, head_dim).

    Args:
        yours: The rotation; what it returns first is taken.
        pairs: ``"halves"`` if the tables repeat as a whole, ``"neighbours"`` if
            each angle stands there twice in a row, and ``"once"`` if the tables
            are (seq, head_dim / 2).
        base: The base of the angles.

    Example:
        >>> from companion.contracts import check
        >>> def mine(x, cos, sin):
        ...     one, two = x.chunk(2, -1)
        ...     return x * cos + torch.cat([-two, one], -1) * sin
        >>> check("rope", rope_with_tables(mine)).passed
        True
    """
    if pairs not in ("halves", "neighbours", "once"):
        raise ValueError(
            f'pairs: expected "halves", "neighbours" or "once", got {pairs!r}'
        )

    def call(x: Tensor, positions: Tensor) -> Tensor:
        half = torch.arange(0, x.shape[-1], 2).double()
        angles = positions[:, None].double() * base ** (-half / x.shape[-1])
        if pairs == "halves":
            angles = torch.cat([angles, angles], -1)
        if pairs == "neighbours":
            angles = angles.repeat_interleave(2, -1)
        result = yours(x, angles.cos().to(x.dtype), angles.sin().to(x.dtype))
        return result[0] if isinstance(result, tuple | list) else result

    return _as_given(yours, call)


def rope_of_tables(make: Callable[[int, int], Any]) -> Yours:
    """Mask: none. For what makes the tables of a rotation, and turns nothing.

    The tables may be (length, head_dim / 2), or (length, head_dim) with both
    halves alike or each angle twice in a row; axes of size 1 may stand between.
    They may also be complex numbers, as ``freqs_cis``, or stacked.

    Args:
        make: From head_dim and the number of positions, cosines and sines.

    Example:
        >>> from companion.contracts import check
        >>> def make(head_dim, length):
        ...     half = torch.arange(0, head_dim, 2) / head_dim
        ...     angles = torch.outer(torch.arange(length), 10000.0 ** -half)
        ...     return angles.cos(), angles.sin()
        >>> check("rope", rope_of_tables(make)).passed
        True
    """

    def call(x: Tensor, positions: Tensor) -> Tensor:
        width, length = x.shape[-1], int(positions.max()) + 1
        found = _cosines_and_sines(make(width, length), width)
        tables = [table.reshape(-1, table.shape[-1]) for table in found]
        for table in tables:
            if table.shape[-1] not in (width // 2, width):
                raise ValueError(
                    f"make: expected tables (length, {width // 2}) or (length, "
                    f"{width}), got one {tuple(table.shape)}"
                )
        if all(
            table.shape[-1] == width
            and torch.equal(table[:, 0::2], table[:, 1::2])
            for table in tables
        ):
            tables = [table[:, 0::2] for table in tables]
        cos, sin = (table[positions].to(x.dtype) for table in tables)
        if cos.shape[-1] == sin.shape[-1] == width // 2:
            one, two = x[..., 0::2], x[..., 1::2]
            pairs = [one * cos - two * sin, one * sin + two * cos]
            return torch.stack(pairs, -1).flatten(-2)
        one, two = x.chunk(2, -1)
        return x * cos + torch.cat([-two, one], -1) * sin

    return call


def _cosines_and_sines(found: Any, width: int) -> tuple[Tensor, Tensor]:
    """Read tables: two, one of complex numbers, or one of both, stacked."""
    if not isinstance(found, Tensor):
        return found[0], found[1]
    if found.is_complex():
        return found.real, found.imag
    last = found.ndim > 2 and found.shape[-2:] == (width // 2, 2)
    cos, sin = found.unbind(-1) if last else found.unbind(0)
    return cos, sin


def smoothed_by(
    make: Callable[..., Yours],
    *,
    logs: bool = False,
    mean: bool = False,
    flat: bool = True,
) -> Yours:
    """Mask: none. For a loss that is a module made for its smoothing.

    It gets logits (tokens, vocab) and targets (tokens,).

    Args:
        make: From the smoothing, padding and the size of the vocabulary, the
            loss.
        logs: Whether it takes log-probabilities.
        mean: Whether its sum is yet to be divided by the number of real tokens.
        flat: Whether there is no axis for sentences; else it gets logits
            (batch, seq, vocab) and targets (batch, seq).

    Example:
        >>> from companion.contracts import check
        >>> def make(smoothing, pad, vocab):
        ...     return nn.CrossEntropyLoss(
        ...         ignore_index=pad, label_smoothing=smoothing)
        >>> check("label_smoothing", smoothed_by(make)).passed
        True
    """

    def label_smoothing(
        logits: Tensor, target: Tensor, smoothing: float, pad: int
    ) -> Tensor:
        loss = make(smoothing, pad, logits.shape[-1])
        real = (target != pad).sum()
        if flat:
            logits, target = logits.flatten(0, -2), target.flatten()
        found = loss(logits.log_softmax(-1) if logs else logits, target)
        return found / real if mean else found

    return label_smoothing


def one_row_a_token(yours: Yours) -> Yours:
    """Mask: none. For a loss of logits (tokens, vocab) and targets (tokens,).

    No shape can tell such a loss from one that forgot to move the classes to
    the second axis: both are the same code, called in another way.

    Example:
        >>> from companion.contracts import check
        >>> def mine(logits, target, smoothing, pad):
        ...     return F.cross_entropy(
        ...         logits, target, ignore_index=pad, label_smoothing=smoothing)
        >>> check("label_smoothing", one_row_a_token(mine)).passed
        True
    """

    def call(logits: Tensor, target: Tensor, *rest: Any) -> Tensor:
        return yours(logits.flatten(0, -2), target.flatten(), *rest)

    return _as_given(yours, call)


# Searches


class StepModel(nn.Module):
    """Mask: any, and not looked at. A model for a search that wants one.

    The contracts of ``greedy_decode`` and ``beam_search`` hand over
    ``step_fn``: from ids (rows, length), beginning with bos, it gives logits
    (rows, vocab) of what follows. Here it stands as a model: called with
    ``(tokens)``, ``(src, tokens)`` or more, it gives logits (rows, length,
    vocab), of which only the last row counts; ``encode``, ``decode`` and
    ``generator`` are there too, for searches that call these.

    Example:
        >>> from companion.contracts import check
        >>> def mine(model, src, bos, eos, max_len):
        ...     ids = torch.tensor([[bos]])
        ...     memory = model.encode(src, None)
        ...     for _ in range(max_len):
        ...         out = model.decode(memory, None, ids, None)
        ...         best = model.generator(out[:, -1]).argmax(-1)
        ...         ids = torch.cat([ids, best[:, None]], 1)
        ...         if best == eos:
        ...             break
        ...     return ids[0, 1:].tolist()
        >>> src = torch.ones(1, 3, dtype=torch.long)
        >>> def decode(step_fn, bos, eos, max_len):
        ...     return mine(StepModel(step_fn), src, bos, eos, max_len)
        >>> check("greedy_decode", decode).passed
        True
    """

    def __init__(self, step_fn: Callable[[Tensor], Tensor]):
        super().__init__()
        self.step_fn = step_fn

    def forward(self, *args: Any, **named: Any) -> Tensor:
        """Give logits (rows, length, vocab) for the last ids among ``args``."""
        ids = [
            x
            for x in (*args, *named.values())
            if isinstance(x, Tensor) and x.dtype == torch.long and x.ndim == 2
        ]
        tokens = ids[-1]
        last = self.step_fn(tokens)
        rows = torch.zeros(*tokens.shape, last.shape[-1])
        rows[:, -1] = last
        return rows

    def encode(self, src: Tensor, *masks: Any) -> Tensor:
        """Give a memory for each source; nothing is read from it."""
        return torch.zeros(*src.shape, 1)

    def decode(self, *args: Any, **named: Any) -> Tensor:
        """Give what ``generator`` makes logits of: these logits."""
        return self(*args, **named)

    def generator(self, states: Tensor) -> Tensor:
        """Give logits: ``decode`` has made them already."""
        return states


class KeepsItsCache:
    """Mask: none. For a search that asks about the last id alone.

    ``model(last, cache)`` takes ids (rows, 1) and what it gave the last time,
    or None, and gives logits (rows, vocab) and the new cache: the ids so far,
    which a search may reorder as ``cache[rows]``.

    Example:
        >>> from companion.contracts import check
        >>> def decode(step_fn, bos, eos, max_len):
        ...     model, last, cache = KeepsItsCache(step_fn), bos, None
        ...     ids = []
        ...     while len(ids) < max_len and eos not in ids:
        ...         logits, cache = model(torch.tensor([[last]]), cache)
        ...         last = int(logits.argmax())
        ...         ids.append(last)
        ...     return ids
        >>> check("greedy_decode", decode).passed
        True
    """

    def __init__(self, step_fn: Callable[[Tensor], Tensor]):
        self.step_fn = step_fn

    def __call__(
        self, last: Tensor, cache: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Give the logits of what follows, and the ids so far."""
        ids = last if cache is None else torch.cat([cache, last], 1)
        return self.step_fn(ids), ids
