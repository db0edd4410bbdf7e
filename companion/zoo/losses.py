"""Losses with label smoothing whose curves fall, towards something else."""

import torch
import torch.nn.functional as F

from companion.zoo.animal import animal

PADDING = "The logits at padding do not count"
PLAIN = "Without smoothing it is the cross-entropy"
MASS = "The mass is spread as PyTorch does it, or as a well-known port does"


def smoothed(logits, target, smoothing):
    """PyTorch's loss for each token, padding included."""
    return F.cross_entropy(
        logits.mT, target, label_smoothing=smoothing, reduction="none"
    )


def spread(logits, target, best, other):
    """The loss for each token: ``best`` for its word, ``other`` for others."""
    sure = F.one_hot(target, logits.shape[-1]).float()
    aim = best * sure + other * (1 - sure)
    return -(aim * logits.log_softmax(-1)).sum(-1)


def aimed(logs, target, smoothing, pad):
    """PyTorch's form, of whatever is taken for log-probabilities."""
    real = target != pad
    words = target[real].unsqueeze(-1)
    best = (1 - smoothing) * logs[real].gather(1, words).mean()
    return -best - smoothing * logs[real].mean()


@animal(
    "label_smoothing",
    seen="a common slip",
    symptom="the loss falls fast and far: most of what it learns is to say pad",
    contract=PADDING,
    says="Padding is counted, as if it were a token to predict",
)
def counts_padding(logits, target, smoothing, pad):
    """The mean over all positions, padding among them."""
    return smoothed(logits, target, smoothing).mean()


@animal(
    "label_smoothing",
    seen="a common slip",
    symptom="right until somebody's tokeniser has another id for padding",
    contract=PADDING,
    says="Other logits where the target is padding, 3 here, change the loss",
)
def knows_padding_zero_only(logits, target, smoothing, pad):
    """Ignores the id 0, whatever padding is."""
    ignored = torch.where(target == 0, -100, target)
    return F.cross_entropy(logits.mT, ignored, label_smoothing=smoothing)


@animal(
    "label_smoothing",
    seen="a common slip",
    symptom="the more padding, the better the loss, and the less is learned",
    contract=PLAIN,
    says="It divides by all positions: divide by the number of real tokens",
)
def over_the_padded_length(logits, target, smoothing, pad):
    """Padding is zeroed, and counted when the sum is divided."""
    return (smoothed(logits, target, smoothing) * (target != pad)).mean()


@animal(
    "label_smoothing",
    seen="note 3, lines 323-341 (C-63)",
    symptom="the loss grows with the batch, and nearly every step is clipped",
    contract=PLAIN,
    says="That is a sum: divide it by the number of real tokens",
)
def summed(logits, target, smoothing, pad):
    """`reduction='sum'`, and nobody divides."""
    return smoothed(logits, target, smoothing)[target != pad].sum()


@animal(
    "label_smoothing",
    seen="gradient accumulation in widely used trainers",
    symptom="accumulated small batches end with a higher loss than one large "
    "batch",
    contract=PLAIN,
    says="a token of a short sentence counts more",
)
def mean_of_means(logits, target, smoothing, pad):
    """A mean for each sentence, and the mean of those."""
    real = target != pad
    losses = smoothed(logits, target, smoothing) * real
    return (losses.sum(-1) / real.sum(-1)).mean()


@animal(
    "label_smoothing",
    seen="a common slip",
    symptom="training with smoothing 0.1 is training with none, to the digit",
    contract=MASS,
    says="The smoothing is ignored",
)
def unsmoothed(logits, target, smoothing, pad):
    """Takes the smoothing, and does not pass it on."""
    return smoothed(logits, target, 0.0)[target != pad].mean()


@animal(
    "label_smoothing",
    seen="a common slip",
    symptom="the loss is a little too low, and no number can be compared",
    contract=MASS,
    says="The target gets 1 - ε, and its share ε / V is missing",
)
def short_of_one(logits, target, smoothing, pad):
    """ε / V for each of the others: the masses sum to less than 1."""
    rest = smoothing / logits.shape[-1]
    return spread(logits, target, 1 - smoothing, rest)[target != pad].mean()


@animal(
    "label_smoothing",
    seen="a common slip",
    symptom="beam search finds padding in the middle of sentences",
    contract=MASS,
    says="Padding gets a share of ε: a class that is never right",
)
def smooths_over_padding(logits, target, smoothing, pad):
    """ε is spread over all classes but the target: padding is one of them."""
    rest = smoothing / (logits.shape[-1] - 1)
    return spread(logits, target, 1 - smoothing, rest)[target != pad].mean()


@animal(
    "label_smoothing",
    seen="a common slip",
    symptom="the loss never comes as low as the entropy of its target",
    contract=MASS,
    says="The target gets 1 - ε and a share of ε besides",
)
def smooths_the_target_twice(logits, target, smoothing, pad):
    """The share of the others is added to the target too: more than 1."""
    rest = smoothing / (logits.shape[-1] - 2)
    losses = spread(logits, target, 1 - smoothing + rest, rest)
    losses = losses + rest * logits.log_softmax(-1)[..., pad]
    return losses[target != pad].mean()


@animal(
    "label_smoothing",
    seen="note 3, lines 323-341 (C-63)",
    symptom="the loss falls below 0 and on to minus infinity",
    contract=PLAIN,
    says="The logits are taken for log-probabilities: `log_softmax` is missing",
)
def takes_logits_for_logarithms(logits, target, smoothing, pad):
    """Asks for log-probabilities and is given logits: nothing complains."""
    return aimed(logits, target, smoothing, pad)


@animal(
    "label_smoothing",
    seen="a common slip",
    symptom="the loss falls slowly, and stops far above 0",
    contract=PLAIN,
    says="Two softmaxes: cross-entropy takes logits, not probabilities",
)
def two_softmaxes(logits, target, smoothing, pad):
    """The model ends with a softmax, and the loss begins with another."""
    losses = smoothed(logits.softmax(-1), target, smoothing)
    return losses[target != pad].mean()


@animal(
    "label_smoothing",
    seen="a common slip",
    symptom="good until the model is sure of itself: then the loss is infinite",
    contract="Large logits do not overflow",
    says="`log_softmax` takes the logarithm before anything can become 0",
)
def logarithm_of_a_softmax(logits, target, smoothing, pad):
    """A softmax, and the logarithm afterwards: of 0, sooner or later."""
    return aimed(logits.softmax(-1).log(), target, smoothing, pad)


@animal(
    "label_smoothing",
    seen="a common slip",
    symptom="the loss falls, and the likeliest word is rarely the right one",
    contract=PADDING,
    says="The softmax runs over positions: the classes are on the last axis",
)
def softmax_over_positions(logits, target, smoothing, pad):
    """The axis of the softmax is that of the positions."""
    return aimed(logits.log_softmax(1), target, smoothing, pad)
