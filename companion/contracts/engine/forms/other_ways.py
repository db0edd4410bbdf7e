"""What no shape can tell: how else to ask."""

from collections.abc import Iterator
from dataclasses import replace

from companion.contracts.adapters import (
    heads_after_positions,
    mask_added,
    shifts_itself,
    with_causal_mask,
)
from companion.contracts.engine.forms.adopt import adopt
from companion.contracts.engine.forms.fitting import fits
from companion.contracts.engine.forms.form import (
    FIRST,
    Form,
    behind_adapter,
    flat,
)
from companion.contracts.engine.forms.lengths import by_lengths
from companion.contracts.engine.forms.signature import MASKS, MODELS, wanted
from companion.contracts.engine.forms.styles import ONE_HEAD, with_causal
from companion.contracts.engine.forms.three_axes import OF_THREE
from companion.contracts.engine.guard import (
    Guarded,
)

__all__ = [
    "ASK_FIRST",
    "ASK_SHIFTED",
    "NONE",
    "other_ways",
]

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
