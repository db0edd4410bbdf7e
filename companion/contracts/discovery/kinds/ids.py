"""Judge what takes ids: translators and language models."""

import contextlib
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from companion.contracts.adapters import sequence_first
from companion.contracts.discovery.arguments import (
    BATCH,
    SEQ,
    least_arguments,
    most_arguments,
    required_names,
)
from companion.contracts.discovery.kinds.beside_memory import (
    BesideMemory,
    beside_memory,
)
from companion.contracts.discovery.kinds.calls import (
    DECODER,
    LOOKS,
    NOTHING,
    RAISED,
    answer,
    first,
    has_triangle,
    masks_are_told,
    refuses,
    was_called,
    widths,
)
from companion.contracts.discovery.kinds.embeddings import (
    ADDED_ALONE,
    positions_alone,
)
from companion.contracts.discovery.kinds.logits import in_their_place
from companion.contracts.discovery.kinds.nan import (
    held_nan,
    is_nan,
    with_nan_by,
)
from companion.contracts.discovery.kinds.narrow import ROWS_ALONE
from companion.contracts.discovery.kinds.padding import (
    PADDED_WITH,
    padded_with,
    paddings,
)
from companion.contracts.discovery.kinds.unmasked import given_its_mask
from companion.contracts.discovery.kinds.vectors import (
    CONVOLUTION,
    NO_PADDING,
    Adding,
    convolves,
    judged_on_vectors,
    of_positions,
)
from companion.contracts.discovery.limits import (
    limit,
    of_one_length,
    only_length,
)
from companion.contracts.discovery.raising import fails
from companion.contracts.discovery.readings import (
    said_by,
    settled,
)
from companion.contracts.discovery.sizes import WIDTH
from companion.contracts.discovery.verdict import (
    STOPPED,
    Check,
    Judged,
    Raises,
    Unjudged,
    in_time,
)
from companion.contracts.engine.compare import draw
from companion.contracts.engine.component import title
from companion.contracts.engine.forms.signature import SAME
from companion.contracts.engine.levels import FAULT, RISK
from companion.contracts.engine.modules.around import Around
from companion.contracts.engine.modules.common import (
    module_kept,
    watched,
)
from companion.contracts.engine.report import Report
from companion.contracts.engine.runner import (
    EITHER_FIRST,
    WHICH_FIRST,
)
from companion.contracts.engine.scale import (
    axis_heard,
)
from companion.contracts.transformer.language_model import (
    NO_MASK,
    sentences_apart,
)
from companion.contracts.transformer.translation_model import source_padding

__all__ = [
    "SEES_ALL",
    "judged_on_ids",
    "never_read",
    "takes_ids",
    "unheard_mask",
]

TWO_ROWS = [1, 2, 3, 4, 5], [5, 4, 3, 2, 1]
"""Ids to ask with: of both rows each id stands somewhere else, but 3."""

SEES_ALL = "every row sees all tokens"


NAMES_OF_IDS = re.compile(
    r"(?i)((input|token|src|tgt|trg|source|target)s?_?)?(ids|idxs?|indices)"
)
"""What only ids are called, and no vectors."""


def takes_ids(module: nn.Module) -> bool:
    """Tell whether something in it looks up ids, or they are asked for."""
    names = [name.lower() for name in required_names(module)[:3]]
    if len(names) == 3 and all(map(of_attention, names, "qkv")):
        return False  # What it looks up are numbers for distances, perhaps.
    bags = any(isinstance(x, nn.EmbeddingBag) for x in module.modules())
    if bags or rows_for_ids(module):
        return True
    if any(map(NAMES_OF_IDS.fullmatch, required_names(module)[:1])):
        return True
    return answers_ids(module)


def of_attention(name: str, which: str) -> bool:
    """Tell whether queries, keys or values are called so."""
    return name in SAME[which]


def answers_ids(module: nn.Module) -> bool:
    """Tell whether it answers one of the usual calls with ids."""
    ids = torch.tensor(TWO_ROWS)
    calls = [(ids,), (ids, None), (ids, ids), (ids, ids[:, 1:])]
    calls += [(ids, ids, None, None), (ids, None, None)]
    return any(answer(module, args) is not None for args in calls)


def rows_for_ids(module: nn.Module) -> list[int]:
    """List how many ids each embedding in it knows, PyTorch's or its own."""
    return [
        len(next(part.parameters()))
        for part in module.modules()
        if isinstance(part, nn.Embedding) or looks_up(part)
    ]


def looks_up(part: nn.Module) -> bool:
    """Tell whether it is an embedding that somebody wrote.

    It holds one table, has a row of it for each id, and takes no vectors.
    """
    own = [*part.parameters()]
    if len(own) != 1 or own[0].ndim != 2 or len(own[0]) < 2:
        return False
    ids = torch.tensor([[0, 1, 1]])
    found = answer(part, (ids,))
    vectors = torch.zeros(*ids.shape, len(own[0].mT))
    return (
        found is not None
        and found.shape == vectors.shape
        and answer(part, (vectors,)) is None
    )


def judged_on_ids(module: nn.Module, check: Check, vectors: Unjudged) -> Judged:
    """Judge a translator or a language model."""
    known = rows_for_ids(module)
    module = in_time(lambda: in_their_place(module, known))
    if positions := judged_positions(module, check):
        return positions
    report = translates = None
    if most_arguments(module) > 1:
        report, words = on_ids_with_its_padding(
            "translation_model", module, check
        )
        said = ["two rows of ids go in, and logits for the second come out"]
        said += [words] if words else []
        if was_called(report):
            require_no_limit(module, report)
            return Judged("translation_model", report, tuple(said))
        translates = report
    report, words = on_ids_with_its_padding("language_model", module, check)
    if nan := in_time(lambda: nan_for_any_ids(module, report)):
        return Judged("language_model", nan, (IDS_TO_LOGITS,))
    both = translates is not None and in_time(lambda: reads_both(module))
    if both or not was_called(report):
        if len(required_names(module)) > 1 and not isinstance(
            module, BesideMemory
        ):
            beside = in_time(lambda: beside_memory(module))
            if beside is not None:
                return judged_on_ids(beside, check, vectors)
        raise not_called(module, vectors, translates, report)
    require_no_limit(module, report)
    report = in_its_order(module, check, report, vectors)
    report = by_its_memory(report, in_time(lambda: its_own_memory(module)))
    said = IDS_TO_LOGITS
    if in_time(lambda: returns_vectors(module)):
        said = STATES
    return Judged("language_model", report, tuple(filter(None, (said, words))))


def on_ids_with_its_padding(
    component: str, module: nn.Module, check: Check
) -> tuple[Report, str]:
    """Check a model, and with its own padding too if that mends anything.

    Args:
        component: What it is.
        module: The model; 0 is its padding at first.
        check: ``companion.contracts.check``.
    """
    best, said = on_ids(component, module, check)
    rows = 2 if component == "translation_model" else 1
    late = any(STOPPED.search(f.message) for f in best.failures)
    for pads in () if late or not best.faults else paddings(module, rows):
        other, words = on_ids(component, padded_with(module, pads), check)
        heard = rows == 1 or title(source_padding) in other.held
        if heard and was_called(other) and less_wrong(other, best):
            told = PADDED_WITH.format(" and ".join(map(str, pads)))
            best, said = other, "; ".join(filter(None, (words, told)))
    return best, said


def less_wrong(one: Report, other: Report) -> bool:
    """Tell whether fewer contracts fail, or more could be tried at all."""
    if one.untried or other.untried:
        return not one.untried and bool(other.untried)
    return len(one.faults) < len(other.faults)


def judged_positions(module: nn.Module, check: Check) -> Judged | None:
    """Judge positions that come alone, or beside the rows of ids.

    None, if there is more in it.

    Raises:
        Unjudged: There are some, and not as many as ids.
    """
    if found := in_time(lambda: positions_alone(module)):
        return of_positions_alone(*found, check, ADDED_ALONE)
    if not in_time(lambda: ids_only_by_their_place(module)):
        return None
    if width := in_time(lambda: width_of_positions(module)):
        return of_positions_alone(Adding(module), width, check, ROWS_ALONE)
    raise Unjudged(
        "ids go in, and what comes out does not depend on which they are: a "
        "table of positions, for which `add_positions` and `sinusoidal` have "
        "contracts"
    )


def of_positions_alone(
    module: nn.Module, width: int, check: Check, said: str
) -> Judged:
    """Judge what adds positions to vectors, once it is understood so.

    Args:
        module: It takes vectors.
        width: How wide they are.
        check: ``companion.contracts.check``.
        said: What was made of it.
    """
    x = draw(BATCH, SEQ, width, seed=7)
    judged = judged_on_vectors(module, check, {}, width, (x,), str)
    return replace(judged, assumed=(said, *judged.assumed))


def in_its_order(
    module: nn.Module, check: Check, report: Report, vectors: Unjudged
) -> Report:
    """Judge a language model with its mask, or the sequence first, if need be.

    Args:
        module: It was called with the batch first, and without a mask.
        check: ``companion.contracts.check``.
        report: What was found then.
        vectors: Why it cannot be called with vectors.

    Raises:
        Unjudged: It is none, or may be none.
    """
    if given := given_its_mask(module, check, report):
        return given
    turned = along_the_first(module, check, report)
    if turned is None and (
        fewer := fewer_along_the_first(module, check, report)
    ):
        return fewer
    recurrent = any(isinstance(x, nn.RNNBase) for x in module.modules())
    if not (turned and recurrent):
        own = sequence_first(module) if turned else module
        name = type(module).__name__
        if refused := why_unjudged(own, turned or report, vectors, name):
            raise refused
    return either_first(report, turned) if turned else report


ALONE = title(sentences_apart)
"""What a language model breaks that is called with its axes swapped."""


OF_ROWS = re.compile("its logits, one row a token,")
"""What is said of logits without axes for sentences and tokens."""


class InRows(Around):
    """Gives logits the axes of the ids, whichever of them comes first."""

    def forward(self, ids: Tensor) -> Tensor:
        """Return logits for ``ids``."""
        return first(self.module(ids)).unflatten(0, ids.shape)


def along_the_first(
    module: nn.Module, check: Check, report: Report
) -> Report | None:
    """Check a model with the sequence first, if a layer of PyTorch's is so.

    One without ``batch_first`` is. Nothing, where that mends nothing.

    Args:
        module: It was called with the batch first.
        check: ``companion.contracts.check``.
        report: What was found then.
    """
    layers = nn.RNNBase | nn.MultiheadAttention
    own = [x for x in module.modules() if isinstance(x, layers)]
    if not report.faults or all(x.batch_first for x in own):
        return None
    flat = any(map(OF_ROWS.search, report.assumed))
    own = InRows(module) if flat else module
    turned = check("language_model", sequence_first(own))
    left = {f.contract for f in turned.faults}
    if ALONE in left:
        return None  # Its sentences see each other: it does not come first.
    mends = any(f.contract not in left for f in report.faults)
    return turned if was_called(turned) and mends else None


def fewer_along_the_first(
    module: nn.Module, check: Check, report: Report
) -> Report | None:
    """Check a model with the sequence first, if it is wrong either way.

    Nothing, if it is right so, for then only its writer knows; or if no less is
    wrong.

    Args:
        module: It was called with the batch first.
        check: ``companion.contracts.check``.
        report: What was found then.
    """
    broken = {f.contract for f in report.faults}
    if ALONE not in broken or not rows_for_ids(module):
        return None
    other = check("language_model", sequence_first(module))
    apart = was_called(other) and ALONE in other.held
    if not (apart and 0 < len(other.faults) < len(report.faults)):
        return None
    failures = [
        replace(f, message=f.message.replace("`yours.", "`"))
        for f in other.failures
    ]
    said = (*other.assumed, SO_FEWER_FAIL)
    return replace(other, failures=failures, assumed=said)


SO_FEWER_FAIL = (
    "the sequence came first in what it got, for so fewer contracts fail"
)


def either_first(report: Report, turned: Report) -> Report:
    """Make risks of faults that are none where the sequence comes first.

    Args:
        report: With the batch first.
        turned: With the sequence first.
    """
    left = {f.contract for f in turned.faults}
    kept = [
        replace(f, level=RISK, why=EITHER_FIRST, cause=WHICH_FIRST)
        if f.level == FAULT and f.contract not in left
        else f
        for f in report.failures
    ]
    return replace(report, failures=kept)


def why_unjudged(
    module: nn.Module, report: Report, vectors: Unjudged, name: str
) -> Unjudged | None:
    """Say why what is no language model, or may be none, is not judged.

    Args:
        module: It was called as a language model.
        report: What was found then.
        vectors: Why it cannot be called with vectors.
        name: What its class is called.
    """
    messages = " ".join(f.message for f in report.failures)
    if "its own token only" in messages and only_looks_up(module):
        if not [*module.parameters()]:
            return vectors  # There is no table in it.
        return Unjudged("it looks ids up, and no place sees another")
    if of_positions(report) and in_time(lambda: convolves_ids(module)):
        return Unjudged(f"{LOOKS} language_model, but {CONVOLUTION}")
    if report.faults and in_time(lambda: returns_states(module)):
        return Unjudged(f"ids go in, and {RECURRENT_STATES}")
    sees_all = "sees all tokens" in messages
    if sees_all and not is_meant_to_be_causal(module, name):
        says = [
            f"ids go in, a row of numbers for each comes out, and {SEES_ALL}.",
            "If it predicts the next token, this is a fault: the causal mask "
            "is missing.",
            "If it fills gaps, or is an encoder, it is right.",
            'Only you know: `check("language_model", …)` judges it as the '
            "former",
        ]
        if mask := in_time(lambda: unheard_mask(module)):
            says.insert(-1, UNHEARD.format(mask))
        return Unjudged(" ".join(says))
    return None


CAUSAL = re.compile(
    r"(?i)gpt|llama|mistral|gemma|qwen|decoder_?only|causal_?lm"
)
"""What models are called that predict the next token."""


def is_meant_to_be_causal(module: nn.Module, name: str) -> bool:
    """Tell whether a model is to predict the next token.

    Its name says so, it holds a causal mask, or a decoder of PyTorch's is given
    one, and what it decodes once more as its memory.
    """
    if has_triangle(module) or CAUSAL.search(name):
        return True
    return bool(in_time(lambda: its_own_memory(module)))


OF_A_DECODER = "tgt", "memory", "tgt_mask", "memory_mask"


def its_own_memory(module: nn.Module) -> str:
    """Name a decoder that is given what it decodes as its memory, too."""
    kinds = nn.TransformerDecoder | nn.TransformerDecoderLayer
    parts = {x: n for n, x in module.named_modules() if isinstance(x, kinds)}
    found = []

    def before(part: nn.Module, args: tuple, words: dict) -> None:
        given = dict(zip(OF_A_DECODER, args, strict=False)) | words
        tgt, memory, past, over_memory = map(given.get, OF_A_DECODER)
        if tgt is memory and past is not None and over_memory is None:
            found.append(parts[part])

    ids = torch.tensor(TWO_ROWS)
    with watched(parts, before):
        answer(module, (ids,))
    return found[0] if found else ""


MEMORY = (
    "`{}` gets as its memory what it decodes, and sees all of that: only "
    "`tgt_mask` is handed on, and no `memory_mask`."
)


def by_its_memory(report: Report, name: str) -> Report:
    """Name the decoder by whose memory a language model sees all tokens.

    Args:
        report: What was found.
        name: What the decoder is called, if there is one.
    """
    if not name:
        return report
    cause = MEMORY.format(name)
    failures = [
        replace(f, message=f.message.replace(NO_MASK, cause), cause=cause)
        if NO_MASK in f.message
        else f
        for f in report.failures
    ]
    return replace(report, failures=failures)


RECURRENT_STATES = (
    "what a recurrent layer keeps comes out, with no row for each of them"
)


def returns_states(module: nn.Module) -> bool:
    """Tell whether a recurrent module returns what has no row for an id.

    Its first sizes are those of layers and sentences then, which may be the
    sizes of what went in by chance.
    """
    ids = torch.tensor([[1, 2, 3, 4, 5, 6, 7]] * 3)
    found = answer(module, (ids,))
    recurrent = any(isinstance(x, nn.RNNBase) for x in module.modules())
    if not recurrent or found is None:
        return False
    return found.shape[:2] not in (ids.shape, ids.mT.shape)


def convolves_ids(module: nn.Module) -> bool:
    """Tell whether a convolution mixes the ids of a row, and no attention."""
    ids = torch.tensor(TWO_ROWS)
    return convolves(module, lambda: answer(module, (ids,)))


UNHEARD = (
    "Whatever `{}` hides, no number changes: is it handed on to the attention?"
)


def unheard_mask(module: nn.Module) -> str:
    """Return the name of a mask of padding that hides nothing, or nothing.

    It is the second argument; the usual shapes and types are tried.
    """
    names = [*inspect.signature(module.forward).parameters]
    if len(names) < 2 or "mask" not in names[1]:
        return ""
    ids = torch.tensor(TWO_ROWS)
    rest = [None] * (least_arguments(module) - 2)
    with module_kept(module), torch.no_grad():
        module.eval()
        unread = never_read(lambda mask: answer(module, (ids, mask, *rest)))
    return names[1] if unread else ""


def never_read(call: Callable[[Tensor], Tensor | None]) -> bool:
    """Tell whether masks of all usual shapes and types change nothing.

    Args:
        call: Returns what comes of a mask for 2 sentences of 5, or nothing if
            the mask is refused.
    """
    taken = False
    shown = torch.ones(BATCH, SEQ, dtype=torch.bool)
    shown[0, 1:3] = False
    pairs = shown[:, None].expand(BATCH, SEQ, SEQ)
    shapes = [shown, shown[:, None], shown[:, None, None]]
    shapes += [pairs[0], pairs, pairs[:, None]]
    for mask in shapes:
        for kind in (torch.bool, torch.long, torch.float):
            every = (mask, ~mask, torch.ones_like(mask))
            got = [call(one.to(kind)) for one in every]
            if any(x is None for x in got):
                continue
            if not all(torch.equal(x, got[0]) for x in got):
                return False
            taken = True
    return taken


IDS_TO_LOGITS = "a row of ids goes in, and logits for each of them come out"


NAN = (
    "So it is with any ids, and its weights are finite: does some row of the "
    "mask hide all, so that its softmax is 0/0? A causal mask keeps the "
    "diagonal: `tril()` says who may attend, and `triu(1)` what to hide."
)


def nan_for_any_ids(module: nn.Module, report: Report) -> Report | None:
    """Return a report on logits that are NaN whatever the ids; else nothing.

    Some ids may be padding, and weights that nobody has drawn may be anything.
    """
    if not is_nan(report):
        return None
    drawn = all(
        p.isfinite().all() and p.abs().max() < 1e4
        for p in module.parameters()
        if p.numel() and p.is_floating_point()
    )
    ids = torch.arange(1, 10)[:, None].expand(-1, SEQ)
    found = answer(module, ((ids + torch.arange(SEQ)) % 9 + 1,))
    if not drawn or found is None or found.ndim != 3:
        return None
    if not found.isnan().flatten(2).any(-1).all(0).any():
        return None
    over = axis_heard(lambda: answer(module, (ids,)), len(ids)) or NAN

    def finite() -> bool:
        found = answer(module, (ids,))
        return found is not None and bool(found.isfinite().all())

    return with_nan_by(report, held_nan(module, finite) or over)


def not_called(
    module: nn.Module,
    vectors: Unjudged,
    translates: Report | None,
    report: Report,
) -> Unjudged:
    """Say why neither a translator nor a language model could be called."""
    if DECODER in str(vectors) and not names_both(module):
        return vectors
    first, *_ = [*required_names(module), ""]
    if "mask" in first:
        return Unjudged(f"what it takes is called a mask, `{first}`")
    two = [name for name in required_names(module) if "mask" not in name][1:]
    # What wants two rows of ids says nothing where it gets one.
    asked = translates if two and translates is not None else report
    (failure, *_) = asked.failures
    why = why_no_model(module, failure.message)
    own = [*widths(module), WIDTH][:1]
    raises = RAISED in why and not refuses(why)
    bad = raises and in_time(lambda: fails(module, own, ids=True))
    return Raises(why) if bad else Unjudged(why)


def names_both(module: nn.Module) -> bool:
    """Tell whether it takes a source and a target, by their names."""
    names = required_names(module)
    targets = [name for name in names[1:] if name in SAME["tgt"]]
    return bool(targets) and names[0] in SAME["src"]


STATES = (
    "a row of ids goes in, and a vector for each of them comes out: below an "
    "output layer this is a language model, whose states were judged"
)


def returns_vectors(module: nn.Module) -> bool:
    """Tell whether what it returns is as wide as its table, not as long."""
    ids, past = torch.tensor([[1, 2, 3]]), torch.ones(3, 3).bool().tril()
    for mask in (None, past, past[None], past[None, None]):
        rest = [mask] * (least_arguments(module) - 1)
        found = answer(module, (ids, *rest))
        if found is not None and found.ndim == 3:
            rows = rows_for_ids(module)
            tables = [p for p in module.parameters() if len(p) in rows]
            known = {p.shape[-1] for p in tables if p.ndim == 2}
            return found.shape[-1] in known - {*rows}
    return False


def require_no_limit(module: nn.Module, report: Report) -> None:
    """Refuse a model whose memory, or one length, may be why it fails.

    Raises:
        Unjudged: It is so.
    """
    if why := in_time(lambda: limit(module, report)):
        raise Unjudged(why)


def reads_both(module: nn.Module) -> bool:
    """Tell whether it wants two rows of ids, and logits come of both.

    So do a translator's, and not those of a language model, which gets what
    is to follow for its loss. What says of which segment a token is comes
    with every token, and makes no translator.
    """
    two = [name for name in required_names(module) if "mask" not in name]
    if len(two) < 2 or re.search("(?i)seg|type", " ".join(two)):
        return False
    one = torch.tensor(TWO_ROWS)
    masks = [None] * (least_arguments(module) - 2)
    rows = (one, one), (one % 5 + 1, one), (one, one % 5 + 1)
    got = [answer(module, (*pair, *masks)) for pair in rows]
    if any(x is None or x.ndim < 3 for x in got):
        return False
    before, *after = got
    return not any(torch.equal(before, x) for x in after)


def on_ids(
    component: str, module: nn.Module, check: Check
) -> tuple[Report, str]:
    """Check a model, in either reading of the masks that it may be given."""
    # What its `forward` leaves out would be told as weights without a part.
    with never_called(module) as tops:
        answered = in_time(lambda: answers_ids(module))
    tried = tops if answered else []
    if found := with_top(component, module, check, tried):
        return found
    with never_called(module) as tops:
        report = check(component, module, brief=True)
    left = [name for name in tops if name not in tried and report.faults]
    return with_top(component, module, check, left) or in_either_reading(
        component, module, check, report
    )


def with_top(
    component: str, module: nn.Module, check: Check, tops: list[str]
) -> tuple[Report, str] | None:
    """Check a model with one of its parts on top, the first that fits.

    Args:
        component: What it is.
        module: The model.
        check: ``companion.contracts.check``.
        tops: The names of the parts.
    """
    for name in tops:
        topped = Topped(module, name)
        report = check(component, topped, brief=True)
        if was_called(report):
            whole, words = in_either_reading(component, topped, check, report)
            whole = with_own_names(whole)
            said = f"`{name}` stands on top, which its `forward` leaves out"
            return whole, "; ".join(filter(None, (said, words)))
    return None


def with_own_names(report: Report) -> Report:
    """Name the parts of a model as it does, and not as `Topped` does."""
    failures = [
        replace(one, message=one.message.replace("`module.", "`"))
        for one in report.failures
    ]
    return replace(report, failures=failures)


def in_either_reading(
    component: str, module: nn.Module, check: Check, report: Report
) -> tuple[Report, str]:
    """Settle what True means in the masks of a model, and how it is then."""
    given = any(re.search("masks? too", said) for said in report.assumed)
    if not given or masks_are_told(check):
        models = component == "language_model"
        if models and why_unjudged(
            module, report, Unjudged(NOTHING), type(module).__name__
        ):
            return report, ""  # Nobody asks for the rest.
        return report.whole(), ""
    return settled(
        report,
        lambda: check(component, module, mask="hidden", brief=True),
        said=lambda: said_by(module),
    )


@contextlib.contextmanager
def never_called(module: nn.Module) -> Iterator[list[str]]:
    """Name the parts of a module, and leave out those that are called.

    Args:
        module: A model.

    Yields:
        Those with a linear map, and none of the lists.
    """
    lists = nn.ModuleList | nn.ModuleDict
    parts = {
        part: name
        for name, part in module.named_children()
        if not isinstance(part, lists)
        and any(isinstance(x, nn.Linear) for x in part.modules())
    }
    left = [*parts.values()]

    def called(part: nn.Module, args: tuple, words: dict) -> None:
        if parts[part] in left:
            left.remove(parts[part])

    with watched(parts, called):
        yield left


class Topped(nn.Module):
    """A model, and one of its own parts on what it returns.

    Args:
        module: The model.
        name: The name of the part, its output layer.
    """

    def __init__(self, module: nn.Module, name: str):
        super().__init__()
        self.module = module

        def forward(*args: Any, **named: Any) -> Any:
            states = first(self.module(*args, **named))
            return getattr(self.module, name)(states)

        forward.__signature__ = inspect.signature(  # pyrefly: ignore
            module.forward
        )
        self.forward = forward
        self.train(module.training)


def ids_only_by_their_place(module: nn.Module) -> bool:
    """Tell whether a module turns ids into what is the same for all ids."""
    one = torch.tensor(TWO_ROWS)
    got, other = answer(module, (one,)), answer(module, (one % 5 + 1,))
    if got is None or other is None or got.ndim < 2:
        return False
    return torch.equal(got, other) and bool(got.isfinite().all())


POSITIONS = re.compile(r"(?i)^pe$|pos|sinus")
"""What is called so returns positions that are added."""


OTHER_POSITIONS = re.compile(r"(?i)rot|rope|rel|alibi|bias")
"""What is called so returns numbers for distances, or angles."""


def width_of_positions(module: nn.Module) -> int:
    """Return how wide a table of positions is that a module returns, or 0.

    It is called so, and has a row for each position, the batch first.
    """
    name = type(module).__name__
    if OTHER_POSITIONS.search(name) or not POSITIONS.search(name):
        return 0
    got = module(torch.full((BATCH, SEQ), NO_PADDING))
    fits = isinstance(got, Tensor) and got.shape[:-1] in (
        (SEQ,),
        (1, SEQ),
        (BATCH, SEQ),
    )
    return got.shape[-1] if fits else 0


def only_looks_up(module: nn.Module) -> bool:
    """Tell whether a module is an embedding, and no model."""
    matrices = [p for p in module.parameters() if p.ndim > 1]
    recurrent = any(isinstance(x, nn.RNNBase) for x in module.modules())
    named = AN_EMBEDDING.search(type(module).__name__)
    return (len(matrices) <= 3 or bool(named)) and not recurrent


AN_EMBEDDING = re.compile(r"(?i)embed")


NO_FORWARD = (
    "it has no `forward`. If it is called by methods, such as `encode` and "
    "`decode`, mark a function that calls them"
)


def why_no_model(module: nn.Module, message: str) -> str:
    """Say why ids cannot be sent into it."""
    if type(module).forward is nn.Module.forward:
        return NO_FORWARD
    rows = in_time(lambda: rows_for_ids(module))
    if rows and max(rows) < 10:
        return (
            f"its vocabulary has {max(rows)} tokens at most, and the contracts "
            "send ids up to 9: build it with 10 at least"
        )
    if length := in_time(lambda: only_length(module)):
        return of_one_length(length)
    return f"no call with ids was understood. {message}"
