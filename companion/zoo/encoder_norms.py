"""Encoders whose norms run over the wrong axis, or are one too few.

The rest of them is right.
"""

import torch.nn.functional as F
from torch import nn

from companion.blocks import PARTS, EncoderLayer
from companion.zoo.animal import animal
from companion.zoo.encoders import PADS, TAKES_PART, Stack


class OverTheSentence(nn.LayerNorm):
    """One mean and one variance for all positions."""

    def forward(self, x):
        return F.layer_norm(x, x.shape[1:]) * self.weight + self.bias


@animal(
    "encoder",
    seen="note 4, line 180, says that it scales each sample (C-96)",
    symptom="rows change with what is hidden from them, and with the length",
    contract=PADS,
    says="Does a norm run over the positions",
)
class NormOverTheSentence(Stack):
    """A sentence is taken for a sample, and normalised as a whole."""

    parts = PARTS._replace(norm=OverTheSentence)


@animal(
    "encoder",
    seen="a common slip: two lines that differ in one digit",
    symptom="half of the gains stay at exactly 1, however long it trains",
    contract=TAKES_PART,
    says="takes no part: no gradient reaches it",
)
class OneNormForBothSums(Stack):
    """Each layer has two norms, and the first of them works twice."""

    def forward(self, x, mask=None):
        for layer in self.layers:
            norm = layer.attention_residual.norm
            x = norm(x + layer.self_attention(x, mask))
            x = norm(x + layer.feed_forward(x))
        return x


class OverTheBatch(nn.BatchNorm1d):
    """BatchNorm, which wants the features second."""

    def forward(self, x):
        return super().forward(x.mT).mT


@animal(
    "encoder",
    seen="a common slip",
    symptom="the loss jumps with the lengths in a batch, and in use it answers "
    "otherwise than in training",
    contract="In training mode too no sentence sees another",
    says="does a norm run over the batch (BatchNorm)",
)
class BatchNormInDisguise(Stack):
    """What is called norm is a BatchNorm, and in evaluation mode harmless."""

    parts = PARTS._replace(norm=OverTheBatch)


@animal(
    "encoder",
    seen="note 3, lines 208-215, whose stack ends without a norm (C-61)",
    symptom="the deeper the stack, the longer its vectors; what reads them "
    "gets most from the last layers' noise",
    contract="What leaves the stack is normalised",
    says="one more norm stands after the last layer",
)
class PreNormWithoutTheLast(Stack):
    """Each sub-layer reads what is normalised, and the sum leaves as it is."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(
            EncoderLayer(12, 3, 29, norm_first=True) for _ in "12"
        )
