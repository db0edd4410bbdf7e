"""Contracts of decoding with stored keys and values.

``model`` is a small ``Transformer``. What is counted are the rows that pass its
linear maps, so a function that multiplies by other weights is judged by its
logits alone. Whether the keys of the source are stored too is up to the
writer: without it a search is slower, and as right.
"""

import functools

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from companion.contracts.decoding.cached_decode_cases import (
    SUSPECTS,
    model,
    sources,
    targets,
    whole,
)
from companion.contracts.engine.compare import Broken, same
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import Guarded

CACHED_DECODE = Component(
    name="cached_decode",
    signature="cached_decode(model, src, tokens)",
    returns="logits (batch, tgt, vocab), as `model(src, tokens)` has them",
    axes=("position", "logit"),
    shape=lambda model, src, tokens: (
        *tokens.shape,
        model.config.tgt_vocab_size,
    ),
    dtype=torch.float32,
    oracle=whole,
    reference="`model(src, tokens)`",
    agrees="It has the logits of the full pass",
    cases=lambda: {
        "for two sentences": (model(), sources(3), targets(3)),
        "where norms come first": (
            model(norm_first=True),
            sources(5),
            targets(5),
        ),
        "for one token": (model(), sources(7), targets(7)[:, :1]),
    },
    shape_hints={
        "Those are the logits of the last position: keep all of them.": (
            lambda model, src, tokens: (len(tokens), 1, None)
        ),
        "Those are the logits of the last position, without its axis: keep all "
        "of them.": lambda model, src, tokens: (len(tokens), None),
        "Those are vectors: `model.logits` makes scores of them.": (
            lambda model, src, tokens: (*tokens.shape, model.config.d_model)
        ),
    },
    suspects=SUSPECTS,
)


class Passes(TorchFunctionMode):
    """Hears how many positions of a sentence pass each linear map."""

    def __init__(self, batch: int):
        super().__init__()
        self.batch, self.rows = batch, {}

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") == "linear":
            x, weight = args[:2]
            rows = x.numel() // x.shape[-1] // self.batch
            self.rows.setdefault(id(weight), []).append(rows)
        return func(*args, **(kwargs or {}))

    def of(self, linear: nn.Linear) -> list[int]:
        """The positions in each call."""
        return self.rows.get(id(linear.weight), [])


@functools.lru_cache(1)
def passes(fn: Guarded) -> tuple[Passes, nn.Module, int, int]:
    """What passed in a plain call, in which model, and both lengths."""
    args = CACHED_DECODE.example
    network, src, tokens = args
    with Passes(len(tokens)) as heard:
        fn.raw(*args)
    return heard, network, src.shape[1], tokens.shape[1]


@CACHED_DECODE.before_reference
def positions(fn: Guarded) -> None:
    """Each position passes the decoder once, and not all together."""
    heard, network, _, length = passes(fn)
    for layer in network.decoder.layers:
        rows = heard.of(layer.feed_forward.up_proj)
        if rows == [length]:
            raise Broken(
                f"All {length} positions pass the decoder together: that is "
                "the full pass. Give it one position at a time, as in a search."
            )
        if sum(rows) > length:
            raise Broken(
                f"{sum(rows)} positions pass a layer of the decoder for "
                f"{length} tokens, in calls of {rows}: what is stored need "
                "not be computed again."
            )


@CACHED_DECODE.before_reference
def keys(fn: Guarded) -> None:
    """The key of each position is computed once."""
    heard, network, _, length = passes(fn)
    for layer in network.decoder.layers:
        rows = heard.of(layer.self_attention.k_proj)
        if sum(rows) > length:
            raise Broken(
                f"{sum(rows)} keys are computed for {length} tokens, in calls "
                f"of {rows}: append the newest key to those that are stored."
            )


@CACHED_DECODE.before_reference
def source(fn: Guarded) -> None:
    """The source is read once."""
    heard, network, length, _ = passes(fn)
    for layer in network.encoder.layers:
        rows = heard.of(layer.feed_forward.up_proj)
        if sum(rows) > length:
            raise Broken(
                f"The source passes the encoder {len(rows)} times: what is "
                "read does not change with what is said."
            )


@CACHED_DECODE.contract
def forgets(fn: Guarded) -> None:
    """Nothing is left of the sentence before."""
    network, args = model(), (sources(11), targets(13))
    fn(network, sources(3), targets(3))
    why = (
        "After another sentence the logits are others: does something stay "
        "stored from call to call?"
    )
    same(fn, fn(network, *args), fn(model(), *args), why)


@CACHED_DECODE.contract
def alone(fn: Guarded) -> None:
    """A sentence has the logits that it has alone."""
    network, src, tokens = CACHED_DECODE.example
    rows = zip(src, tokens, strict=True)
    each = torch.cat([fn(network, a[None], b[None]) for a, b in rows])
    why = "In a batch a sentence has other logits than alone."
    same(fn, fn(network, src, tokens), each, why)
