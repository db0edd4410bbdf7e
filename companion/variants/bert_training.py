"""What BERT is trained for: holes, what comes next, and classes.

Each objective is a module for ``training.fit`` and ``training.update``: a
summed loss and the number that it is the sum of.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from companion.checks import check_ids, check_kind
from companion.training.loss import summed_loss
from companion.variants.bert import BERT, Classifier
from companion.variants.specials import PAD

Loss = tuple[Float[Tensor, ""], int]


class MaskedModelling(nn.Module):
    """Compute the loss of the tokens that ``mask_tokens`` chose.

    Only they count: the other positions never reach the table.

    Args:
        model: What reads the rest.
    """

    def __init__(self, model: BERT):
        super().__init__()
        check_kind("model", model, BERT)
        self.model = model

    def forward(
        self, inputs: Int[Tensor, "batch seq"], target: Int[Tensor, "batch seq"]
    ) -> Loss:
        """The loss, summed over the chosen tokens, and how many they are.

        Raises:
            TypeError, ValueError: as ``BERT.states``; or ``target`` is not one
                for each input, or has no chosen token.
        """
        states = self.model.states(inputs)
        return _masked_loss(self.model, states, target)

    def count(self, *batch: Tensor) -> Int[Tensor, ""]:
        """How many tokens are asked for: those of the target but padding."""
        return (batch[1] != PAD).sum()


class PreTraining(nn.Module):
    """Compute one loss of masked tokens and of whether the second text is next.

    The mean over the tokens plus the mean over the pairs, as in section A.2 of
    Devlin et al. (2019); of several batches that are one step, each weighs as
    much as it has chosen tokens.

    Args:
        model: What reads.
    """

    def __init__(self, model: BERT):
        super().__init__()
        check_kind("model", model, BERT)
        self.model = model

    def forward(
        self,
        inputs: Int[Tensor, "batch seq"],
        segments: Int[Tensor, "batch seq"],
        target: Int[Tensor, "batch seq"],
        is_next: Bool[Tensor, " batch"],
    ) -> Loss:
        """Both losses, times the number of chosen tokens; and that number.

        Raises:
            TypeError, ValueError: as ``MaskedModelling``; or ``is_next`` is
                not bool.
        """
        if is_next.dtype != torch.bool:
            raise TypeError(f"is_next: expected bool, got {is_next.dtype}")
        states = self.model.states(inputs, segments)
        total, count = _masked_loss(self.model, states, target)
        scores = self.model.next_logits(states).float()
        return total + count * F.cross_entropy(scores, is_next.long()), count

    def count(self, *batch: Tensor) -> Int[Tensor, ""]:
        """How many tokens are asked for: those of the target but padding."""
        return (batch[2] != PAD).sum()


class Classifying(nn.Module):
    """Compute the loss of each example's class, which fine-tuning makes small.

    Args:
        model: What reads and answers.
    """

    def __init__(self, model: Classifier):
        super().__init__()
        check_kind("model", model, Classifier)
        self.model = model

    def forward(
        self, tokens: Int[Tensor, "batch seq"], classes: Int[Tensor, " batch"]
    ) -> Loss:
        """The loss, summed over the examples, and how many they are.

        Raises:
            TypeError, ValueError: as ``BERT.states``; or ``classes`` are not
                ids of classes.
        """
        scores = self.model(tokens).float()
        check_ids("classes", classes, scores.shape[1], axes=1)
        loss = F.cross_entropy(scores, classes.long(), reduction="sum")
        return loss, len(tokens)

    def count(self, *batch: Tensor) -> Int[Tensor, ""]:
        """How many examples there are."""
        return torch.tensor(len(batch[0]))


def _masked_loss(model: BERT, states: Tensor, target: Tensor) -> Loss:
    if target.shape != states.shape[:2]:
        raise ValueError(
            f"target: expected one for each input, {tuple(states.shape[:2])}, "
            f"got {tuple(target.shape)}"
        )
    check_ids("target", target, model.config.vocab_size)
    asked = target != PAD
    if not asked.any():
        raise ValueError(
            "target: expected at least one chosen token, got padding only"
        )
    logits = model.logits(states[asked])
    return summed_loss(logits, target[asked].long(), 0.0), len(logits)
