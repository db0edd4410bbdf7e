"""Tell whether what raises in the usual calls could be meant for others."""

import inspect
import itertools
import re
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from companion.contracts.engine.compare import draw
from companion.contracts.engine.modules.common import is_lazy

__all__ = ["IDS", "POSITIONS", "fails", "wanted", "wants_only"]

BATCH, SEQ = 2, 5
LONGEST = 4096
"""A longer table is none of a sentence that is tried."""
NOTED = re.compile(r"(?i)len|block|ctx|context|seq|steps?$|positions")
"""What a number is called that says how long a sentence is."""

CALLED_SO = re.compile(
    r"(?i)(bert|gpt_?\d?|llama|t5|vit)?_?"
    r"("
    r"((multi|masked|causal|cross|self|head(ed)?|scaled|dot|product|query"
    r"|grouped)_?)*(attention|attn)(_?(layer|block|head))?|mh(s|c)?a"
    r"|(position_?wise_?)?((feed_?forward|ffn)(_?(network|net|layer|block))?"
    r"|mlp(_?block)?)"
    r"|(transformer_?)?(encoder|decoder)(_?(layer|block))?"
    r"|transformer(_?(layer|block|model|lm))?|((mini|nano)_?)?gpt_?\d?"
    r"(_?(model|lm))?|(transformer_?)?(language_?model|lm)"
    r")"
)
"""What parts and models are called; it has to be the whole name."""

POSITIONS = re.compile(
    r"(?i)((sin(usoid(al)?)?|learn(ed|able)|absolute|fixed|trainable|add)_?)*"
    r"(position(al|s)?_?(enc(od(ing|er))?s?|emb(ed(ding|der)?)?s?)"
    r"|pos_?(enc(od(ing|er))?|emb(ed(ding)?)?)|positions|pe)"
    r"(_?(layer|1d))?"
)
"""What is called so adds positions to vectors."""

VECTORS = (
    r"(?i)x|q|k|v|query|queries|keys?|values?|hidden_states|src|inputs?"
    r"|.*mask.*"
)
EMBEDDED = rf"{VECTORS}|(tokens?|words?)_?emb(edding)?s?|emb(edding)?s?|seq"
"""What vectors are called where positions are added to them."""
IDS = (
    r"(?i)(src|tgt|trg|source|target|input)(_?(ids|tokens|seq))?|idx?|ids"
    r"|tokens?(_?ids)?|.*mask.*"
)
"""What vectors are called, and what ids; either way with masks."""

EITHER = r"x|y|inputs?|outputs?|targets?|src_?seq|tgt_?seq|trg_?seq|seq"
"""What ids are called too, in what has the name of a model."""

OTHERS = (
    nn.modules.conv._ConvNd,
    nn.modules.batchnorm._BatchNorm,
    nn.RNNBase,
    nn.RNNCellBase,
)
"""What is made of these may have any name, and images or states go in."""


def wants_only(module: nn.Module, known: str) -> bool:
    """Tell whether all that its forward wants has such a name."""
    return all(re.fullmatch(known, name) for name in wanted(module))


def wanted(module: nn.Module) -> list[str]:
    """Name what its forward wants."""
    parameters = inspect.signature(module.forward).parameters.values()
    return [
        one.name
        for one in parameters
        if one.default is one.empty
        and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]


def fails(module: nn.Module, widths: list[int], *, ids: bool = False) -> bool:
    """Tell whether what raises in the usual calls has hardly any others.

    By its name and those of its arguments these calls are its own, and it
    raises with other shapes as well.

    Args:
        module: It raised in every call that one of its kind takes.
        widths: How wide its vectors may be.
        ids: Whether ids are to go in, and no vectors.
    """
    if POSITIONS.fullmatch(type(module).__name__) and not ids:
        alone = len(wanted(module)) == 1 and wants_only(module, EMBEDDED)
        return alone and no_sentence_fits(module, widths)
    named = CALLED_SO.fullmatch(type(module).__name__)
    known = named and wants_only(module, f"{IDS}|{EITHER}" if ids else VECTORS)
    if not (known or (ids and wants_only(module, IDS))):
        return False
    if any(isinstance(part, OTHERS) for part in module.modules()):
        return False
    if ids and any(may_be_right(module, args) for args in alike_in(module)):
        # Only where two rows of ids differ in length, or for want of a mask.
        return not any("mask" in n.lower() for n in wanted(module)[1:])
    others = other_calls(module, widths, ids=ids)
    return not any(may_be_right(module, args) for args in others)


def no_sentence_fits(module: nn.Module, widths: list[int]) -> bool:
    """Tell whether what is to add positions raises, however it is called.

    Of one sentence alone the shape is asked too, for there the sizes may meet
    by chance. Ids may go in, a length, heads and channels.
    """
    if any(isinstance(part, OTHERS) for part in module.modules()):
        return False
    ids = torch.ones(BATCH, SEQ, dtype=torch.long)
    if any(may_be_right(module, (one,)) for one in (ids, ids[0], SEQ)):
        return False
    for seq in (SEQ, *lengths(module)):
        for width in widths:
            three, two = (BATCH, seq, width), (seq, width)
            for axes in (
                three,
                (seq, BATCH, width),
                (BATCH, width, seq),
                (BATCH, 3, seq, width),
                (BATCH, width, 3, seq),
            ):
                if may_be_right(module, (draw(*axes, seed=3),)):
                    return False
            if may_be_right(module, (draw(*two, seed=3),), shape=two):
                return False
    return True


def may_be_right(
    module: nn.Module, args: tuple, shape: tuple[int, ...] | None = None
) -> bool:
    """Tell whether a call comes back, or is yet to be written.

    Args:
        module: What is called.
        args: With these.
        shape: What a tensor that comes back has to look like, if that counts.
    """
    try:
        got = module(*args)
    except NotImplementedError:
        return True
    except Exception:
        return False
    return not shape or not isinstance(got, Tensor) or got.shape == shape


def alike_in(module: nn.Module) -> Iterator[tuple]:
    """List calls with ids of one length; of several masks each has a shape."""
    ids, names = torch.ones(BATCH, SEQ, dtype=torch.long), wanted(module)
    yield from arranged(names, [ids])
    masks = [name for name in names if "mask" in name.lower()]
    if len(masks) > 1:
        shapes = (OF_PADDING if "pad" in n.lower() else OF_ANY for n in masks)
        for chosen in itertools.islice(itertools.product(*shapes), MOST):
            made = (torch.ones(axes, dtype=torch.bool) for axes in chosen)
            given = dict(zip(masks, made, strict=True))
            yield tuple(given.get(name, ids) for name in names)


OF_PADDING = [(BATCH, SEQ), (BATCH, 1, 1, SEQ), (BATCH, 1, SEQ)]
OF_ANY = [(SEQ, SEQ), (BATCH, 1, SEQ, SEQ), *OF_PADDING]
"""What shapes masks may have, by their names."""
MOST = 200
"""More calls take too long."""


def other_calls(
    module: nn.Module, widths: list[int], *, ids: bool
) -> Iterator[tuple]:
    """List calls that are not those of its kind.

    A sentence alone, a vector alone, heads apart, two kinds of tensors, and
    sentences as long as a table of its own.
    """
    longer = [torch.ones(BATCH, n, dtype=torch.long) for n in lengths(module)]
    row = torch.ones(SEQ, dtype=torch.long)
    for width in widths:
        x = draw(BATCH, SEQ, width, seed=3)
        if ids:
            tensors = [row, row.expand(BATCH, -1), *longer, x]
        else:
            own = (draw(*row.shape, width, seed=3) for row in longer)
            heads = x[:, None].expand(-1, 3, -1, -1)
            tensors = [x, x[:, 0], x[:1, :BATCH], heads, *own]
        yield from arranged(wanted(module), tensors)


def lengths(module: nn.Module) -> list[int]:
    """List how long a sentence may have to be: as a table, or as is noted.

    Tables need not be registered.
    """
    parts = [p for p in module.modules() if isinstance(p, nn.Linear)]
    weights = {id(x) for part in parts for x in part.parameters()}
    tables = [x for x in module.parameters() if id(x) not in weights]
    notes = [x for part in module.modules() for x in vars(part).items()]
    loose = [x for _, x in notes if isinstance(x, Tensor)]
    own = (x for x in (*tables, *module.buffers(), *loose) if not is_lazy(x))
    found = [x.shape[-2] for x in own if x.ndim > 1]
    found += [n for name, n in notes if type(n) is int and NOTED.search(name)]
    return list(dict.fromkeys(n for n in found if 1 < n <= LONGEST))[:6]


def arranged(names: list[str], tensors: list[Tensor]) -> Iterator[tuple]:
    """Give tensors to arguments, of which one may be of another kind."""
    names = names or ["x"]
    masks = [name for name in names if "mask" in name.lower()]
    count = len(names) - len(masks)
    many = (
        itertools.product(tensors, repeat=count)
        if count in (1, 2)
        else ((x,) * count for x in tensors)
    )
    for given in many:
        for mask in masks_of(given) if masks else (None,):
            own = iter(given)
            yield tuple(mask if n in masks else next(own) for n in names)


def masks_of(given: tuple[Tensor, ...]) -> Iterator[Tensor | None]:
    """List masks for these, of other numbers than True and False too."""
    yield None
    x = given[0] if given else torch.ones(BATCH, SEQ)
    seq = x.shape[-2 if x.is_floating_point() and x.ndim > 1 else -1]
    for axes in ((seq, seq), (1, 1, seq, seq), (BATCH, seq, seq), (BATCH, seq)):
        for kind in (torch.bool, torch.long, torch.float):
            yield torch.ones(axes, dtype=kind)
