"""A learner's function, behind which nothing can go unnoticed."""

import contextlib
import functools
import inspect
import re
import threading
import time
import typing
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from companion.contracts.engine.blame import (
    SIZES,
    hint,
    lines_of,
    raised_at,
    raised_by,
    text_of,
)
from companion.contracts.engine.compare import (
    Broken,
    finite,
    is_float,
    tensors_in,
)
from companion.contracts.engine.component import Component
from companion.contracts.engine.levels import RISK

__all__ = [
    "AN_INDEX",
    "STRAY",
    "Guarded",
    "OtherNumbers",
    "Raised",
    "Stop",
    "copied",
    "flag_for_mask",
    "has_mask",
    "is_flag",
    "kind",
    "lengths_among",
    "lengths_beside",
    "one_tensor",
    "read_number",
    "require_several",
    "swallows_words",
]

# What a learner returned -> what the likely mistake is.
STRAY = {
    "NoneType": "Did you forget `return`?",
    "tuple": "If the first is meant, `adapters.first_of` takes it. "
    "See check.md#adapters.",
    "list": "Join its entries with `torch.stack`.",
    "ndarray": "Stay in torch: NumPy cuts the gradient.",
    "generator": "Use `return`, not `yield`.",
}


ADAPTERS = "See check.md#adapters."
"""Where a learner reads of all adapters."""

MODEL_SHAPES = ("sequence_first", "from_flat_logits", "drops_last_token")
READY: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "masked_softmax": (("mask_added",), ()),
    "attention": (("mask_added", "four_axes_only"), ()),
    "grouped_query_attention": (("mask_added",), ()),
    "multihead": (("key_padding", "mask_each_head"), ("sequence_first",)),
    "encoder": (("key_padding", "each_sentence_alone"), ("sequence_first",)),
    "causal_attention": ((), ("sequence_first",)),
    "add_positions": ((), ("added_from", "sequence_first")),
    "sinusoidal": (("table_of",), ()),
    "rope": (("rope_with_tables", "rope_of_tables"), ()),
    "language_model": (("with_causal_mask",), MODEL_SHAPES),
    "translation_model": (("with_masks",), MODEL_SHAPES),
    "label_smoothing": (("smoothed_by", "one_row_a_token"), ()),
    "greedy_decode": (("StepModel", "KeepsItsCache"), ()),
    "greedy_decode_batch": (("StepModel",), ()),
    "beam_search": (("StepModel", "KeepsItsCache"), ()),
}
"""Component -> the adapters for another call, and for another shape of what it
returns. What is not here has none that is ready: a line of one's own will do.
"""

MOST_MASKS = 2
"""As many `adapters.with_masks` gives."""

AN_INDEX = re.compile("does not match the shape of the indexed tensor")
"""What PyTorch says of a mask that is an index, and has another shape."""

NO_FAULT = {
    re.compile("MemoryError|(not enough|allocate) memory"): (
        "What needs more memory than it may take is not wrong: build a "
        "smaller one, or give it more, `--memory 8`."
    ),
    AN_INDEX: (
        "It refuses a mask of another shape by itself, and so computes nothing "
        "wrong with it."
    ),
    re.compile("raised AssertionError in line [^`]*`[^`]*`, `[^`]*mask"): (
        "It refuses this mask by itself, and so computes nothing wrong with it."
    ),
}
"""What is raised -> why it is no fault."""

OTHERS = re.compile(
    "values to unpack|is invalid for input of size|positional argument|"
    "keyword argument"
)
"""What Python and PyTorch say of a call with other arguments than wanted."""


A_STEP = (
    "It is right if whoever calls it with a single token, to generate the "
    "next, expects logits without an axis for the sequence."
)
WITHOUT_A_BATCH = {"attention": 2, "layer_norm": 1, "rms_norm": 1}
"""Component -> how many axes vectors have that come without a batch."""

NO_BATCH = "Vectors without a batch come nowhere in a Transformer."
ASSERTS = re.compile("raised AssertionError in line [^`]*`[^`]*`, `assert ")
SO_SHORT = (
    "It refuses so short a sentence by itself, and so computes nothing wrong "
    "with it."
)
ONLY_HERE = (
    "Other calls return a tensor alone. It is right if whoever calls it knows "
    "when more comes back, as a cache for a single token."
)


class Stop(SystemExit):
    """Raised inside a function that took too long.

    A SystemExit, so that ``except Exception`` lets it pass.
    """


class Raised(Broken):
    """The learner's function raised something.

    Attributes:
        lines: Those that were run last, if it was raised inside its code.
        what: What was raised, and where, without the rest of the message.
    """

    lines: tuple[int, ...] = ()
    what: str = ""


def told(error: BaseException) -> str:
    """Tell what was raised, and where."""
    said = text_of(error)
    raised = f"It raised {type(error).__name__} {raised_at(error)}".rstrip()
    return f"{raised}: {said}" if said else f"{raised}."


class OtherNumbers(Broken):
    """What came back has the right shape, and is wrong all the same.

    No adapter makes anything else of it.
    """


class Guarded:
    """The learner's function as a contract sees it.

    Whatever it does, a contract gets a tensor of the right type and shape, or
    what the component's own ``read`` makes of the result, or ``Broken`` is
    raised. It works on copies, so it cannot change what the contract compares
    with. ``given`` is what ``check`` was given, and ``form`` how it is called,
    if not as the contracts call; ``unwritten`` tells that it raised
    NotImplementedError.

    Attributes:
        moves_zeros: Whether tables that are all 0 are drawn anew meanwhile.
        asks_why: Whether the cause of what breaks is wanted, and not only that
            something breaks: to listen to a model for it takes long.
        gains: What is told of gains that were moved meanwhile, if any were.
        not_tried: Contracts that it gives no chance to be tried -> why.
        broke: The contract that found a fault the last time, in another call.
        kept: How it was called when no fault was found, and the contracts that
            held then: they need not be tried again.
        furthest: What was raised in the call that got furthest, and how it was
            called, of all that were tried.
        longest: How many seconds the longest call took that came back.
        since: When the call began that has not come back; None between calls.
        returned_a_tensor: Whether some call did.
        stands_for: How many calls a call stands for, see ``at_once``.
    """

    moves_zeros = asks_why = True

    def __init__(self, component: Component, given: object):
        self.component, self.given = component, given
        self.fn = component.adapt(given) if component.adapt else given
        self.adapted = self.fn is not given
        self.form: Callable | None = None
        self.calls, self.unwritten = 0, False
        self.stopped = threading.Event()
        self.gains = ""
        self.not_tried: dict[str, str] = {}
        self.broke: Callable | None = None
        self.kept: tuple[Callable | None, tuple[Callable, ...]] = (None, ())
        self.furthest: tuple[Raised, str] | None = None
        self.longest, self.since = 0.0, None
        self.stands_for, self.returned_a_tensor = 1, False

    def at_once(self, every: list[tuple]) -> list[Tensor] | None:
        """Return the results of several calls, asked as one batch.

        It may take as long as they would, and is not slow for that. None if it
        raises or returns something else.

        Args:
            every: The arguments of each call. Tensors with an axis for the
                batch, as the first of them has, are joined along it.
        """
        batch = len(every[0][0])
        joined = (
            torch.cat(each)
            if isinstance(each[0], Tensor)
            and each[0].ndim > 1
            and len(each[0]) == batch
            else each[0]
            for each in zip(*every, strict=True)
        )
        self.stands_for = len(every)
        try:
            return [*self.raw(*joined).chunk(len(every))]
        except Broken:
            return None
        finally:
            # What was stopped in the middle is still asked how long it took.
            if self.since is None:
                self.stands_for = 1

    @contextlib.contextmanager
    def without_causes(self) -> Iterator[None]:
        """Look for no causes meanwhile."""
        before, self.asks_why = self.asks_why, False
        try:
            yield
        finally:
            self.asks_why = before

    @property
    def name(self) -> str:
        """What its writer called it, so that nobody has to rename it."""
        named = inspect.isfunction(self.fn) and self.fn.__name__.isidentifier()
        return self.fn.__name__ if named else self.component.name

    @property
    def signature(self) -> str:
        """How it is to be called, under its own name."""
        return self.name + self.component.signature.removeprefix(
            self.component.name
        )

    @property
    def takes_no_mask(self) -> bool:
        """Whether it is called without a mask, whatever contracts send."""
        return getattr(self.form, "no_mask", False)

    @property
    def cases(self) -> list[tuple]:
        """The component's plain cases, as far as it can be called with them."""
        return [
            args
            for args in self.component.cases().values()
            if not (self.takes_no_mask and has_mask(args))
        ]

    def __call__(self, *args) -> Any:
        """Return the result, in which every number is finite."""
        result = self.raw(*args)
        for x in tensors_in(result):
            finite(self, x, f"The arguments were {self.describe(args)}.")
        return result

    def raw(self, *args) -> Any:
        """Return the result, which may hold NaN."""
        result = self.call(*map(copied, args))
        read = self.component.read or one_tensor
        try:
            # A function may return the same memory again, overwritten.
            return copied(read(self, result, args))
        except Broken as broken:
            self.add_way_out(broken, result, args)
            raise

    def call(self, *args) -> object:
        """Return whatever comes back for these very arguments."""
        self.since = began = time.monotonic()
        try:
            if self.form is None:
                return self.fn(*args)
            return self.form(self.fn, args)
        except (Stop, Broken):
            raise  # Broken: what a contract handed over finds itself misused.
        except BaseException as error:
            message = self.explain(error, args)
            cause = f"{type(error).__name__} {raised_at(error)}".rstrip()
            lines, what = lines_of(error), told(error)
        finally:
            self.calls += 1
            torch.set_grad_enabled(True)
            if not self.stopped.is_set():
                took = (time.monotonic() - began) / self.stands_for
                self.longest = max(self.longest, took)
                self.since = None
            if self.stopped.is_set():
                # It swallowed the Stop, and whatever came of it is no result.
                raise Stop
        raised = Raised(message, cause=cause)
        for pattern, why in NO_FAULT.items():
            if pattern.search(what):
                raised.level, raised.why = RISK, why
        if ASSERTS.search(what) and self.may_be_short(args):
            raised.level, raised.why = RISK, SO_SHORT
        raised.lines, raised.what = lines, what
        raise raised

    def may_be_short(self, args: tuple) -> bool:
        """Tell whether sentences have a single word here, or may have.

        Lengths for a row that sees one position say that there is one.
        """
        return bool(self.lengths_instead()) or any(
            is_float(a) and a.ndim == 3 and a.shape[1] == 1
            for a in args
            if isinstance(a, Tensor)
        )

    def note(self, raised: Raised, said: str) -> None:
        """Keep what was raised, if no other call got further.

        Args:
            raised: It is kept only if it came from inside the code.
            said: How it was called.
        """
        before = self.furthest[0].lines if self.furthest else ()
        if raised.lines > before:
            self.furthest = raised, said

    def explain(self, error: BaseException, args: tuple) -> str:
        """Tell what was raised, where, and what it probably means."""
        name, said = type(error).__name__, text_of(error)
        # PyTorch has some of its own: about operations, and, called from
        # within, about whatever else it has not, as a ModuleList's forward.
        operation = re.search("aten::|not implemented for", said)
        pytorchs = raised_at(error) and raised_by(error, "torch")
        if name == "NotImplementedError" and not (operation or pytorchs):
            self.unwritten = True
            return (
                f"Nothing is written here yet. Write `def {self.signature}`, "
                f"which returns {self.component.returns}."
            )
        likely = hint(error)
        parts = (
            told(error),
            likely,
            f"The arguments were {self.describe(args)}.",
            self.lengths_instead(),
            self.others_wanted(said, likely),
        )
        return " ".join(filter(None, parts))

    def others_wanted(self, said: str, likely: str) -> str:
        """Ask for other arguments, where what was raised may be about them."""
        if likely != SIZES and not OTHERS.search(said):
            return ""
        return (
            f"Does it want others? An adapter gives them, {self.between}. "
            f"{ADAPTERS}"
        )

    @property
    def between(self) -> str:
        """What stands between another call and the contracts' own."""
        inside = self.component.signature.partition("(")[2].rstrip(")")
        ready = READY.get(self.component.name, ((), ()))[0]
        if self.masks > MOST_MASKS:
            ready = tuple(name for name in ready if name != "with_masks")
        names = " or ".join(f"`adapters.{name}`" for name in ready)
        more = f", or a ready one, {names}" if names else ""
        return f"`lambda {inside}: yours(…)`{more}"

    @property
    def masks(self) -> int:
        """How many masks it may be given, as far as its names say."""
        try:
            module = isinstance(self.fn, nn.Module)
            names = inspect.signature(self.fn.forward if module else self.fn)
        except (TypeError, ValueError):
            return 0
        return sum("mask" in name.lower() for name in names.parameters)

    def add_way_out(self, broken: Broken, result: object, args: tuple) -> None:
        """Tell of what does not fit where an adapter is that makes it fit.

        Of nothing, and of other numbers, an adapter makes nothing else.
        """
        lost = type(result).__name__ in ("NoneType", "generator")
        named = "`adapters." in broken.message
        numbers = isinstance(broken, OtherNumbers | Raised) and not named
        if lost or numbers or ADAPTERS in broken.message:
            return
        words = "" if named else f"Meant so? {self.of_result(result, args)} "
        alone = broken.cause == broken.message
        broken.message = f"{broken.message} {words}{ADAPTERS}"
        if alone:
            broken.cause = broken.message

    def of_result(self, result: object, args: tuple) -> str:
        """Name the adapter that makes the right thing of a result."""
        shape, name = self.component.shape, ""
        if type(result).__name__ == "ndarray":
            name = "from_numpy"
        elif self.component.name == "rope" and isinstance(result, tuple):
            name = "rope_of_tables"
        elif isinstance(result, Tensor) and shape:
            ready = READY.get(self.component.name, ((), ()))[1]
            name = adapter(ready, tuple(result.shape), tuple(shape(*args)))
        if name:
            return f"`adapters.{name}` may be wanted."
        inside = self.component.signature.partition("(")[2].rstrip(")")
        return f"Write an adapter, `lambda {inside}: yours(…)`."

    def describe(self, args: tuple) -> str:
        """Write the arguments by name, with their shapes."""
        words = []
        for name, a in zip(self.component.parameters, args, strict=False):
            value = str(tuple(a.shape)) if isinstance(a, Tensor) else repr(a)
            value = type(a).__name__ if callable(a) else value
            if isinstance(a, list) and tensors_in(a):
                value = f"of {len(a)} tensors"
            half = is_float(a) and a.dtype != torch.float32
            words.append(f"{name} {value}" + (f" {kind(a)}" if half else ""))
        return ", ".join(words)

    def require_tensor(self, result: object, args: tuple) -> None:
        """Raise Broken unless it is a tensor of the right number type."""
        if not isinstance(result, Tensor):
            name = type(result).__name__
            what = "None" if result is None else f"a {name}, not a tensor"
            first = isinstance(result, tuple) and self.stray_hint(result, args)
            sometimes = self.returned_a_tensor and first
            raise Broken(
                f"It returned {what}: expected {self.component.returns}. "
                f"{self.stray_hint(result, args)}".rstrip(),
                level=RISK if sometimes else "",
                why=ONLY_HERE if sometimes else "",
            )
        self.returned_a_tensor = True
        if result.layout != torch.strided or result.device.type != "cpu":
            raise Broken(
                f"It returned a {result.layout} tensor on {result.device}: "
                "expected an ordinary one on the device of its inputs."
            )
        self.require_dtype(result, args)

    def stray_hint(self, result: object, args: tuple) -> str:
        """Name the likely mistake in what is no tensor, or nothing.

        That the first of several is meant is said only where it fits.
        """
        hint, shape = STRAY.get(type(result).__name__, ""), self.component.shape
        if not isinstance(result, tuple):
            return hint
        first = result[0] if result else None
        if not isinstance(first, Tensor):
            return ""
        fitting = shape is None or fits(tuple(first.shape), tuple(shape(*args)))
        return hint if fitting else ""

    def require_dtype(self, result: Tensor, args: tuple) -> None:
        """Raise Broken unless it has the component's number type."""
        expected = self.component.dtype
        if expected and result.dtype != expected:
            raise OtherNumbers(
                f"It returned {kind(result)}: expected "
                f"{str(expected).removeprefix('torch.')}."
            )
        if not expected and result.dtype != args[0].dtype:
            raise OtherNumbers(
                f"It returned {kind(result)} for {kind(args[0])}: expected "
                f"the number type of `{self.component.parameters[0]}`."
            )

    def require_shape(self, result: Tensor, args: tuple) -> None:
        """Raise Broken unless it has the component's shape for ``args``."""
        got, shape = tuple(result.shape), tuple(self.component.shape(*args))
        if not fits(got, shape):
            words = str(shape).replace("None", "any")
            parts = (
                f"It returned shape {got}: expected {words}, "
                f"{self.component.returns}.",
                self.shape_hint(got, args) or misshapen(got, shape),
                f"The arguments were {self.describe(args)}.",
            )
            why = self.why_so_shaped(got, shape, args)
            level = RISK if why else ""
            raise Broken(" ".join(filter(None, parts)), level=level, why=why)

    def why_so_shaped(self, got: tuple, shape: tuple, args: tuple) -> str:
        """Tell why another shape is no fault, if it is none."""
        name, more = self.component.name, len(got) - len(shape)
        if name == "language_model":
            step = args[0].shape[1:] == (1,) and got[:-1] == shape[:1]
            return A_STEP if step else ""
        if name not in WITHOUT_A_BATCH or more < 1:
            return ""
        alone = args[0].ndim <= WITHOUT_A_BATCH[name]
        return NO_BATCH if alone and got[:more] == (1,) * more else ""

    def shape_hint(self, got: tuple[int, ...], args: tuple) -> str:
        """Name what else has the shape ``got``, or nothing."""
        for words, shape in self.component.shape_hints.items():
            if fits(got, tuple(shape(*args))):
                return words
        return ""

    def require_call(self) -> None:
        """Raise Broken if the function cannot be called as it should be."""
        name, fn = self.component.name, self.fn
        if not callable(fn):
            raise Broken(
                f"It is not a function but a {type(fn).__name__}: pass "
                f'the function itself, `check("{name}", {name})`.'
            )
        if isinstance(fn, type) and issubclass(fn, nn.Module):
            raise Broken(
                f"It is the class {fn.__name__}: make a module of it first, "
                f'`check("{name}", {fn.__name__}(...))`.'
            )
        made = fn
        while isinstance(made, functools.partial):
            made = made.func
        if isinstance(made, type) and issubclass(made, nn.Module):
            raise Broken(
                f"It is a partial of the class {made.__name__}: make a module "
                f'of it first, `check("{name}", {name}())`.'
            )
        if self.form is not None:
            return  # It was tried.
        try:
            # A module's own call takes anything: what counts is its forward.
            module = isinstance(fn, nn.Module)
            signature = inspect.signature(fn.forward if module else fn)
        except (TypeError, ValueError):
            return  # Built-in functions do not say.
        for args in self.component.cases().values():
            self.require_bound(signature, args)

    def way_out(self, signature: inspect.Signature) -> str:
        """Tell what to do about a function that is so signed."""
        name = self.component.name
        masked = any("mask" in name for name in signature.parameters)
        parts = [
            f"The contracts call `{self.signature}`; an adapter between the "
            f"two lets yours stay as it is, {self.between}. {ADAPTERS}"
        ]
        if counted := self.lengths_instead():
            parts.append(counted)
        elif "mask" in self.component.parameters and swallows_words(signature):
            parts.append("It takes `**kw`: name its mask there, `mask=mask`.")
        elif name in ("attention", "multihead") and not masked:
            parts.append(
                "If it takes no mask because a causal one is built in, try "
                '`check("causal_attention", …)`.'
            )
        if name in ("layer_norm", "rms_norm") and isinstance(
            self.fn, nn.Module
        ):
            parts.append(
                "Of a module the gain is set, and the bias of a layer norm, "
                "where it has just these."
            )
        return " ".join(parts)

    def lengths_instead(self) -> str:
        """Tell what to do about lengths in place of a mask, if any are."""
        if self.component.name not in ADVICE or not callable(self.fn):
            return ""
        try:
            module = isinstance(self.fn, nn.Module)
            names = inspect.signature(self.fn.forward if module else self.fn)
        except (TypeError, ValueError):
            return ""
        word = lengths_among(names.parameters)
        if word is None:
            return ""
        advice = ADVICE[self.component.name]
        return f"It takes lengths, `{word}`, in place of a mask: {advice}"

    def require_bound(self, signature: inspect.Signature, args: tuple) -> None:
        """Raise Broken if a function so signed does not take ``args``."""
        try:
            signature.bind(*args)
            flag = flag_for_mask(self.component, signature)
            if flag and has_mask(args):
                if CACHE.fullmatch(flag.lower()):
                    raise TypeError(f"`{flag}` is for a cache, and no mask")
                raise TypeError(f"`{flag}` is a flag, and no mask")
        except TypeError as error:
            called = ", ".join(self.component.parameters[: len(args)])
            if self.furthest:
                # The calls that it takes say more than the one it does not.
                raised, said = self.furthest
                told = f"{raised.message} {said}"
                if ADAPTERS not in told:
                    told += f" {self.way_out(signature)}"
                raise Raised(told, cause=raised.cause) from None
            raise Broken(
                f"It cannot be called as `{self.name}({called})`: "
                f"{error}. {self.way_out(signature)}"
            ) from None


ADVICE = {
    "multihead": "those of (q, k, v, lengths) and of (x, lengths) are known, "
    "and behind `adapters.valid_lengths` those of another name.",
    "encoder": "those of (x, lengths) are known, and behind "
    "`adapters.valid_lengths` those of another name.",
}
"""Component -> what to do about lengths in place of a mask."""


def lengths_among(names: Iterable[str]) -> str | None:
    """Return which argument says how many keys count, if one does by its name.

    Beside a mask lengths are something else.
    """
    names = list(names)
    found = [n for n in names if LENGTHS.fullmatch(n)]
    masked = any("mask" in n for n in names)
    return found[0] if len(found) == 1 and not masked else None


def lengths_beside(names: Iterable[str]) -> list[str]:
    """List the argument that is lengths, by its name, beside a mask."""
    names = list(names)
    found = [n for n in names if LENGTHS.fullmatch(n) and "mask" not in n]
    masked = any("mask" in n for n in names)
    return found if len(found) == 1 and masked else []


LENGTHS = re.compile(r"(?i)(?!max)(\w*_)?len(s|gths?)?(_\w+)?")


def is_flag(parameter: inspect.Parameter) -> bool:
    """Tell whether its default or its name says that an argument is no mask.

    It is True or False, or a word; or a number, under a name without a mask; or
    it is called as what keeps keys and values.
    """
    default, name = parameter.default, parameter.name.lower()
    return (
        isinstance(default, bool | str)
        or is_word(parameter.annotation)
        or (isinstance(default, int | float) and "mask" not in name)
        or CACHE.fullmatch(name) is not None
    )


def is_word(annotation: object) -> bool:
    """Tell whether a type is that of words, ``str``, and perhaps None."""
    if isinstance(annotation, str):
        told = {*re.findall(r"\w+", annotation)}
        return told - {"Optional", "Union", "None", "typing"} == {"str"}
    if typing.get_origin(annotation) is typing.Literal:
        return all(isinstance(x, str) for x in typing.get_args(annotation))
    inner = typing.get_args(annotation)  # Some may be lists.
    kinds = [kind for kind in inner if kind is not type(None)]
    return annotation is str or (bool(kinds) and all(map(is_word, kinds)))


CACHE = re.compile(
    r"((kv|key_?value|layer|use|static|attn)_?)*(caches?|past)"
    r"(_?(kv|key_?values?|position|params))?s?|past_key_values?"
    r"|layer_(idx|index|id)|start_pos"
)
"""What is called so keeps keys and values, or says of which layer."""


def flag_for_mask(
    component: Component, signature: inspect.Signature | None
) -> str:
    """Return which flag stands where the contracts give a mask, if one does."""
    if signature is None or "mask" not in component.parameters:
        return ""
    place = list(component.parameters).index("mask")
    kinds = inspect.Parameter
    there = [
        p
        for p in signature.parameters.values()
        if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    ]
    found = there[place : place + 1]
    return found[0].name if found and is_flag(found[0]) else ""


def swallows_words(signature: inspect.Signature | None) -> bool:
    """Tell whether any keyword is taken, ``**kw``."""
    kinds = inspect.Parameter
    return signature is not None and any(
        p.kind == kinds.VAR_KEYWORD for p in signature.parameters.values()
    )


def one_tensor(fn: Guarded, result: object, args: tuple) -> Tensor:
    """Require one tensor of the right type and shape, as most return."""
    fn.require_tensor(result, args)
    fn.require_shape(result, args)
    return result


def has_mask(args: tuple) -> bool:
    """Tell whether a mask is among the arguments."""
    return any(isinstance(a, Tensor) and a.dtype == torch.bool for a in args)


def copied(x: Any) -> Any:
    """Copy ``x``, so that its tensors share no memory with the original."""
    if isinstance(x, Tensor):
        return x.clone()
    if isinstance(x, list):
        return [copied(y) for y in x]
    return tuple(map(copied, x)) if isinstance(x, tuple) else x


def fits(got: tuple[int, ...], shape: tuple[int | None, ...]) -> bool:
    """Tell whether ``got`` is ``shape``, in which None is any size."""
    return len(got) == len(shape) and all(
        want in (None, size) for size, want in zip(got, shape, strict=True)
    )


def kind(x: Tensor) -> str:
    """Write the number type as ``float32``, without ``torch.``."""
    return str(x.dtype).removeprefix("torch.")


def adapter(
    ready: tuple[str, ...],
    got: tuple[int, ...],
    shape: tuple[int | None, ...],
) -> str:
    """Name what makes the right shape of this one, or nothing."""
    batch, seq = (shape[0] or 0, shape[1] or 0) if len(shape) > 1 else (0, 0)
    found = {
        "sequence_first": fits(got, (*shape[1::-1], *shape[2:])),
        "from_flat_logits": fits(got, (batch * seq, *shape[2:])),
        "drops_last_token": fits(got, (batch, seq - 1, *shape[2:])),
        "added_from": got in (shape[1:], (1, *shape[1:])),
    }
    return next((name for name in ready if found[name]), "")


def misshapen(got: tuple[int, ...], shape: tuple[int | None, ...]) -> str:
    """Tell how a wrong shape probably came about, or nothing."""
    if None in shape:
        return ""
    if sorted(got) == sorted(shape):
        return "Are two axes swapped?"
    if [n for n in got if n > 1] == [n for n in shape if n > 1]:
        return "An axis of size 1 is lost or left over."
    return ""


def require_several(fn: Guarded, result: object, count: int) -> None:
    """Raise Broken unless it is a tuple or list of ``count`` parts."""
    if isinstance(result, tuple | list):
        if len(result) == count:
            return
        what, hint = f"{len(result)} things", ""
    else:
        name = type(result).__name__
        what = "None" if result is None else f"a {name}"
        hint = STRAY[name] if name in ("NoneType", "generator") else ""
    raise Broken(
        f"It returned {what}: expected {fn.component.returns}. {hint}".rstrip()
    )


def read_number(fn: Guarded, result: object, args: tuple) -> float:
    """Return what contracts see of a component that returns one number."""
    if isinstance(result, Tensor):
        number = result.numel() == 1
    else:
        number = hasattr(result, "__float__") and not isinstance(result, bool)
    if number:
        return float(result)
    kind = type(result).__name__
    what = "None" if result is None else f"a {kind}"
    hint = "Return one number." if kind in ("tuple", "list") else ""
    raise Broken(
        f"It returned {what}: expected {fn.component.returns}. "
        f"{hint or STRAY.get(kind, '')}".rstrip()
    )
