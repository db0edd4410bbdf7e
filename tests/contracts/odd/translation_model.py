"""Encoder–decoders got wrong."""

import torch
from contracts.odd import wrong
from contracts.right import built
from contracts.right.multihead import WIDTH
from contracts.right.translation_model import Layers
from torch import nn


def model(says, *args, **options):
    """Registers a kind of ``Layers``."""

    def register(kind):
        module = built(lambda: kind(*(args or (2,)), **options))
        module.__name__ = kind.__name__
        wrong("translation_model", says)(module)
        return kind

    return register


@model("^The logits of position 0 do not move with source .* Only one token", 1)
class OneSourceToken(Layers):
    def masks(self, src, tgt):
        _, seen, _ = super().masks(src, tgt)
        itself = torch.eye(src.shape[1], dtype=torch.bool)
        return itself, seen, torch.arange(src.shape[1]) == 0


@model("^The logits of position 3 do not move with target .*its own token only")
class NoPast(Layers):
    def masks(self, src, tgt):
        real, _, memory = super().masks(src, tgt)
        return real, torch.eye(tgt.shape[1], dtype=torch.bool), memory


@model("^Target tokens 0 and 1 changed places, .* added to the target", 1)
class NoTargetPositions(Layers):
    def target(self, tgt):
        return self.tgt(tgt)


@model("^Two tokens of padding .* Do the encoder and the attention to the mem")
class AnotherPad(Layers):
    """Takes 1 for the padding."""

    def forward(self, src, tgt):
        src = torch.where(src == 0, 10, src)
        return super().forward(src, tgt)


@model("^Two tokens of padding .* Do the encoder and the attention to the mem")
class MemoryMaskUpsideDown(Layers):
    def masks(self, src, tgt):
        real, seen, _ = super().masks(src, tgt)
        return real, seen, ~real | real.all(-1, keepdim=True)


@model("^Three tokens of padding .* behind the target move earlier rows")
class CountsThePadding(Layers):
    def forward(self, src, tgt):
        logits = super().forward(src, tgt)
        return logits * (1 + (tgt == 0).sum(1))[:, None, None]


@model("^The first 1 target tokens alone have other logits than within 4")
class DividedByTheLength(Layers):
    def forward(self, src, tgt):
        return super().forward(src, tgt) / (tgt != 0).sum(1)[:, None, None]


@model("^In a batch a pair has other logits than alone: .* along the batch")
class PositionsAlongTheBatch(Layers):
    def __init__(self, num_layers):
        super().__init__(num_layers)
        self.places = nn.Embedding(16, WIDTH)

    def target(self, tgt):
        return self.tgt(tgt) + self.places.weight[: len(tgt), None]


@model("^In a batch a pair has other logits than alone: do sentences see")
class AnotherSource(Layers):
    """Each target gets the source of the pair before it."""

    def forward(self, src, tgt):
        return super().forward(src.roll(1, 0), tgt)


@model("^Every row is positive and sums to 1: leave the softmax")
class Probabilities(Layers):
    def forward(self, src, tgt):
        return super().forward(src, tgt).softmax(-1)


@model(r"^It returned shape \(2, 5, 11\).* are source and target swapped")
class Swapped(Layers):
    def forward(self, src, tgt):
        return super().forward(tgt, src)


@model(r"^It returned shape \(2, 11\).* Only the last position has logits")
class LastLogits(Layers):
    def forward(self, src, tgt):
        return super().forward(src, tgt)[:, -1]


@model(r"^It returned shape \(2, 11, 4\).* The vocabulary comes last")
class VocabularySecond(Layers):
    def forward(self, src, tgt):
        return super().forward(src, tgt).mT
