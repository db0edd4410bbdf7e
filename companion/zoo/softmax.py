"""Softmax, with and without a mask: what goes wrong between score and weight.

True = may attend. Most of these weights are positive and sum to 1.
"""

import torch

from companion.zoo.animal import animal

FAR = "Scores of ±10⁴ give finite weights"
AGREES = "It agrees with PyTorch"

# Without a mask


@animal(
    "softmax",
    seen="taken from note 1, line 104, by which softmax is stable (C-15)",
    symptom="training goes well for a while, then the loss is NaN for ever",
    contract=FAR,
    says="`exp` makes ∞ of a large score",
)
def overflows(scores, dim):
    """The formula as printed: `exp` of a score of 89 is already infinite."""
    return scores.exp() / scores.exp().sum(dim, keepdim=True)


@animal(
    "softmax",
    seen="a common slip",
    symptom="a confident sentence turns the others of its batch into NaN",
    contract=FAR,
    says="subtract each row's own largest score first",
)
def one_maximum_for_all(scores, dim):
    """The largest score of the whole batch is subtracted from every row."""
    parts = (scores - scores.max()).exp()
    return parts / parts.sum(dim, keepdim=True)


@animal(
    "softmax",
    seen="a common slip",
    symptom="right in every test along the last axis, wrong along another",
    contract=AGREES,
    says="`dim` is not used: the softmax always runs along the last axis",
)
def ignores_dim(scores, dim):
    """It takes `dim`, and runs along the last axis whatever that says."""
    return torch.softmax(scores, dim=-1)


@animal(
    "softmax",
    seen="a common slip",
    symptom="weights shrink as the batch grows, and with them the output",
    contract=AGREES,
    says="All numbers share one sum",
)
def one_sum_for_all(scores, dim):
    """`sum()` without an axis: the whole batch shares one weight of 1."""
    parts = (scores - scores.max()).exp()
    return parts / parts.sum()


@animal(
    "softmax",
    seen="a common slip",
    symptom="every output is right, and training goes astray",
    contract="The gradient of every input is the slope of the function",
    says="The gradient of `scores` is wrong",
)
def half_a_gradient(scores, dim):
    """The sum is detached, like the maximum; but the sum matters."""
    parts = (scores - scores.amax(dim, keepdim=True)).exp()
    return parts / parts.sum(dim, keepdim=True).detach()


@animal(
    "softmax",
    seen="a common slip",
    symptom="no weight comes near 1, however clear the case is",
    contract=FAR,
    says="Large scores are not told apart",
)
def clamped(scores, dim):
    """Scores are cut at ±30 so that `exp` cannot overflow."""
    parts = scores.clamp(-30, 30).exp()
    return parts / parts.sum(dim, keepdim=True)


# With a mask


@animal(
    "masked_softmax",
    seen="a common slip",
    symptom="short sentences get shorter vectors, the shorter the worse",
    contract=AGREES,
    says="The mask multiplies the weights after the softmax",
)
def multiplied_afterwards(scores, mask):
    """The mask wipes weights out after the softmax: rows sum to less."""
    return torch.softmax(scores, dim=-1) * mask


@animal(
    "masked_softmax",
    seen="a common slip",
    symptom="fine, until padding scores high: then a row is NaN",
    contract="A hidden score of 10⁴ changes nothing",
    says="is it -∞ before the softmax, or only wiped out after it",
)
def shared_out_afterwards(scores, mask):
    """Wiped out after the softmax, and the rest divided by its sum."""
    weights = torch.softmax(scores, dim=-1) * mask
    total = weights.sum(-1, keepdim=True)
    return weights / total.masked_fill(~mask.any(-1, keepdim=True), 1)


@animal(
    "masked_softmax",
    seen="a common slip",
    symptom="the loss is a little too good, and the text a little too bad",
    contract="With a causal mask no row sees its future",
    says="Does the mask reach the scores, as -∞",
)
def filled_with_minus_ten(scores, mask):
    """Hidden scores become -10: enough for weak scores, not for strong."""
    weights = scores.masked_fill(~mask, -10).softmax(-1)
    return weights.masked_fill(~mask.any(-1, keepdim=True), 0)


@animal(
    "masked_softmax",
    seen="note 2, lines 229-231 (C-40)",
    symptom="one empty sentence in a batch, and all weights are NaN at once",
    contract="A row that may attend to nothing gets zeros",
    says="All its scores are -∞",
)
def nan_in_empty_rows(scores, mask):
    """Hidden scores become -∞: a row of nothing else is 0/0."""
    return scores.masked_fill(~mask, -torch.inf).softmax(-1)


@animal(
    "masked_softmax",
    seen="note 2, line 270, by its -1e9 (C-40)",
    symptom="no error: a sentence of padding reads all of its padding",
    contract="A row that may attend to nothing gets zeros",
    says="Row 1 may attend to nothing, and attends to all keys alike",
)
def uniform_in_empty_rows(scores, mask):
    """Hidden scores become very low: equally low ones get equal weights."""
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~mask, lowest).softmax(-1)


@animal(
    "masked_softmax",
    seen="a common slip",
    symptom="every output is finite, and the first step makes all NaN",
    contract="A row that may attend to nothing has finite gradients",
    says="mends the output, not the gradient",
)
def nan_in_the_gradient(scores, mask):
    """The NaN of an empty row is turned into 0, too late for its gradient."""
    bias = torch.zeros_like(scores).masked_fill(~mask, -torch.inf)
    return (scores + bias).softmax(-1).nan_to_num(0)


@animal(
    "masked_softmax",
    seen="note 2, line 270 (T-16)",
    symptom="in mixed precision everything is NaN from the first batch on",
    contract="It works in half precision",
    says="a mask times -1e9 is -∞ in float16, and 0 times -∞ is NaN",
)
def mask_times_a_billion(scores, mask):
    """Adds hidden × -1e9, which is -∞ in float16; and 0 × -∞ is NaN."""
    billion = torch.tensor(-1e9).to(scores.dtype)
    weights = (scores + (~mask).to(scores.dtype) * billion).softmax(-1)
    return weights.masked_fill(~mask, 0)
