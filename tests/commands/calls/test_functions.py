"""Functions that are known by their names and arguments.

Each stands beside a wrong one that differs in a line, so that it is judged.
"""

import pytest
from commands.parts import contracts, excuses, faults, said, told_of

MAKERS = """
PAD_IDX = 3


def causal(size):
    return torch.ones(size, size).tril().bool()


def create_masks(src, trg, pad):
    past = causal(trg.size(1))
    return (src != pad)[:, None], (trg != pad)[:, None] & past


def make_tgt_mask(tgt, tgt_pad_idx, device):
    past = causal(tgt.size(1)).to(device)
    return (tgt != tgt_pad_idx)[:, None, None] & past


def create_mask(src, tgt):
    future = torch.full((len(tgt), len(tgt)), -torch.inf).triu(1)
    nothing = torch.zeros(len(src), len(src)).bool()
    return nothing, future, (src == PAD_IDX).mT, (tgt == PAD_IDX).mT


class Batch:
    @staticmethod
    def make_std_mask(tgt, pad):
        return (tgt != pad).unsqueeze(-2) & causal(tgt.size(-1))


def get_masks(inp, tar):
    hidden = [(x == 0).float()[:, None, None] for x in (inp, tar, inp)]
    future = 1 - causal(tar.size(1)).float()
    return hidden[0], torch.max(hidden[1], future), hidden[2]


def random_mask(x, ratio):
    return torch.rand(x.shape) < ratio
"""


def test_what_makes_a_translators_masks_is_judged_in_the_usual_calls(told):
    parts, left = told(MAKERS)
    assert left == {}
    assert "random_mask" not in parts
    made = {n: p for n, p in parts.items() if p["component"] == "combine_masks"}
    assert len(made) == 5
    assert not any(map(faults, made.values()))
    assert "True hides" in said(made["create_mask"])
    assert "it got the sequence first" in said(made["create_mask"])
    assert "its padding is 3, whoever asks" in said(made["create_mask"])
    assert "the target's mask alone" in said(made["Batch.make_std_mask"])
    # Of the masks that it does not make nothing is told.
    assert "source" not in " ".join(made["make_tgt_mask"]["found"]["held"])


@pytest.mark.parametrize(
    ("right", "wrong", "name", "message"),
    [
        ("[:, None] & past", "[:, None] | past", "create_masks", "joined by"),
        ("(-2) & causal", "(-2) | causal", "Batch.make_std_mask", "joined by"),
        ("triu(1)", "tril(-1)", "create_mask", "triangle is transposed"),
        (
            "(src == PAD_IDX).mT",
            "(src != PAD_IDX).mT",
            "create_mask",
            "In `src`, query 0 of sentence 0 sees the padding",
        ),
    ],
)
def test_a_wrong_mask_is_found_in_them(told, right, wrong, name, message):
    parts, _ = told(MAKERS.replace(right, wrong))
    assert message in " ".join(faults(parts[name]))


def test_a_target_whose_padding_the_causal_mask_hides_is_a_risk(told):
    alone = "(trg != pad)[:, None] & "
    parts, _ = told(MAKERS.replace(alone, ""))
    assert not faults(parts["create_masks"])
    assert "padded in front" in excuses(parts["create_masks"])
    # One that is the same for any ids is a causal mask.
    ids = """
def make_tgt_mask(tgt):
    return torch.ones(tgt.size(1), tgt.size(1)).tril().bool()
"""
    parts, _ = told(ids)
    assert parts["make_tgt_mask"]["component"] == "causal_mask"
    assert not faults(parts["make_tgt_mask"])
    parts, _ = told(ids.replace("tril()", "triu()"))
    assert faults(parts["make_tgt_mask"])


NUMBERS_FOR_PADDING = """
def create_padding_mask(seq):
    return (seq == 0).float()[:, None, None]
"""


def test_a_padding_mask_of_numbers_may_be_made_of_ids_alone(told):
    parts, left = told(NUMBERS_FOR_PADDING)
    assert left == {}
    assert not faults(parts["create_padding_mask"])
    rows = NUMBERS_FOR_PADDING.replace("[:, None, None]", "[:, None, :, None]")
    parts, _ = told(rows)
    assert faults(parts["create_padding_mask"])


FILTER = """
def top_k_top_p_filtering(logits, top_k=0, top_p=0.0, fill=-float("inf")):
    assert logits.dim() == 1
    if top_k > 0:
        logits[logits < logits.topk(top_k)[0][-1]] = fill
    if top_p > 0.0:
        ordered, at = logits.sort(descending=True)
        out = ordered.softmax(-1).cumsum(-1) > top_p
        out[1:] = out[:-1].clone()
        out[0] = False
        logits[at[out]] = fill
    return logits
"""


def test_a_filter_of_logits_is_judged_under_its_usual_name(told):
    parts, _ = told(FILTER)
    assert parts["top_k_top_p_filtering"]["component"] == "sampling_filter"
    assert not faults(parts["top_k_top_p_filtering"])
    unshifted = FILTER.replace("        out[1:] = out[:-1].clone()\n", "")
    parts, _ = told(unshifted)
    [fault] = faults(parts["top_k_top_p_filtering"])
    assert "The token that crosses p is lost" in fault


PROMPTED = """
def beam_search(step_fn, prompt_ids, num_beams, max_new_tokens, eos_id):
    return [*prompt_ids, num_beams]
"""


def test_a_search_that_wants_a_prompt_is_another(told):
    parts, left = told(PROMPTED)
    assert not parts
    assert "its argument `prompt_ids` is another's" in left["beam_search"]


ANNEALING = """
class NoamAnnealing(torch.optim.lr_scheduler.LRScheduler):
    def __init__(self, optimizer, d_model, warmup_steps=4000, last_epoch=-1):
        self.d_model, self.warmup = d_model, warmup_steps
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        step = max(1, self._step_count)
        scale = min(step ** -0.5, step * self.warmup ** -1.5)
        return [lr * self.d_model ** -0.5 * scale for lr in self.base_lrs]
"""


def test_a_schedule_may_count_as_pytorch_counts_its_steps(told):
    parts, _ = told(ANNEALING)
    assert not faults(parts["NoamAnnealing"])
    parts, _ = told(ANNEALING.replace("-1.5", "-0.5"))
    assert "The ramp is" in faults(parts["NoamAnnealing"])[0]


SMOOTHED = """
class SmoothedLoss(nn.Module):
    def __init__(self, smoothing=0.1, pad=0):
        super().__init__()
        self.smoothing, self.pad = smoothing, pad

    def forward(self, logits, target):
        real = target != self.pad
        nll = F.cross_entropy(logits, target, ignore_index=self.pad)
        spread = -logits.mean(-1)[real].mean()
        return (1 - self.smoothing) * nll + self.smoothing * spread
"""


def test_a_loss_that_forgets_its_logarithm_once_is_a_risk(told):
    parts, _ = told("import torch.nn.functional as F\n" + SMOOTHED)
    assert contracts(parts["SmoothedLoss"]) == "It takes logits"
    right = SMOOTHED.replace("-logits.mean", "-logits.log_softmax(-1).mean")
    parts, _ = told("import torch.nn.functional as F\n" + right)
    assert not told_of(parts["SmoothedLoss"])


RIGHT_FOR_ONE = """
def create_mask(src, tgt, PAD_IDX):
    past = torch.ones(len(tgt), len(tgt)).tril()
    future = past.masked_fill(past == 0, -torch.inf)
    future = future.masked_fill(past == PAD_IDX, 0.0)
    nothing = torch.zeros(len(src), len(src))
    return nothing, future, (src == PAD_IDX).mT, (tgt == PAD_IDX).mT
"""


def test_masks_that_are_right_for_one_padding_alone_are_a_risk(told):
    parts, _ = told(RIGHT_FOR_ONE)
    assert not faults(parts["create_mask"])
    assert contracts(parts["create_mask"]) == "Any id may be the padding"
    parts, _ = told(RIGHT_FOR_ONE.replace("past == PAD_IDX", "past < 1"))
    assert faults(parts["create_mask"])
    # PyTorch adds a mask of numbers: 1 hides nothing.
    numbers = RIGHT_FOR_ONE.replace(").mT", ").mT.float()")
    parts, _ = told(numbers)
    assert "sees the padding" in " ".join(faults(parts["create_mask"]))


def test_a_filters_own_default_is_not_taken_for_off(told):
    parts, _ = told(FILTER.replace("k=0", "k=50").replace("p=0.0", "p=0.9"))
    assert not faults(parts["top_k_top_p_filtering"])


FLAGGED = """
def scaled_dot_product(q, k, v, masked: bool = False):
    scores = torch.bmm(q, k.transpose(1, 2)) / k.size(-1) ** 0.5
    if masked:
        past = torch.ones(k.size(1), k.size(1)).tril()
        scores = scores.masked_fill(past == 0, float("-inf"))
    return torch.bmm(scores.softmax(-1), v)
"""


def test_a_flag_of_a_function_of_three_vectors_is_no_mask(told):
    parts, _ = told(FLAGGED)
    assert not faults(parts["scaled_dot_product"])
    parts, _ = told(FLAGGED.replace("k.size(-1) ** 0.5", "k.size(-1)"))
    assert faults(parts["scaled_dot_product"])


A_BATCH_FOR_MASKS = """
def scaled_dot_product_attention(Q, K, V, mask=None):
    scores = Q @ K.mT / Q.size(-1) ** 0.5
    if mask is not None:
        if mask.dim() == 2:
            mask = mask.unsqueeze(0)
        scores = scores.masked_fill(mask == 0, float("-inf"))
    return scores.softmax(-1) @ V
"""


def test_an_axis_too_many_for_vectors_without_a_batch_is_a_risk(told):
    name = "scaled_dot_product_attention"
    parts, _ = told(A_BATCH_FOR_MASKS)
    assert not faults(parts[name])
    assert "Vectors without a batch" in excuses(parts[name])
    parts, _ = told(A_BATCH_FOR_MASKS.replace('float("-inf")', "-1.0"))
    assert faults(parts[name])


IN_TURN = """
def apply_rotary_emb(x, freqs_cis):
    cos, sin = freqs_cis[..., 0::2], freqs_cis[..., 1::2]
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1)
    return turned.reshape(x.shape)
"""


def test_cosines_and_sines_may_stand_in_turn_in_one_table(told):
    parts, _ = told(IN_TURN)
    assert not faults(parts["apply_rotary_emb"])
    assert "cosines and sines in turn" in said(parts["apply_rotary_emb"])
    parts, _ = told(IN_TURN.replace("even * cos - odd", "even * cos + odd"))
    assert faults(parts["apply_rotary_emb"])


THREE_OF_PYTORCHS = """
def generate_masks(src, tgt, pad_idx, device):
    size = tgt.shape[1]
    order = nn.Transformer.generate_square_subsequent_mask(size).to(device)
    return src == pad_idx, tgt == pad_idx, order
"""


def test_three_masks_may_be_those_that_pytorch_wants(told):
    parts, _ = told(THREE_OF_PYTORCHS)
    assert not faults(parts["generate_masks"])
    assert "as `nn.Transformer` wants them" in said(parts["generate_masks"])
    parts, _ = told(THREE_OF_PYTORCHS.replace("tgt == pad", "tgt != pad"))
    assert faults(parts["generate_masks"])


FOR_KEYS = """
def create_padding_mask(src, padding_value=0):
    return src == padding_value
"""


def test_a_padding_mask_may_be_the_one_that_pytorch_wants(told):
    parts, _ = told(FOR_KEYS)
    assert not faults(parts["create_padding_mask"])
    assert "as PyTorch's `key_padding_mask`" in said(
        parts["create_padding_mask"]
    )
    parts, _ = told(FOR_KEYS.replace("src ==", "src >"))
    assert faults(parts["create_padding_mask"])


BOTH_IN_ONE = """
def create_pad_mask(ids):
    real, n = (ids != 0).long(), ids.size(1)
    past = torch.ones(n, n, dtype=torch.long).tril()
    return (real[:, None, :] * past).unsqueeze(1)
"""


def test_a_padding_mask_may_hide_the_future_as_well(told):
    parts, _ = told(BOTH_IN_ONE)
    assert parts["create_pad_mask"]["component"] == "combine_masks"
    assert not faults(parts["create_pad_mask"])
    parts, _ = told(BOTH_IN_ONE.replace("tril()", "triu()"))
    assert faults(parts["create_pad_mask"])


IN_ONE = """
def apply_rotary_pos_emb(x, sincos):
    sin, cos = sincos
    turned = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    return x * cos + turned * sin
"""


def test_a_rotation_may_want_sines_and_cosines_in_one_argument(told):
    parts, _ = told(IN_ONE)
    assert not faults(parts["apply_rotary_pos_emb"])
    assert "tables of cosines and sines" in said(parts["apply_rotary_pos_emb"])
    parts, _ = told(IN_ONE.replace("(-x[", "(x["))
    assert faults(parts["apply_rotary_pos_emb"])
    # Named in the other order, they come so.
    turned = IN_ONE.replace("sincos", "cos_sin").replace("sin, cos", "cos, sin")
    parts, _ = told(turned)
    assert not faults(parts["apply_rotary_pos_emb"])


CAUSAL = """
def attention(q, k, v, causal=True):
    scores = q @ k.mT / q.size(-1) ** 0.5
    if causal:
        queries, keys = scores.shape[-2:]
        later = torch.ones(queries, keys).triu(1 + keys - queries)
        scores = scores.masked_fill(later.bool(), -torch.inf)
    return scores.softmax(-1) @ v
"""


def test_a_flag_that_hides_the_future_is_no_mask(told):
    parts, left = told(CAUSAL)
    assert left == {}
    assert not faults(parts["attention"])
    assert "`causal` was off" in said(parts["attention"])
    assert "no row sees its future" in said(parts["attention"])
    parts, _ = told(CAUSAL.replace("softmax(-1)", "softmax(-2)"))
    assert faults(parts["attention"])


def test_what_the_flag_hides_is_judged(told):
    parts, _ = told(CAUSAL.replace("1 + keys - queries", "2"))
    assert parts["attention"]["component"] == "causal_attention"
    assert "No row sees its future" in contracts(parts["attention"])


BY_DEFAULT = """
class FullAttention(nn.Module):
    def __init__(self, mask_flag=True, attention_dropout=0.1):
        super().__init__()
        self.mask_flag, self.drop = mask_flag, nn.Dropout(attention_dropout)

    def forward(self, queries, keys, values, attn_mask=None):
        rows, keys_of = queries.shape[1], keys.shape[1]
        scores = torch.einsum("blhe,bshe->bhls", queries, keys)
        if self.mask_flag:
            if attn_mask is None:
                attn_mask = torch.ones(rows, keys_of).triu(1).bool()
            scores = scores.masked_fill(attn_mask, -torch.inf)
        scores = scores / queries.shape[-1] ** 0.5
        return torch.einsum("bhls,bshd->blhd", scores.softmax(-1), values)
"""


def test_attention_that_is_causal_unless_told_otherwise_is_judged_so(told):
    parts, left = told(BY_DEFAULT)
    assert left == {}
    assert parts["FullAttention"]["component"] == "causal_attention"
    assert not faults(parts["FullAttention"])
    # Without such a flag it hides the future from who gave no mask.
    unasked = BY_DEFAULT.replace("mask_flag", "shifted")
    parts, _ = told(unasked)
    assert faults(parts["FullAttention"])
    parts, _ = told(BY_DEFAULT.replace("triu(1)", "triu(2)"))
    assert faults(parts["FullAttention"])


ON_A_DEVICE = """
def make_causal_mask(seq_len, device):
    return torch.ones(seq_len, seq_len, device=device).tril().bool()


def generate_square_subsequent_mask(sz, device):
    return torch.full((sz, sz), -torch.inf, device=device).triu(1)


def make_padding_mask(ids, pad, device):
    return (ids != pad)[:, None, None].to(device)
"""


def test_what_makes_a_mask_on_a_device_gets_one(told):
    parts, left = told(ON_A_DEVICE)
    assert left == {}
    assert len(parts) == 3
    assert not any(map(faults, parts.values()))
    parts, _ = told(ON_A_DEVICE.replace("triu(1)", "tril(-1)"))
    assert faults(parts["generate_square_subsequent_mask"])
    capital = ON_A_DEVICE.replace("sz, device", "sz, DEVICE")
    parts, _ = told(
        capital.replace("device=device).triu", "device=DEVICE).triu")
    )
    assert not faults(parts["generate_square_subsequent_mask"])


OF_Q_AND_K = """
def make_pad_mask(q, k, pad_idx=0):
    return (k != pad_idx)[:, None, None]
"""


def test_a_padding_mask_may_be_made_of_what_asks_and_what_is_asked(told):
    parts, left = told(OF_Q_AND_K)
    assert left == {}
    assert not faults(parts["make_pad_mask"])
    parts, _ = told(OF_Q_AND_K.replace("[:, None, None]", "[:, None, :, None]"))
    assert faults(parts["make_pad_mask"])


def test_a_pad_may_be_called_so_in_another_order(told):
    text = OF_Q_AND_K.replace("q, k, pad_idx=0", "seq_q, seq_k, i_pad")
    text = text.replace("k != pad_idx", "seq_k != i_pad")
    parts, left = told(text)
    assert left == {}
    assert not faults(parts["make_pad_mask"])
    parts, _ = told(text.replace("None, None]", "None, :, None]"))
    assert faults(parts["make_pad_mask"])


OF_DIRECTIONS = """
def attention(q, k, v, mask=None):
    q, k = (x / x.norm(dim=-1, keepdim=True) for x in (q, k))
    scores = 10 * q @ k.mT
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ v

class CosineAttention(nn.Module):
    def forward(self, q, k, v, mask=None):
        batch, heads, length, width = q.shape
        return attention(q / q.norm(dim=-1, keepdim=True), k, v, mask)
"""


def test_attention_may_compare_directions(told):
    parts, left = told(OF_DIRECTIONS)
    assert left == {}
    assert not faults(parts["attention"])
    assert not faults(parts["CosineAttention"])
    assert "directions are to be compared" in excuses(parts["attention"])
    wrong = OF_DIRECTIONS.replace("softmax(-1)", "softmax(-2)")
    assert faults(told(wrong)[0]["attention"])
    # Without lengths, a factor of 10 is none.
    wrong = OF_DIRECTIONS.replace(" / x.norm(dim=-1, keepdim=True)", "")
    assert faults(told(wrong)[0]["attention"])


OF_ONE_WIDTH = """
D_K, HEADS = 64, 8

def attention(q, k, v, mask=None):
    scores = q @ k.mT / D_K**0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ v

class ScaledDotProductAttention(nn.Module):
    def forward(self, q, k, v, mask=None):
        return attention(q, k, v, mask) if HEADS else D_K
"""


def test_a_scale_may_be_made_for_the_width_that_its_file_names(told):
    parts, left = told(OF_ONE_WIDTH)
    assert left == {}
    for part in parts.values():
        assert not faults(part)
        assert "its heads have 64 numbers: for these `D_K` is" in excuses(part)
    parts, _ = told(OF_ONE_WIDTH.replace("~mask", "mask"))
    whole = said(parts["ScaledDotProductAttention"])
    assert "read so that True hides, for so fewer contracts fail" in whole
    # Nobody's heads are as wide as there are heads, and 64 is no root of 64.
    for wrong in ("(HEADS - 1)**0.5", "D_K"):
        text = OF_ONE_WIDTH.replace("D_K**0.5", wrong)
        assert faults(told(text)[0]["attention"])


BY_ARGUMENTS = """
class TransformerOptimizer:
    def __init__(self, optimizer, k, d_model, warmup_steps=4000):
        self.optimizer, self.k, self.d_model = optimizer, k, d_model
        self.warmup, self.count = warmup_steps, 0

    def step(self):
        self.count += 1
        least = min(self.count**-0.5, self.count * self.warmup**-1.5)
        for group in self.optimizer.param_groups:
            group["lr"] = self.k * self.d_model**-0.5 * least


class PaperAdam(torch.optim.Adam):
    def __init__(self, params, d_model, warmup_steps=4000, eps=1e-9):
        self.d_model, self.warmup, self.count = d_model, warmup_steps, 0
        super().__init__(params, eps=eps)

    def step(self, closure=None):
        self.count += 1
        least = min(self.count**-0.5, self.count * self.warmup**-1.5)
        for group in self.param_groups:
            group["lr"] = self.d_model**-0.5 * least
        super().step(closure)
"""


@pytest.mark.parametrize("name", ["TransformerOptimizer", "PaperAdam"])
def test_a_schedule_is_known_by_a_width_and_a_warm_up(told, name):
    parts, left = told(BY_ARGUMENTS)
    assert left == {}
    assert not faults(parts[name])
    assert "its arguments say so" in said(parts[name])
    parts, _ = told(BY_ARGUMENTS.replace("-1.5", "-0.5"))
    assert "The ramp is" in faults(parts[name])[0]


THREE_AXES = """
def create_src_mask(src, pad, device):
    return (src != pad).unsqueeze(1).to(device)


def make_decoder_self_attn_mask(tgt, pad_idx=0):
    n = tgt.shape[1]
    past = torch.ones(n, n).tril().bool()
    return past & (tgt != pad_idx)[:, None]


def build_sincos_posenc(max_len, d_model):
    rates = 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
    at = torch.arange(max_len)[:, None] * rates
    return torch.stack([at.sin(), at.cos()], -1).flatten(-2)
"""


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("create_src_mask", "src != pad", "src != 0 * pad + 1"),
        ("make_decoder_self_attn_mask", "tril()", "tril(1)"),
        (
            "build_sincos_posenc",
            "arange(0, d_model, 2)",
            "arange(d_model // 2)",
        ),
    ],
)
def test_masks_and_tables_under_other_names_are_judged(
    told, name, right, wrong
):
    parts, left = told(THREE_AXES)
    assert left == {}
    assert not faults(parts[name])
    parts, _ = told(THREE_AXES.replace(right, wrong))
    assert contracts(parts[name])


CUT_FROM_A_BUFFER = """
def attention(q, k, v, mask=None, drop=None):
    batch, heads, length, width = q.size()
    scores = q @ k.mT / width**0.5
    if mask is not None:
        scores = scores.masked_fill(mask[:, :, :length, :length] == 0, -1e10)
    return scores.softmax(-1) @ v
"""


def test_attention_on_heads_that_no_call_fits_is_no_fault(told):
    parts, left = told(CUT_FROM_A_BUFFER)
    assert parts == {}
    assert "expected 4, got 3" in left["attention"]
    # Where one fits, it is judged; and what has another name is as before.
    whole = CUT_FROM_A_BUFFER.replace("[:, :, :length, :length]", "")
    parts, _ = told(whole)
    assert not faults(parts["attention"])
    parts, _ = told(whole.replace("softmax(-1)", "softmax(-2)"))
    assert faults(parts["attention"])


RATE = """
def rate(step, model_size, factor, warmup):
    step = max(step, 1)
    least = min(step**-0.5, step * warmup**-1.5)
    return factor * model_size**-0.5 * least
"""


def test_a_function_of_a_step_a_width_and_a_warm_up_is_a_schedule(told):
    parts, left = told(RATE)
    assert left == {}
    assert not faults(parts["rate"])
    parts, _ = told(RATE.replace("-1.5", "-0.5"))
    assert "The ramp is" in faults(parts["rate"])[0]
    parts, _ = told(RATE.replace("model_size", "peak"))
    assert parts == {}


MISSPELT = """
class LabelSmoothing(nn.Module):
    def __init__(self, size, padding_idx, smotthing=0.0):
        super().__init__()
        self.size, self.pad, self.share = size, padding_idx, smotthing

    def forward(self, x, target):
        truth = torch.full_like(x, self.share / (self.size - 2))
        truth.scatter_(1, target[:, None], 1 - self.share)
        truth[:, self.pad] = 0
        truth[target == self.pad] = 0
        return nn.functional.kl_div(x, truth, reduction="sum")
"""


def test_a_smoothing_may_be_misspelt_and_an_axis_is_no_size(told):
    parts, left = told(MISSPELT)
    assert left == {}
    assert not faults(parts["LabelSmoothing"])
    parts, _ = told(MISSPELT.replace("1 - self.share", "1"))
    assert faults(parts["LabelSmoothing"])
    # Where nothing is called so, it is not said to be ignored.
    _, left = told(MISSPELT.replace("smotthing", "delta"))
    assert "which of its arguments is the smoothing" in left["LabelSmoothing"]
    parts, _ = told(MISSPELT.replace("smotthing=0.0", "dim=-1, smotthing=0.0"))
    assert not faults(parts["LabelSmoothing"])


TURNS = """
def rope(x, offset=0):
    rates = 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    places = offset + torch.arange(x.shape[-2])
    angles = torch.outer(places + 0.0, rates)
    a, b = x.chunk(2, -1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([a * cos - b * sin, b * cos SIGN a * sin], -1)
"""


def test_where_a_rotation_begins_is_not_taken_for_positions(told):
    parts, left = told(TURNS.replace("SIGN", "+"))
    assert left == {}
    assert not faults(parts["rope"])
    parts, left = told(TURNS.replace("SIGN", "-"))
    assert left == {}
    assert faults(parts["rope"])


OF_OTHERS = {
    "softmax(x, temperature=1.0)": "temperature",
    "schedule(step, warmup=10, total=100)": "warmup",
    "sinusoidal(t, dim)": "t",
}


@pytest.mark.parametrize("call", OF_OTHERS)
def test_a_function_with_anothers_arguments_is_not_judged_by_place(told, call):
    name, first = call.split("(")[0], call.split("(")[1].split(",")[0]
    parts, left = told(f"def {call}:\n    return 2.0 * {first}\n")
    assert parts == {}
    assert f"its argument `{OF_OTHERS[call]}` is another's" in left[name]


CAPITALS = """
class ScaledDotProductAttention(nn.Module):
    def forward(self, Q, K, V, mask=None):
        scores = Q @ K.mT / SCALE
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -torch.inf)
        return scores.softmax(-1) @ V


def scaled_dot_product_attention(K, Q, V, mask=None):
    scores = Q @ K.mT / SCALE
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1) @ V
"""


def test_queries_keys_and_values_are_known_in_capitals(told):
    parts, left = told(CAPITALS.replace("SCALE", "Q.shape[-1] ** 0.5"))
    assert left == {}
    assert len(parts) == 2
    assert not any(map(faults, parts.values()))
    parts, left = told(CAPITALS.replace("SCALE", "1"))
    assert left == {}
    for part in parts.values():
        assert any("The scores are not scaled" in f for f in faults(part))


HIDES_ITSELF = """
def attention(q, k, v, window=2):
    n = q.shape[-2]
    back = torch.arange(n)[:, None] - torch.arange(n)
    scores = q @ k.mT / SCALE
    scores = scores.masked_fill((back < 0) | (back >= window), -torch.inf)
    return scores.softmax(-1) @ v
"""


@pytest.mark.parametrize("window", ["=2", "=99"])
def test_attention_without_a_mask_may_hide_the_future_itself(told, window):
    text = HIDES_ITSELF.replace("=2", window)
    parts, left = told(text.replace("SCALE", "q.shape[-1] ** 0.5"))
    assert left == {}
    assert not faults(parts["attention"])
    parts, _ = told(text.replace("SCALE", "1"))
    assert faults(parts["attention"])


def test_flash_attention_that_is_pytorchs_own_may_keep_scores_here(told):
    text = """
def flash_attention(q, k, v, causal=True):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)
"""
    text = "import torch.nn.functional as F\n" + text
    parts, _ = told(text)
    assert not faults(parts["flash_attention"])
    by_hand = "(q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v"
    parts, _ = told(text.split("F.scaled")[0] + by_hand)
    assert any("autograd keeps" in f for f in faults(parts["flash_attention"]))


FROM_0 = """
class Warmup(torch.optim.lr_scheduler.LambdaLR):
    def __init__(self, optimizer, d_model, warmup_steps):
        def factor(step):
            if step == 0:
                return FIRST
            rate = min(step ** -0.5, step * warmup_steps ** -1.5)
            return d_model ** -0.5 * rate
        super().__init__(optimizer, factor)


def noam(step, d_model, warmup):
    if step == 0:
        return FIRST
    return d_model ** -0.5 * min(step ** -0.5, step * warmup ** -1.5)
"""


def test_a_scheduler_begins_with_step_0(told):
    parts, _ = told(FROM_0.replace("FIRST", "0.0"))
    assert not any(told_of(part) for part in parts.values())
    parts, _ = told(FROM_0.replace("FIRST", "1.0"))
    [fault] = faults(parts["Warmup"])
    assert fault.startswith("Step 0 has the rate 1")
    # Whoever counts the steps of a function may begin with 1.
    assert not faults(parts["noam"])
    assert told_of(parts["noam"]).startswith("Step 0 has the rate 1")


BY_NUMBER = """
def attention(q, k, v, mask=None):
    scores = q @ k.transpose(1, 2) / SCALE
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return scores.softmax(2) @ v


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = torch.bmm(q, k.permute(0, 2, 1)) / SCALE
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return torch.bmm(scores.softmax(-1), v)
"""


def test_attention_by_its_name_may_take_three_axes_and_no_others(told):
    parts, left = told(BY_NUMBER.replace("SCALE", "q.shape[2] ** 0.5"))
    assert left == {}
    assert len(parts) == 2
    for part in parts.values():
        assert not faults(part)
        assert "it takes three axes and no others" in said(part)
    parts, _ = told(BY_NUMBER.replace("SCALE", "1"))
    assert all(map(faults, parts.values()))


OF_A_TOKENIZER = """
class Tokenizer:
    pad_id = 388


PAD = 50256


def padding_mask(tokens):
    return (tokens != Tokenizer.pad_id)[:, None, None, :]


def create_padding_mask(tokens):
    real = tokens != PAD
    return (real[:, None, :] & real[:, :, None]).unsqueeze(1)


def make_pad_mask(tokens):
    return torch.ones_like(tokens).bool()[:, None, None, :]
"""


def test_the_padding_of_a_mask_may_be_any_id_that_its_code_reads(told):
    parts, left = told(OF_A_TOKENIZER)
    assert left == {}
    assert not told_of(parts["padding_mask"])
    # Its rows of padding see nobody.
    assert not faults(parts["create_padding_mask"])
    assert "see nobody" in told_of(parts["create_padding_mask"])
    assert faults(parts["make_pad_mask"])
