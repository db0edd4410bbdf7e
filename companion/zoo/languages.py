"""Language models that know what they should not, or do not what they should.

Row i of the logits is for the token after position i.
"""

import torch
import torch.nn.functional as F
from torch import nn

from companion.blocks import EncoderLayer
from companion.masks import causal_mask
from companion.zoo.animal import animal

FUTURE = "No logit knows a token of its future"
NEXT = "The mask is off by one: a row sees the very token"


class Language(nn.Module):
    """Two layers under a causal mask, over tokens with learned positions."""

    def __init__(self):
        super().__init__()
        self.embed, self.places = nn.Embedding(11, 12), nn.Embedding(16, 12)
        self.layers = nn.ModuleList(EncoderLayer(12, 2, 31) for _ in "12")
        self.head = nn.Linear(12, 11)

    def embedded(self, tokens):
        """Each token with its place."""
        return self.embed(tokens) + self.places.weight[: tokens.shape[1]]

    def mask(self, length, layer):
        """Who may look at whom in a layer; True = may attend."""
        return causal_mask(length)

    def forward(self, tokens):
        """Logits (batch, seq, vocab)."""
        x = self.embedded(tokens)
        for i, layer in enumerate(self.layers):
            x = layer(x, self.mask(tokens.shape[1], i))
        return self.head(x)


@animal(
    "language_model",
    seen="note 2, lines 387-400 (T-13)",
    symptom="the loss goes to 0 in an hour, and it writes nonsense",
    contract=FUTURE,
    says="Every row sees all tokens: is the causal mask missing",
)
class EncoderThatPredicts(Language):
    """An encoder with logits at its end, and nothing that hides the future."""

    def mask(self, length, layer):
        return None


@animal(
    "language_model",
    seen="a common slip",
    symptom="the loss goes to 0, and the maps that are drawn, those of layer "
    "0, look right",
    contract=FUTURE,
    says="is the causal mask missing, if only in one layer",
)
class MaskInTheFirstLayerOnly(Language):
    """Layer 0 hides the future, and layer 1 reads it."""

    def mask(self, length, layer):
        return None if layer else causal_mask(length)


@animal(
    "language_model",
    seen="a common slip",
    symptom="the loss is near 0, as each row reads its own answer",
    contract=FUTURE,
    says=NEXT,
)
class ReadsItsOwnAnswer(Language):
    """The mask would be right if the input had been shifted once more."""

    def mask(self, length, layer):
        return torch.ones(length, length, dtype=torch.bool).tril(1)


@animal(
    "language_model",
    seen="a common slip",
    symptom="the loss falls fast and the output is a fixed sentence",
    contract=FUTURE,
    says="is the mask upside down",
)
class TriangleTurnedRound(Language):
    """Every row sees its future, and nothing of its past."""

    def mask(self, length, layer):
        return causal_mask(length).mT


@animal(
    "language_model",
    seen="a common slip",
    symptom="a loss below that of any honest model, and what it writes "
    "changes as it goes on",
    contract=FUTURE,
    says="Every row sees all tokens",
)
class CentredOverTheSentence(Language):
    """Takes the mean of the whole sentence from every row, future included."""

    def embedded(self, tokens):
        x = super().embedded(tokens)
        return x - x.mean(1, keepdim=True)


@animal(
    "language_model",
    seen="a common slip: the data set shifts, and so does the model",
    symptom="the loss stays high, as each row must guess two tokens ahead",
    contract="Every token of the past can move a logit",
    says="is the input shifted twice",
)
class ShiftsWhatIsShifted(Language):
    """Puts a start token before an input that begins with one."""

    def forward(self, tokens):
        return super().forward(F.pad(tokens, (1, -1)))


@animal(
    "language_model",
    seen="a common slip",
    symptom="the loss of a table of word pairs, whatever the depth",
    contract="Every token of the past can move a logit",
    says="Each row knows its own token only",
)
class EachForItself(Language):
    """Lets a position look at nothing but itself."""

    def mask(self, length, layer):
        return torch.eye(length, dtype=torch.bool)


@animal(
    "language_model",
    seen="a common slip",
    symptom="word order does not matter much, and grammar is poor",
    contract="The order of the past counts",
    says="are positions added",
)
class BagOfWords(Language):
    """Adds up what it has read, and adds no positions."""

    def __init__(self):
        super().__init__()
        del self.places, self.layers

    def forward(self, tokens):
        return self.head(self.embed(tokens).cumsum(1).tanh())


@animal(
    "language_model",
    seen="a common slip: positions first, where the batch is",
    symptom="right in batches of one, and all sentences differ by their place "
    "in a batch",
    contract="A sentence has the logits that it has alone",
    says="are positions counted along the batch",
)
class PositionsAlongTheBatch(Language):
    """Counts positions along axis 0, as for (seq, batch, d_model)."""

    def embedded(self, tokens):
        places = self.places.weight[: len(tokens), None]
        return self.embed(tokens) + places


@animal(
    "language_model",
    seen="a common slip of those who pad on the left",
    symptom="it scores well, and with each word that it says it forgets "
    "where the others stood",
    contract="The logits of a beginning are those of the whole",
    says="does the length, or the end, count",
)
class CountsFromTheEnd(Language):
    """The last token has place 0, so that all places move with each word."""

    def embedded(self, tokens):
        places = self.places.weight[: tokens.shape[1]]
        return self.embed(tokens) + places.flip(0)


@animal(
    "language_model",
    seen="a common slip",
    symptom="the loss stops just below log(vocab), and goes no further",
    contract="It returns logits, not probabilities",
    says="leave the softmax to `cross_entropy`",
)
class SoftmaxAtTheEnd(Language):
    """Probabilities, of which `cross_entropy` takes the softmax again."""

    def forward(self, tokens):
        return super().forward(tokens).softmax(-1)


@animal(
    "language_model",
    seen="a common slip",
    symptom="it tests worse than it trains, and no two answers agree",
    contract="The same inputs give the same output",
    says="dropout is on",
)
class DropsOutForEver(Language):
    """Drops from its embeddings, by a function that is not told of `eval`."""

    def embedded(self, tokens):
        return F.dropout(super().embedded(tokens), 0.1, training=True)


@animal(
    "language_model",
    seen="a common slip",
    symptom="half of the layers never get a gradient, and no one notices",
    contract="Every weight of a module takes part",
    says="takes no part: no gradient reaches it",
)
class ReturnsInTheLoop(Language):
    """The line that returns stands one step too far to the right."""

    def forward(self, tokens):
        x = self.embedded(tokens)
        for layer in self.layers:
            x = layer(x, causal_mask(tokens.shape[1]))
            return self.head(x)
