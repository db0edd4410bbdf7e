"""Contracts of counting the weights of the paper's Transformer.

An encoder and a decoder of ``num_layers`` layers each, norms after the sums
and none at the end, biases in the feed-forward networks, and one table of
embeddings that source, target and output share. The paper does not say whether
the projections of attention have biases: with and without them is right.

A plain number is taken for the count of the base model.
"""

from dataclasses import dataclass, replace
from itertools import combinations
from operator import index

from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import STRAY, Guarded, OtherNumbers

__all__ = ["PARAMETER_COUNT"]

BASE = (512, 2048, 6, 37_000)
SMALL = ((12, 28, 2, 101), (7, 31, 5, 13), (1, 1, 1, 1))


@dataclass(frozen=True)
class Parts:
    """What is counted, and how often, in a pair of layers.

    A pair is a layer of the encoder and one of the decoder.
    """

    attention: int = 3
    projections: int = 4
    heads: int = 1
    biases: bool = True
    feed_forward: int = 2
    feed_forward_biases: int = 1
    norms: int = 5
    per_norm: int = 2
    tables: int = 1
    last_norms: int = 0
    dense: int = 0
    output_bias: bool = False
    layers: int | None = None

    def count(
        self, d_model: int, d_ff: int, num_layers: int, vocab_size: int
    ) -> int:
        """All weights and biases."""
        square = self.heads * d_model**2 + self.biases * d_model
        attention = self.attention * self.projections * square
        biases = self.feed_forward_biases * (d_ff + d_model)
        feed_forward = self.feed_forward * (2 * d_model * d_ff + biases)
        norms = self.norms * self.per_norm * d_model
        dense = self.dense * (d_model**2 + d_model)
        pair = attention + feed_forward + norms + dense
        layers = num_layers if self.layers is None else self.layers
        table = self.tables * vocab_size * d_model
        last = 2 * self.last_norms * d_model + self.output_bias * vocab_size
        return table + layers * pair + last


RIGHT = (Parts(), Parts(biases=False))

CHANGED: dict[str, dict[str, int]] = {}
"""Hint -> what is counted otherwise."""


def adapt(given: object) -> object:
    """A function that returns the number, if a number was given."""
    return (lambda *sizes: given) if is_number(given) else given


def is_number(given: object) -> bool:
    """Whether a count was given instead of a function."""
    return isinstance(given, int) and not isinstance(given, bool)


def read(fn: Guarded, result: object, args: tuple) -> int:
    """The count, whatever kind of whole number it is."""
    try:
        if not isinstance(result, bool):
            return index(result)
    except (TypeError, RuntimeError):
        pass
    name = type(result).__name__
    what = "None" if result is None else f"a {name}"
    hint = {
        "float": "Use `//` instead of `/`.",
        "NoneType": STRAY["NoneType"],
        "tuple": "Return their sum.",
        "list": "Return their sum.",
    }
    says = f"It returned {what}: expected a whole number."
    broken = OtherNumbers if name == "float" else Broken
    raise broken(f"{says} {hint.get(name, '')}".rstrip())


PARAMETER_COUNT = Component(
    name="parameter_count",
    signature="parameter_count(d_model, d_ff, num_layers, vocab_size)",
    returns="how many weights and biases there are",
    shape_contract="It returns a whole number",
    adapt=adapt,
    read=read,
    # Small, since a function may build the model to count it.
    cases=lambda: {"for a small model": SMALL[0]},
)


def counts(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """What is right: with biases in attention, and without."""
    return tuple(parts.count(*sizes) for parts in RIGHT)


def require_count(fn: Guarded, sizes: tuple[int, ...]) -> None:
    """Raise Broken unless one of the two counts is returned."""
    got, both = fn(*sizes), counts(sizes)
    if got not in both:
        known = mistakes(fn, sizes, got)
        hint = " Or: ".join(dict.fromkeys(hint for hint, _ in known))
        meant = [n for _, n in known] or both
        gap = min((got - n for n in meant), key=abs)
        message = (
            f"For {fn.describe(sizes)} it counts {got:,}, "
            f"{abs(gap):,} too {'many' if gap > 0 else 'few'}: expected "
            f"{both[0]:,} with biases in attention, or {both[1]:,} without. "
            f"{hint}"
        )
        raise Broken(message.rstrip(), cause=hint)


def mistakes(
    fn: Guarded, sizes: tuple[int, ...], got: int
) -> list[tuple[str, int]]:
    """What explains ``got`` for ``sizes``, with the count that was meant.

    One mistake, or if none does, two. In the base model several may count the
    same, and a function is asked for other sizes too.
    """
    others = () if is_number(fn.given) else SMALL
    counted = {sizes: got, **{other: fn(*other) for other in others}}
    pairs = (
        (f"{one} {other}", {**a, **b})
        for (one, a), (other, b) in combinations(CHANGED.items(), 2)
        if not a.keys() & b.keys()
    )
    for candidates in (CHANGED.items(), pairs):
        found = [
            (hint, parts.count(*sizes))
            for hint, changed in candidates
            for parts in RIGHT
            if explains(replace(parts, **changed), counted)
        ]
        if found:
            return found[:2]
    return []


def explains(parts: Parts, counted: dict[tuple[int, ...], int]) -> bool:
    """Whether ``parts`` count the same for all sizes."""
    return all(parts.count(*sizes) == n for sizes, n in counted.items())


def require_growth(fn: Guarded, place: int, says: str) -> None:
    """Raise Broken unless one more in ``place`` costs what it should."""
    if is_number(fn.given):
        return
    sizes = SMALL[0]
    larger = (*sizes[:place], sizes[place] + 1, *sizes[place + 1 :])
    costs = {b - a for a, b in zip(counts(sizes), counts(larger), strict=True)}
    got = fn(*larger) - fn(*sizes)
    if got not in costs:
        words = " or ".join(f"{n:,}" for n in sorted(costs, reverse=True))
        raise Broken(
            f"For {fn.describe(sizes)}, {says} {words}, and yours {got:,}."
        )


@PARAMETER_COUNT.before_reference
def base(fn: Guarded) -> None:
    """It counts the base model of the paper."""
    require_count(fn, BASE)


@PARAMETER_COUNT.contract
def unit(fn: Guarded) -> None:
    """In a function one more unit of d_ff costs its weights and bias."""
    require_growth(fn, 1, "one more unit in every feed-forward network costs")


@PARAMETER_COUNT.contract
def word(fn: Guarded) -> None:
    """In a function one more word costs one vector."""
    require_growth(fn, 3, "one more word costs")


@PARAMETER_COUNT.contract
def layer(fn: Guarded) -> None:
    """In a function one more layer costs one of the encoder and decoder."""
    require_growth(fn, 2, "one more layer on both sides costs")


@PARAMETER_COUNT.contract
def any_size(fn: Guarded) -> None:
    """A function counts other sizes too."""
    for sizes in () if is_number(fn.given) else SMALL:
        require_count(fn, sizes)


# Known mistakes


def counted(
    id: str, story: str, hint: str, symptom: str = "", **changed: int
) -> None:
    """Register a count in which some of the parts are ``changed``."""

    def count(d_model, d_ff, num_layers, vocab_size):
        parts = replace(Parts(), **changed)
        return parts.count(d_model, d_ff, num_layers, vocab_size)

    count.__name__, count.__doc__ = id.replace("-", "_"), story
    CHANGED[hint] = changed
    PARAMETER_COUNT.mistake(id, hint=hint, symptom=symptom)(count)


counted(
    "no-norms",
    "Attention, networks and tables, and no norm.",
    hint="The LayerNorms are missing.",
    norms=0,
)
counted(
    "half-a-norm",
    "A gain for each norm, and no bias.",
    hint="A LayerNorm has a gain and a bias, not one of them.",
    per_norm=1,
)
counted(
    "two-norms-a-layer",
    "Two norms in every layer.",
    hint="A layer of the encoder has two LayerNorms, one of the decoder "
    "three: one is missing.",
    norms=4,
)
counted(
    "matrices-without-biases",
    "The networks' two matrices, and not what is added to them.",
    hint="The biases of the feed-forward networks are missing.",
    symptom="30,720 short, and nobody knows where",
    feed_forward_biases=0,
)
counted(
    "no-tables",
    "The layers alone.",
    hint="The embeddings are missing.",
    tables=0,
)
counted(
    "tied-table-counted-twice",
    "The table of the embeddings, and the output layer that it is.",
    hint="The embeddings are counted twice: source, target and output share "
    "one table.",
    symptom="19 million weights more than the file has",
    tables=2,
)
counted(
    "nothing-is-tied",
    "A table for the source, one for the target, and one for the output.",
    hint="The embeddings are counted three times: source, target and output "
    "share one table.",
    symptom="38 million weights more than the paper says",
    tables=3,
)
counted(
    "no-cross-attention",
    "The layers of the decoder look at no memory.",
    hint="A layer of the decoder has a second attention, to the memory: it is "
    "missing.",
    attention=2,
)
counted(
    "decoder-is-an-encoder",
    "Twelve layers of one kind: those of the decoder look at no memory.",
    hint="A layer of the decoder has a second attention, to the memory: it is "
    "missing with its LayerNorm.",
    symptom="6.3 million weights short",
    attention=2,
    norms=4,
)
counted(
    "an-encoder-called-transformer",
    "The table and the layers of the encoder.",
    hint="The decoder is missing.",
    symptom="25 million weights short, and nothing that could translate",
    attention=1,
    feed_forward=1,
    norms=2,
)
counted(
    "decoder-only",
    "The table and the layers of the decoder.",
    hint="The encoder is missing.",
    attention=2,
    feed_forward=1,
    norms=3,
)
counted(
    "two-decoders",
    "Twelve layers of the decoder.",
    hint="The encoder is counted as a second decoder: it has no attention to "
    "a memory.",
    attention=4,
    norms=6,
)
counted(
    "one-network",
    "A network in each layer of one side.",
    hint="The feed-forward networks of one side are missing.",
    feed_forward=1,
)
counted(
    "no-networks",
    "Attention, norms and tables.",
    hint="The feed-forward networks are missing.",
    feed_forward=0,
)
counted(
    "three-projections",
    "Queries, keys and values.",
    hint="Attention has a fourth projection, of its output: it is missing.",
    projections=3,
)
counted(
    "one-projection",
    "One matrix for each attention.",
    hint="Attention has four projections, not one.",
    projections=1,
)
counted(
    "projected-twice",
    "One projection for all heads, and behind it one for each head.",
    hint="Queries, keys and values are projected twice, and two linear maps "
    "are one.",
    symptom="14 million weights that change no answer",
    projections=7,
)
counted(
    "a-dense-layer-besides",
    "A layer of attention, of a feed-forward network, and a dense one.",
    hint="A layer of the encoder has a dense layer too many.",
    symptom="1.6 million weights more than the paper's model has",
    dense=1,
)
counted(
    "a-full-projection-for-each-head",
    "Each head is given projections of the whole width.",
    hint="The projections are multiplied by 8 heads, which share the width.",
    symptom="three times the weights, and more for more heads",
    heads=8,
)
counted(
    "pytorchs-whole-transformer",
    "Counts `nn.Transformer`, which ends both stacks with one more norm.",
    hint="A norm at the end of encoder and decoder belongs to pre-LN.",
    symptom="2,048 weights too many, in a model that should be the paper's",
    last_norms=2,
)
counted(
    "output-with-a-bias",
    "The output layer is an `nn.Linear`, with all that it brings along.",
    hint="The output layer is tied to the embeddings and has no bias.",
    symptom="37,000 weights too many: one for each word",
    output_bias=True,
)
counted(
    "one-layer",
    "Takes `num_layers`, and does not use it.",
    hint="One layer on each side is counted, not all of them.",
    layers=1,
)


@PARAMETER_COUNT.mistake(
    symptom="right for the base model, and wrong for every other",
)
def always_four_times_as_wide(d_model, d_ff, num_layers, vocab_size):
    """Takes 4 · d_model for d_ff, whatever d_ff is."""
    return Parts().count(d_model, 4 * d_model, num_layers, vocab_size)
