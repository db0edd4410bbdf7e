"""Losses with label smoothing, schedules and shifts, right in several ways."""

import math

import torch
import torch.nn.functional as F
from contracts.right import right
from torch import nn, optim

# Training


@right("label_smoothing")
def by_cross_entropy(logits, target, smoothing, pad):
    return F.cross_entropy(
        logits.transpose(1, 2),
        target,
        ignore_index=pad,
        label_smoothing=smoothing,
    )


@right("label_smoothing")
def by_two_means(logits, target, smoothing, pad):
    """(1 - ε) times the plain loss, and ε times the mean over all classes."""
    logs = logits.log_softmax(-1)[target != pad]
    words = target[target != pad]
    plain = -logs[torch.arange(len(words)), words].mean()
    return (1 - smoothing) * plain - smoothing * logs.mean()


@right("label_smoothing")
def as_kl_divergence(logits, target, smoothing, pad):
    """As a well-known port has it, with a matrix of targets."""
    vocab = logits.size(-1)
    logs = F.log_softmax(logits.reshape(-1, vocab), -1)
    words = target.reshape(-1)
    aim = torch.full_like(logs, smoothing / (vocab - 2))
    aim.scatter_(1, words[:, None], 1 - smoothing)
    aim[:, pad] = 0
    aim[words == pad] = 0
    total = nn.KLDivLoss(reduction="sum")(logs, aim)
    return total / (words != pad).sum()


@right("label_smoothing")
def over_all_but_two(logits, target, smoothing, pad):
    """The same masses, as a cross-entropy: the entropy stays in."""
    losses, count = 0.0, 0
    for row, words in zip(logits, target, strict=True):
        for scores, word in zip(row, words, strict=True):
            if word == pad:
                continue
            logs = scores - scores.logsumexp(0)
            others = logs.sum() - logs[word] - logs[pad]
            rest = smoothing / (len(scores) - 2)
            losses = losses - (1 - smoothing) * logs[word] - rest * others
            count += 1
    return losses / count


@right("schedule")
def noam(step, d_model, warmup):
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


@right("schedule")
def two_branches(step, d_model, warmup):
    peak = 1 / math.sqrt(d_model * warmup)
    if step < warmup:
        return peak * step / warmup
    return peak * math.sqrt(warmup / step)


@right("schedule")
def in_tensors(step, d_model, warmup):
    step = torch.tensor(float(step))
    return torch.minimum(step.rsqrt(), step / warmup**1.5) / d_model**0.5


@right("schedule")
def by_scheduler(step, d_model, warmup):
    """What PyTorch's LambdaLR makes of a factor, for a step or for few."""
    weight = nn.Parameter(torch.zeros(1))
    adam = optim.SGD([weight], lr=d_model**-0.5)
    rate = optim.lr_scheduler.LambdaLR(
        adam,
        lambda n: min((n + 1) ** -0.5, (n + 1) * warmup**-1.5),
        last_epoch=-1,
    )
    rate.last_epoch = step - 1
    return rate.get_lr()[0]


@right("shift_right")
def by_cat(tokens, bos):
    first = tokens.new_full((len(tokens), 1), bos)
    return torch.cat([first, tokens[:, :-1]], dim=1)


@right("shift_right")
def by_padding(tokens, bos):
    return F.pad(tokens[:, :-1], (1, 0), value=bos)


@right("shift_right")
def by_rolling(tokens, bos):
    rolled = tokens.roll(1, dims=1)
    rolled[:, 0] = bos
    return rolled


@right("shift_right")
def by_copying(tokens, bos):
    shifted = torch.zeros_like(tokens)
    shifted[..., 1:] = tokens[..., :-1].clone()
    shifted[..., 0] = bos
    return shifted


# Clip gradients


@right("clip_gradients")
def by_hand(gradients, scale, max_norm):
    """Squares added up one after the other."""
    gradients = [g / scale for g in gradients]
    norm = sum(g.square().sum() for g in gradients) ** 0.5
    if norm <= max_norm:
        return gradients
    return [g * (max_norm / norm) for g in gradients]


@right("clip_gradients")
def by_pytorch(gradients, scale, max_norm):
    """As a training step does it, on the parameters."""
    parameters = [nn.Parameter(torch.zeros_like(g)) for g in gradients]
    for parameter, g in zip(parameters, gradients, strict=True):
        parameter.grad = g / scale
    nn.utils.clip_grad_norm_(parameters, max_norm)
    return [parameter.grad for parameter in parameters]


@right("clip_gradients")
def scaled_limit(gradients, scale, max_norm):
    """Clips what is scaled by a limit that is scaled too, and divides last."""
    norms = torch.stack(torch._foreach_norm(gradients))
    factor = (scale * max_norm / norms.norm().clamp(min=1e-12)).clamp(max=1)
    return tuple(g * factor / scale for g in gradients)
