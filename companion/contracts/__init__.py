"""Contracts: what every correct implementation of a component does.

    from companion.contracts import check

    report = check("attention", attention)

A report says which contracts hold, and names the likely mistake where one does
not. Whatever the function does, ``check`` reports it and comes back.
"""

import difflib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from torch import nn

from companion.contracts.attention.attention import ATTENTION
from companion.contracts.attention.masked_softmax import MASKED_SOFTMAX
from companion.contracts.attention.softmax import SOFTMAX
from companion.contracts.blocks.feed_forward import FEED_FORWARD
from companion.contracts.blocks.layer_norm import LAYER_NORM
from companion.contracts.blocks.norm_gradient import NORM_GRADIENT
from companion.contracts.decoding.beam_search import BEAM_SEARCH
from companion.contracts.decoding.bleu import BLEU
from companion.contracts.decoding.cached_decode import CACHED_DECODE
from companion.contracts.decoding.greedy_decode import GREEDY_DECODE
from companion.contracts.decoding.greedy_decode_batch import GREEDY_DECODE_BATCH
from companion.contracts.decoding.sampling_filter import SAMPLING_FILTER
from companion.contracts.discovery.models import ModelReport, judge_model
from companion.contracts.efficiency.flash_attention import FLASH_ATTENTION
from companion.contracts.efficiency.online_softmax import ONLINE_SOFTMAX
from companion.contracts.efficiency.paged_cache import PAGED_CACHE
from companion.contracts.efficiency.quantize import QUANTIZE
from companion.contracts.efficiency.speculative_step import SPECULATIVE_STEP
from companion.contracts.engine.forms.fitting import takes_mask
from companion.contracts.engine.guard import Guarded
from companion.contracts.engine.modules.devices import (
    Moved,
    made_on_the_cpu,
    on_the_cpu,
)
from companion.contracts.engine.relative import with_equal_distances
from companion.contracts.engine.report import Failure, Report, report_on
from companion.contracts.engine.runner import (
    Found,
    again,
    as_asked,
    assumed,
    at_home,
    called,
    gate_shut,
    is_fault,
    outcomes,
    undisturbed,
)
from companion.contracts.masks.causal_mask import CAUSAL_MASK
from companion.contracts.masks.combine_masks import COMBINE_MASKS
from companion.contracts.masks.padding_mask import PADDING_MASK
from companion.contracts.multihead.causal_attention import CAUSAL_ATTENTION
from companion.contracts.multihead.multihead import MULTIHEAD
from companion.contracts.multihead.split_heads import SPLIT_HEADS
from companion.contracts.positions.add_positions import ADD_POSITIONS
from companion.contracts.positions.rope import ROPE
from companion.contracts.positions.sinusoidal import SINUSOIDAL
from companion.contracts.rnn.rnn import RNN
from companion.contracts.seq2seq.alignment import ALIGNMENT
from companion.contracts.tokens.bpe_decode import BPE_DECODE
from companion.contracts.tokens.bpe_encode import BPE_ENCODE
from companion.contracts.tokens.learn_merges import LEARN_MERGES
from companion.contracts.tokens.split_special import SPLIT_SPECIAL
from companion.contracts.training.clip_gradients import CLIP_GRADIENTS
from companion.contracts.training.label_smoothing import LABEL_SMOOTHING
from companion.contracts.training.schedule import SCHEDULE
from companion.contracts.transformer.attention_maps import ATTENTION_MAPS
from companion.contracts.transformer.encoder import ENCODER
from companion.contracts.transformer.encoder_layer import ENCODER_LAYER
from companion.contracts.transformer.language_model import LANGUAGE_MODEL
from companion.contracts.transformer.parameter_count import PARAMETER_COUNT
from companion.contracts.transformer.shift_right import SHIFT_RIGHT
from companion.contracts.transformer.translation_model import TRANSLATION_MODEL
from companion.contracts.variants.grouped_query_attention import (
    GROUPED_QUERY_ATTENTION,
)
from companion.contracts.variants.mask_tokens import MASK_TOKENS
from companion.contracts.variants.rms_norm import RMS_NORM
from companion.contracts.variants.span_corrupt import SPAN_CORRUPT
from companion.contracts.variants.span_restore import SPAN_RESTORE
from companion.words import ENGLISH, require_language

COMPONENTS = {
    c.name: c
    for c in (
        SOFTMAX,
        MASKED_SOFTMAX,
        ATTENTION,
        RNN,
        ALIGNMENT,
        SPLIT_HEADS,
        MULTIHEAD,
        CAUSAL_ATTENTION,
        SINUSOIDAL,
        ADD_POSITIONS,
        ROPE,
        LAYER_NORM,
        NORM_GRADIENT,
        FEED_FORWARD,
        CAUSAL_MASK,
        PADDING_MASK,
        COMBINE_MASKS,
        ENCODER,
        ENCODER_LAYER,
        ATTENTION_MAPS,
        LANGUAGE_MODEL,
        TRANSLATION_MODEL,
        PARAMETER_COUNT,
        LEARN_MERGES,
        BPE_ENCODE,
        BPE_DECODE,
        SPLIT_SPECIAL,
        LABEL_SMOOTHING,
        SCHEDULE,
        CLIP_GRADIENTS,
        SHIFT_RIGHT,
        GREEDY_DECODE,
        GREEDY_DECODE_BATCH,
        BEAM_SEARCH,
        SAMPLING_FILTER,
        BLEU,
        CACHED_DECODE,
        MASK_TOKENS,
        SPAN_CORRUPT,
        SPAN_RESTORE,
        GROUPED_QUERY_ATTENTION,
        RMS_NORM,
        ONLINE_SOFTMAX,
        FLASH_ATTENTION,
        PAGED_CACHE,
        QUANTIZE,
        SPECULATIVE_STEP,
    )
}
"""Name -> what can be checked."""

__all__ = [
    "COMPONENTS",
    "Failure",
    "ModelReport",
    "Report",
    "check",
    "check_model",
    "checks",
    "each_contract",
]


def check(
    component: str,
    fn: object,
    *,
    mask: str | None = None,
    strict: bool = False,
    lang: str = ENGLISH,
) -> Report:
    """Try every contract of ``component`` on the function ``fn``.

    What does not hold is a fault, a risk or a note: wrong for inputs that it
    will meet, wrong only where a rare input comes, or another convention.

    Torch's and Python's random numbers, grad mode and default number type are
    afterwards what they were. A function that does not come back is stopped,
    unless it sits in C code that lets no other thread run.

    Code that wants to be called in another way than the contracts call, or
    gives back more than they ask for, is called in its own way where that can
    be found out: ``assumed`` of the report says how.

    The contracts run on the CPU. A module that lives elsewhere is moved there
    and back; if nothing is wrong with it, it is also called where it lives.

    Args:
        component: The name of what ``fn`` claims to be, a key of COMPONENTS.
        fn: The function, or a module that is one.
        mask: What True means in its masks, ``"shown"`` or ``"hidden"``. By
            default it shows, and the report says if only the other would do.
        strict: Whether risks and notes count as faults, as where an exercise
            asks for exactly what the contracts say.
        lang: In which language the report is shown, ``"en"`` or ``"zh"``.

    Returns:
        Which contracts hold, which do not, and the likely mistake.

    Raises:
        TypeError: ``component`` is not a string.
        ValueError: no component has this name, ``mask`` or ``lang`` is another
            word, or the component has no mask.

    Example:
        >>> check("softmax", torch.softmax).passed
        True
    """
    require_language(lang)
    found = report_for(component, fn, mask=mask, strict=strict)
    return replace(found, lang=lang)


def report_for(
    component: str,
    fn: object,
    *,
    mask: str | None = None,
    strict: bool = False,
    brief: bool = False,
) -> Report:
    """Do what ``check`` does, or only so much as is needed to find a fault.

    Args:
        component: As for ``check``.
        fn: As for ``check``.
        mask: As for ``check``.
        strict: As for ``check``.
        brief: Whether the first fault is enough; ``whole()`` of the report then
            goes on.

    Returns:
        Which contracts hold, which do not, and the likely mistake.

    Raises:
        TypeError: As ``check`` does.
        ValueError: As ``check`` does.
    """
    if not isinstance(component, str):
        raise TypeError(
            "component: expected a name such as 'attention', got a "
            f"{type(component).__name__}; the function comes second"
        )
    if component not in COMPONENTS:
        near = difflib.get_close_matches(component, COMPONENTS, 1)
        ask = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"component: expected one of {', '.join(sorted(COMPONENTS))}, "
            f"got {component!r}.{ask}"
        )
    found = COMPONENTS[component]
    require_known(mask)
    if mask and not takes_mask(found):
        raise ValueError(f"mask: {component!r} has no mask, got {mask!r}")
    report = reported(Guarded(found, fn), mask, strict=strict, brief=brief)
    if strict:
        return report
    return with_equal_distances(
        fn,
        report,
        lambda: reported(Guarded(found, fn), mask, strict=False, brief=True),
    )


def reported(
    guarded: Guarded,
    mask: str | None,
    begun: Found = (),
    *,
    strict: bool,
    brief: bool = False,
) -> Report:
    """Try the contracts, behind those that were tried already, and report."""
    with undisturbed(guarded) as lodged:
        guarded.asks_why = not brief
        tried = outcomes(guarded, mask, begun=begun, brief=brief)
        if brief and is_fault(tried) and not gate_shut(tried):
            # The cause of the fault was not looked for yet.
            known = tried[:-1]
            rest = partial(reported, again(guarded), mask, known, strict=strict)
            first = report_on(guarded, tried, called(guarded), strict=strict)
            return replace(first, rest=rest)
        if lodged.home and not any(broken for _, broken in tried):
            tried.append(at_home(guarded, lodged))
        said = assumed(guarded, tried, mask)
        if not strict:
            as_asked(tried, said)
        return report_on(guarded, tried, said, strict=strict)


def check_model(
    model: nn.Module, *, mask: str | None = None, lang: str = ENGLISH
) -> ModelReport:
    """Find out what a model is, and judge it and its parts.

    It is tried on small ids or vectors: what it takes and returns, and who
    moves with whom, tells a translator from a language model, and attention
    from a norm. One of each class and size is judged. What there are no
    contracts for is listed, with the reason. Where nobody has said what True
    means in masks, and a part fits only if it hides, that is asked, and is a
    risk. All of it is done on the CPU: a model that lives elsewhere is moved
    there and back.

    Args:
        model: A module. Its vocabulary needs 10 ids, and 0 is padding; a small
            one is judged more quickly, and as well.
        mask: What True means in its masks, ``"shown"`` or ``"hidden"``.
        lang: In which language the report is shown, ``"en"`` or ``"zh"``.

    Returns:
        A report on each part, and what could not be judged.

    Raises:
        TypeError: ``model`` is no module.
        ValueError: ``mask`` or ``lang`` is another word.

    Example:
        >>> import companion
        >>> check_model(companion.MultiHeadAttention(24, 3)).headline
        'MultiHeadAttention: multihead; 1 part judged, no fault'
    """
    if not isinstance(model, nn.Module):
        raise TypeError(
            "model: expected a module, torch.nn.Module, got a "
            f"{'class' if isinstance(model, type) else type(model).__name__}"
        )
    require_known(mask)
    require_language(lang)
    judge = partial(of_masks, mask=mask) if mask else report_for
    with Moved(model), made_on_the_cpu(), on_the_cpu():
        return replace(judge_model(model, judge), lang=lang)


def of_masks(
    component: str, fn: object, *, mask: str, brief: bool = False
) -> Report:
    """Try the contracts with what True means, if there is a mask at all."""
    word = mask if takes_mask(COMPONENTS[component]) else None
    return report_for(component, fn, mask=word, brief=brief)


def require_known(mask: str | None) -> None:
    """Refuse another word for what True means in masks.

    Raises:
        ValueError: It is neither of the two.
    """
    if mask not in (None, "hidden", "shown"):
        raise ValueError(
            f'mask: expected "hidden" or "shown", what True does, got {mask!r}'
        )


def each_contract(component: str, **options: Any) -> Callable:
    """Make of a function that builds your code one pytest test a contract.

    Args:
        component: What the function returns claims to be.
        options: What else ``check`` takes.

    Returns:
        A decorator for a test: its body returns what is to be checked, and its
        fixtures are those of the test.

    Raises:
        ValueError: no component has this name.

    Example:
        >>> @each_contract("multihead")
        ... def test_multihead():
        ...     return MultiHead(d_model=12, num_heads=3)
    """
    from companion.contracts.pytest_tests import parametrized

    return parametrized(component, options, check, COMPONENTS)


def checks(component: str, *args: Any, **named: Any) -> Callable:
    """Mark what ``python -m companion check`` checks, and change nothing.

    Args:
        component: What the function below claims to be, whatever its name is.
        args: What a class, or a function that builds a module, is to be called
            with: what comes back is checked.
        named: The same, by name.

    Returns:
        A decorator that returns what it is given.

    Raises:
        TypeError: ``component`` is not a string.

    Example:
        >>> @checks("softmax")
        ... def my_softmax(scores, dim):
        ...     return scores.softmax(dim)
    """
    if not isinstance(component, str):
        raise TypeError(
            "component: expected a name, as in @checks('attention'), got a "
            f"{type(component).__name__}"
        )
    return lambda fn: fn
