"""The usual calls of each component: by place, by keyword, by names."""

import re

import torch
from torch import Tensor

from companion.contracts.engine.forms.rotations import (
    ANGLES,
    TABLES,
    behind,
    in_turn_and_heads_first,
    positions_each,
    queries_and_keys,
    queries_keys_and_each,
    stacked_and_heads_first,
    table_and_heads_first,
    table_in_turn,
    with_complex_table,
    with_stacked_table,
)
from companion.contracts.engine.forms.signature import (
    OF_TARGET,
    SAME,
    Call,
    Style,
    Wanted,
    filled,
)

__all__ = [
    "BY_NAMES",
    "CONTEXT",
    "FOR_ONE_HEAD",
    "GOT_IDS",
    "MEMORY",
    "NO_PADDING",
    "ONE_HEAD",
    "PAIRED",
    "STYLES",
    "UNMASKED",
    "as_many_ids",
    "by_place",
    "by_word",
    "of_queries_and_keys",
    "one_head",
    "wants_two",
    "with_causal",
]


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
        x = x.expand(*(lead or (1,)), *x.shape[-2:])
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


def hiding_no_key(shown: bool, kind: torch.dtype) -> Style:
    """Give a language model a mask of padding, (batch, key), that hides none.

    Args:
        shown: What stands for a token that is no padding.
        kind: Of which type the mask is.
    """

    def style(wants: Wanted, named: dict) -> Call | None:
        word, tokens = wants.named("mask"), named["tokens"]
        if word is None:
            return None
        mask = torch.full(tokens.shape, shown, dtype=kind)
        return filled(wants, ((tokens,), {word: mask}), named)

    return style


NO_PADDING = [
    (
        f"its mask, (batch, seq), was {int(shown)} for every token",
        hiding_no_key(shown, kind),
    )
    for shown in (True, False)
    for kind in (torch.long, torch.float32, torch.bool)
]
"""The masks of padding that a language model may want where there is none."""


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
    one = FOR_ONE_HEAD
    return [
        (f"{said}, and {one}" if said else one, four_axes(style))
        for said, style in offered
    ]


FOR_ONE_HEAD = "its vectors got an axis for one head"


GOT_IDS = "it got ids, (1, length)"


def as_many_ids(wants: Wanted, named: dict) -> Call | None:
    """Give ids in place of their number."""
    ids = torch.ones(1, named["length"], dtype=torch.long)
    return filled(wants, ((ids,), {}), named)


def of_queries_and_keys(wants: Wanted, named: dict) -> Call | None:
    """Give the tokens that ask and those that are asked, where two are."""
    known = "seq|token|inputs|query|key|^(x_?)?[qk]$"
    pads = {*SAME["pad"]}
    sequences = [
        n for n in wants.names if re.search(known, n) and n not in pads
    ]
    if len(sequences) != 2 or len(wants.required - pads) > 2:
        return None
    given = [n for n in wants.names if n in pads][:1]
    words = dict.fromkeys(given, named["pad"])
    return filled(wants, ((named["tokens"], named["tokens"]), words), named)


def with_shape(wants: Wanted, named: dict) -> Call | None:
    """Give the shape of what is normalised after ``x``."""
    x, *rest = named.values()
    return filled(wants, ((x, (x.shape[-1],), *rest), {}), named)


MEMORY = (
    r"(?i).*memory|mem|(enc|src|encoder).*(out|output|outputs|states?|x|embs?)|enc"
    r"|x_?enc(oder)?"
)
"""What decoders call what the encoder has made."""


CONTEXT = "context|ctx|(x_|inputs?_)?k_?v(_x)?|keys?_?values?"
"""What attention to something else calls that, which no decoder does alone."""


PAIRED = rf"{MEMORY}|y|z|x_?(2|b)|(src|tgt|trg|source|target|other)(_.*)?"
"""What attention to another sequence calls that where it has to be given."""


NO_SEQUENCE = re.compile(
    r"(?i)mask|pos|freq|cos|sin|len|time|step|cache|past|bias|rel|dist|edge|adj"
    r"|idx|index|temp|scale|cond|style|class|label|device|size|shape|pad|valid"
    r"|state|emb|rot|rope|angle|flag|num|noise|sigma|prompt|id|layer|drop|fn"
    r"|^(t|c|h|w|n|p|m|s|b|i|k|v|l|dt|gt|is_\w+|use_\w+|return_\w+|training)$"
)
"""What is no other sequence of vectors, by its name."""


def wants_two(wants: Wanted) -> bool:
    """Tell whether exactly two sequences of vectors may be wanted.

    That the second may be one is told by what it is not called.
    """
    two = wants.names[:2]
    second = "".join(two[1:])
    return {*two} == wants.required and not NO_SEQUENCE.search(second or "n")


def to_itself(wants: Wanted, named: dict) -> Call | None:
    """Give the same vectors twice to what asks another sequence."""
    first, second = "".join(wants.names[:1]), "".join(wants.names[1:2])
    known = re.fullmatch(f"{PAIRED}|{CONTEXT}", second)
    if not (known or re.fullmatch(MEMORY, first) or wants_two(wants)):
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
    ("it was called as (x, x)", to_itself),
    ("it was called as (x, x, x)", by_place("x", "x", "x")),
]


STYLES: dict[str, list[tuple[str, Style]]] = {
    "causal_mask": [
        ("", by_place("length")),
        ("it was called as (length, length)", by_place("length", "length")),
        (GOT_IDS, as_many_ids),
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
        *NO_PADDING,
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
        (
            "it got cosines and sines in one table, (seq, head_dim / 2, 2), of "
            "base 10000, and vectors (batch, seq, head, head_dim)",
            with_stacked_table,
        ),
        (
            "it got cosines and sines in one table, (seq, head_dim / 2, 2), of "
            "base 10000, and vectors (batch, head, seq, head_dim)",
            stacked_and_heads_first,
        ),
        (
            "it got cosines and sines in turn, (seq, head_dim), of base 10000, "
            "and vectors (batch, seq, head, head_dim)",
            table_in_turn,
        ),
        (
            "it got cosines and sines in turn, (seq, head_dim), of base 10000, "
            "and vectors (batch, head, seq, head_dim)",
            in_turn_and_heads_first,
        ),
        *TABLES,
        *ANGLES,
        ("", by_place("x", "positions")),
        (BY_NAMES, by_names("x", "positions")),
        (
            "it takes positions for each sentence, (batch, seq)",
            positions_each,
        ),
        ("it was called as (x, x, positions)", queries_and_keys),
        (
            "it was called as (x, x, positions), with positions for each "
            "sentence, (batch, seq)",
            queries_keys_and_each,
        ),
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
