"""Tell whether what raises in the usual calls could be meant for others."""

import itertools
import re
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from companion.contracts.discovery.arguments import (
    BATCH,
    SEQ,
    arranged,
    lengths,
    required_names,
)
from companion.contracts.engine.compare import draw

__all__ = ["IDS", "POSITIONS", "fails"]


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
"""What vectors are called, and masks beside them."""

EMBEDDED = rf"{VECTORS}|(tokens?|words?)_?emb(edding)?s?|emb(edding)?s?|seq"
"""What vectors are called where positions are added to them."""

IDS = (
    r"(?i)(src|tgt|trg|source|target|input)(_?(ids|tokens|seq))?|idx?|ids"
    r"|tokens?(_?ids)?|.*mask.*"
)
"""What ids are called, and masks beside them."""

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
    return all(re.fullmatch(known, name) for name in required_names(module))


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
        alone = len(required_names(module)) == 1 and wants_only(
            module, EMBEDDED
        )
        return alone and no_sentence_fits(module, widths)
    named = CALLED_SO.fullmatch(type(module).__name__)
    known = named and wants_only(module, f"{IDS}|{EITHER}" if ids else VECTORS)
    if not (known or (ids and wants_only(module, IDS))):
        return False
    if any(isinstance(part, OTHERS) for part in module.modules()):
        return False
    if ids and any(may_be_right(module, args) for args in alike_in(module)):
        # Only where two rows of ids differ in length, or for want of a mask.
        return not any("mask" in n.lower() for n in required_names(module)[1:])
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
    ids, names = (
        torch.ones(BATCH, SEQ, dtype=torch.long),
        required_names(module),
    )
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
        yield from arranged(required_names(module), tensors)
