"""Encoder–decoders got wrong."""

import torch
from right import built
from right.language_model import causal
from right.multihead import WIDTH
from right.translation_model import Layers
from torch import nn

from wrong import wrong


def model(says, *args, **options):
    """Registers a kind of ``Layers``."""

    def register(kind):
        module = built(lambda: kind(*(args or (2,)), **options))
        module.__name__ = kind.__name__
        wrong("translation_model", says)(module)
        return kind

    return register


@model("^The logits of position 0 move with target token 1, .* sees all tokens")
class NoCausalMask(Layers):
    def masks(self, src, tgt):
        real, _, memory = super().masks(src, tgt)
        return real, (tgt != 0)[:, None, None], memory


@model("^The logits of position 0 move with target token 1, .* off by one", 1)
class SeesTheNext(Layers):
    def masks(self, src, tgt):
        real, seen, memory = super().masks(src, tgt)
        return real, torch.ones(seen.shape[-2:]).tril(1).bool(), memory


@model("^The logits of position 0 do not move with source .* not used at all")
class NoMemory(Layers):
    def source(self, src):
        return 0 * super().source(src)


@model("^The logits of position 0 do not move with source token 1.*causal mask")
class CausalMemory(Layers):
    def masks(self, src, tgt):
        real, seen, _ = super().masks(src, tgt)
        past = torch.ones(tgt.shape[1], src.shape[1], dtype=torch.bool).tril()
        return real & causal(src.shape[1]), seen, real & past


@model("^The logits of position 0 do not move with source .* Only one token", 1)
class OneSourceToken(Layers):
    def masks(self, src, tgt):
        _, seen, _ = super().masks(src, tgt)
        itself = torch.eye(src.shape[1], dtype=torch.bool)
        return itself, seen, torch.arange(src.shape[1]) == 0


@model(
    "^The logits of position 3 do not move with target token .*shifted twice"
)
class ShiftedTwice(Layers):
    def forward(self, src, tgt):
        start = torch.ones_like(tgt[:, :1])
        return super().forward(src, torch.cat([start, tgt[:, :-1]], 1))


@model("^The logits of position 3 do not move with target .*its own token only")
class NoPast(Layers):
    def masks(self, src, tgt):
        real, _, memory = super().masks(src, tgt)
        return real, torch.eye(tgt.shape[1], dtype=torch.bool), memory


@model("^Source tokens 0 and 1 changed places, .* added to the source")
class NoSourcePositions(Layers):
    def source(self, src):
        return self.src(src)


@model("^Target tokens 0 and 1 changed places, .* added to the target", 1)
class NoTargetPositions(Layers):
    def target(self, tgt):
        return self.tgt(tgt)


@model("^Two tokens of padding .* Do the encoder and the attention to the mem")
class NoMaskInTheEncoder(Layers):
    def masks(self, src, tgt):
        _, seen, memory = super().masks(src, tgt)
        return None, seen, memory


@model("^Two tokens of padding .* Do the encoder and the attention to the mem")
class NoMaskForTheMemory(Layers):
    def masks(self, src, tgt):
        real, seen, _ = super().masks(src, tgt)
        return real, seen, None


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


@model("^Its padding, or the other sentence, counts.")
class MaskOfTheWholeBatch(Layers):
    """Hides what is padding in every sentence."""

    def masks(self, src, tgt):
        real, seen, _ = super().masks(src, tgt)
        real = real.any(0, keepdim=True)
        return real, seen, real


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


@model("^The second call differs: dropout is on")
class Dropout(Layers):
    def forward(self, src, tgt):
        return nn.functional.dropout(super().forward(src, tgt), 0.1)
