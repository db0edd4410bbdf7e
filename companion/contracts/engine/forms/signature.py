"""What the signature of code says, and what else it must be given."""

import contextlib
import dis
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from types import CodeType

import torch
from torch import Tensor, nn

from companion.contracts.engine.guard import (
    Guarded,
    is_flag,
    lengths_beside,
    swallows_words,
)

__all__ = [
    "ATTENDING",
    "IDLE",
    "MASKS",
    "MODELS",
    "NO_MASKS",
    "OF_KEY",
    "OF_SOURCE",
    "OF_TARGET",
    "SAME",
    "SAYS",
    "SELF",
    "SHAPED",
    "USUAL",
    "Call",
    "Right",
    "Style",
    "Wanted",
    "filled",
    "no_flags",
    "wanted",
]

Call = tuple[tuple, dict]


Style = Callable[["Wanted", dict], Call | None]
"""From a signature and the arguments by name, how to call; None: it cannot."""


Right = Callable[[Guarded], bool]
"""Tells whether no contract finds a fault, as something is called now."""


SELF = ("multihead", "encoder")
"""Of vectors ``x``, and perhaps a mask."""


ATTENDING = ("attention", "grouped_query_attention")
"""Of queries, keys and values, and perhaps a mask."""


MODELS = ("language_model", "translation_model")


MASKS = ("causal_mask", "padding_mask", "combine_masks")


SAYS = {
    "hidden": ("True hides in its masks, as `mask` says",),
    "shown": (),
}


SHAPED = (*SELF, *ATTENDING, *MODELS, "causal_attention", "feed_forward",
          "add_positions", "rnn", "rope", "flash_attention")  # fmt: skip
"""What may give back more than the one tensor that is wanted."""


SAME = {
    "x": ("x", "inputs", "input", "src", "hidden_states", "hidden", "tokens"),
    "q": ("q", "query", "queries", "xq", "x_q", "query_states",
          "query_input", "input_query", "q_input", "q_source"),
    "k": ("k", "key", "keys", "xk", "x_k", "key_states", "key_input",
          "input_key", "k_input", "k_source"),
    "v": ("v", "value", "values", "xv", "x_v", "value_states",
          "value_input", "input_value", "v_input", "v_source"),
    "mask": ("mask", "attn_mask", "attention_mask", "src_mask", "bias_mask",
             "self_mask", "enc_mask", "encoder_mask", "input_mask"),
    "tokens": ("tokens", "idx", "input_ids", "ids", "x", "input", "inputs"),
    "src": ("src", "source", "src_tokens", "src_ids", "input_ids", "enc_inputs",
            "encoder_input", "encoder_inputs", "enc_input", "inp", "src_seq",
            "src_sequence", "source_sequence", "enc_x", "src_x",
            "source_tokens", "source_ids", "source_seq", "src_input"),
    "tgt": ("tgt", "target", "trg", "tgt_tokens", "tgt_ids", "dec_inputs",
            "decoder_input", "decoder_inputs", "dec_input", "trg_seq", "tar",
            "prev_output_tokens", "decoder_input_ids", "tgt_sequence",
            "target_sequence", "dec_x", "tar_x", "tgt_x", "trg_x",
            "target_tokens", "target_seq", "tgt_input", "tgt_seq"),
    "length": ("length", "max_len", "seq_len", "max_length", "n_positions",
               "num_positions", "position", "positions", "maxlen", "n"),
    "d_model": ("d_model", "dim", "d", "emb_dim", "embed_dim", "hidden_size",
                "embedding_dim", "d_hid", "depth", "width"),
    "gain": ("gain", "gamma", "weight", "scale", "g", "alpha", "a_2"),
    "bias": ("bias", "beta", "shift", "b", "b_2"),
    "eps": ("eps", "epsilon", "variance_epsilon"),
    "positions": ("positions", "position_ids", "pos", "position", "offsets"),
    "scores": ("scores", "logits", "attn_scores", "x", "inputs", "energy"),
    "target": ("target", "targets", "labels", "gold", "y", "tgt", "target_ids",
               "label_ids"),
    "smoothing": ("smoothing", "label_smoothing", "eps", "epsilon", "alpha"),
    "pad": ("pad", "pad_id", "pad_idx", "i_pad", "padding_idx", "pad_token_id",
            "ignore_index", "pad_token"),
    "logits": ("logits", "pred", "preds", "output", "outputs", "x", "input"),
    "dim": ("dim", "axis"),
}  # fmt: skip
"""Argument of the contracts -> what it is usually called."""


@dataclass(frozen=True)
class Wanted:
    """The signature of a learner's code.

    Attributes:
        names: Its arguments that can be given by place, in order.
        required: Those without a default.
        all: Those by keyword too.
        bound: What ``inspect`` knows of it, if anything.
        mask: Which of several masks is meant, if that is known.
        flags: Those that are no mask, as their defaults tell; lengths beside a
            mask too.
    """

    names: tuple[str, ...] = ()
    required: frozenset = frozenset()
    all: frozenset = frozenset()
    bound: inspect.Signature | None = None
    mask: str = ""
    flags: frozenset = frozenset()

    def named(self, argument: str) -> str | None:
        """Return what it calls an argument of the contracts, if one fits."""
        if argument == "mask" and self.mask:
            return self.mask
        known = self.all - self.flags if argument == "mask" else self.all
        # Many write Q, K, V.
        plain = {n.lower(): n for n in sorted(known)} | {n: n for n in known}
        found = next((plain[n] for n in SAME[argument] if n in plain), None)
        if found or argument != "mask":
            return found
        masks = [n for n in known if "mask" in n]
        return masks[0] if len(masks) == 1 else None

    def is_mask(self, name: str) -> bool:
        """Tell whether a mask may be meant by this name, by place.

        One of keys is not, where another is there that has rows too; nor is
        what is called otherwise, where another is called a mask. Queries, keys
        and values are none.
        """
        vectors = any(name.lower() in SAME[one] for one in "qkv")
        if vectors or name in NO_MASKS:
            return False
        called = "mask" in name or name in SAME["mask"]
        if not called and self.named("mask") not in (None, name):
            return False
        others = self.all - self.flags - {name}
        rows = any("mask" in n and not OF_KEY.search(n) for n in others)
        keys = OF_KEY.search(name) and "mask" in name and rows
        return name not in self.flags and not keys

    def binds(self, call: Call) -> bool:
        """Tell whether it takes these arguments, as far as is known."""
        try:
            return self.bound is None or bool(
                self.bound.bind(*call[0], **call[1])
            )
        except TypeError:
            return False


def wanted(fn: object) -> Wanted:
    """Read the signature of a function, or of a module's forward."""
    try:
        bound = inspect.signature(
            fn.forward if isinstance(fn, nn.Module) else fn
        )
    except (TypeError, ValueError):
        return Wanted()
    kinds = inspect.Parameter
    known = [
        p for p in bound.parameters.values()
        if p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD)
    ]  # fmt: skip
    words = {p.name for p in known if p.kind != kinds.POSITIONAL_ONLY}
    flags = {p.name for p in known if is_flag(p)}
    flags |= {*lengths_beside([p.name for p in known if not is_flag(p)])}
    if swallows_words(bound):
        words |= masks_by_word(fn)
    return Wanted(
        tuple(p.name for p in known if p.kind != kinds.KEYWORD_ONLY),
        frozenset(p.name for p in known if p.default is p.empty),
        frozenset(words),
        bound,
        flags=frozenset(flags),
    )


def masks_by_word(fn: object) -> set[str]:
    """List what masks are called in what takes any keyword, ``**kw``.

    Its code reads them there, as in ``kw["mask"]``; or it hands all keywords
    on, and then its parts have arguments of this name.
    """
    call = fn.forward if isinstance(fn, nn.Module) else fn
    code = getattr(inspect.unwrap(call), "__code__", None)
    if not isinstance(code, CodeType):
        return set()
    if not code.co_flags & inspect.CO_VARKEYWORDS:
        return set()  # It has another signature than it tells.
    # Behind all that has a place or a name comes ``*args``, and then this.
    place = code.co_argcount + code.co_kwonlyargcount
    place += bool(code.co_flags & inspect.CO_VARARGS)
    name, names = code.co_varnames[place], set()
    steps = [*dis.get_instructions(code)]
    for i, step in enumerate(steps):
        if not step.opname.startswith("LOAD") or step.argval != name:
            continue
        after = steps[i + 1 : i + 4]
        names |= {s.argval for s in after if s.opname == "LOAD_CONST"}
        if isinstance(fn, nn.Module) and after[0].opname == "DICT_MERGE":
            for part in fn.modules():
                with contextlib.suppress(TypeError, ValueError):
                    names |= {*inspect.signature(part.forward).parameters}
    texts = {x for x in names if isinstance(x, str)}
    return {x for x in texts if "mask" in x and x.isidentifier()}


NO_MASKS = {
    "context", "encoder_hidden_states", "key_value_states", "kv", "kv_cache",
    "layer_past", "output_attentions", "past_key_value", "return_attn",
    "return_weights", "use_cache", "scale", "temperature", "query_pos",
    "key_pos", "q_pos", "k_pos", "query_pos_embed", "query_pos_emb",
    "key_pos_embed", "key_pos_emb", "flag", "mode",
}  # fmt: skip
"""Arguments that are no masks, by their names."""


def filled(wants: Wanted, call: Call, named: dict) -> Call | None:
    """Give what else it must be given, and is the same for everybody."""
    args, words = call
    given = {*wants.names[: len(args)], *words}
    for name in wants.required - given:
        if name not in USUAL:
            return None
        words = {**words, name: USUAL[name](named)}
    done = args, words
    return done if wants.binds(done) else None


def vectors_of(named: dict) -> Tensor:
    """Return the keys, or what they are made of."""
    return named["k"] if "k" in named else named["x"]


USUAL = {
    "dropout": lambda named: None,
    "d_k": lambda named: named["k"].shape[-1] if "k" in named else None,
    **dict.fromkeys(
        ("head_dim", "d_head", "dim_head"),
        lambda named: vectors_of(named).shape[-1],
    ),
    "scale": lambda named: vectors_of(named).shape[-1] ** -0.5,
    "need_weights": lambda named: False,
    "return_attention": lambda named: False,
    "training": lambda named: False,
    "train": lambda named: False,
    "is_causal": lambda named: False,
    "flag": lambda named: None,
    "mode": lambda named: None,
    "hidden": lambda named: None,
    "state": lambda named: None,
    "cache": lambda named: None,
    "past": lambda named: None,
    "memory": lambda named: None,
    "bias": lambda named: None,
    "position_bias": lambda named: None,
    "freqs_cis": lambda named: None,
    "start_pos": lambda named: 0,
    "device": lambda named: "cpu",
    **dict.fromkeys(
        ("segment_info", "segment_label", "segment_ids", "segments",
         "segment", "seg", "segs", "token_type_ids"),
        lambda named: torch.zeros_like(named["tokens"])
        if "tokens" in named else None,
    ),
}  # fmt: skip
"""What some are given besides -> what stands for nothing."""


IDLE = "what is given as `{}` moves nothing"


def no_flags(wants: Wanted) -> list[str]:
    """List what may be given in place of a mask."""
    return [n for n in wants.names if n not in wants.flags]


OF_KEY = re.compile("(?i)key|pad")
"""How masks are called that are for keys."""


OF_SOURCE = re.compile(r"(?i)src|source|enc|memory|mem|cross|context|(^|_)e_")


OF_TARGET = re.compile(r"(?i)tgt|trg|target|dec|(^|_)d_")
"""How masks are called that are the source's, and the target's. What has both
words is for rows of the target, and for keys of the source.
"""
