"""Splitting heads and multi-head attention got wrong."""

import torch
import torch.nn.functional as F
from right import built
from right.attention import masked_by_lowest
from right.multihead import Heads, split_by_view
from torch import nn

from wrong import wrong

SEES = "^Row 0 moves with position 1, which is in its future. "


# Splitting


@wrong(
    "split_heads",
    r"^Batch 0, head 0, position 1, column 0 holds `x\[0, 0, 7\]`.*A `view`",
)
def viewed_straight(x, num_heads):
    batch, seq, d_model = x.shape
    return x.view(batch, num_heads, seq, d_model // num_heads)


@wrong("split_heads", r"holds `x\[0, 0, 3\]`, and not `x\[0, 0, 1\]`. Head 0")
def every_third_column(x, num_heads):
    batch, seq, d_model = x.shape
    columns = x.view(batch, seq, d_model // num_heads, num_heads)
    return columns.permute(0, 3, 1, 2)


@wrong("split_heads", "The transpose comes before the view")
def transposed_too_early(x, num_heads):
    batch, seq, d_model = x.shape
    columns = x.transpose(1, 2)
    return columns.reshape(batch, num_heads, seq, d_model // num_heads)


@wrong("split_heads", "^Batch 0, head 0, position 0, .*swaps the wrong axes")
def transposed_within_the_heads(x, num_heads):
    batch, seq, d_model = x.shape
    pieces = x.view(batch, seq, num_heads, -1).transpose(2, 3)
    return pieces.reshape(batch, num_heads, seq, d_model // num_heads)


@wrong("split_heads", "The axes are read as .seq, batch, d_model.")
def sequence_first(x, num_heads):
    batch, seq, d_model = x.shape
    heads = x.reshape(seq, batch * num_heads, d_model // num_heads)
    return heads.transpose(0, 1).reshape(batch, num_heads, seq, -1)


@wrong("split_heads", r"Every head gets the columns of head 0")
def first_columns_only(x, num_heads):
    width = x.shape[-1] // num_heads
    return torch.stack([x[..., :width] for _ in range(num_heads)], 1)


@wrong("split_heads", "^It returned shape .*The heads stand behind the posit")
def never_transposed(x, num_heads):
    return x.unflatten(-1, (num_heads, -1))


@wrong("split_heads", "^It returned shape .*Batch and heads must be two axes")
def folded_into_the_batch(x, num_heads):
    return split_by_view(x, num_heads).flatten(0, 1)


@wrong("split_heads", "^It returned shape .*Position and column are swapped")
def ready_for_the_product(x, num_heads):
    return split_by_view(x, num_heads).transpose(-2, -1)


@wrong("split_heads", "^It returned shape .*Has each head all columns")
def repeated_whole(x, num_heads):
    return torch.stack([x] * num_heads, 1)


@wrong("split_heads", "^It raised RuntimeError.*num_heads 3")
def for_two_sentences_only(x, num_heads):
    return x.view(2, 5, num_heads, -1).transpose(1, 2)


@wrong("split_heads", "^It returned shape .*The heads have lost their axis")
def squeezed(x, num_heads):
    return split_by_view(x, num_heads).squeeze(1)


# Attending


def heads(**parts):
    """``Heads(3)`` in which some methods are others."""
    module = built(lambda: Heads(3))
    for name, part in parts.items():
        setattr(module, name, part)
    return module


def attending(weigh):
    """Heads whose weights are ``weigh(scores, mask)``."""

    def attend(q, k, v, mask):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is None:
            mask = torch.ones_like(scores, dtype=torch.bool)
        return weigh(scores, mask) @ v

    return heads(attend=attend)


RIGHT = heads()


@wrong("multihead", SEES + "The mask is not used")
def unused(x, mask=None):
    return RIGHT(x)


@wrong("multihead", SEES + "The mask is upside down")
def upside_down(x, mask=None):
    return RIGHT(x, None if mask is None else ~mask)


@wrong("multihead", SEES + "The mask is upside down")
def upside_down_without_a_way_out(x, mask=None):
    hidden = F.scaled_dot_product_attention
    return heads(attend=lambda q, k, v, mask: hidden(q, k, v, mask))(
        x, None if mask is None else ~mask
    )


@wrong("multihead", SEES + "The mask is upside down")
def upside_down_and_uniform(x, mask=None):
    def weigh(s, m):
        return s.masked_fill(~m, torch.finfo(s.dtype).min).softmax(-1)

    return attending(weigh)(x, None if mask is None else ~mask)


@wrong("multihead", SEES + "The mask is upside down")
def upside_down_with_nan(x, mask=None):
    def weigh(s, m):
        return s.masked_fill(~m, -torch.inf).softmax(-1)

    return attending(weigh)(x, None if mask is None else ~mask)


@wrong("multihead", SEES + "The mask is transposed")
def transposed_mask(x, mask=None):
    return RIGHT(x, None if mask is None else mask.mT)


@wrong("multihead", "The mask is transposed: its rows are the queries")
def padding_hides_rows(x, mask=None):
    if mask is not None and mask.shape[-2] == 1:
        mask = mask.mT
    return RIGHT(x, mask)


@wrong("multihead", "^Row 0 does not move with position 2, which the mask all")
def mask_of_the_first_sentence(x, mask=None):
    return RIGHT(x, mask[:1] if mask is not None and mask.ndim == 4 else mask)


class Repeating(nn.Module):
    """PyTorch's module, whose masks are in the order of the batch."""

    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(12, 3, batch_first=True)

    def forward(self, x, mask=None):
        if mask is not None:
            batch, seq, _ = x.shape
            mask = mask.expand(batch, 1, seq, seq)[:, 0]
            mask = ~mask.repeat(3, 1, 1)
        return self.inner(x, x, x, attn_mask=mask, need_weights=False)[0]


REPEATING = built(Repeating)


@wrong("multihead", "^Row 0 moves with position 2, which the mask hides. .*rep")
def repeated_in_the_wrong_order(x, mask=None):
    return REPEATING(x, mask)


@wrong("multihead", "^Row 0 does not move with position 1, although .*own pla")
def sequence_first_module(x, mask=None):
    inner = built(lambda: nn.MultiheadAttention(12, 3))
    return inner(x, x, x, attn_mask=mask, need_weights=False)[0]


@wrong("multihead", SEES + "The mask multiplies the weights after the softmax")
def multiplied_afterwards(x, mask=None):
    return attending(lambda s, m: s.softmax(-1) * m)(x, mask)


@wrong("multihead", SEES + "Does the mask reach the scores")
def softmax_over_the_queries(x, mask=None):
    def weigh(s, m):
        low = s.masked_fill(~m, torch.finfo(s.dtype).min)
        return low.softmax(-2).masked_fill(~m, 0)

    return attending(weigh)(x, mask)


@wrong("multihead", "^The positions stand there twice.* sum to 1. At")
def softmax_over_the_heads(x, mask=None):
    return attending(lambda s, m: s.softmax(1) * m)(x, mask)


@wrong("multihead", "^The positions stand there twice.* sum to 1. At")
def no_softmax(x, mask=None):
    return attending(lambda s, m: s * m)(x, mask)


@wrong("multihead", "^The output is a linear function of `x`")
def mean_of_the_values(x, mask=None):
    return attending(lambda s, m: masked_by_lowest(0 * s, m))(x, mask)


@wrong("multihead", "^Row 0 does not move with position 1, .*Each row sees its")
def heads_attend_to_heads(x, mask=None):
    split = heads(split=lambda x: x.unflatten(-1, (3, -1)))
    q, k, v = (split.split(p(x)) for p in (split.q, split.k, split.v))
    out = split.attend(q, k, v, None)
    return split.o(out.flatten(2))


@wrong("multihead", "^Attention knows no order: .*for want of a transpose")
def split_by_view_alone(x, mask=None):
    return heads(split=lambda x: x.reshape(len(x), 3, -1, 4))(x, mask)


@wrong("multihead", "^Attention knows no order: .*for want of a transpose")
def joined_by_view_alone(x, mask=None):
    q, k, v = (RIGHT.split(p(x)) for p in (RIGHT.q, RIGHT.k, RIGHT.v))
    return RIGHT.o(RIGHT.attend(q, k, v, mask).reshape(x.shape))


@wrong("multihead", "^No row sees what comes after it, although there is no ma")
def always_causal(x, mask=None):
    past = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
    return RIGHT(x, past if mask is None else past & mask)


@wrong("multihead", "^Row 0 does not move with position 0, which the mask all")
def nobody_sees_itself(x, mask=None):
    if mask is not None:
        mask = mask & ~torch.eye(x.shape[1], dtype=torch.bool)
    return RIGHT(x, mask)


@wrong("multihead", "^Every entry of the mask is True: all may attend. At")
def two_axes_are_triangles(x, mask=None):
    if mask is not None and mask.ndim == 2:
        mask = mask.tril()
    return RIGHT(x, mask)


@wrong("multihead", "^Batch 0, row 1, feature 0 is NaN. All its scores are -∞")
def nan_in_empty_rows(x, mask=None):
    def weigh(s, m):
        return s.masked_fill(~m, -torch.inf).softmax(-1)

    return attending(weigh)(x, mask)


@wrong("multihead", "^Row 1 moves with position 0, and may attend to noth")
def uniform_in_empty_rows(x, mask=None):
    def weigh(s, m):
        return s.masked_fill(~m, torch.finfo(s.dtype).min).softmax(-1)

    return attending(weigh)(x, mask)


@wrong("multihead", "^The gradient of `x` is NaN in row 0.*mends the output")
def nan_in_the_gradient(x, mask=None):
    def weigh(s, m):
        bias = torch.zeros_like(s).masked_fill(~m, -torch.inf)
        return (s + bias).softmax(-1).nan_to_num(0)

    return attending(weigh)(x, mask)


@wrong("multihead", "^The second call differs: dropout is on. .*call `\\.eval")
def in_training_mode(x, mask=None):
    return F.dropout(RIGHT(x, mask), 0.3)


@wrong("multihead", "^Of 1 positions, each sentence alone gives other rows. At")
def mixes_sentences(x, mask=None):
    return RIGHT(x, mask) + x[:1]


@wrong("multihead", "^Every entry of the mask is True: all may attend. At")
def louder_with_a_mask(x, mask=None):
    return RIGHT(x, mask) * (1 if mask is None else 1.1)


@wrong("multihead", "^It returned shape .*Are these the weights")
def weights_of_one_head(x, mask=None):
    return (x @ x.mT).softmax(-1)
