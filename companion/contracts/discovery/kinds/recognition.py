"""Tell which component a module is, by what it does and by its name."""

import re
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from companion.contracts.adapters import without_residual
from companion.contracts.discovery.arguments import BATCH, SEQ
from companion.contracts.discovery.kinds.calls import (
    CLOSE,
    LOOKS,
    NOTHING,
    SEQUENCE_FIRST,
    WHOLE,
    a_decoder,
    alike,
    by_default,
    first,
    has_triangle,
    is_affine,
    is_decoder,
    movement,
    on_vectors,
    sequence_seems_first,
)
from companion.contracts.discovery.kinds.norms import (
    MORE_THAN_A_NORM,
    OVER_OTHERS,
    ZERO_GAIN,
    by_its_name,
    has_its_name,
    is_a_norm,
    is_called_a_norm,
    kind_of_norm,
)
from companion.contracts.discovery.sizes import WIDTH
from companion.contracts.discovery.verdict import ATTENDING, Unjudged, in_time
from companion.contracts.engine.compare import draw
from companion.contracts.engine.families import is_linear_once_normed
from companion.contracts.engine.levels import RISK
from companion.contracts.engine.modules.common import (
    module_kept,
)
from companion.contracts.engine.report import Failure
from companion.contracts.engine.scale import (
    FUSED,
    LINEAR,
    PRODUCTS,
    SOFTMAX,
    Heard,
)
from companion.contracts.engine.scale import WHOLE as WHOLE_ATTENTION
from companion.contracts.multihead.causal_attention import strictly_before
from companion.contracts.positions.turned import hear_turning

__all__ = [
    "ATTENTION",
    "CALLED_ATTENTION",
    "LINEAR_MAP",
    "LOST_WITHIN",
    "NAMED_ATTENTION",
    "NAMED_CAUSAL",
    "NAMED_INSIDE",
    "NOTHING_COUNTS",
    "NO_INPUT",
    "THREE",
    "Behind",
    "adds_its_input",
    "is_called_a_network",
    "no_decoder",
]

LEARNED_PAIRS = (
    "what one position takes from another is learned for each pair of them, "
    "and is the same whatever stands there, as in a Synthesizer or a mixer: "
    "queries and keys, of which the contracts know, are not in it"
)


def pairs_are_learned(module: nn.Module, width: int, args: tuple) -> bool:
    """Tell whether weights are parameters, and depend on nothing that comes.

    Then a parameter has two axes for positions, as many as there may be.
    """
    tables = [p for p in module.parameters() if p.ndim > 1]
    if not any(
        p.shape[-1] == p.shape[-2] >= SEQ and p.shape[-1] != width
        for p in tables
    ):
        return False

    fn = on_vectors(module, args)

    return in_time(lambda: is_affine(fn, draw(BATCH, SEQ, width, seed=7)))


NAMED_CAUSAL = "its name says so, and each position sees those before it"


def taken_for(
    module: nn.Module, width: int, args: tuple
) -> tuple[nn.Module, str, str]:
    """Recognise a module, without its residual and norm if need be.

    Raises:
        Unjudged: It is nothing that there are contracts for.
    """
    try:
        component, said = in_time(lambda: recognised(module, width, args))
    except Unjudged as reason:
        inner = bare(module)
        if inner is None:
            raise
        try:
            return in_time(lambda: inside(module, inner, width, args))
        except Unjudged:
            raise reason from None
    inner = bare(module) if component == "encoder" else None
    if inner is None:
        return module, component, said
    try:
        # Attention with a norm in front, whose input is added elsewhere.
        if in_time(lambda: has_lost_its_input(inner, width, args)):
            return in_time(lambda: inside(module, inner, width, args))
    except Unjudged:
        pass
    return module, component, said


def inside(
    module: nn.Module, inner: nn.Module, width: int, args: tuple
) -> tuple[nn.Module, str, str]:
    """Recognise what stands beside a norm, and perhaps before a residual.

    Args:
        module: The whole part.
        inner: It without its norm, and less its input.
        width: How wide its vectors are.
        args: What it is called with.

    Raises:
        Unjudged: It is neither attention nor a feed-forward network.
    """
    lost = has_lost_its_input(inner, width, args)
    taken = inner.yours if lost else inner
    component, said = recognised(taken, width, args)
    if component not in ("multihead", "feed_forward", "causal_attention"):
        raise Unjudged(f"beside its norm {LOOKS} {component}")
    said = f"{said}; judged without the norm inside"
    x = draw(BATCH, SEQ, width, seed=9)
    if not lost:
        said += ", and less its input"
    elif kind_of_norm(on_vectors(module, args)(x)):
        said += NO_INPUT
    return taken, component, said


NO_INPUT = ", and adds no input"


LOST_WITHIN = Failure(
    "A path leads past every sub-layer",
    "With all its matrices at 0 nothing of the input is left. Is a residual "
    "connection missing, `x + attend(norm(x))`?",
    level=RISK,
    why="It is right if whoever calls it adds the input.",
    cause="residual",
)


def has_lost_its_input(inner: nn.Module, width: int, args: tuple) -> bool:
    """Tell whether nothing is left of the input where all weights are 0.

    Args:
        inner: A part without its norm, and less its input.
        width: How wide its vectors are.
        args: What it is called with.
    """
    with module_kept(inner):
        for weight in inner.parameters():
            weight.data.zero_()
        x = draw(BATCH, SEQ, width, seed=9)
        return torch.allclose(on_vectors(inner, args)(x), -x, **CLOSE)


def bare(module: nn.Module) -> nn.Module | None:
    """Return a part without the one norm inside, and less its input."""
    norms = [name for name, part in module.named_children() if is_a_norm(part)]
    if len(norms) != 1:
        return None
    try:
        return without_residual(module, norms[0])
    except Exception:  # What cannot be copied is judged as it is.
        return None


def recognised(module: nn.Module, width: int, args: tuple) -> tuple[str, str]:
    """Tell which component a module is, and by what.

    Raises:
        Unjudged: There are no contracts for what it does.
    """

    def fn(x: Tensor) -> Tensor:
        own = (x.clone() if a is args[0] else a for a in args)
        return first(module(*own)).detach()

    x = draw(BATCH, SEQ, width, seed=7)
    if seems := sequence_seems_first(fn, x):
        raise Unjudged(seems + by_default(module))
    moved = movement(fn, x)
    if torch.equal(moved, torch.eye(SEQ, dtype=torch.bool)):
        return each_alone(module, fn, x)
    if strictly_before(moved) and fn(x).isfinite().all():
        return "causal_attention", "a position sees those before it alone"
    if not moved.diagonal().all():
        if moved.any():
            return "multihead", "positions see each other in it"
        raise Unjudged(NOTHING_COUNTS)
    same = alike(x)
    # Where all positions are alike, weights that sum to 1 do not show.
    averages = is_affine(lambda v: fn(alike(v)), same)
    if not moved.triu(1).any():
        require_attention_to_the_past(module, fn, x, averages)
        return "causal_attention", "each position sees those before it"
    if len(args) > 2 and args[1] is args[0] and not averages:
        raise Unjudged(THREE)
    if averages:
        said = "positions see each other, and alike ones are mapped linearly"
        return "multihead", said
    return "encoder", "positions see each other, and each is changed further"


def require_attention_to_the_past(
    module: nn.Module,
    fn: Callable[[Tensor], Tensor],
    x: Tensor,
    averages: bool,
) -> None:
    """Refuse what sees its past, and is no attention alone.

    Args:
        module: What takes vectors.
        fn: How it is called.
        x: Some vectors.
        averages: Whether of equal positions every row gathers the same.

    Raises:
        Unjudged: So it is.
    """
    if averages and mixes_by_place(module, fn, x):
        raise Unjudged(BY_PLACE_ALONE)
    if not averages:
        raise Unjudged(
            "each position sees itself and what stands before it: the mask is "
            f"built in. {WHOLE}"
        )


BY_PLACE_ALONE = (
    "what one position takes from those before it is the same whatever stands "
    "there, as in a moving average or a shift of tokens: queries and keys, of "
    "which the contracts know, are not in it"
)


def mixes_by_place(
    module: nn.Module, fn: Callable[[Tensor], Tensor], x: Tensor
) -> bool:
    """Tell whether positions are mixed linearly, and it is no attention.

    Neither by its name, nor by a softmax.
    """
    convolved = any(isinstance(x, nn.Conv1d) for x in module.modules())
    if convolved or CALLED_ATTENTION.search(type(module).__name__):
        return False
    with Heard(BATCH) as heard:
        linear = is_affine(fn, x)
    return linear and not heard.found


NOTHING_COUNTS = "what it returns does not depend on what goes in"


OF_ONE_LENGTH = (
    "each vector comes out with one length, which is not the root of its width"
)


THREE = "it takes three vectors, and is no attention alone"


ATTENTION = re.compile(r"(?i)((multi_?head(ed)?|self|scaled_?dot_?product)*"
                       r"_?(attention|attn)|(multi_?|attention_?)?heads|multi_?head"
                       r"|mha|mhsa)")  # fmt: skip
"""What attention is called, also if its weights are no averages."""


def each_alone(
    module: nn.Module, fn: Callable[[Tensor], Tensor], x: Tensor
) -> tuple[str, str]:
    """Tell what a module is that treats each position alone."""
    got = fn(x)
    equal = fn(alike(x))
    if not torch.allclose(equal, alike(equal), **CLOSE):
        return at_its_place(fn, x)
    if norm := kind_of_norm(got):
        way = x - x.mean(-1, keepdim=True) if norm[0] == "layer_norm" else x
        along = torch.cosine_similarity(got, way, -1).min() > 0.98
        if along and torch.allclose(fn(3 * x), got, rtol=0.02, atol=0.02):
            return norm
        raise Unjudged(MORE_THAN_A_NORM)
    if torch.equal(got, x):
        raise Unjudged(NOTHING)
    if is_affine(fn, x):
        raise Unjudged(LINEAR_MAP)
    said = "each position is changed alone, and not linearly"
    linear = [m for m in module.modules() if isinstance(m, nn.Linear)]
    matrices = [p for p in module.parameters() if p.ndim > 1]
    if len(linear) < 2 and len(matrices) < 2:
        lengths = got.norm(dim=-1)
        along = torch.cosine_similarity(got, x, -1).min() > 0.999
        if along and torch.allclose(lengths, lengths.mean(), **CLOSE):
            raise Unjudged(f"{OF_ONE_LENGTH}: {NO_NETWORK}")
        raise Unjudged(f"{said}: {NO_NETWORK}")
    if is_linear_once_normed(fn, x, draw(*x.shape, seed=41)):
        raise Unjudged(f"behind a norm {LINEAR_MAP}")
    return "feed_forward", said


def at_its_place(fn: Callable[[Tensor], Tensor], x: Tensor) -> tuple[str, str]:
    """Tell what a module is that changes each position by where it stands.

    It may multiply by √d_model first, which an embedding left to it.
    """
    for factor in (1.0, WIDTH**0.5):
        added = fn(x) - factor * x
        if torch.allclose(added, fn(2 * x) - factor * 2 * x, **CLOSE):
            if torch.allclose(added[:, 1:, 1:], added[:, :-1, :-1], **CLOSE):
                raise Unjudged(BY_DISTANCE)
            return "add_positions", ITS_OWN_VECTOR
    raise Unjudged(f"each position is changed alone, and {BY_ITS_PLACE}")


ITS_OWN_VECTOR = "to each position its own vector is added"


BY_DISTANCE = (
    "what it adds in a row and a column depends on how far apart these are, "
    "and on nothing else: so do the biases that are added to scores, as in "
    "ALiBi and T5, and there are no contracts for those"
)


BY_ITS_PLACE = (
    "by its place, but not by a sum: are features reordered, or projected? "
    "What it makes of zeros has contracts if that is a table: mark "
    "`adapters.table_of(make)` as `sinusoidal`, where `make` takes a width, or "
    "`adapters.added_from(lambda x: yours(0 * x))` as `add_positions`"
)
"""What to do about positions that come to the features in another way."""


NO_NETWORK = "this is no feed-forward network"


def named_or_taken(
    module: nn.Module, width: int, args: tuple
) -> tuple[nn.Module, str, str]:
    """Recognise a module; what norms nothing is a norm if it is called one.

    So is attention whose weights are no averages.

    Raises:
        Unjudged: It is nothing that there are contracts for.
    """
    name = type(module).__name__
    by_name = module, "multihead", "its name says so"
    try:
        taken = taken_for(module, width, args)
        if taken[1] in ATTENDING and is_called_a_norm(module):
            return by_its_name(module, OVER_OTHERS)
        if taken[1] == "feed_forward" and (
            which := attends_to_no_position(module, args)
        ):
            layer = which == "encoder"
            return module, which, NAMED_INSIDE if layer else NAMED_ATTENTION
        lone = taken[1] == "encoder"
        if lone and bare(module) is None and ATTENTION.fullmatch(name):
            return by_name
        if lone and "attention" in name.lower():
            alone = in_time(lambda: attends_alone(module, width, args))
            taken = (module, "multihead", alone) if alone else taken
    except Unjudged as reason:
        if found := by_name_alone(module, width, args, str(reason)):
            return found
        named = ATTENTION.fullmatch(name) or (
            CALLED_ATTENTION.search(name) and draws(module, args)
        )
        if THREE in str(reason) and named:
            return by_name
        raise
    return taken


def draws(module: nn.Module, args: tuple) -> bool:
    """Tell whether a second call returns something else."""
    one, other = (first(module(*args)) for _ in range(2))
    return not torch.equal(one, other)


NAMED_ATTENTION = "its name says so, and a softmax weighs in it"
NAMED_INSIDE = "a part of it is called attention, and a softmax weighs in it"


def attends_to_no_position(module: nn.Module, args: tuple) -> str:
    """Return what is called attention and attends, if not to positions.

    Or what holds that, beside a network: it is meant to be a layer.
    """
    own = CALLED_ATTENTION.search(type(module).__name__)
    inside = any(
        CALLED_ATTENTION.search(type(part).__name__)
        for part in module.modules()
    )
    if not inside:
        return ""

    def weighs() -> bool:
        with Heard(BATCH) as heard:
            module(*args)
        return bool(heard.found)

    if not in_time(weighs):
        return ""
    return "multihead" if own else "encoder"


def by_name_alone(
    module: nn.Module, width: int, args: tuple, reason: str
) -> tuple[nn.Module, str, str] | None:
    """Take a module for what its name says, where what it does tells nothing.

    Args:
        module: What takes vectors.
        width: How wide they are.
        args: What it is called with.
        reason: Why it was not recognised.
    """
    if SEQUENCE_FIRST in reason and is_called_a_norm(module):
        return by_its_name(module, OVER_OTHERS)
    gains = [p for p in module.parameters() if not p.any()]
    if reason == NOTHING_COUNTS and gains and is_called_a_norm(module):
        return by_its_name(module, ZERO_GAIN)
    if NO_NETWORK in reason and has_its_name(module):
        return by_its_name(module, "its name says so, and it norms nothing")
    return by_name_of_a_part(module, width, args, reason)


def by_name_of_a_part(
    module: nn.Module, width: int, args: tuple, reason: str
) -> tuple[nn.Module, str, str] | None:
    """Take a module that is no norm for what its name says, likewise."""
    if LINEAR_MAP in reason and is_called_a_network(module):
        return module, "feed_forward", "its name says so"
    if LINEAR_MAP in reason and attends_to_no_position(module, args):
        return module, "multihead", NAMED_ATTENTION
    # As a layer does whose norms come last.
    normed = MORE_THAN_A_NORM in reason
    if normed and attends_to_no_position(module, args) == "encoder":
        return module, "encoder", NAMED_INSIDE
    if WHOLE in reason and in_time(
        lambda: is_attention_alone(module, width, args)
    ):
        return module, "causal_attention", NAMED_CAUSAL
    return None


LINEAR_MAP = "it is a linear map"


NETWORK = re.compile(
    r"(?i)(\w*_)?(gated|swi|ge|(position|point|pos)_?wise)*_?"
    r"(mlp|ffn|feed_?forward)(_?net(work)?)?(_?(layer|block))?"
)
"""What feed-forward networks are called, also without an activation."""


CALLED_ATTENTION = re.compile(r"(?i)attention|attn|mha|mhsa")


def is_called_a_network(module: nn.Module) -> bool:
    """Tell whether it is a network by its name, and by its two matrices."""
    matrices = [p for p in module.parameters() if p.ndim > 1]
    named = NETWORK.fullmatch(type(module).__name__)
    return bool(named) and len(matrices) > 1


def is_attention_alone(module: nn.Module, width: int, args: tuple) -> bool:
    """Tell whether what hides the future is attention, and adds no input.

    By its name. Of equal positions it makes equal rows, unless it turns its
    values, or positions and heads are mixed up; convolutions and positions
    that are added inside have good reasons to make them unlike.
    """
    if not CALLED_ATTENTION.search(type(module).__name__):
        return False

    fn = on_vectors(module, args)

    if adds_its_input(module, fn, width):
        return False
    same = fn(alike(draw(BATCH, SEQ, width, seed=7)))
    if torch.allclose(same, alike(same), **CLOSE):
        return True
    long = draw(BATCH, TURNED_SEQ, width, seed=7)
    if hear_turning(lambda: fn(alike(long)), TURNED_SEQ):
        return True
    linear = {id(m.weight) for m in module.modules() if type(m) is nn.Linear}
    others = [p for p in module.parameters() if id(p) not in linear]
    tables = [b for b in module.buffers() if b.is_floating_point()]
    places = [x for x in (*others, *tables) if x.squeeze().ndim > 1]
    return not places or has_triangle(module)


def adds_its_input(
    module: nn.Module, fn: Callable[[Tensor], Tensor], width: int
) -> bool:
    """Tell whether some of the input is left where all matrices are 0."""
    x, y = (draw(BATCH, SEQ, width, seed=seed) for seed in (7, 9))
    with module_kept(module):
        for weight in module.parameters():
            if weight.ndim > 1:
                weight.data.zero_()
        return not torch.equal(fn(x), fn(y))


TURNED_SEQ = 7
"""So long is no other axis."""


ONE_ATTENTION = "it is one attention and its projection, whatever it norms"


def attends_alone(module: nn.Module, width: int, args: tuple) -> str:
    """Say that a part is one attention that adds no input, if it is.

    Norms stand in it, of its input or of its heads.

    Args:
        module: What is taken for a layer.
        width: How wide its vectors are.
        args: What it is called with.
    """
    fn = on_vectors(module, args)

    x, other = (draw(BATCH, SEQ, width, seed=s) for s in (7, 9))
    with Behind() as heard:
        got = fn(x)
    if heard.attentions != 1 or heard.maps > 1:
        return ""
    with module_kept(module):
        for part in module.modules():
            own = [*part.parameters(recurse=False)]
            # The gain of a norm stays: behind it the input may stand alone.
            for weight in own if any(p.ndim > 1 for p in own) else ():
                weight.data.zero_()
        if not torch.equal(fn(x), fn(other)):
            return ""
    return ONE_ATTENTION + (NO_INPUT if kind_of_norm(got) else "")


class Behind(TorchFunctionMode):
    """Counts attentions, and what is multiplied by a matrix behind the last."""

    attentions = maps = 0

    def __torch_function__(
        self, func: Callable, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        got, name = func(*args, **(kwargs or {})), getattr(func, "__name__", "")
        by_hand = name in EXPONENTS and got.shape[-2:] == (SEQ, SEQ)
        if name in ATTENDS or by_hand:
            self.attentions, self.maps = self.attentions + 1, 0
        tensors = [a for a in args if isinstance(a, Tensor)]
        by_matrix = name in PRODUCTS and any(a.ndim == 2 for a in tensors)
        self.maps += by_matrix or name in LINEAR
        return got


EXPONENTS = {"exp", "exp_"}
"""What a softmax that is written by hand is heard by, of scores."""


ATTENDS = {*SOFTMAX, *WHOLE_ATTENTION, FUSED}
"""What attention is heard by."""


def no_decoder(
    module: nn.Module, width: int, args: tuple
) -> tuple[nn.Module, str, str]:
    """Recognise a module; a decoder is refused, and not taken for an encoder.

    Raises:
        Unjudged: It is nothing that there are contracts for.
    """
    try:
        taken = named_or_taken(module, width, args)
    except Unjudged as reason:
        if THREE in str(reason) and in_time(lambda: is_decoder(module, width)):
            raise a_decoder(module) from None
        raise
    if taken[1] == "encoder" and in_time(lambda: is_decoder(module, width)):
        raise a_decoder(module)
    if taken[1] == "multihead" and pairs_are_learned(module, width, args):
        raise Unjudged(LEARNED_PAIRS)
    return taken
