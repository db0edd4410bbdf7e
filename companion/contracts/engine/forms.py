"""How a learner's code wants to be called, and what it gives back.

The contracts call everything in one way. Right code has others: keywords, three
arguments for one, a mask of another shape, a tuple. ``adopt`` tries the usual
forms of a call on the plain cases of a component, whose axes all have different
sizes, and keeps the first whose results have the right shape; what it took is
told in ``Report.assumed``. Whether True hides or shows, and whether the batch
or the sequence comes first, no shape can tell: that is never taken, but
``other_ways`` lists the ways to ask again.
"""

import contextlib
import dis
import functools
import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from companion.contracts.adapters import (
    heads_after_positions,
    mask_added,
    rope_of_tables,
    rows_by_lengths,
    shifts_itself,
    valid_lengths,
    with_causal_mask,
)
from companion.contracts.engine.compare import Broken, draw, furthest
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import (
    Guarded,
    Raised,
    copied,
    flag_for_mask,
    has_mask,
    is_flag,
    lengths_among,
    lengths_beside,
    one_tensor,
    swallows_words,
)
from companion.contracts.engine.influence import reach
from companion.contracts.engine.masking import hides_rows, unchanged
from companion.contracts.engine.modules import module_of
from companion.contracts.engine.norms import norm_form

__all__ = [
    "ASK_FIRST",
    "ASK_SHIFTED",
    "BY_NAMES",
    "CONTEXT",
    "MASKS",
    "MEMORY",
    "NONE",
    "NORMALISED",
    "NO_MASK",
    "PAIRED",
    "SAME",
    "Form",
    "adopt",
    "other_ways",
    "takes_mask",
]

Call = tuple[tuple, dict]
Style = Callable[["Wanted", dict], Call | None]
"""From a signature and the arguments by name, how to call; None: it cannot."""
Right = Callable[[Guarded], bool]
"""Tells whether no contract finds a fault, as something is called now."""

SELF = ("multihead", "encoder")
"""Of vectors ``x``, and perhaps a mask."""
ATTENDING = ("attention", "grouped_query_attention")
"""Of queries, keys and values, and perhaps a mask."""
MODELS = ("language_model", "translation_model")
MASKS = ("causal_mask", "padding_mask", "combine_masks")
SAYS = {
    "hidden": ("True hides in its masks, as `mask` says",),
    "shown": (),
}
SHAPED = (*SELF, *ATTENDING, *MODELS, "causal_attention", "feed_forward",
          "add_positions", "rnn", "rope", "flash_attention")  # fmt: skip
"""What may give back more than the one tensor that is wanted."""

SAME = {
    "x": ("x", "inputs", "input", "src", "hidden_states", "hidden", "tokens"),
    "q": ("q", "query", "queries", "xq", "query_states"),
    "k": ("k", "key", "keys", "xk", "key_states"),
    "v": ("v", "value", "values", "xv", "value_states"),
    "mask": ("mask", "attn_mask", "attention_mask", "src_mask", "bias_mask",
             "self_mask", "enc_mask", "encoder_mask", "input_mask"),
    "tokens": ("tokens", "idx", "input_ids", "ids", "x", "input", "inputs"),
    "src": ("src", "source", "src_tokens", "src_ids", "input_ids", "enc_inputs",
            "encoder_input", "encoder_inputs", "enc_input", "inp", "src_seq",
            "src_sequence", "source_sequence", "enc_x"),
    "tgt": ("tgt", "target", "trg", "tgt_tokens", "tgt_ids", "dec_inputs",
            "decoder_input", "decoder_inputs", "dec_input", "trg_seq", "tar",
            "prev_output_tokens", "decoder_input_ids", "tgt_sequence",
            "target_sequence", "dec_x"),
    "length": ("length", "max_len", "seq_len", "max_length", "n_positions",
               "num_positions", "position", "positions", "maxlen", "n"),
    "d_model": ("d_model", "dim", "d", "emb_dim", "embed_dim", "hidden_size",
                "embedding_dim", "d_hid", "depth", "width"),
    "gain": ("gain", "gamma", "weight", "scale", "g", "alpha", "a_2"),
    "bias": ("bias", "beta", "shift", "b", "b_2"),
    "eps": ("eps", "epsilon", "variance_epsilon"),
    "positions": ("positions", "position_ids", "pos", "position", "offsets"),
    "scores": ("scores", "logits", "attn_scores", "x", "inputs", "energy"),
    "target": ("target", "targets", "labels", "gold", "y", "tgt"),
    "smoothing": ("smoothing", "label_smoothing", "eps", "epsilon", "alpha"),
    "pad": ("pad", "pad_id", "pad_idx", "padding_idx", "pad_token_id",
            "ignore_index", "pad_token"),
    "logits": ("logits", "pred", "preds", "output", "outputs", "x", "input"),
    "dim": ("dim", "axis"),
}  # fmt: skip
"""Argument of the contracts -> what it is usually called."""


@dataclass(frozen=True)
class Wanted:
    """The signature of a learner's code.

    Attributes:
        names: Its arguments that can be given by place, in order.
        required: Those without a default.
        all: Those by keyword too.
        bound: What ``inspect`` knows of it, if anything.
        mask: Which of several masks is meant, if that is known.
        flags: Those that are no mask, as their defaults tell; lengths beside a
            mask too.
    """

    names: tuple[str, ...] = ()
    required: frozenset = frozenset()
    all: frozenset = frozenset()
    bound: inspect.Signature | None = None
    mask: str = ""
    flags: frozenset = frozenset()

    def named(self, argument: str) -> str | None:
        """Return what it calls an argument of the contracts, if one fits."""
        if argument == "mask" and self.mask:
            return self.mask
        known = self.all - self.flags if argument == "mask" else self.all
        found = next((n for n in SAME[argument] if n in known), None)
        if found or argument != "mask":
            return found
        masks = [n for n in known if "mask" in n]
        return masks[0] if len(masks) == 1 else None

    def is_mask(self, name: str) -> bool:
        """Tell whether a mask may be meant by this name, by place.

        One of keys is not, where another is there that has rows too; nor is
        what is called otherwise, where another is called a mask. Queries, keys
        and values are none.
        """
        if any(name in SAME[vectors] for vectors in "qkv"):
            return False
        called = "mask" in name or name in SAME["mask"]
        if not called and self.named("mask") not in (None, name):
            return False
        others = self.all - self.flags - {name}
        rows = any("mask" in n and not OF_KEY.search(n) for n in others)
        keys = OF_KEY.search(name) and "mask" in name and rows
        return name not in self.flags and not keys

    def binds(self, call: Call) -> bool:
        """Tell whether it takes these arguments, as far as is known."""
        try:
            return self.bound is None or bool(
                self.bound.bind(*call[0], **call[1])
            )
        except TypeError:
            return False


def wanted(fn: object) -> Wanted:
    """Read the signature of a function, or of a module's forward."""
    try:
        bound = inspect.signature(
            fn.forward if isinstance(fn, nn.Module) else fn
        )
    except (TypeError, ValueError):
        return Wanted()
    kinds = inspect.Parameter
    known = [
        p for p in bound.parameters.values()
        if p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)
    ]  # fmt: skip
    words = {p.name for p in known if p.kind != kinds.POSITIONAL_ONLY}
    flags = {p.name for p in known if is_flag(p)}
    flags |= {*lengths_beside([p.name for p in known if not is_flag(p)])}
    if swallows_words(bound):
        words |= masks_by_word(fn)
    return Wanted(
        tuple(p.name for p in known if p.kind != kinds.KEYWORD_ONLY),
        frozenset(p.name for p in known if p.default is p.empty),
        frozenset(words),
        bound,
        flags=frozenset(flags),
    )


def masks_by_word(fn: object) -> set[str]:
    """List what masks are called in what takes any keyword, ``**kw``.

    Its code reads them there, as in ``kw["mask"]``; or it hands all keywords
    on, and then its parts have arguments of this name.
    """
    call = fn.forward if isinstance(fn, nn.Module) else fn
    code = getattr(inspect.unwrap(call), "__code__", None)
    if not isinstance(code, CodeType):
        return set()
    if not code.co_flags & inspect.CO_VARKEYWORDS:
        return set()  # It has another signature than it tells.
    # Behind all that has a place or a name comes ``*args``, and then this.
    place = code.co_argcount + code.co_kwonlyargcount
    place += bool(code.co_flags & inspect.CO_VARARGS)
    name, names = code.co_varnames[place], set()
    steps = [*dis.get_instructions(code)]
    for i, step in enumerate(steps):
        if not step.opname.startswith("LOAD") or step.argval != name:
            continue
        after = steps[i + 1 : i + 4]
        names |= {s.argval for s in after if s.opname == "LOAD_CONST"}
        if isinstance(fn, nn.Module) and after[0].opname == "DICT_MERGE":
            for part in fn.modules():
                with contextlib.suppress(TypeError, ValueError):
                    names |= {*inspect.signature(part.forward).parameters}
    texts = {x for x in names if isinstance(x, str)}
    return {x for x in texts if "mask" in x and x.isidentifier()}


@dataclass(frozen=True)
class Form:
    """A way to call, which may also be to read what comes back.

    Attributes:
        parameters: The names of the contracts' arguments.
        style: Makes the call; None calls as the contracts do.
        layout: From a mask and the arguments by name, the mask as it is wanted.
        absent: What stands for a mask where there is none.
        reading: From what came back and the arguments, the result.
        hidden: Whether True hides in the learner's masks.
        first: Whether the sequence comes first, and the batch second.
        whole: The whole call, where it is none of these.
        no_mask: Whether no mask is ever handed over.
        ungiven: Masks of padding that may be given, and are not.
        wants: The signature.
        said: What all this is, in sentences.
    """

    parameters: tuple[str, ...]
    style: Style | None = None
    layout: Callable | None = None
    absent: str = "omitted"
    reading: Callable | None = None
    hidden: bool = False
    first: bool = False
    whole: Callable | None = None
    no_mask: bool = False
    ungiven: tuple[str, ...] = ()
    wants: Wanted = field(default_factory=Wanted)
    said: tuple[str, ...] = ()

    @property
    def row_by_row_asked(self) -> bool:
        """Whether a mask has no rows, so that each row is asked alone."""
        return self.layout in OF_KEYS

    def __call__(self, fn: Callable, args: tuple) -> Any:
        """Call ``fn`` in this way."""
        if self.hidden:
            args = tuple(map(turned, args))
        if self.first:
            fn = exchanged(fn)
        call = self.whole or self.styled
        result = call(fn, args)
        if self.reading:
            result = self.reading(result, args)
        return turned(result) if self.hidden else result

    def styled(self, fn: Callable, args: tuple) -> Any:
        """Call ``fn`` as the style and the mask's layout say."""
        if not self.style:
            return fn(*args)
        named = dict(zip(self.parameters, args, strict=False))
        if "mask" in self.parameters:
            mask = named.get("mask")
            if mask is None and self.absent == "full":
                mask = everything(named, self.hidden)
            if mask is not None and self.layout:
                if self.layout is alone:
                    return self.one_by_one(fn, named, mask)
                if self.layout in OF_KEYS:
                    return self.row_by_row(fn, named, mask)
                mask = self.layout(mask, named)
            named["mask"] = mask
            if mask is None and self.absent == "omitted":
                del named["mask"]
        given, words = self.style(self.wants, named)
        if self.hidden and "mask" not in self.parameters:
            # The style has made its masks.
            given = turned(given)
            words = {name: turned(x) for name, x in words.items()}
        return fn(*given, **words)

    def one_by_one(self, fn: Callable, named: dict, mask: Tensor) -> Any:
        """Ask for each sentence alone, with a mask (seq, seq) of its own."""
        x = named["x"]
        four = without_heads(mask, named)
        results = []
        for i in range(len(x)):
            one = {**named, "x": x[i : i + 1], "mask": four[i]}
            call = self.style(self.wants, one)
            results.append(fn(*call[0], **call[1]))
        return joined(results, 0)

    def row_by_row(self, fn: Callable, named: dict, mask: Tensor) -> Any:
        """Ask for each row alone, with the mask (batch, key) that it has."""
        lead = next(iter(named.values())).shape[:-2]
        if len(lead) != 1:
            return self.without_leading_axes(fn, named, mask, lead)
        three, axes = without_heads(mask, named), OF_KEYS[self.layout]
        results = []
        for i in range(three.shape[1]):
            its = three[:, i].unflatten(0, (-1, *[1] * axes))
            # What adds to its input in place must not see its own sum again.
            own = {name: copied(x) for name, x in named.items()}
            call = self.style(self.wants, {**own, "mask": its})
            got = fn(*call[0], **call[1])
            if self.reading is last_layer:
                got = last_layer(got, ())
            whole = type(got) in (tuple, list)
            out = got[0] if whole else got
            rows = isinstance(out, Tensor) and out.ndim > 1
            if not rows or out.shape[1] != three.shape[1]:
                return got
            row = out[:, i : i + 1]
            results.append((row, *got[1:]) if whole else row)
        return joined(results, 1)

    def without_leading_axes(
        self, fn: Callable, named: dict, mask: Tensor, lead: torch.Size
    ) -> Any:
        """Ask for vectors with one axis for the batch, and give the rest back.

        A mask (batch, key) has no axis for heads, nor one too few.
        """
        rows = next(iter(named.values())).shape[-2]
        keys = named.get("k", next(iter(named.values()))).shape[-2]
        flat = {
            name: x.reshape(-1, *x.shape[-2:])
            for name, x in named.items()
            if name != "mask"
        }
        its = mask.expand(*lead, rows, keys).reshape(-1, 1, rows, keys)
        got = self.row_by_row(fn, flat, its)
        whole = type(got) in (tuple, list)
        out, *more = got if whole else (got,)
        if isinstance(out, Tensor) and out.ndim == 3:
            out = out.reshape(*lead, *out.shape[1:])
        return (out, *more) if whole else out


def joined(results: list, axis: int) -> Any:
    """Join what was asked for in pieces; of several results, the first."""
    if not isinstance(results[0], tuple | list):
        return torch.cat(results, axis)
    return tuple(
        torch.cat(parts, axis)
        if isinstance(parts[0], Tensor) and not (axis and i)
        else parts[0]
        for i, parts in enumerate(zip(*results, strict=True))
    )


def turned(x: Any) -> Any:
    """Turn a mask round, and masks in a tuple; leave all else as it is."""
    if isinstance(x, tuple | list) and type(x) in (tuple, list):
        return type(x)(map(turned, x))
    masks = isinstance(x, Tensor) and x.dtype == torch.bool
    return ~x if masks else x


def other_first(x: Any) -> Any:
    """Exchange batch and sequence, of vectors and of ids; leave masks."""
    if isinstance(x, tuple | list) and type(x) in (tuple, list):
        return type(x)(map(other_first, x))
    if not isinstance(x, Tensor) or x.dtype == torch.bool:
        return x
    axes = 3 if x.is_floating_point() else 2
    return x.transpose(0, 1) if x.ndim == axes else x


def exchanged(fn: Callable) -> Callable:
    """Hand over the sequence first, and the batch second."""

    def call(*args: Any, **named: Any) -> Any:
        words = {name: other_first(x) for name, x in named.items()}
        return other_first(fn(*map(other_first, args), **words))

    return call


# Masks


def everything(named: dict, hidden: bool) -> Tensor:
    """Make a mask that hides nothing."""
    one = next(iter(named.values()))
    keys = named.get("k", one)
    mask = torch.ones(one.shape[-2], keys.shape[-2], dtype=torch.bool)
    return ~mask if hidden else mask


def written_out(mask: Tensor, named: dict) -> Tensor:
    """Write a mask out for each sentence: (batch, 1, query, key)."""
    x = next(iter(named.values()))
    keys = named.get("k", x).shape[-2]
    four = mask[(None,) * (4 - mask.ndim)]
    return four.expand(len(x), four.shape[1], x.shape[-2], keys)


def without_heads(mask: Tensor, named: dict) -> Tensor:
    """Leave out the axis of the heads: (batch, query, key)."""
    return written_out(mask, named)[:, 0]


def alone(mask: Tensor, named: dict) -> Tensor:
    """Stand for ``Form.one_by_one``, which makes masks (seq, seq)."""
    raise NotImplementedError


def of_keys(mask: Tensor, named: dict) -> Tensor:
    """Stand for ``Form.row_by_row``, which makes masks (batch, key)."""
    raise NotImplementedError


def of_keys_in_three(mask: Tensor, named: dict) -> Tensor:
    """Stand for ``Form.row_by_row``, which makes masks (batch, 1, key)."""
    raise NotImplementedError


def of_keys_in_four(mask: Tensor, named: dict) -> Tensor:
    """Stand for ``Form.row_by_row``, which makes masks (batch, 1, 1, key)."""
    raise NotImplementedError


OF_KEYS: dict[Callable | None, int] = {
    of_keys: 0,
    of_keys_in_three: 1,
    of_keys_in_four: 2,
}
"""Layouts of a mask for each sentence -> axes of size 1 before the keys."""


def as_numbers(layout: Callable | None) -> Callable:
    """Make 1 and 0 of True and False, in the number type of the input."""

    def numbers(mask: Tensor, named: dict) -> Tensor:
        laid = layout(mask, named) if layout else mask
        return laid.to(next(iter(named.values())).dtype)

    return numbers


def for_heads(heads: int, axes: int) -> Callable:
    """Write a mask out for each head: in 4 axes, or in 3."""

    def laid(mask: Tensor, named: dict) -> Tensor:
        four = written_out(mask, named)
        four = four.expand(len(four), heads, *four.shape[2:])
        return four if axes == 4 else four.flatten(0, 1)

    return laid


def layouts(fn: object) -> Iterator[tuple[str, Callable | None]]:
    """List what masks look like elsewhere, the plainest first."""
    yield "", None
    yield "its masks are (batch, 1, seq, seq)", written_out
    yield (
        "its masks have no axis for the heads, (batch, seq, seq)",
        without_heads,
    )
    yield (
        "its masks are (seq, seq), so that each sentence was asked alone",
        alone,
    )
    if heads := heads_of(fn):
        yield (
            f"its masks are written out for each head, (batch, {heads}, seq, "
            "seq)",
            for_heads(heads, 4),
        )
        yield (
            "its masks have batch and heads on one axis, (batch × "
            f"{heads}, seq, seq)",
            for_heads(heads, 3),
        )
    numbers = "its masks are numbers, 1 and 0 for True and False"
    yield numbers, as_numbers(None)
    yield f"{numbers}, (batch, 1, seq, seq)", as_numbers(written_out)
    yield f"{numbers}, (batch, seq, seq)", as_numbers(without_heads)
    for layout, axes in OF_KEYS.items():
        shape = ", ".join(["batch", *["1"] * axes, "key"])
        yield (
            f"its masks are ({shape}), so that each row was asked alone",
            layout,
        )


def heads_of(fn: object) -> int:
    """Return how many heads a module says that it has, or 0."""
    for name in ("num_heads", "n_heads", "n_head", "heads", "h", "nhead"):
        heads = getattr(fn, name, None)
        if type(heads) is int and heads > 0:
            return heads
    # Behind an adapter.
    inner = getattr(fn, "yours", None)
    return heads_of(inner) if inner is not None else 0


# Styles of a call


def filled(wants: Wanted, call: Call, named: dict) -> Call | None:
    """Give what else it must be given, and is the same for everybody."""
    args, words = call
    given = {*wants.names[: len(args)], *words}
    for name in wants.required - given:
        if name not in USUAL:
            return None
        words = {**words, name: USUAL[name](named)}
    done = args, words
    return done if wants.binds(done) else None


def vectors_of(named: dict) -> Tensor:
    """Return the keys, or what they are made of."""
    return named["k"] if "k" in named else named["x"]


def dividing(style: Style) -> Style:
    """Give what has to be given a `scale` the root, by which it divides."""

    def call(wants: Wanted, named: dict) -> Call | None:
        args, words = style(wants, named) or ((), {})
        if "scale" not in words:
            return None
        return args, {**words, "scale": 1 / words["scale"]}

    return call


def divided(offered: list[tuple[str, Style]]) -> list[tuple[str, Style]]:
    """Offer each with a `scale` that divides, too."""
    own = "its `scale` was √d_k, by which it divides"
    return [
        (f"{said}; {own}" if said else own, dividing(style))
        for said, style in offered
    ]


USUAL = {
    "dropout": lambda named: None,
    "d_k": lambda named: named["k"].shape[-1] if "k" in named else None,
    "scale": lambda named: vectors_of(named).shape[-1] ** -0.5,
    "need_weights": lambda named: False,
    "return_attention": lambda named: False,
    "training": lambda named: False,
    "train": lambda named: False,
    "is_causal": lambda named: False,
    "hidden": lambda named: None,
    "state": lambda named: None,
    "cache": lambda named: None,
    "past": lambda named: None,
    "memory": lambda named: None,
    "bias": lambda named: None,
    "position_bias": lambda named: None,
    "freqs_cis": lambda named: None,
    "start_pos": lambda named: 0,
    "device": lambda named: "cpu",
    **dict.fromkeys(
        ("segment_info", "segment_label", "segment_ids", "segments",
         "segment", "seg", "segs", "token_type_ids"),
        lambda named: torch.zeros_like(named["tokens"])
        if "tokens" in named else None,
    ),
}  # fmt: skip
"""What some are given besides -> what stands for nothing."""


def by_place(*names: str) -> Style:
    """Give these arguments one after the other."""

    def style(wants: Wanted, named: dict) -> Call | None:
        given = [n for n in names if n in named]
        places = zip(wants.names, given, strict=False)
        if any(
            ("mask" in place and "mask" not in n)
            or (n == "mask" and not wants.is_mask(place))
            for place, n in places
        ):
            return None  # Vectors are no mask, and a mask is no flag.
        return filled(wants, (tuple(named[n] for n in given), {}), named)

    return style


def by_word(*names: str) -> Style:
    """Give these by place, and the mask by its keyword."""

    def style(wants: Wanted, named: dict) -> Call | None:
        args, words = tuple(named[n] for n in names), {}
        if "mask" in named:
            word = wants.named("mask")
            if word is None:
                return None
            words = {word: named["mask"]}
        return filled(wants, (args, words), named)

    return style


def by_names(*names: str) -> Style:
    """Give all by its own names, which may stand in another order."""

    def style(wants: Wanted, named: dict) -> Call | None:
        words = {}
        for name in names:
            if name in named:
                word = wants.named(name)
                if word is None or word in words:
                    return None
                words[word] = named[name]
        return filled(wants, ((), words), named)

    return style


def four_axes(style: Style) -> Style:
    """Give vectors four axes, one of them for one head."""

    def with_heads(wants: Wanted, named: dict) -> Call | None:
        lead = next(iter(named.values())).shape[:-2]
        more = {
            name: one_head(x, lead) if isinstance(x, Tensor) else x
            for name, x in named.items()
            if x is not None
        }
        return style(wants, more)

    return with_heads


def without_mask(style: Style) -> Style:
    """Give None for the mask, where that has no default."""

    def without(wants: Wanted, named: dict) -> Call | None:
        return style(wants, {**named, "mask": None})

    return without


def one_head(x: Tensor, lead: torch.Size) -> Tensor:
    """Give vectors, or a mask, an axis for one head."""
    if x.dtype == torch.bool:
        if x.ndim < 3:
            return x
        x = x.expand(*lead, *x.shape[-2:])
    return x.reshape(-1, 1, *x.shape[-2:])


def with_targets(wants: Wanted, named: dict) -> Call | None:
    """Give a language model targets too, so that it answers everywhere."""
    word = wants.named("target")
    if word is None:
        return None
    call = (named["tokens"],), {word: named["tokens"]}
    return filled(wants, call, named)


def with_causal(axes: int, kind: torch.dtype = torch.bool) -> Style:
    """Give a language model the causal mask, of so many axes."""

    def style(wants: Wanted, named: dict) -> Call | None:
        word = wants.named("mask")
        if word is None:
            return None
        tokens = named["tokens"]
        seq = tokens.shape[1]
        mask = torch.ones(seq, seq, dtype=kind).tril()
        if axes > 2:
            mask = mask.expand(len(tokens), *[1] * (axes - 3), seq, seq)
        return filled(wants, ((tokens,), {word: mask}), named)

    return style


def with_added_causal(wants: Wanted, named: dict) -> Call | None:
    """Give a language model the causal mask, which it adds to the scores."""
    call = with_causal(2)(wants, named)
    if call is None:
        return None
    args, words = call
    given = {
        name: torch.zeros(x.shape).masked_fill(~x, -torch.inf)
        if isinstance(x, Tensor) and x.dtype == torch.bool
        else x
        for name, x in words.items()
    }
    return args, given


def with_masks(axes: int) -> Style:
    """Give a translator the masks of source and target, and of its memory."""

    def style(wants: Wanted, named: dict) -> Call | None:
        src, tgt = named["src"], named["tgt"]
        heads = (None,) * (axes - 3)
        of_src = (src != 0)[(slice(None), *heads, None)]
        seq = tgt.shape[1]
        past = torch.ones(seq, seq, dtype=torch.bool).tril()
        of_tgt = (tgt != 0)[(slice(None), *heads, None)] & past
        return with_both_masks(wants, named, of_src, of_tgt)

    return style


def with_masks_of_padding(wants: Wanted, named: dict) -> Call | None:
    """Give a translator masks of padding alone, (batch, key)."""
    return with_both_masks(wants, named, named["src"] != 0, named["tgt"] != 0)


def with_numbers_of_padding(wants: Wanted, named: dict) -> Call | None:
    """Give these as a tokeniser does: 1 for a token, and 0 for padding."""
    real = ((named[name] != 0).long() for name in ("src", "tgt"))
    return with_both_masks(wants, named, *real)


def with_both_masks(
    wants: Wanted, named: dict, of_src: Tensor, of_tgt: Tensor
) -> Call | None:
    """Give a translator masks by their names."""
    src, tgt = named["src"], named["tgt"]
    given: dict[str, Tensor] = {}
    # As in (x, y, x_mask, y_mask).
    masked = [n for n in wants.names if f"{n}_mask" in wants.all]
    ids, masks = zip((src, of_src), (tgt, of_tgt), strict=True)
    if len(masked) == len(ids):
        given |= dict(zip(masked, ids, strict=True))
        own = (f"{name}_mask" for name in masked)
        given |= dict(zip(own, masks, strict=True))
    for name in wants.names:
        if name in given:
            continue
        if name in SAME["src"]:
            given[name] = src
        elif name in SAME["tgt"]:
            given[name] = tgt
        elif "mask" in name:
            cross = any(w in name for w in ("cross", "memory", "src", "enc",
                                            "source", "e_"))  # fmt: skip
            given[name] = of_src if cross else of_tgt
    if not any("mask" in name for name in given):
        return None
    if len(given) < 4 and wants.required - set(given):
        return None
    if not {id(src), id(tgt)} <= {id(x) for x in given.values()}:
        return None
    return filled(wants, ((), given), named)


def with_masks_apart(wants: Wanted, named: dict) -> Call | None:
    """Give a translator masks of order and of padding, each for itself."""
    src, tgt = named["src"], named["tgt"]
    if not any("mask" in n and "pad" in n for n in wants.names):
        return None
    rows, keys = tgt.shape[1], src.shape[1]
    past = torch.ones(rows, rows, dtype=torch.bool).tril()
    given: dict[str, Tensor] = {}
    for name in wants.names:
        later = any(w in name for w in ("tgt", "trg", "target", "dec"))
        later = later and "memory" not in name
        if name in SAME["src"]:
            given[name] = src
        elif name in SAME["tgt"]:
            given[name] = tgt
        elif "mask" in name and "pad" in name:
            given[name] = (tgt if later else src) != 0
        elif "mask" in name and "memory" in name:
            given[name] = torch.ones(rows, keys, dtype=torch.bool)
        elif "mask" in name:
            free = torch.ones(keys, keys, dtype=torch.bool)
            given[name] = past if later else free
    return filled(wants, ((), given), named)


def with_lengths(wants: Wanted, named: dict) -> Call | None:
    """Give a translator how many tokens each source has."""
    lengths = [n for n in wants.names if "len" in n]
    return with_counts(wants, named, dict.fromkeys(lengths[:1], "src"))


def with_both_lengths(wants: Wanted, named: dict) -> Call | None:
    """Give a translator how many tokens each source has, and each target."""
    lengths = [n for n in wants.names if "len" in n and n in wants.required]
    of = {n: "tgt" if OF_TARGET.search(n) else "src" for n in lengths}
    both = sorted(of.values()) == ["src", "tgt"]
    return with_counts(wants, named, of) if both else None


def with_counts(wants: Wanted, named: dict, of: dict[str, str]) -> Call | None:
    """Give a translator the lengths of sources or targets, by their names."""
    words = wants.named("src"), wants.named("tgt")
    if not of or None in words:
        return None
    given = dict(zip(words, (named["src"], named["tgt"]), strict=True))
    counts = {n: (named[which] != 0).sum(1) for n, which in of.items()}
    return filled(wants, ((), {**given, **counts}), named)


def headed(offered: list[tuple[str, Style]]) -> list[tuple[str, Style]]:
    """Offer each with an axis for one head too."""
    one = "its vectors got an axis for one head"
    return [
        (f"{said}, and {one}" if said else one, four_axes(style))
        for said, style in offered
    ]


def positions_each(wants: Wanted, named: dict) -> Call | None:
    """Give each sentence positions of its own."""
    x, positions = named["x"], named["positions"]
    if x.ndim < 3:
        return None
    call = (x, positions.expand(len(x), *positions.shape)), {}
    return filled(wants, call, named)


def queries_and_keys(wants: Wanted, named: dict) -> Call | None:
    """Give what turns queries and keys at once the same for both."""
    call = (named["x"], named["x"], named["positions"]), {}
    return filled(wants, call, named)


def with_heads(x: Tensor) -> Tensor:
    """Give vectors the axes (batch, head, seq, head_dim)."""
    four = x.reshape(-1, *x.shape[-3:]) if x.ndim > 3 else x
    return four[(None,) * (4 - four.ndim)]


def behind(wants: Wanted, named: dict) -> Call | None:
    """Give vectors with their heads behind the positions."""
    four = with_heads(named["x"]).transpose(1, 2)
    return filled(wants, ((four, named["positions"]), {}), named)


def takes_table(wants: Wanted) -> bool:
    """Tell whether a rotation says that it wants tables, by their names."""
    return vectors_before_a_table(wants) + vectors_before_tables(wants) > 0


def vectors_before_a_table(wants: Wanted) -> int:
    """Return how many arguments a rotation takes before its table, if any.

    What follows, such as a device, is left at its default.
    """
    places = range(1, len(wants.names))
    found = [i for i in places if "freq" in wants.names[i]]
    required = [i for i in found if wants.names[i] in wants.required]
    last = [i for i in found if i == len(wants.names) - 1]
    return next(iter(required + last), 0)


def with_complex_table(wants: Wanted, named: dict) -> Call | None:
    """Give what turns complex numbers a table of them, (seq, head_dim / 2).

    Its vectors have their heads behind the positions.
    """
    return turned_by_table(wants, named, with_heads(named["x"]).transpose(1, 2))


def table_and_heads_first(wants: Wanted, named: dict) -> Call | None:
    """Give the same, and vectors with their heads before the positions."""
    return turned_by_table(wants, named, with_heads(named["x"]))


def turned_by_table(wants: Wanted, named: dict, vectors: Tensor) -> Call | None:
    """Give vectors and a table of complex numbers, of base 10000."""
    count = vectors_before_a_table(wants)
    if not count:
        return None
    positions, width = named["positions"], vectors.shape[-1]
    even = torch.arange(0, width, 2) / width
    angles = torch.outer(positions.float(), 10000.0**-even)
    table = torch.polar(torch.ones_like(angles), angles)
    return filled(wants, ((*(vectors,) * count, table), {}), named)


COSINES = re.compile(r"(?i)(\w*_)?cos(ines?|_?\w*)?")
SINES = re.compile(r"(?i)(\w*_)?sin(es?|_?\w*)?")
"""What a rotation calls the two tables that it is given."""


def vectors_before_tables(wants: Wanted) -> int:
    """Return how many arguments a rotation takes before its two, if any."""
    pairs = enumerate(itertools.pairwise(wants.names))
    return next(
        (
            i
            for i, (one, two) in pairs
            if COSINES.fullmatch(one) and SINES.fullmatch(two)
        ),
        0,
    )


@dataclass(frozen=True)
class ByTables:
    """Gives what turns vectors the cosines and sines for it, of base 10000.

    Attributes:
        layout: From the angles (seq, head_dim / 2), the table.
        axes: Where axes of size 1 stand in it.
        first: Whether the heads stand before the positions.
    """

    layout: Callable[[Tensor], Tensor]
    axes: tuple[int, ...]
    first: bool

    def __call__(self, wants: Wanted, named: dict) -> Call | None:
        """Return the call; None, if tables are not what it takes."""
        count = vectors_before_tables(wants)
        if not count:
            return None
        vectors, positions = with_heads(named["x"]), named["positions"]
        if not self.first:
            vectors = vectors.transpose(1, 2)
        more = [n for n in wants.names[count + 2 :] if n in wants.required]
        at = positions
        if more and "pos" in more[0]:  # It looks them up in the tables.
            at = torch.arange(int(positions.max()) + 1)
        even = torch.arange(0, vectors.shape[-1], 2) / vectors.shape[-1]
        angles = self.layout(torch.outer(at.float(), 10000.0**-even))
        for axis in self.axes:
            angles = angles.unsqueeze(axis)
        args = *(vectors,) * count, angles.cos(), angles.sin()
        words = {} if at is positions else {more[0]: positions[None]}
        return filled(wants, (args, words), named)


def both_halves(angles: Tensor) -> Tensor:
    """Write the angles out for two halves that are alike."""
    return torch.cat([angles, angles], -1)


def each_twice(angles: Tensor) -> Tensor:
    """Write each angle out twice in a row."""
    return angles.repeat_interleave(2, -1)


def one_a_pair(angles: Tensor) -> Tensor:
    """Leave the angles as they are."""
    return angles


GOT_TABLES = "it got tables of cosines and sines, {}, of base 10000"
TABLES = [
    (GOT_TABLES.format(told), ByTables(layout, axes, first=first))
    for layout, told in (
        (both_halves, "both halves alike"),
        (each_twice, "each angle twice in a row"),
        (one_a_pair, "one angle for a pair"),
    )
    for first in (True, False)
    for axes in ((), (0,), (0, 0), (1,), (0, 2))
]
"""In which layouts and shapes a rotation may want its tables."""

WIDTHS = {"head_dim", "d_head", "dim_head", "rotary_dim", *SAME["d_model"]}
LENGTHS = {"end", "max_seq_len", "max_seq_length", "seq_length", "block_size",
           "max_position_embeddings", "max_positions", "context_length",
           "ctx_len", "length", "max_len", "seq_len", "max_length",
           "n_positions", "num_positions", "maxlen"}  # fmt: skip
"""What makers of tables call the width of a head, and how many rows."""


def tables_made(fn: Guarded, form: Form, cases: list[tuple]) -> Form | None:
    """Return the form of what makes tables from a width and a length, or None.

    Its arguments say so: a rotation takes vectors.
    """
    wants, inner = wanted(fn.fn), fn.fn
    widths = [n for n in wants.names[:2] if n in WIDTHS]
    lengths = [n for n in wants.names[:2] if n in LENGTHS]
    if len(widths) != 1 or len(lengths) != 1:
        return None
    if not wants.required <= {*widths, *lengths} or not callable(inner):
        return None
    turn = rope_of_tables(
        lambda width, length: inner(**{widths[0]: width, lengths[0]: length})
    )
    made = replace(
        form,
        whole=lambda fn, args: turn(*args),
        said=(
            f"it makes tables from `{widths[0]}` and `{lengths[0]}`, by which "
            "vectors were turned",
        ),
    )
    return made if fit_all(fn, made, cases, []) else None


def of_queries_and_keys(wants: Wanted, named: dict) -> Call | None:
    """Give the tokens that ask and those that are asked, where two are."""
    known = "seq|token|inputs|query|key"
    pads = {*SAME["pad"]}
    sequences = [
        n for n in wants.names if re.search(known, n) and n not in pads
    ]
    if len(sequences) != 2 or len(wants.required - pads) > 2:
        return None
    given = [n for n in wants.names if n in pads][:1]
    words = dict.fromkeys(given, named["pad"])
    return filled(wants, ((named["tokens"], named["tokens"]), words), named)


def flat(wants: Wanted, named: dict) -> Call:
    """Give a loss one row a token, (tokens, vocab) and (tokens,)."""
    logits, target, *rest = named.values()
    return (logits.flatten(0, -2), target.flatten(), *rest), {}


def with_shape(wants: Wanted, named: dict) -> Call | None:
    """Give the shape of what is normalised after ``x``."""
    x, *rest = named.values()
    return filled(wants, ((x, (x.shape[-1],), *rest), {}), named)


MEMORY = (
    r"(?i).*memory|(enc|src|encoder).*(out|output|outputs|states?|x)|enc"
    r"|x_?enc(oder)?"
)
"""What decoders call what the encoder has made."""
CONTEXT = "context|ctx|(x_)?k_?v(_x)?"
"""What attention to something else calls that, which no decoder does alone."""
PAIRED = rf"{MEMORY}|y|z|x_?(2|b)|(src|tgt|trg|source|target|other)(_.*)?"
"""What attention to another sequence calls that where it has to be given."""


def to_itself(wants: Wanted, named: dict) -> Call | None:
    """Give the same vectors twice to what asks another sequence."""
    second = "".join(wants.names[1:2])
    if not re.fullmatch(f"{PAIRED}|{CONTEXT}", second):
        return None
    return filled(wants, ((named["x"], named["x"]), {}), named)


BY_NAMES = "its arguments were given by their names"
NONE_GIVEN = "its mask was None"
ONE_HEAD = "it was called as (x, x, x), with an axis for one head"
PLAIN_ATTENTION = [
    ("", by_place("q", "k", "v", "mask")),
    ("its mask was given by keyword", by_word("q", "k", "v")),
    (BY_NAMES, by_names("q", "k", "v", "mask")),
]
OF_X = [
    ("", by_place("x", "mask")),
    ("its mask was given by keyword", by_word("x")),
    ("it was called as (x, x, x, mask)", by_place("x", "x", "x", "mask")),
    (
        "it was called as (x, x, x), and its mask by keyword",
        by_word("x", "x", "x"),
    ),
    ("it was called as (x, x, mask)", by_place("x", "x", "mask")),
    ("it was called as (x, x), and its mask by keyword", by_word("x", "x")),
    (BY_NAMES, by_names("x", "mask")),
]
UNMASKED = [
    ("", by_place("x")),
    ("it was called as (x, x, x)", by_place("x", "x", "x")),
    ("it was called as (x, x)", to_itself),
]
STYLES: dict[str, list[tuple[str, Style]]] = {
    "causal_mask": [
        ("", by_place("length")),
        ("it was called as (length, length)", by_place("length", "length")),
    ],
    "multihead": [*OF_X, *divided(OF_X)],
    "encoder": OF_X,
    "attention": [
        *PLAIN_ATTENTION,
        *headed(PLAIN_ATTENTION),
        *divided(PLAIN_ATTENTION),
    ],
    "grouped_query_attention": PLAIN_ATTENTION,
    "flash_attention": [
        ("", by_place("q", "k", "v", "causal")),
        *headed([("", by_place("q", "k", "v", "causal"))]),
    ],
    "causal_attention": [
        ("", by_place("x")),
        ("it was called as (x, x, x)", by_place("x", "x", "x")),
        ("it was called as (x, x)", by_place("x", "x")),
        (ONE_HEAD, four_axes(by_place("x", "x", "x"))),
        (NONE_GIVEN, without_mask(by_place("x", "mask"))),
        (
            f"it was called as (x, x, x, mask); {NONE_GIVEN}",
            without_mask(by_place("x", "x", "x", "mask")),
        ),
        (
            f"{ONE_HEAD}; {NONE_GIVEN}",
            four_axes(without_mask(by_place("x", "x", "x", "mask"))),
        ),
    ],
    "language_model": [
        ("", by_place("tokens")),
        ("it was called as (tokens, targets)", with_targets),
        ("it got the causal mask too, (seq, seq)", with_causal(2)),
        ("it got the causal mask too, (batch, 1, seq, seq)", with_causal(4)),
        ("it got the causal mask too, (batch, seq, seq)", with_causal(3)),
        (
            "it got the causal mask too, (seq, seq), 0 and −∞ for its scores",
            with_added_causal,
        ),
    ],
    "translation_model": [
        ("", by_place("src", "tgt")),
        (BY_NAMES, by_names("src", "tgt")),
        ("it got the lengths of the sources too", with_lengths),
        (
            "it got the lengths of the sources and of the targets too",
            with_both_lengths,
        ),
        ("it got the masks too, (batch, 1, …, key)", with_masks(4)),
        ("it got the masks too, (batch, …, key)", with_masks(3)),
        (
            "it got the masks too, (seq, seq) for the order and (batch, key) "
            "for padding",
            with_masks_apart,
        ),
        (
            "it got masks of padding too, (batch, key)",
            with_masks_of_padding,
        ),
        (
            "it got masks of padding too, (batch, key), as numbers 1 and 0",
            with_numbers_of_padding,
        ),
    ],
    "rope": [
        (
            "it got a table of complex numbers, of base 10000, and vectors "
            "(batch, seq, head, head_dim)",
            with_complex_table,
        ),
        (
            "it got a table of complex numbers, of base 10000, and vectors "
            "(batch, head, seq, head_dim)",
            table_and_heads_first,
        ),
        *TABLES,
        ("", by_place("x", "positions")),
        (BY_NAMES, by_names("x", "positions")),
        (
            "it takes positions for each sentence, (batch, seq)",
            positions_each,
        ),
        ("it was called as (x, x, positions)", queries_and_keys),
        ("its vectors are (batch, seq, head, head_dim)", behind),
    ],
    "sinusoidal": [
        ("", by_place("length", "d_model")),
        (BY_NAMES, by_names("length", "d_model")),
    ],
    "masked_softmax": [
        ("", by_place("scores", "mask")),
        (BY_NAMES, by_names("scores", "mask")),
    ],
    "feed_forward": [("", by_place("x"))],
    "add_positions": [("", by_place("x"))],
    "layer_norm": [
        ("", by_place("x", "gain", "bias", "eps")),
        (BY_NAMES, by_names("x", "gain", "bias", "eps")),
        ("it was called as (x, shape, gain, bias, eps)", with_shape),
    ],
    "rms_norm": [
        ("", by_place("x", "gain", "eps")),
        (BY_NAMES, by_names("x", "gain", "eps")),
        ("it was called as (x, shape, gain, eps)", with_shape),
    ],
    "padding_mask": [
        ("", by_place("tokens", "pad")),
        ("it was called as (tokens, tokens)", of_queries_and_keys),
    ],
    "label_smoothing": [
        ("", by_place("logits", "target", "smoothing", "pad")),
        (BY_NAMES, by_names("logits", "target", "smoothing", "pad")),
    ],
}
"""Component -> how it is called elsewhere, the plainest first."""


# What comes back


def readings(
    name: str, style: Style | None
) -> list[tuple[str, Callable | None]]:
    """List what may come back, the plainest first."""
    if style is of_queries_and_keys:
        rows = "its masks have no axis for the heads, (batch, seq, seq)"
        return [("", None), (rows, first_row)]
    if style is table_and_heads_first or getattr(style, "first", False):
        return [("", as_given), (FIRST_TAKEN, first_as_given)]
    if name not in SHAPED:
        return [("", None)]
    found = [
        ("", None),
        (FIRST_TAKEN, entry(0)),
        ("the second of what it returned was taken", entry(1)),
        *(
            (f"`{key}` of what it returned was taken", attribute(key))
            for key in (
                "logits",
                "last_hidden_state",
                "output",
                "hidden_states",
            )
        ),
    ]
    if name in ("attention", "flash_attention"):
        found.append(("", without_head))
        found.append((FIRST_TAKEN, first_head))
    if name == "causal_attention":
        found.append(("", without_head))
        found.append((FIRST_TAKEN, first_head))
    if name == "rope":
        found.append(("", heads_back))
        found.append((FIRST_TAKEN, first_heads_back))
    if name in MODELS:
        flat = "its logits, one row a token, got their axes back"
        found += [(flat, unflattened), (f"the first was taken, and {flat}",
                                        first_unflattened)]  # fmt: skip
    return found


FIRST_TAKEN = "the first of what it returned was taken"
LAST_TAKEN = (
    "the last of what it returned was taken, for these are the outputs of its "
    "layers in order"
)


def entry(i: int) -> Callable:
    """Take one of several things."""
    return lambda result, args: (
        result[i]
        if isinstance(result, tuple | list) and len(result) > i
        else result
    )


last_layer = entry(-1)


def of_layers(fn: Guarded, result: Any) -> bool:
    """Tell whether the outputs of all layers came back, in order.

    The last then moves with all weights that the first moves with, and with
    namesakes of theirs, as `layers.1.out` is of `layers.0.out`. That is so of
    no state beside an output, nor of an output that is projected once more.
    """
    module = module_of(fn)
    if module is None or not isinstance(result, tuple | list):
        return False
    if not all(
        isinstance(x, Tensor) and x.shape == result[0].shape for x in result
    ):
        return False
    early, late = (weights_behind(x, module) for x in (result[0], result[-1]))
    more = {NUMBER.sub("", name) for name in late - early}
    return early < late and any(NUMBER.sub("", name) in more for name in early)


NUMBER = re.compile(r"\d+")


def weights_behind(x: Tensor, module: nn.Module) -> set[str]:
    """Name the parameters that a result was computed with."""
    named = {n: p for n, p in module.named_parameters() if p.requires_grad}
    if not named or not x.requires_grad:
        return set()
    found = torch.autograd.grad(
        x.sum(), [*named.values()], retain_graph=True, allow_unused=True
    )
    pairs = zip(named, found, strict=True)
    return {name for name, gradient in pairs if gradient is not None}


def attribute(key: str) -> Callable:
    """Take what a dictionary, or an object, has under a name."""

    def read(result: Any, args: tuple) -> Any:
        if isinstance(result, dict):
            return result.get(key, result)
        return result if isinstance(result, Tensor) else getattr(
            result, key, result
        )  # fmt: skip

    return read


def without_head(result: Any, args: tuple) -> Any:
    """Take away the axis of the one head that was added."""
    one = isinstance(result, Tensor) and result.ndim == 4
    if not one or result.shape[1] != 1:
        return result
    return result.reshape(*args[0].shape[:-2], *result.shape[-2:])


def heads_back(result: Any, args: tuple) -> Any:
    """Put the heads before the positions again."""
    if not isinstance(result, Tensor) or result.ndim != 4:
        return result
    return result.transpose(1, 2).reshape(args[0].shape)


def as_given(result: Any, args: tuple) -> Any:
    """Put the axes in front as they were given."""
    if not isinstance(result, Tensor) or result.ndim != 4:
        return result
    like = with_heads(args[0]).shape
    return result.reshape(args[0].shape) if result.shape == like else result


def first_as_given(result: Any, args: tuple) -> Any:
    """Take the first of several, with its axes as they were given."""
    return as_given(entry(0)(result, args), args)


def first_heads_back(result: Any, args: tuple) -> Any:
    """Take the first of several, with its heads before the positions."""
    return heads_back(entry(0)(result, args), args)


def first_head(result: Any, args: tuple) -> Any:
    """Take the first of several, without the head that was added."""
    return without_head(entry(0)(result, args), args)


def first_row(result: Any, args: tuple) -> Any:
    """Take the mask of one row, if all rows have the same."""
    three = isinstance(result, Tensor) and result.ndim == 3
    if not three or not torch.equal(result, result[:, :1].expand_as(result)):
        return result
    return result[:, None, :1]


def unflattened(result: Any, args: tuple) -> Any:
    """Give logits (tokens, vocab) their axes back."""
    last = args[-1]
    flat = isinstance(result, Tensor) and result.ndim == 2
    if flat and len(result) == last.numel():
        return result.unflatten(0, last.shape)
    return result


def first_unflattened(result: Any, args: tuple) -> Any:
    """Take the first of several, and give it its axes back."""
    return unflattened(entry(0)(result, args), args)


# The search


def adopt(
    fn: Guarded,
    mask: str | None = None,
    right: Right | None = None,
) -> None:
    """Find how ``fn`` is to be called, and have it called so from now on.

    Nothing is found where no form fits: then the plain one stays, and what is
    wrong with it is what the contracts tell.

    Args:
        fn: What is tried.
        mask: What True means in its masks, if that was said.
        right: Tells whether no contract finds a fault in it, as it is called
            now; without it, no form is taken that only this would show to be
            meant.
    """
    component = fn.component
    # What True means in masks that there are none of is no matter.
    mask = mask if may_get_masks(fn) else None
    form = Form(
        tuple(component.parameters),
        hidden=mask == "hidden",
        said=SAYS[mask] if mask else (),
    )
    if special := known_form(fn):
        fn.form = special
        return
    fn.form = form if form.hidden else None
    if not callable(fn.fn) or isinstance(fn.fn, type) or fn.adapted:
        return
    if special := form_by_name(fn, form, mask, right):
        fn.form = special
        return
    offered = STYLES.get(component.name, [])
    if not offered and component.name not in SHAPED:
        return
    if mask and component.name in MODELS:
        # Who says what True means has a model that is given masks.
        offered = [pair for pair in offered if "mask" in pair[0]]
        fn.form = None
    plain, drawn = fn.form, torch.get_rng_state()
    cases = usual_cases(component)
    if component.name == "rope" and (made := tables_made(fn, form, cases)):
        fn.form = made
        return
    other = (
        (mask and component.name in MODELS)
        or (component.name == "rope" and takes_table(wanted(fn.fn)))
        or flag_in_place(component, wanted(fn.fn))
    )
    with_wants = replace(form, wants=wanted(fn.fn))
    word = lengths_among(no_flags(with_wants.wants))
    for counted in by_lengths(fn, with_wants, cases, word):
        # Before the plain call, which might take a mask for numbers.
        fn.form = counted
        torch.set_rng_state(drawn)
        return
    fn.form = plain
    fitting = not other and all(fits(fn, args) for args in cases)
    found: list[Form] = []
    if not fitting and not fn.unwritten:
        found = usual(fn, with_wants, offered, cases, right) or [
            *without_masks(fn, with_wants, cases)
        ]
        found = found or less_usual(fn, with_wants, offered, cases, right)
        plain = found[0] if found else plain
    fn.form = plain
    known = fitting or bool(found)
    fn.form = in_fewer_axes(fn, with_wants, offered, cases, known) or plain
    fn.form = with_its_mask_of_several(fn, with_wants, cases, known=known)
    if known and component.name == "attention":
        fn.form = of_three_axes(fn, form) or fn.form
    # What it draws is what it would have drawn.
    torch.set_rng_state(drawn)


def usual_cases(component: Component) -> list[tuple]:
    """List the cases that a form must fit; of long ones the first will do."""
    cases = [*component.cases().values()]
    return cases[:1] if component.name == "flash_attention" else cases


def in_fewer_axes(
    fn: Guarded, form: Form, offered: list, cases: list[tuple], known: bool
) -> Form | None:
    """Return a form whose masks have the axes that are meant, if need be.

    A mask with too many may be taken and mix up what it meets, also if it hides
    nothing; and one that has an axis of size 1 for all rows may be filled up,
    and not be broadcast. Nothing, if that is not so, or so with any.
    """
    covered = [args for args in cases if has_mask(args)]
    if not known or fn.component.name not in SELF or not covered:
        return None
    plain = fn.form
    x, mask = covered[-1]
    with contextlib.suppress(Broken):
        mixes = not hides_nothing(fn, x, mask)
        if mixes or not hides_as_written_out(fn, x, mask):
            meant = {alone, without_heads, *([] if mixes else [written_out])}
            for other in candidates(fn, form, offered, cases):
                fn.form = other
                if (
                    other.layout in meant
                    and other.absent != "full"
                    and hides_nothing(fn, x, mask)
                ):
                    return other
    fn.form = plain
    return None


def hides_nothing(fn: Guarded, x: Tensor, mask: Tensor) -> bool:
    """Tell whether a mask all True, or all False, is as good as none."""
    bare = fn.raw(x)
    return any(
        torch.allclose(fn.raw(x, full), bare, atol=1e-5)
        for full in (torch.ones_like(mask), torch.zeros_like(mask))
    )


def hides_as_written_out(fn: Guarded, x: Tensor, mask: Tensor) -> bool:
    """Tell whether a mask for all rows hides what one for each row hides."""
    if mask.ndim != 4 or mask.shape[-2] != 1:
        return True
    whole = mask.expand(*mask.shape[:2], x.shape[-2], mask.shape[-1])
    return torch.allclose(fn.raw(x, mask), fn.raw(x, whole), atol=1e-5)


ONES = "its 0 and 1 were read as False and True"


def makes_ones(fn: Guarded, form: Form) -> bool:
    """Tell whether the masks it makes are numbers, 0 and 1."""
    try:
        made = form(fn.fn, tuple(map(copied, fn.component.example)))
    except Exception:
        return False
    return any(map(are_ones, made if isinstance(made, tuple) else (made,)))


def are_ones(x: object) -> bool:
    """Tell whether it is a tensor of numbers that are all 0 or 1."""
    number = isinstance(x, Tensor) and x.dtype != torch.bool
    return number and bool(((x == 0) | (x == 1)).all())


def truth(made: Any, args: tuple) -> Any:
    """Read 0 and 1 as False and True, in each of several masks."""
    if isinstance(made, tuple):
        each = (truth(x, args) for x in made)
        return type(made)(*each) if hasattr(made, "_fields") else (*each,)
    return made != 0 if are_ones(made) else made


def may_get_masks(fn: Guarded) -> bool:
    """Tell whether it may get masks: of a model, arguments tell.

    There are some for masks, or more than it has ids for.
    """
    if fn.component.name not in MODELS or not callable(fn.fn):
        return True
    wants = wanted(fn.fn)
    named = any("mask" in name.lower() for name in wants.all)
    return named or len(wants.required) != len(fn.component.parameters)


IDLE = "what is given as `{}` moves nothing"


def no_flags(wants: Wanted) -> list[str]:
    """List what may be given in place of a mask."""
    return [n for n in wants.names if n not in wants.flags]


def flag_in_place(component: Component, wants: Wanted) -> bool:
    """Tell whether what is no mask stands where the contracts give one."""
    if "mask" not in component.parameters:
        return False
    place = list(component.parameters).index("mask")
    return not all(map(wants.is_mask, wants.names[place : place + 1]))


def form_by_name(
    fn: Guarded, form: Form, mask: str | None, right: Right | None
) -> Form | None:
    """Return the form that names or the numbers of a mask tell, or None."""
    name = fn.component.name
    if name in MASKS and (made := making_masks(fn, form)):
        return made
    if name in ("layer_norm", "rms_norm") and (found := norm_form(fn.fn, name)):
        whole, said = found
        return replace(form, whole=whole, said=(said,))
    if name in SELF and isinstance(fn.fn, nn.Module):
        return without_what_is_no_mask(fn, form)
    if name == "sinusoidal" and is_normalised(fn):
        reading = functools.partial(denormalised, fn)
        return replace(form, reading=reading, said=(*form.said, NORMALISED))
    if name == "translation_model":
        return of_a_translator(fn, form, mask, right)
    return None


def of_a_translator(
    fn: Guarded, form: Form, mask: str | None, right: Right | None
) -> Form | None:
    """Return the form that a teacher, labels or masks of its own tell."""
    if (forced := with_teacher(fn, form)) or right is None:
        return forced
    return with_labels(fn, mask, right) or with_its_masks(fn, form, mask, right)


FORCING = re.compile(
    r"(?i)(use_?)?(teacher_?forc(ing|e)\w*|tf(_?(ratio|rate|prob\w*))?)"
)
"""What the share of steps is called that get the target's own token."""
ALWAYS = "`{}` was {}, so that each step gets the target's own token"


def with_teacher(fn: Guarded, form: Form) -> Form | None:
    """Return the form in which a translator always gets the target's token."""
    known = form_parameters(fn.fn)
    word = next((n for n in known if FORCING.fullmatch(n)), "")
    if not word:
        return None
    value = True if isinstance(known[word].default, bool) else 1.0

    def whole(call: Callable, args: tuple) -> Any:
        return call(*args, **{word: value})

    said = ALWAYS.format(word, value)
    return replace(form, whole=whole, said=(*form.said, said))


def form_parameters(fn: object) -> Mapping[str, inspect.Parameter]:
    """Return what it takes, by name, as far as is known."""
    bound = wanted(fn).bound
    return bound.parameters if bound else {}


A_PAD = re.compile("(?i)pad|id|tok|ignore|val|fill|zero|null|blank|symbol")
"""What the number may be called that stands for padding."""
NO_PAD = "nothing was given for `{}`, which is called no padding"


def making_masks(fn: Guarded, form: Form) -> Form | None:
    """Return the form of what makes masks of 0 and 1, or of tokens alone.

    Of tokens alone, where the second argument has a default, and the name of
    something else than padding.
    """
    wants, found = wanted(fn.fn), form
    second = wants.names[1:2] if fn.component.name == "padding_mask" else ()
    if second and not ({*second} & wants.required or A_PAD.search(second[0])):
        said = (*form.said, NO_PAD.format(second[0]))
        style = by_place("tokens")
        found = replace(form, style=style, wants=wants, said=said)
    if makes_ones(fn, found):
        return replace(found, reading=truth, said=(*found.said, ONES))
    return None if found is form else found


NORMALISED = (
    "its table is the formula's, normalised as a whole, and was judged without "
    "that"
)


def is_normalised(fn: Guarded) -> bool:
    """Tell whether tables are a · P + b, of the formula's P, with mean 0.

    A mere scale is not taken: whoever divides by √d_model has two scales.
    """
    for args in fn.component.cases().values():
        try:
            got = fn.raw(*args)
        except Broken:
            return False
        table, plain = fn.component.oracle(*args), denormalised(fn, got, args)
        size = got.abs().max()
        if (
            furthest(plain, table) is not None
            or got.mean().abs() > CLOSE * size
        ):
            return False
    return True


CLOSE = 1e-4
"""A mean that is so small, beside the largest number, is 0."""


def denormalised(fn: Guarded, found: Any, args: tuple) -> Any:
    """Undo what scales and shifts a whole table: the a and b that fit best."""
    table = fn.component.oracle(*args)
    if not isinstance(found, Tensor) or found.shape != table.shape:
        return found
    mean, own = table.mean(), found.mean()
    way = table - mean
    scale = (way * (found - own)).sum() / way.square().sum()
    return (found - own) / scale + mean if scale > 0 else found


def with_labels(fn: Guarded, mask: str | None, right: Right) -> Form | None:
    """Return the form of a right translator that shifts its ``labels``.

    Whoever takes labels in place of a decoder's inputs makes those of them.
    """
    wants, usual = wanted(fn.fn), fn.form
    word = wants.named("src")
    if "labels" not in wants.all or word is None or wants.named("tgt"):
        return None

    def by_labels(src: Tensor, tgt: Tensor) -> object:
        return fn.fn(**{word: src, "labels": tgt})

    inner = Guarded(fn.component, shifts_itself(by_labels))
    adopt(inner, mask)
    form = replace(behind_adapter(inner), said=(LABELS,))
    if right_so(fn, form, right):
        return form
    fn.form = usual
    return None


LABELS = "its `labels` are whole targets, which it shifts itself"


def usual(
    fn: Guarded,
    form: Form,
    offered: Iterable,
    cases: list[tuple],
    right: Right | None,
) -> list[Form]:
    """List the first form that fits, if one does.

    Tables fit in several layouts, heads before the positions and behind, and a
    scale may multiply or divide: there it is the first that is right, if any.
    """
    rotates = fn.component.name == "rope" and takes_table(form.wants)
    either = rotates or "scale" in form.wants.required
    found = candidates(fn, form, offered, cases)
    if fn.component.name == "translation_model":
        return with_padding_too(fn, found)
    fitting = [*itertools.islice(found, None if either else 1)]
    good = (f for f in fitting if either and right_so(fn, f, right))
    return [*itertools.islice(good, 1)] or fitting


def with_padding_too(fn: Guarded, found: Iterator[Form]) -> list[Form]:
    """List the first form in which a translator takes padding, or the first.

    Of a mask that hides nothing it may not look at what type it has.
    """
    src, tgt = torch.tensor([[1, 2, 3, 0, 0]]), torch.tensor([[1, 2, 3]])
    first = next(found, None)
    if first is None:
        return []
    for form in itertools.chain([first], found):
        fn.form = form
        if fits(fn, (src, tgt)):
            return [form]
    return [first]


def less_usual(
    fn: Guarded,
    form: Form,
    offered: Iterable,
    cases: list[tuple],
    right: Right | None,
) -> list[Form]:
    """List the forms that are taken only if nothing is wrong with them."""
    word = form.wants.named("mask")
    counted = by_lengths(fn, form, cases, word)
    if found := [form for form in counted if right_so(fn, form, right)]:
        return found
    later = [*sequence_first(fn, form, offered, cases)]
    if fn.component.name == "translation_model":
        # Sources and targets differ in length: no mistake fits so.
        return later
    return [form for form in later if right_so(fn, form, right)]


def sequence_first(
    fn: Guarded, form: Form, offered: Iterable, cases: list[tuple]
) -> Iterator[Form]:
    """List the first forms that fit with the sequence first, if one does.

    Where a form fits with the batch first, there is none: what sees other
    sentences may be called just so, and is wrong.
    """
    if fn.component.name in FIRST:
        other = replace(form, first=True, said=(*form.said, ONLY_SO))
        # Of a mask that is given too, the first kind need not be the right one.
        most = 4 if fn.component.name == "language_model" else 1
        yield from itertools.islice(candidates(fn, other, offered, cases), most)


def without_masks(
    fn: Guarded, form: Form, cases: list[tuple]
) -> Iterator[Form]:
    """List the first form that fits without any mask, if none can be given.

    Of modules only, as of a Vision Transformer: whoever writes a function for
    the contracts is told what it is to take. Where a causal mask is built in,
    another component is meant.
    """
    wants = form.wants
    # What is called otherwise may be a mask all the same.
    others = wants.all - wants.required - {*USUAL} - NO_MASKS - wants.flags
    masked = any("mask" in name for name in wants.all - wants.flags)
    masked = masked or lengths_among(no_flags(wants))
    known = fn.component.name in SELF and wants.bound is not None
    # A function with a flag there was not written for the contracts.
    meant = isinstance(fn.fn, nn.Module) or flag_for_mask(
        fn.component, wants.bound
    )
    if known and meant and not (others or masked):
        bare = [args for args in cases if not has_mask(args)]
        said = (
            (NO_MASK, IN_WORDS) if swallows_words(wants.bound) else (NO_MASK,)
        )
        other = replace(form, no_mask=True, hidden=False, said=said)
        for found in candidates(fn, other, UNMASKED, bare):
            fn.form = found
            if not past_alone(fn, bare[0][0]):
                yield found
            return


def without_what_is_no_mask(fn: Guarded, form: Form) -> Form | None:
    """Return the form without a mask, if what might be one is none.

    An optional argument may be called anything. What is not called a mask, and
    keeps nothing out however it is given, is left out.
    """
    wants, usual = wanted(fn.fn), fn.form
    name = not_called_a_mask(wants)
    if not name:
        return None
    cases, drawn = [*fn.component.cases().values()], torch.get_rng_state()
    x, mask = next(args for args in cases[::-1] if has_mask(args))
    read = replace(form, wants=wants)
    added = Guarded(fn.component, mask_added(fn.fn))
    offered = STYLES[fn.component.name]
    ways = itertools.islice(candidates(fn, read, offered, cases), FEW_WAYS)
    hides = any(
        [*keeping(fn, way, x, mask)] or keeps_out(added, way, x, mask)
        for way in (read, *ways)
    )
    bare = [args for args in cases if not has_mask(args)]
    said = (NO_MASK, LEFT_OUT.format(name))
    other = replace(read, no_mask=True, hidden=False, said=said)
    found = None if hides else next(candidates(fn, other, UNMASKED, bare), None)
    if found:
        fn.form = found
        found = None if past_alone(fn, bare[0][0]) else found
    fn.form = usual
    torch.set_rng_state(drawn)
    return found


MAY_BE_A_MASK = re.compile("(?i)mask|allow|keep|visib|valid|pad|attend|^m$")
"""What a mask may be called, so that whatever it does is judged."""
FEW_WAYS = 8
"""In so many ways an argument of any name is given a mask."""
LEFT_OUT = "nothing was given for {}, which is called no mask and hides nothing"


def not_called_a_mask(wants: Wanted) -> str:
    """Name the one place that a mask could have, if it is called otherwise."""
    called = any(MAY_BE_A_MASK.search(name) for name in wants.all)
    if called or wants.bound is None or lengths_among(no_flags(wants)):
        return ""
    second = wants.names[1:2]
    if second:
        known = {*wants.required, *wants.flags, *NO_MASKS}
        return "" if known & {*second} else f"`{second[0]}`"
    kinds = {one.kind for one in wants.bound.parameters.values()}
    return "`*args`" if inspect.Parameter.VAR_POSITIONAL in kinds else ""


def past_alone(fn: Guarded, x: Tensor) -> bool:
    """Tell whether rows move with their past alone, or with nothing to tell."""
    try:
        past = torch.ones(*x.shape[:2], x.shape[1], dtype=torch.bool).tril()
        seen = reach(fn, x, wanted=past)
    except Broken:
        return True
    return torch.equal(seen, past)


NO_MASK = "it takes no mask, so that nothing was tried that needs one"
IN_WORDS = (
    "if one goes into `**kw`, an adapter gives it, `lambda x, mask=None: "
    "yours(x, mask=mask)`"
)
NO_MASKS = {
    "context", "encoder_hidden_states", "key_value_states", "kv", "kv_cache",
    "layer_past", "output_attentions", "past_key_value", "return_attn",
    "return_weights", "use_cache",
}  # fmt: skip
"""Arguments that are no masks, by their names."""
ONLY_SO = "the sequence comes first in it, for its shapes fit only so"


def right_so(fn: Guarded, form: Form | None, right: Right | None) -> bool:
    """Tell whether nothing is wrong with ``fn``, if it is called so."""
    fn.form = form
    return right is not None and right(fn)


def fits(fn: Guarded, args: tuple) -> bool:
    """Tell whether a call gives what has the right shape."""
    try:
        fn.raw(*args)
    except Broken:
        return False
    return True


def candidates(
    fn: Guarded, form: Form, offered: Iterable, cases: list[tuple]
) -> Iterator[Form]:
    """List the forms that fit all cases."""
    name = fn.component.name
    masked = "mask" in fn.component.parameters
    bare = [args for args in cases if not has_mask(args)]
    covered = [args for args in cases if has_mask(args)]
    given = bool(covered) and (name in SELF or name in ATTENDING)
    for said, style in offered or [("", None)]:
        for absent in ABSENT if masked else ("omitted",):
            # What stands for no mask has the layout of all masks.
            full = absent == "full" and given
            for first, outer in layouts(fn.fn) if full else [("", None)]:
                styled = replace(form, style=style, absent=absent, layout=outer)
                if not bindable(styled, bare):
                    continue
                laid = layouts(fn.fn) if given else [("", None)]
                laid = [(first, outer)] if full else laid
                for told, reading in readings_that_fit(fn, styled, bare, said):
                    read = replace(styled, reading=reading)
                    else_given = at_the_start(styled)
                    more = filter(None, (said, told, else_given))
                    words = (*form.said, *more)
                    if not covered:
                        yield replace(read, said=words)
                        continue
                    for which, layout in laid:
                        whole = replace(read, layout=layout)
                        if fit_all(fn, whole, covered, bare):
                            more = filter(None, (which, ABSENT[absent]))
                            yield replace(whole, said=(*words, *more))


ABSENT = {
    "omitted": "",
    "none": "",
    "full": "where there is no mask, it got one that hides nothing",
}
"""What stands for a mask where there is none -> how that is told."""


def bindable(form: Form, cases: list[tuple]) -> bool:
    """Tell whether its style can make a call at all."""
    if form.style is None:
        return True
    for args in cases:
        named = dict(zip(form.parameters, args, strict=False))
        if form.absent != "omitted" and "mask" in form.parameters:
            named["mask"] = None
        try:
            if form.style(form.wants, named) is None:
                return False
        except (KeyError, AttributeError, IndexError):
            return False
    return True


def at_the_start(form: Form) -> str:
    """Tell of a `start_pos` that it must be given, if it gets one."""
    if form.style is None or "start_pos" not in form.wants.required:
        return ""
    return "`start_pos` was 0: a start further on, with a cache, was not tried"


def readings_that_fit(
    fn: Guarded, form: Form, cases: list[tuple], said: str = ""
) -> Iterator[tuple[str, Callable | None]]:
    """List what can be read of the results, of all cases without a mask.

    What a model raises that is called so, as ``said`` tells, is kept.
    """
    results = []
    for args in cases:
        fn.form = form
        try:
            results.append((fn.call(*map(copied, args)), args))
        except Broken as broken:
            model = fn.component.name in MODELS and not form.first
            # Whichever way a mask is given, it is asked whether it is true.
            model |= "Boolean value of Tensor" in broken.message
            if model and said and isinstance(broken, Raised):
                fn.note(broken, f"Called as yours: {said}.")
            return
    read = fn.component.read or one_tensor
    for told, reading in readings(fn.component.name, form.style):
        try:
            for result, args in results:
                got = reading(result, args) if reading else result
                read(fn, got, args)
        except Broken:
            continue
        if told == FIRST_TAKEN and of_layers(fn, results[0][0]):
            told, reading = LAST_TAKEN, last_layer
        yield told, reading
        return


def fit_all(
    fn: Guarded, form: Form, covered: list[tuple], bare: list[tuple]
) -> bool:
    """Tell whether a form fits the cases with a mask."""
    fn.form = form
    try:
        return all(fits(fn, args) for args in covered)
    except (TypeError, KeyError, AttributeError, IndexError):
        return False


def takes_mask(component: Component) -> bool:
    """Tell whether there are masks that a component is given, or returns."""
    named = component.name in (*MASKS, *MODELS)
    return named or "mask" in component.parameters


# Lengths instead of a mask


def by_lengths(
    fn: Guarded, form: Form, cases: list[tuple], word: str | None
) -> Iterator[Form]:
    """List the forms with lengths in place of a mask that fit all cases.

    Lengths have no True that could hide. ``word`` is what they are called.
    """
    name = fn.component.name
    if word is None or name not in (*SELF, "attention", "masked_softmax"):
        return
    of_x = name in SELF and form.wants.names[3:4] != (word,)
    if of_x and not form.wants.required <= {*form.wants.names[:1], word}:
        return
    for axes, shape in ((1, "(batch,)"), (2, "(batch, query)")):
        for first in (False, True):
            said = [
                f"`{word}` was taken for how many of the first keys count, "
                f"{shape}, so that it was called once for each row, with the "
                "keys in front that this row may see"
            ]
            said += [FIRST_TAKEN] * first
            found = replace(
                form,
                hidden=False,
                whole=counting(name, form.wants, word, axes, first, of_x),
                said=tuple(said),
            )
            if fit_all(fn, found, cases, []):
                yield found


def lengths_for(
    fn: Guarded, form: Form, cases: list[tuple], *, known: bool
) -> Form | None:
    """Return the form that gives lengths which stand beside a mask.

    Only where nothing else fits, or what is called a mask is a flag: any mask
    does the same there.

    Args:
        fn: What is tried.
        form: The plain form.
        cases: Those of the component.
        known: Whether a form was found.
    """
    word = next(iter(lengths_beside(form.wants.names)), None)
    usual = fn.form
    if word is None or getattr(usual, "no_mask", False):
        return None
    covered = [args for args in cases if has_mask(args)]
    if known and (
        fn.component.name not in SELF or hides_keys(fn, usual, covered)
    ):
        return None
    masks = [n for n in form.wants.names if "mask" in n.lower()]
    for found in by_lengths(fn, form, cases, word):
        if not known or hides_keys(fn, found, covered):
            said = (SAME_FOR_ALL.format(n) for n in masks if known)
            return replace(found, said=(*found.said, *said))
    return None


SAME_FOR_ALL = "`{}` was not given, for any mask does the same there"


def counting(
    name: str, wants: Wanted, word: str, axes: int, first: bool, of_x: bool
) -> Callable:
    """Call with lengths of so many axes in place of the mask."""

    def ask(fn: Callable, *vectors: Tensor) -> Any:
        given = [x for x in vectors if x.is_floating_point()]
        counts = [*vectors[len(given) :]]
        if not counts and word in wants.required:
            counts = [torch.full((len(given[0]),), given[:2][-1].shape[1])]
        if axes == 2:
            rows = given[0].shape[1]
            counts = [x[:, None].expand(-1, rows) for x in counts]
        words = {word: counts[0]} if counts else {}
        got = fn(*given, **words)
        return entry(0)(got, ()) if first else got

    def whole(fn: Callable, args: tuple) -> Tensor:
        yours = functools.partial(ask, fn)
        if name == "masked_softmax":
            return softmax_by_lengths(yours, *args)
        if name not in SELF or of_x:
            return valid_lengths(yours)(*args)
        x = args[0]
        masks = [without_heads(m, {"x": x}) for m in args[1:] if m is not None]
        return valid_lengths(yours)(x, x, x, *masks)

    return whole


def softmax_by_lengths(yours: Callable, scores: Tensor, mask: Tensor) -> Tensor:
    """Ask for the weights of each row, with what it may see in front."""
    three = scores.reshape(-1, *scores.shape[-2:])
    written = mask.expand(scores.shape).reshape(three.shape)

    def ask(order: Tensor, counts: Tensor) -> Tensor:
        place = order[:, None].expand_as(three)
        weights = yours(three.gather(2, place), counts)
        return weights.gather(2, place.argsort())

    return rows_by_lengths(written, ask).reshape(scores.shape)


# Three axes, and no others


def of_three_axes(fn: Guarded, form: Form) -> Form | None:
    """Return the form that gives attention three axes, if it says so itself.

    With any other number it has to raise something; what gives wrong numbers
    then, or was to take heads, is wrong.
    """
    usual = fn.form or form
    q, k, v = (draw(2, 3, n, d, seed=d) for n, d in ((5, 11), (7, 11), (7, 13)))
    try:
        fn.raw(q, k, v)
    except Broken as broken:
        if not (isinstance(broken, Raised) and THREE.search(broken.message)):
            return None
    else:
        return None
    if fits(fn, (q[0, 0], k[0, 0], v[0, 0])):
        return None
    mask = torch.ones(2, 3, 5, 7, dtype=torch.bool).tril(2)
    for each in (False, True):
        found = replace(
            usual,
            style=None,
            layout=None,
            reading=None,
            whole=in_three_axes(replace(usual, hidden=False), each),
            said=(*usual.said, OF_THREE, *[ONE_BY_ONE] * each),
        )
        if fit_all(fn, found, [(q, k, v), (q, k, v, mask)], []):
            return found
    return None


THREE = re.compile(
    "be a 3D tensor|unpack \\(expected 3|subscripts in the equation \\(3\\)"
)
OF_THREE = "it takes three axes and no others, so that more were made one"
ONE_BY_ONE = "of masks with more than two axes each was given alone"


def in_three_axes(form: Form, each: bool) -> Callable:
    """Call with vectors of three axes, and give the others back.

    Args:
        form: How it is called.
        each: Whether it is given each sentence alone, with a mask (query, key),
            where sentences have masks of their own.
    """

    def whole(fn: Callable, args: tuple) -> Any:
        *vectors, mask = args if has_mask(args) else (*args, None)
        vectors = [x for x in vectors if x is not None]
        lead = vectors[0].shape[:-2]
        three = [x.reshape(-1, *x.shape[-2:]) for x in vectors]
        if mask is None:
            got = form(fn, tuple(three))
        else:
            shape = vectors[0].shape[-2], vectors[1].shape[-2]
            full = mask.expand(*lead, *shape).reshape(-1, *shape)
            if mask.ndim < 3:
                got = form(fn, (*three, full[0]))
            elif each:
                rows = zip(*(x.split(1) for x in three), full, strict=True)
                got = joined([form(fn, row) for row in rows], 0)
            else:
                got = form(fn, (*three, full))
        flat = isinstance(got, Tensor) and got.ndim == 3
        return got.reshape(*lead, *got.shape[-2:]) if flat else got

    return whole


# Which of several masks


def with_its_mask_of_several(
    fn: Guarded, form: Form, cases: list[tuple], *, known: bool
) -> Form | None:
    """Return the form that gives the one of several masks that is judged.

    Args:
        fn: What is tried, as it is called so far.
        form: The plain form.
        cases: Those of the component.
        known: Whether a form was found.
    """
    usual = fn.form
    fn.form = usual = with_another_mask(fn, form, cases) or usual
    fn.form = usual = lengths_for(fn, form, cases, known=known) or usual
    if len(own_masks(fn, form)) < 2:
        return usual
    x, mask = next(args for args in cases[::-1] if has_mask(args))
    kept = bool([*keeping(fn, usual or form, x, mask)])
    fn.form = usual
    asked = [*other_masks(fn, form, cases, closely=kept)]
    if kept:
        usual = faulty_mask(fn, usual or form, asked, (x, mask)) or usual
    if idle := [one.name for one in asked if not one.moved]:
        said = (IDLE.format(name) for name in idle)
        whole = usual or form
        usual = replace(whole, said=(*whole.said, *said))
    return usual


def with_another_mask(
    fn: Guarded, form: Form, cases: list[tuple]
) -> Form | None:
    """Return the form that gives what hides keys, of several called masks.

    Nothing, if the one that is given does, or none of the others.
    """
    masks, usual = own_masks(fn, form), fn.form
    covered = [args for args in cases if has_mask(args)]
    if not masks or hides_keys(fn, usual, covered):
        return None
    offered: list[Form] = []
    for name in masks:
        for found in given_as(fn, form, name, cases):
            if hides_keys(fn, found, covered):
                offered.append(found)
                break
    return min(offered, key=lambda form: breaks(fn, form), default=None)


def own_masks(fn: Guarded, form: Form) -> list[str]:
    """List the masks of what sees itself, where there are several."""
    known = form.wants.bound.parameters if form.wants.bound else {}
    masks = [
        n for n in known if "mask" in n.lower() and not NO_PADDING.search(n)
    ]
    masks = [n for n in masks if n not in form.wants.flags]
    apart = fn.component.name not in SELF or getattr(fn.form, "whole", None)
    return [] if apart or len(masks) < 2 else masks


def given_as(
    fn: Guarded, form: Form, name: str, cases: list[tuple]
) -> Iterator[Form]:
    """List the forms that give the mask under a name."""
    read = replace(form, wants=replace(form.wants, mask=name))
    return candidates(fn, read, by_its_word(name), cases)


class Asked(NamedTuple):
    """One of several masks, asked for itself.

    Attributes:
        name: What it is called.
        forms: Those that give it.
        moved: Those in which it moves something.
        keeps: Those in which it keeps hidden keys out, read as they say.
        added: Those in which it does so if it is added to the scores.
    """

    name: str
    forms: list[Form]
    moved: list[Form]
    keeps: list[Form]
    added: list[Form]


def other_masks(
    fn: Guarded, form: Form, cases: list[tuple], *, closely: bool
) -> Iterator[Asked]:
    """List what each of several masks does, as far as one can be given.

    Those of another's keys are not asked, for nobody else is seen. Unless it is
    looked at ``closely``, only whether one moves anything is found out.
    """
    covered = [args for args in cases if has_mask(args)]
    names = (n for n in own_masks(fn, form) if not OF_ANOTHER.search(n))
    for name in names:
        asked = Asked(name, [], [], [], [])
        for found in given_as(fn, form, name, cases):
            asked.forms.append(found)
            fn.form = found
            if unchanged(fn, *covered[-1]):
                continue
            asked.moved.append(found)
            if not closely:
                break
            asked.keeps.extend(keeping(fn, found, *covered[-1]))
            added = Guarded(fn.component, mask_added(fn.fn))
            if keeps_out(added, found, *covered[-1]):
                asked.added.append(found)
            if asked.keeps:
                break
        if asked.forms:
            yield asked


def keeping(fn: Guarded, form: Form, x: Tensor, mask: Tensor) -> Iterator[Form]:
    """List the form in each reading in which hidden keys count nowhere."""
    for hidden in (False, True):
        read = replace(form, hidden=hidden)
        if keeps_out(fn, read, x, mask):
            yield read


def keeps_out(fn: Guarded, form: Form | None, x: Tensor, mask: Tensor) -> bool:
    """Tell whether no row of a word moves with padding, a mask's hidden keys.

    Args:
        fn: What is tried.
        form: How it is called.
        x: Its vectors.
        mask: It hides padding, (batch, 1, 1, key).
    """
    fn.form, real = form, mask[:, 0, 0]
    other = x + draw(*x.shape, seed=223) * ~real[..., None]
    try:
        gap = fn.raw(other, mask) - fn.raw(x, mask)
    except Broken:
        return False
    return not (gap.detach().nan_to_num(1)[real].abs() > 1e-5).any()


def faulty_mask(
    fn: Guarded, usual: Form, asked: list[Asked], case: tuple
) -> Form | None:
    """Return the form that gives a mask which is wrong, beside a right one.

    Of two that are right alone one may still be lost beside the other.
    """
    if len(asked) < 2:
        return None
    x, mask = case
    for one in asked:
        if one.keeps or one.added or not one.moved:
            continue
        if not any(for_rows(fn, one.name, f, x, mask) for f in one.forms):
            return replace(one.moved[0], hidden=usual.hidden)
    right = (one for one in asked if one.keeps)
    for one, other in itertools.permutations(right, 2):
        both = beside(one.keeps[0], other)
        lost = not keeps_out(fn, both, x, mask)
        if lost and fits(fn, (x, mask)):
            return replace(both, hidden=usual.hidden)
    return None


def beside(form: Form, other: Asked) -> Form:
    """Return the form that gives another mask too, which hides nothing."""
    bare, its = form.style, other.keeps[0]

    def style(wants: Wanted, named: dict) -> Call | None:
        call = bare(wants, named) if bare else None
        if call is None or named.get("mask") is None:
            return call
        full = everything(named, its.hidden)
        if its.layout in OF_KEYS:
            keys = full[:1].expand(len(named["x"]), -1)
            full = keys.unflatten(0, (-1, *[1] * OF_KEYS[its.layout]))
        elif its.layout not in (None, alone):
            full = its.layout(full, named)
        return call[0], {**call[1], other.name: full}

    said = (*form.said, HID_NOTHING.format(other.name))
    return replace(form, style=style, said=said)


HID_NOTHING = "`{}` hid nothing beside it"
OF_KEY = re.compile("(?i)key|pad")
"""How masks are called that are for keys."""


def for_rows(
    fn: Guarded, name: str, form: Form, x: Tensor, mask: Tensor
) -> bool:
    """Tell whether a mask is made for rows, whatever True means in it.

    It hides them alone. If it is named after padding, they have to see nobody
    then, as what is set to 0; and it is not named after keys.
    """
    real = mask[:, 0, 0, :, None]
    for hidden in (False, True):
        fn.form = replace(form, hidden=hidden)
        with contextlib.suppress(Broken):
            if not hides_rows(fn, x, mask):
                continue
            if not OF_KEY.search(name):
                return True
            other = x + draw(*x.shape, seed=223) * real
            gap = (fn.raw(other, mask) - fn.raw(x, mask)).detach().abs()
            still = bool((gap * ~real).nan_to_num(1).amax() < 1e-6)
            return still and "key" not in name.lower()
    return False


def by_its_word(name: str) -> list[tuple[str, Style]]:
    """List the ways to give vectors, and a mask of this name."""
    return [
        (f"its mask was given as `{name}`", by_word("x")),
        (
            f"it was called as (x, x, x), and its mask as `{name}`",
            by_word("x", "x", "x"),
        ),
        (
            f"it was called as (x, x), and its mask as `{name}`",
            by_word("x", "x"),
        ),
    ]


def hides_keys(fn: Guarded, form: Form | None, covered: list[tuple]) -> bool:
    """Tell whether a mask counts, and not for the rows of its keys alone.

    One that has an axis for its rows is meant for both, and may be wrong.
    """
    fn.form = form
    x, mask = covered[-1]
    of_keys = form is not None and form.row_by_row_asked
    try:
        only_rows = of_keys and hides_rows(fn, x, mask)
        return not only_rows and not unchanged(fn, x, mask)
    except Broken:
        return False


# Masks that a translator need not be given


class Roles(NamedTuple):
    """Which masks of a translator are for what, by their names.

    Attributes:
        source: Those of the source's padding.
        target: Those of the target.
        order: Those of the target's order alone, where padding is apart.
        memory: Those of the source's padding for the attention to the memory,
            beside one for the encoder: their shape may be another.
    """

    source: tuple[str, ...]
    target: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    memory: tuple[str, ...] = ()


NO_PADDING = re.compile(r"(?i)head|token|ratio|prob|_id$|^use|^return")
"""What is called a mask, and hides no padding."""
OF_SOURCE = re.compile(r"(?i)src|source|enc|memory|mem|cross|context|(^|_)e_")
OF_TARGET = re.compile(r"(?i)tgt|trg|target|dec|(^|_)d_")
"""How masks are called that are the source's, and the target's. What has both
words is for rows of the target, and for keys of the source.
"""
OF_ANOTHER = re.compile("(?i)cross|mem|encoder|context|(^|_)kv_mask")
"""How masks are called that hide keys of something else."""


def of_memory(name: str) -> bool:
    """Tell whether a mask is for the attention to the memory, by its name."""
    both = OF_SOURCE.search(name) and OF_TARGET.search(name)
    return bool(both or re.search("(?i)cross|mem", name))


def optional_masks(wants: Wanted) -> list[str]:
    """List the masks that may be given, and need not."""
    known = wants.bound.parameters if wants.bound else {}
    return [
        name
        for name, one in known.items()
        if "mask" in name.lower()
        and one.default is None
        and not NO_PADDING.search(name)
    ]


def roles(masks: list[str]) -> Iterator[Roles]:
    """List what masks of these names may be for, the likeliest first."""
    pads = [n for n in masks if "pad" in n.lower()]
    apart = bool(pads) and len(pads) < len(masks)
    kept = pads if apart else masks
    source = [n for n in kept if OF_SOURCE.search(n)]
    target = [n for n in kept if OF_TARGET.search(n) and n not in source]
    for name in kept:
        if name not in (*source, *target):
            # A name that says nothing is the source's, if no other is.
            own = target if source and not target else source
            own.append(name)
    order = [n for n in masks if n not in pads and not OF_SOURCE.search(n)]
    # PyTorch's `memory_mask` hides no padding; another of the memory does.
    cross = [n for n in source if of_memory(n)] or [
        n for n in masks if n not in kept and of_memory(n)
    ]
    yield Roles(
        tuple(source),
        tuple(target),
        tuple(order) if apart else (),
        tuple(cross) if {*source} - {*cross} else (),
    )
    if len(source) == len(target) == 1 and not (
        OF_SOURCE.search(source[0]) and OF_TARGET.search(target[0])
    ):
        yield Roles(tuple(target), tuple(source), tuple(order) if apart else ())


class Made(NamedTuple):
    """How a mask is made, and what is told of it.

    Attributes:
        name: What it is called.
        of: Makes True = may attend, of the ids of source and target.
        kind: Makes of that what the learner wants.
        said: What it does, with its shape.
    """

    name: str
    of: Callable[[Tensor, Tensor], Tensor]
    kind: Callable[[Tensor], Tensor]
    said: str


def of_padding(which: int, axes: int) -> Callable[[Tensor, Tensor], Tensor]:
    """Make a mask (batch, key) of source or target; with more axes 1 stands."""
    return lambda *ids: (ids[which] != 0)[(slice(None), *[None] * (axes - 2))]


def of_pairs(axes: int) -> Callable[[Tensor, Tensor], Tensor]:
    """Make a mask of the source's padding with a row for each target token."""
    padding = of_padding(0, axes)
    return lambda src, tgt: padding(src, tgt).repeat_interleave(
        tgt.shape[1], -2
    )


def of_future(src: Tensor, tgt: Tensor) -> Tensor:
    """Make a causal mask, (seq, seq)."""
    return torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool).tril()


def of_both(axes: int) -> Callable[[Tensor, Tensor], Tensor]:
    """Make a mask of the target's future and padding."""
    own = of_padding(1, axes)
    return lambda src, tgt: own(src, tgt) & of_future(src, tgt)


def added(may: Tensor) -> Tensor:
    """Make of a mask one that is added to the scores."""
    return torch.zeros(may.shape).masked_fill(~may, -torch.inf)


PLAIN, NUMBERS, ADDED = "{}", "{} of 1 and 0", "{} of 0 and −∞"
KINDS: dict[str, Callable[[Tensor], Tensor]] = {
    PLAIN: lambda may: may,
    NUMBERS: lambda may: may.float(),
    ADDED: added,
}
"""What is told of masks -> how they are made of True = may attend."""
PADDED = {2: "(batch, key)", 4: "(batch, 1, 1, key)", 3: "(batch, 1, key)"}
WHOLE = {4: "(batch, 1, seq, seq)", 3: "(batch, seq, seq)"}
PAIRS = {4: "(batch, 1, tgt, src)", 3: "(batch, tgt, src)"}
"""Axes -> the shape of a mask of padding, of one with the future, and of one of
the memory with a row for each target token.
"""


def for_source(role: Roles, kind: str) -> Iterator[tuple[Made, ...]]:
    """List the usual masks of the source's padding."""

    def made(
        names: Iterable[str], of: Callable, shape: str
    ) -> tuple[Made, ...]:
        shape = kind.format(shape)
        return tuple(
            Made(
                name,
                of,
                KINDS[kind],
                f"`{name}` hid the source's padding, {shape}",
            )
            for name in names
        )

    own = [name for name in role.source if name not in role.memory]
    for axes, shape in PADDED.items():
        first = made(own, of_padding(0, axes), shape)
        if not role.memory:
            yield first
            continue
        # That of the memory has the same shape rather than another.
        for other in sorted(PADDED, key=lambda n: n != axes):
            of = of_padding(0, other)
            yield (*first, *made(role.memory, of, PADDED[other]))
        for other, pairs in PAIRS.items():
            yield (*first, *made(role.memory, of_pairs(other), pairs))
        if not {*role.memory} <= {*role.source}:
            yield first


def for_target(role: Roles, kind: str) -> Iterator[tuple[Made, ...]]:
    """List the usual masks of the target, and none at last."""

    def made(names: tuple[str, ...], of: Callable, said: str) -> tuple:
        return tuple(
            Made(name, of, KINDS[kind], f"`{name}` {kind.format(said)}")
            for name in names
        )

    order = made(role.order, of_future, f"{FUTURE}, (seq, seq)")
    for axes, shape in PADDED.items():
        own = made(role.target, of_padding(1, axes), f"{PADDING}, {shape}")
        yield (*own, *order)
    for axes, shape in WHOLE.items():
        yield made(role.target, of_both(axes), f"{BOTH}, {shape}")
    yield made(role.target, of_future, f"{FUTURE}, (seq, seq)")
    yield order
    yield ()


PADDING = "hid the target's padding"
FUTURE = "hid the target's future"
BOTH = "hid the target's future and padding"


def with_made(form: Form, made: Iterable[Made]) -> Form:
    """Return a form that gives these masks too."""
    made, bare = tuple(made), form.style

    def style(wants: Wanted, named: dict) -> Call | None:
        call = bare(wants, named) if bare else None
        if call is None:
            return None
        ids = named["src"], named["tgt"]
        masks = {one.name: one.kind(one.of(*ids)) for one in made}
        return filled(wants, (call[0], {**call[1], **masks}), named)

    if not made:
        return form
    told = () if GOT_MASKS in form.said else (GOT_MASKS,)
    more = (*told, *(one.said for one in made))
    return replace(form, style=style, said=(*form.said, *more))


GOT_MASKS = "it got masks too"


def with_its_masks(
    fn: Guarded, form: Form, mask: str | None, right: Right
) -> Form | None:
    """Return the form that gives a translator the masks that it may be given.

    Nothing, where it has none, or is as good without them. It is the first in
    which no contract finds a fault, or else one in which few do: a mask that
    does not arrive stays a fault.

    Args:
        fn: What is tried.
        form: The plain form.
        mask: What True means in its masks, if that was said.
        right: Tells whether no contract finds a fault.
    """
    usual, drawn = fn.form, torch.get_rng_state()
    form = replace(form, wants=wanted(fn.fn))
    cases = list(fn.component.cases().values())
    given = None
    if optional_masks(form.wants):
        fitting = all(fits(fn, args) for args in cases)
        plain = called_bare(fn, form, cases)
        bare = usual if fitting else plain
        if plain and (mask or not right_without(fn, bare, right)):
            given = masks_given(fn, plain, mask, right, cases)
    fn.form = usual
    torch.set_rng_state(drawn)
    return given


def right_without(fn: Guarded, bare: Form | None, right: Right) -> bool:
    """Tell whether no contract finds a fault if no mask is given.

    Those about padding are asked first: where they find one, it is enough.
    """
    return keeps_padding_out(fn, bare) and right_so(fn, bare, right)


def called_bare(fn: Guarded, form: Form, cases: list[tuple]) -> Form | None:
    """Return the form that calls a translator without masks, if one fits."""
    offered = STYLES["translation_model"][:2]
    found = next(candidates(fn, form, offered, cases), None)
    return found or next(sequence_first(fn, form, offered, cases), None)


class Given(NamedTuple):
    """Masks of the source's padding that fit.

    Attributes:
        role: Which masks are for what.
        kind: How they are made of True = may attend.
        form: Gives them.
    """

    role: Roles
    kind: str
    form: Form


def masks_given(
    fn: Guarded, plain: Form, mask: str | None, right: Right, cases: list[tuple]
) -> Form | None:
    """Do what ``with_its_masks`` does; ``plain`` is the call without masks."""
    hidden = mask == "hidden"
    found: list[Given] = []
    for given in source_given(fn, plain, mask, cases):
        as_said = given.form.hidden == hidden
        if not keeps_padding_out(fn, given.form):
            found += [given] * as_said
            continue
        whole = with_target(fn, given, cases)
        for form in (whole, given.form):
            if right_so(fn, form, right):
                # What True means is asked for, and never guessed.
                return replace(form, hidden=hidden)
        if as_said:
            return whole  # What is wrong is no matter of masks.
    role = next(roles(optional_masks(plain.wants)))
    if not mask and keeps_padding_out(fn, plain):
        # It makes masks of the padding itself.
        form = with_target(fn, Given(role, PLAIN, plain), cases)
        better = breaks(fn, form) < breaks(fn, plain)
        return form if better else None
    if found:
        return with_target(fn, found[0], cases)
    names = " and ".join(f"`{name}`" for name in role.source)
    said = (*plain.said, UNGIVEN.format(names)) if names else plain.said
    form = replace(plain, ungiven=role.source, said=said)
    return with_target(fn, Given(role, PLAIN, form), cases)


UNGIVEN = "{0} was not given, for no usual mask of padding fits"


def source_given(
    fn: Guarded, plain: Form, mask: str | None, cases: list[tuple]
) -> Iterator[Given]:
    """List the masks of the source's padding that fit, the usual ones first."""
    hides = [mask == "hidden"] if mask else [False, True]
    tries = [(kind, h) for h in hides for kind in (PLAIN, NUMBERS)]
    # To some what is not 0 is True, as −∞ is: so that comes last.
    for kind, hidden in [*tries, (ADDED, hides[0])]:
        if hidden and kind != PLAIN:
            continue  # Only True and False are turned round.
        for role in roles(optional_masks(plain.wants)):
            for made in for_source(role, kind):
                form = with_made(replace(plain, hidden=hidden), made)
                if made and fit_all(fn, form, cases, []):
                    yield Given(role, kind, form)


def with_target(fn: Guarded, given: Given, cases: list[tuple]) -> Form:
    """Return the form with masks of the target in which the fewest break."""
    offered: dict[tuple[str, ...], tuple[int, Form]] = {}
    for made in for_target(given.role, given.kind):
        form = with_made(given.form, made)
        if form.said not in offered and fit_all(fn, form, cases, []):
            broken = breaks(fn, form)
            if not broken:
                return form
            offered[form.said] = broken, form
    return min(offered.values(), key=lambda one: one[0])[1]


def keeps_padding_out(fn: Guarded, form: Form | None) -> bool:
    """Tell whether padding of the source counts nowhere if it is called so."""
    fn.form = form
    return all(holds(contract, fn) for contract in about("source", fn))


def breaks(fn: Guarded, form: Form) -> int:
    """Count what does not hold of who moves with whom if it is called so."""
    fn.form = form
    tried = [*fn.component.early, *about("target", fn)]
    return sum(not holds(contract, fn) for contract in tried)


def about(which: str, fn: Guarded) -> list[Callable]:
    """List the contracts about the padding of source or target."""
    own = fn.component.own
    return [c for c in own if getattr(c, "hides_padding", "") == which]


def holds(contract: Callable, fn: Guarded) -> bool:
    """Tell whether a contract holds."""
    with fn.without_causes():
        try:
            contract(fn)
        except Exception:  # Raised while a result was looked at, perhaps.
            return False
    return True


# PyTorch's own, of which all is known


def known_form(fn: Guarded) -> Form | None:
    """Return the form of a layer of PyTorch's, or None."""
    given, name = fn.given, fn.component.name
    kinds = {
        "multihead": nn.MultiheadAttention,
        "encoder": nn.TransformerEncoder | nn.TransformerEncoderLayer,
    }
    if name not in kinds or not isinstance(given, kinds[name]):
        return None
    if type(given).forward not in (
        nn.MultiheadAttention.forward,
        nn.TransformerEncoder.forward,
        nn.TransformerEncoderLayer.forward,
    ):
        return None
    layer = given.layers[0] if hasattr(given, "layers") else given
    attention = getattr(layer, "self_attn", layer)

    def call(module: Callable[..., Any], args: tuple) -> Tensor:
        x, mask = (*args, None)[:2]
        if mask is not None:
            mask = ~for_heads(attention.num_heads, 3)(mask, {"x": x})
        if name == "encoder":
            return module(x, mask)
        return module(x, x, x, attn_mask=mask, need_weights=False)[0]

    said = ["this is PyTorch's own layer, where True hides"]
    if not attention.batch_first:
        said.append("and the sequence comes first: `batch_first` is False")
    return Form(
        tuple(fn.component.parameters),
        whole=call,
        first=not attention.batch_first,
        said=(", ".join(said),),
    )


# What no shape can tell

NONE = "no contract finds a fault. Say so:"
OTHER_FIRST = f"If the sequence comes first in yours, {NONE}"
ASK_FIRST = (
    "If the sequence comes first in yours, no contract finds a fault. Only you "
    "know: if so, judge"
)
"""What begins a report on a language model that may be right so."""


ASK_SHIFTED = (
    "If yours is given whole targets, and shifts them itself, no contract "
    "finds a fault. Only you know: if so, judge"
)
"""What begins a report on a translator that may be right so: by the name of
its argument, the targets are whole."""


def other_ways(fn: Guarded, mask: str | None) -> Iterator[tuple[str, Form]]:
    """List other ways to read what was given, and how to ask for each."""
    component = fn.component
    name = component.name
    form = fn.form or Form(tuple(component.parameters))
    three = OF_THREE in form.said
    if form.whole and not three and name not in ("layer_norm", "rms_norm"):
        return
    given = "mask" in component.parameters or name in MASKS
    made = name in MODELS and any("mask" in said for said in form.said)
    hides = mask is None and (given or made) and not form.no_mask
    turned_round = replace(form, hidden=True)
    ask = f'`check("{name}", …, mask="hidden")`'
    first = "`adapters.sequence_first(…)`"
    if hides:
        yield f"If True hides in your masks, {NONE} {ask}.", turned_round
    if hides and name not in MASKS:
        yield from with_mask_added(fn)
        yield from with_lengths_for_mask(fn)
    if mask and (given or made) and not (form.whole or form.no_mask):
        word = "shows" if mask == "hidden" else "hides"
        yield (
            f"If True {word} in your masks after all, {NONE} "
            f'`mask="{"shown" if mask == "hidden" else "hidden"}"`.',
            replace(form, hidden=mask == "shown"),
        )
    if name in FIRST and not form.first:
        words = ASK_FIRST if name == "language_model" else OTHER_FIRST
        yield f"{words} {first}.", replace(form, first=True)
        if hides:
            yield (
                "If the sequence comes first in yours, and True hides in your "
                f'masks, {NONE} {first}, with `mask="hidden"`.',
                replace(turned_round, first=True),
            )
    yield from with_heads_behind(fn, form)
    if name == "label_smoothing":
        yield (
            "If yours takes one row a token, (tokens, vocab) and (tokens,), "
            f"{NONE} `adapters.one_row_a_token(…)`.",
            replace(form, style=flat, wants=wanted(fn.fn)),
        )
    if name == "language_model" and form.style is None and mask is None:
        yield from with_its_mask(replace(form, wants=wanted(fn.fn)))
        yield from with_its_mask_added(fn)
    if name in MODELS and mask is None:
        yield with_targets_shifted(fn)


def with_targets_shifted(fn: Guarded) -> tuple[str, Form]:
    """Return the way to call what is given whole targets."""
    inner = Guarded(fn.component, shifts_itself(fn.fn))
    adopt(inner)
    told = (
        "If yours is given whole targets, and shifts them itself, "
        f"{NONE} `adapters.shifts_itself(…)`."
    )
    translates = fn.component.name == "translation_model"
    if translates and WHOLE_TARGETS & {*wanted(fn.fn).names}:
        told = f"{ASK_SHIFTED} `adapters.shifts_itself(…)`."
    return told, behind_adapter(inner)


WHOLE_TARGETS = {"targets", "target_ids", "labels"}
"""How an argument is called that may be whole targets."""


def with_mask_added(fn: Guarded) -> Iterator[tuple[str, Form]]:
    """List the way to call what adds its mask to the scores."""
    inner = Guarded(fn.component, mask_added(fn.fn))
    # Its own time is over: what is called here is the same, and not it.
    same = Guarded(fn.component, fn.given)
    same.form = fn.form
    if all(fits(same, args) for args in fn.component.cases().values()):
        inner.form = fn.form  # The same call, with numbers for a mask.
    else:
        adopt(inner)
    yield (
        "If your masks are added to the scores, 0 where a row may attend and "
        f"−∞ where not, {NONE} `adapters.mask_added(…)`.",
        behind_adapter(inner),
    )


def with_heads_behind(fn: Guarded, form: Form) -> Iterator[tuple[str, Form]]:
    """List the way to call what has its heads behind the positions."""
    one_head = any(said.startswith(ONE_HEAD) for said in form.said)
    if fn.component.name != "causal_attention" or not one_head:
        return
    inner = Guarded(fn.component, heads_after_positions(fn.fn))
    adopt(inner)
    yield (
        "If the heads stand behind the positions in yours, (batch, seq, head, "
        f"head_dim), {NONE} `adapters.heads_after_positions(…)`.",
        behind_adapter(inner),
    )


def with_lengths_for_mask(fn: Guarded) -> Iterator[tuple[str, Form]]:
    """List the ways to give what is called a mask lengths in its place."""
    component, wants = fn.component, wanted(fn.fn)
    if component.name not in ("attention", "multihead"):
        return
    word = wants.named("mask")
    form = Form(tuple(component.parameters), wants=wants)
    inner = Guarded(component, fn.given)
    for counted in by_lengths(inner, form, [*component.cases().values()], word):
        yield (
            f"If `{word}` is how many of the first keys count, {NONE} "
            "`adapters.valid_lengths(…)`.",
            counted,
        )


def with_its_mask_added(fn: Guarded) -> Iterator[tuple[str, Form]]:
    """List the ways to give a language model a causal mask that it adds."""
    if wanted(fn.fn).named("mask") is None:
        return
    for axes in (2, 4, 3):
        both = with_causal_mask(mask_added(fn.fn), axes)
        inner = Guarded(fn.component, both)
        adopt(inner)
        more = f"adapters.mask_added(…){f', {axes}' if axes > 2 else ''}"
        yield (
            "If it is to be given a causal mask that is added to the scores, "
            f"{NONE} `adapters.with_causal_mask({more})`.",
            behind_adapter(inner),
        )


def behind_adapter(inner: Guarded) -> Form:
    """Return the form that calls what an adapter stands before."""
    form = inner.form or Form(tuple(inner.component.parameters))
    return Form(
        form.parameters,
        whole=lambda fn, args: form(inner.fn, args),
        no_mask=form.no_mask,
    )


def with_its_mask(form: Form) -> Iterator[tuple[str, Form]]:
    """List the ways to give a language model a causal mask that it may take."""
    if form.wants.named("mask") is None:
        return
    for hidden, word in ((False, "shown"), (True, "hidden")):
        for axes in (2, 4, 3):
            yield (
                f"If it is to be given a causal mask, {NONE} "
                f'`check("language_model", …, mask="{word}")`.',
                replace(form, style=with_causal(axes), hidden=hidden),
            )


FIRST = ("multihead", "encoder", "add_positions", "causal_attention",
         "language_model", "translation_model")  # fmt: skip
