"""What sizes arguments are given, by their names.

A name that is not known yet is one more row of ``SIZES``, or a word in one.
"""

import re
from typing import Any

import torch

__all__ = [
    "CHOSEN",
    "EXPERTS",
    "HEAD",
    "HEADS",
    "INNER",
    "KEPT",
    "LONG",
    "SCALES",
    "SIZES",
    "VOCAB",
    "WIDTH",
    "Sizes",
    "is_size",
    "size",
]

WIDTH = 12
"""What the contracts send into a module is so wide."""

HEADS = 3
"""How many heads there are."""

HEAD = 4
"""How wide each of them is."""

INNER = 24
"""How wide the middle of a network is: twice the width."""

VOCAB = 11
"""How many ids there are."""

LONG = 32
"""How long sentences may be."""

DROPOUT = r".*drop.*|p|dr_rate|(\w+_)?dp\d*(_?(rate|prob))?|\w+_ffn_rate"
"""What a rate of dropout is called."""

SCALES = r"(use_?)?scaled?|scale_?att(ention|n)?(_?weights)?"
"""What is called so, and is False by default, has scores divided."""

EXPERTS = r"(num|n)_?((routed|local|moe)_?)?experts?"
CHOSEN = r"top_?k|(num_|n_)?(activated_|active_)?experts?_per_(tok(en)?)"
"""What the numbers of experts are called: of all, and of those a token asks."""

SIZES: tuple[tuple[str, object], ...] = (
    (r"d_?ff[dn]?|ff(n|w)?_?(dim|hidden|size|inner)?", INNER),
    (r"d_?(inner|hid|mlp)", INNER),
    (r"((shared|expert|moe)_)?inter(mediate)?_?(size|dim)|n_?mlp", INNER),
    (r"(mlp|inner|filter|forward)_?(layer_?)?(dim|size)", INNER),
    (r"dim_?feed_?forward|feed_?forward_?(layer_?)?(dim|size|hidden|width)",
     INNER),
    (r"n_inner|feed_?forward_?hidden_?(dim|size)", INNER),
    (r"ffn_?hidden_?(size|dim)|pf_?dim|hidden_?features", INNER),
    (r"(en|de)coder_ffn_?(dim|size)|(d|dim)_?ffn?|fc_?(dim|size)", INNER),
    (r"ffn_?(num_?)?hiddens?|inter(mediate)?|ff_?hid(den)?_?(dim|size)", INNER),
    (r"n_?hid|dense_?dim|filter_?channels|ffn_?emb(ed(ding)?)?_?dim", INNER),
    (r"mlp_?hidden_?(dim|size)|(ff|ffn|mlp)_?(units|features|width)", INNER),
    (r"((forward|ffn?|mlp)_?)?exp(ansion)?(_?(factor|rate))?|expand", 2),
    (r"(mlp|ff)_?(ratio|mult)|mult(iplier)?", 2),
    (r"(d|dim)_?(k|v|q|qk|head)|(head|kv|key|value|query)_?(dim|size)", HEAD),
    (r"heads?_?dims|(kv|latent)_?rank", HEAD),
    (r"(q|k|v)_?dim|size_per_head|(d|dim)_?(query|keys?|values?)", HEAD),
    (r"h|(n|num)_?(kv_?|key_?value_?|query_?)?heads?|heads?", HEADS),
    (r"(num_|n_)?(attention|attn|mha|kv|q|head)_?(num_?)?(heads?|num)", HEADS),
    (r"heads?_?(nums?|count)|nh", HEADS),
    (r"((num|n)_?)?(enc|dec)(oder)?_?((attention|attn)_?)?heads?", HEADS),
    (r"(num|n)_?att_?heads?|heads?_(n|num)|total_heads", HEADS),
    (r"(num|n)_?(q|query|queries)|query_?heads?", HEADS),
    (r"layer_?(idx|index|id)|(idx|index)_?layer", 0),
    (r"((num|n)_?)?((enc|dec)(oder)?_?)?(hidden_?)?(layers?|blocks?)", 2),
    (r"((num|n)_?)?trans(former)?s?_?(layers?|blocks?)", 2),
    (r"((num|n)_?)?(layers?|blocks?)_?(enc|dec)(oder)?|layers?_?n", 2),
    (r"(d|dim|kv)_?latent(_?dim)?|(kv|q)_?lora_?rank", HEAD),
    (EXPERTS, 4),
    (CHOSEN, 2),
    (r"(num|n)_?(kv_?)?groups?|groups?_?num", HEADS),
    (r"(num|n)_?(en|de)coder(s|_?layers)?|N|(layers?|blocks?)_?num", 2),
    (r"(num|n)_?stacks?|(en|de)code_?layers?_?num", 2),
    (r"(enc|dec)(oder)?_?(num|count)", 2),
    (r"((enc|dec)(oder)?_?)?depth", 2),
    (r"n_?(segments?|types)|type_?vocab_?size", 2),
    (r".*vocab.*|(n|num)_?(tokens?|words)|n?tokens?|words", VOCAB),
    (r"num_?embeddings?|(n_?|\w+_)?voca?(_?(size|dim))?|(?-i:V)", VOCAB),
    (r"(src|tgt|trg|source|target)_?(size|tokens|dim|n)", VOCAB),
    (r"(num|n)_?(class(es)?|labels?)", VOCAB),
    (r"(enc|dec)(oder)?_num_?tokens?|(num|n)_?items?|items?_num", VOCAB),
    (r"max_?(seq_?|sequence_?|position_?|token_?|sent_?)?len(gth)?s?", LONG),
    (r"(num|n)_?(tokens?_?max|buckets)|max_?(num_?)?tokens?", LONG),
    (r"(block|context|ctx|window|sequence|seq)_?(size|len(gth)?)", LONG),
    (r"(context|ctx|time)_?window|window|horizon|pred(iction)?_?len(gth)?",
     LONG),
    (r"max_?(context|ctx)(_?(size|len(gth)?))?", LONG),
    (r"max_?time_?steps?|n_?time_?steps?|tokens?_?num|(n_?)?ctx", LONG),
    (r"max_?rel(ative)?_?(pos(ition)?s?|dist(ance)?s?)", LONG),
    (r"(max|num|n)_?pos(ition)?s?|max_?position_?embeddings|seq|length", LONG),
    (r"(n_)?max_?seq(_?len)?|.*_max_len(gth)?", LONG),
    (r"expected_?seq_?len|max_?t|n_?seq|l_?max|(num|n)_?frames", LONG),
    (r"max_?(src|tgt|trg|source|target|enc|dec)_?(seq_?)?len(gth)?", LONG),
    (r"max_?(batch|bsz?)(_?size)?", 64),
    (r"(img|image)_?(size|dim|height|width|h|w|res(olution)?)", 32),
    (r"patch_?(size|height|width|h|w)", 8),
    (r"(num|n)_?patches", 16),
    (DROPOUT, 0.0),
    (r".*pad.*multiple.*", 1),
    (r"multiple_?of", 4),
    (r"kernel_?size", 3),
    (r".*pad.*", 0),
    (r"mem(ory)?_?len(gth)?", 0),
    (r"(bos|sos|start|cls).*", 1),
    (r"(eos|end|sep|stop).*", 2),
    (r"eps(ilon)?|.*norm_?eps", 1e-5),
    (r".*initializer_range|init_std|std", 0.02),
    (r"device", "cpu"),
    (r"dtype", torch.float32),
    (r"batch_?first", True),
    (r"(norm_?first|pre_?norm|.*bias)", True),
    (r"post_?norm", False),
    (r"((rope|rotary)_?)?(theta|base)", 10000.0),
    (r"lr|learning_?rate", 1e-3),
    # Scores are divided by it: the root of a head's width.
    (r"temperature", HEAD**0.5),
    (r"(d|dim)_?(model|embed(ding)?|embd?|hidden|x|in|out)?", WIDTH),
    (r"(d|dim)_?(input|output)|h_?dim|ffn_?(num_?)?inputs?", WIDTH),
    (r"n_?(in|out)puts?|channels?_?(in|out)|latent_?channels?", WIDTH),
    (r"(n_?)?(embed|embd|emb|embedding|hidden|hid|model|token)_?"
     r"(dims?|size|width|dimension)|n_?embd?|n_?embed|embed_?d", WIDTH),
    (r"(in|out|input|output)?_?(dim|features|size|channels|units)|(in|out)_d",
     WIDTH),
    (r"hidden_?channels|(ffn_?)?num_?outputs|d_?out_?[qkv]+|hidden_?d", WIDTH),
    (r"(num_?)?(features|units|hiddens|hidden|hidden_?units)|width", WIDTH),
    (r"(num|n)_?(feats?|features|channels?|hidden|dims?)", WIDTH),
    (r"(model|token|layer|norm|attention|attn)_?(dim|size)", WIDTH),
    (r"(layer|norm(al(ized)?)?)_?shape|d_?(token|block)", WIDTH),
    (r"dimensions?|c|emb(ed)?|parameters_shape|d_?m", WIDTH),
    (r"(model|embed(ding)?|emb|hidden|inp|input)_?dim(ension)?s?", WIDTH),
    (r"(feature|transformer|attention|attn)_?(dim|size)(ension)?s?", WIDTH),
    (r"(d|dim)_?(att(n|ention)?|tokens?|features?)|latent_?(size|dim)", WIDTH),
    (r"transformer_?(width|d_?model)|(enc|dec)(oder)?_?(output_?)?(dim|size)",
     WIDTH),
    (r"[io]dim|word_?(emb(ed)?|vec)(ding)?_?(dim|size)|n_?state", WIDTH),
    (r"(dim|d)_?word|vectors?_?size|embed_?model_?dim", WIDTH),
    (r"(embedding|embed|emb|hidden|hide)_?(sz|dim)|att(ention)?_dim", WIDTH),
    (r"(enc|dec)(oder)?_hid(den)?_?(dim|size)|nx|n_?inp|emsize", WIDTH),
    (r"(context|token|word|char|input|output)_?(embed(ding)?_?)?(dim|size)",
     WIDTH),
)  # fmt: skip
"""Name of an argument -> a size; the first that fits."""

KEPT = re.compile(
    r"(?i)((rope|rotary)_?)?(theta|base)|lr|learning_?rate|mem(ory)?_?len(gth)?"
    rf"|temperature|eps(ilon)?|.*norm_?eps|{EXPERTS}|{CHOSEN}"
)
"""What is no size: where it has a default, that stays."""


def size(name: str, rate: float = 0.0) -> object:
    """Return what an argument of this name is to be, or None.

    Args:
        name: Its name.
        rate: What it is, if it is a rate of dropout.
    """
    name = COUNT.sub("num_", name.strip("_"))
    name = re.sub("(?i)_sz$", "_size", name)
    name = re.sub("(?i)(?<=[a-z]_)dimensions?$", "dim", name)
    for pattern, value in SIZES:
        if re.fullmatch(pattern, name, re.IGNORECASE):
            return rate if pattern is DROPOUT else value
    return None


COUNT = re.compile(r"(?i)^((nb|nr|no|number)_(of_)?|(num|n)_of_)(?=[a-z])")
"""Other words for `num_`."""

OF_A_PART = re.compile(
    r"(?i)((self|cross|multi_?head)_?)?att(entio)?n|feed_?forward|(en|de)coder"
    r"|model|transformer|network|arch(itecture)?|h?params"
)
"""What has a dictionary of its own in one."""

UNCHOSEN = {"model_type", "pretrained"}
"""What a configuration may name in place of sizes; None, where it does not."""


class Sizes:
    """Stands for a configuration: every name that says a size has it.

    Those that were asked for are noted.
    """

    def __init__(self, rate: float = 0.0, length: int = 0):
        self._rate, self._length = rate, length
        self._asked: dict[str, object] = {}

    def _size(self, name: str) -> object:
        value = size(name, self._rate)
        if self._length and is_size(value, LONG):
            value = self._length
        if value is not None:
            self._asked[name] = value
        return value

    def __getattr__(self, name: str) -> Any:
        if name in UNCHOSEN:
            return None
        value = None if name.startswith("__") else self._size(name)
        if value is None:
            raise AttributeError(f"its configuration has no `{name}` here")
        return value

    def get(self, name: str, default: object = None) -> object:
        """Look a size up as in a dictionary."""
        value = self._size(name)
        return default if value is None else value

    def __getitem__(self, name: str) -> object:
        value = self._size(name)
        if value is None and OF_A_PART.fullmatch(name):
            value = Sizes(self._rate, self._length)
            value._asked = self._asked
        if value is None:
            raise KeyError(name)
        return value

    def __contains__(self, name: str) -> bool:
        return size(name) is not None


def is_size(value: object, which: int | None = None) -> bool:
    """Tell whether it is a number, and no Boolean; perhaps this one.

    Nothing else is compared: it may not let itself be.
    """
    return type(value) is int and which in (None, value)
