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
import functools
import inspect
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from companion.contracts.adapters import (
    mask_added,
    rope_of_tables,
    shifts_itself,
)
from companion.contracts.engine.compare import Broken, furthest
from companion.contracts.engine.component import Component
from companion.contracts.engine.forms.fitting import (
    CLOSE,
    ONES,
    bindable,
    candidates,
    fit_all,
    fits,
    heeding_masks,
    hides_nothing,
    makes_ones,
    of_keys_alone,
    right_so,
    sequence_first,
    truth,
    usual,
    usual_cases,
)
from companion.contracts.engine.forms.form import (
    Form,
    alone,
    behind_adapter,
    for_heads,
    without_heads,
)
from companion.contracts.engine.forms.lengths import by_lengths
from companion.contracts.engine.forms.rotations import takes_table
from companion.contracts.engine.forms.several_masks import (
    keeping,
    keeps_out,
    with_its_mask_of_several,
)
from companion.contracts.engine.forms.signature import (
    MASKS,
    MODELS,
    NO_MASKS,
    SAME,
    SAYS,
    SELF,
    SHAPED,
    USUAL,
    Right,
    Wanted,
    no_flags,
    wanted,
)
from companion.contracts.engine.forms.styles import (
    GOT_IDS,
    STYLES,
    UNMASKED,
    as_many_ids,
    by_place,
    of_queries_and_keys,
)
from companion.contracts.engine.forms.three_axes import of_three_axes
from companion.contracts.engine.forms.translators import with_its_masks
from companion.contracts.engine.guard import (
    Guarded,
    flag_for_mask,
    has_mask,
    lengths_among,
    swallows_words,
)
from companion.contracts.engine.influence import reach
from companion.contracts.engine.norms import norm_form
from companion.contracts.positions.given_tables import given_tables

__all__ = [
    "NORMALISED",
    "NO_MASK",
    "adopt",
]

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
    hand_its_tables(fn)
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
    if not callable(fn.fn) or isinstance(fn.fn, type):
        return
    special = form_by_name(fn, form, mask, right)
    fn.form = special or fn.form
    if special or fn.adapted:
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
    wants = wanted(fn.fn)
    other = (
        (mask and component.name in MODELS)
        or (component.name == "rope" and takes_table(wants))
        or flag_in_place(component, wants)
    )
    with_wants = replace(form, wants=wants)
    lengths = lengths_among(no_flags(wants))
    for counted in by_lengths(fn, with_wants, cases, lengths):
        # Before the plain call, which might take a mask for numbers.
        fn.form = counted
        torch.set_rng_state(drawn)
        return
    fn.form = plain
    fitting = not other and all(fits(fn, args) for args in cases)
    forms = of_keys_alone if fitting else fitting_forms
    found = forms(fn, with_wants, offered, cases, right)
    plain = heeding_masks(fn, found[0] if found else plain, with_wants, cases)
    fn.form = plain
    known = fitting or bool(found)
    fn.form = in_fewer_axes(fn, with_wants, offered, cases, known) or plain
    fn.form = with_its_mask_of_several(fn, with_wants, cases, known=known)
    if known and component.name == "attention":
        fn.form = of_three_axes(fn, form) or fn.form
    # What it draws is what it would have drawn.
    torch.set_rng_state(drawn)


def fitting_forms(
    fn: Guarded,
    form: Form,
    offered: list,
    cases: list[tuple],
    right: Right | None,
) -> list[Form]:
    """List the forms that fit where the plain call does not, the best first."""
    if fn.unwritten:
        return []
    return (
        usual(fn, form, offered, cases, right)
        or [*without_masks(fn, form, cases)]
        or less_usual(fn, form, offered, cases, right)
        or as_named(fn.component, form, cases)
    )


TURNING = ("multihead", "causal_attention")
"""What may turn queries and keys by tables that it is given."""


def hand_its_tables(fn: Guarded) -> None:
    """Have attention get the tables that turn its vectors, if it wants any."""
    module = fn.fn
    if fn.component.name not in TURNING or fn.adapted:
        return
    if isinstance(module, nn.Module):
        with contextlib.suppress(Exception):
            [(x, *_), *_] = fn.component.cases().values()
            fn.fn = given_tables(module, [x.shape[-1]]) or module
            fn.given = fn.fn


def as_named(
    component: Component, form: Form, cases: list[tuple]
) -> list[Form]:
    """List the form that names leave no doubt of, whatever it raises.

    Two sequences of tokens are no tokens and a pad.
    """
    two = replace(form, style=of_queries_and_keys)
    meant = component.name == "padding_mask" and bindable(two, cases)
    said = "it was called as (tokens, tokens)"
    return [replace(two, said=(*form.said, said))] if meant else []


def in_fewer_axes(
    fn: Guarded, form: Form, offered: list, cases: list[tuple], known: bool
) -> Form | None:
    """Return a form whose masks have the axes that are meant, if need be.

    A mask with too many may be taken and mix up what it meets, also if it hides
    nothing. Nothing, if that is not so, or so with any.
    """
    covered = [args for args in cases if has_mask(args)]
    if not known or fn.component.name not in SELF or not covered:
        return None
    plain = fn.form
    x, mask = covered[-1]
    with contextlib.suppress(Broken):
        if not hides_nothing(fn, x, mask):
            for other in candidates(fn, form, offered, cases):
                fewer = other.layout in (alone, without_heads)
                fn.form = other
                if (
                    fewer
                    and other.absent != "full"
                    and hides_nothing(fn, x, mask)
                ):
                    return other
    fn.form = plain
    return None


def may_get_masks(fn: Guarded) -> bool:
    """Tell whether it may get masks: of a model, arguments tell.

    There are some for masks, or more than it has ids for.
    """
    if fn.component.name not in MODELS or not callable(fn.fn):
        return True
    wants = wanted(fn.fn)
    named = any("mask" in name.lower() for name in wants.all)
    return named or len(wants.required) != len(fn.component.parameters)


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
    if name in MASKS or fn.adapted:
        return making_masks(fn, form) if name in MASKS else None
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
    if {*wants.names[1:]} & wants.required & USUAL.keys():
        # Such as a device, which is the same for everybody.
        form = found = replace(form, style=by_place(*form.parameters))
        form = found = replace(form, wants=wants)
    second = wants.names[1:2] if fn.component.name == "padding_mask" else ()
    if second and not ({*second} & wants.required or A_PAD.search(second[0])):
        said = (*form.said, NO_PAD.format(second[0]))
        style = by_place("tokens")
        found = replace(form, style=style, wants=wants, said=said)
    if fn.component.name == "causal_mask" and not makes_ones(fn, form):
        said = (*form.said, GOT_IDS)
        of_ids = replace(form, style=as_many_ids, wants=wants, said=said)
        found = of_ids if makes_ones(fn, of_ids) else found
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


MAY_BE_A_MASK = re.compile(
    "(?i)mask|allow|keep|visib|valid|pad|attend|blocked|forbid|^hide$|^m$"
)
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
