"""Language models got wrong."""

import torch
from contracts.odd import wrong
from contracts.right import built
from contracts.right.language_model import WORDS, Layers, Ours, causal, counted
from torch import nn

KNOWS = "^The logits of position 0 move with token 1, which is in their future"


def model(says, *layers, **options):
    """Registers a kind of ``Layers``, or another module."""

    def register(kind):
        module = built(lambda: kind(*(make() for make in layers), **options))
        module.__name__ = kind.__name__
        wrong("language_model", says)(module)
        return kind

    return register


class Masked(Layers):
    """An encoder of two layers with a mask of its own."""

    def __init__(self, num_layers=2, **options):
        super().__init__(Ours(num_layers), **options)

    def mask(self, length):
        return causal(length)

    def embedded(self, tokens):
        return self.embed(tokens) + self.places.weight[: tokens.shape[1]]

    def forward(self, tokens):
        mask = self.mask(tokens.shape[1])
        return self.head(self.encoder(self.embedded(tokens), mask))


@model(KNOWS + ".*off by one: a row sees the very token", num_layers=1)
class OffByOne(Masked):
    def mask(self, length):
        return torch.ones(length, length).tril(1).bool()


@model("^The logits of position 1 move with token 2, .* Does every layer get")
class LastRowOnly(Masked):
    """The future is hidden from position 0 only."""

    def mask(self, length):
        mask = torch.ones(length, length, dtype=torch.bool)
        mask[0, 1:] = False
        return mask


@model(KNOWS + ".*Every row sees all tokens")
class LeakingALittle(Masked):
    """A mask that is added, and not negative enough."""

    def forward(self, tokens):
        logits = super().forward(tokens)
        return logits + 3e-3 * self.head(self.embedded(tokens)).mean(1)[:, None]


@model("^The logits of position 4 do not move with token 1, whatever it is.$")
class Trigram(Masked):
    """Sees three tokens."""

    def __init__(self):
        super().__init__(1)

    def mask(self, length):
        return causal(length).triu(-2)


@model(
    "^Tokens 0 and 1 changed places.* are positions added",
    lambda: Ours(1),
    positions=False,
)
class NoPositions(Layers):
    pass


@model(r"^It returned shape \(2, 11\).* Only the last position has logits")
class LastLogits(Masked):
    def forward(self, tokens):
        return super().forward(tokens)[:, -1]


@model(r"^It returned shape \(2, 11, 5\).* The vocabulary comes last")
class VocabularySecond(Masked):
    def forward(self, tokens):
        return super().forward(tokens).mT


@model(r"^It returned shape \(5, 2, 11\).* Are positions and batch swapped")
class BatchSecond(Masked):
    def forward(self, tokens):
        return super().forward(tokens).transpose(0, 1)


@model("^It returned 9 logits for each position: the ids go up to 9")
class TooFewWords(Masked):
    def forward(self, tokens):
        return super().forward(tokens)[..., 1:10]


@wrong("language_model")
def the_likeliest(tokens):
    return counted(tokens).argsort(-1)


@wrong("language_model")
def too_small_a_table(tokens):
    return nn.functional.embedding(tokens - 1, torch.eye(WORDS)[:8])
