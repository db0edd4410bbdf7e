"""Encoder–decoders whose two halves do not meet as they should."""

import torch
import torch.nn.functional as F
from torch import nn

from companion.blocks import EncoderLayer
from companion.masks import causal_mask, combine_masks
from companion.transformer.layers import DecoderLayer
from companion.zoo.animal import animal

FUTURE = "No logit knows a target token of its future"
SOURCE = "Every source token can move every logit"
PADDING = "Padding behind the source changes nothing"
PADDED = "both get the mask of the source's padding"


class Translator(nn.Module):
    """Two layers of encoder, two of decoder, and learned positions."""

    def __init__(self):
        super().__init__()
        self.src, self.tgt = nn.Embedding(11, 12), nn.Embedding(11, 12)
        self.places = nn.Embedding(16, 12)
        sizes = 12, 3, 31
        self.encoder = nn.ModuleList(EncoderLayer(*sizes) for _ in "12")
        self.decoder = nn.ModuleList(DecoderLayer(*sizes) for _ in "12")
        self.head = nn.Linear(12, 11)

    def placed(self, x):
        """Vectors with their positions."""
        return x + self.places.weight[: x.shape[1]]

    def source(self, src):
        """The source's tokens with their places."""
        return self.placed(self.src(src))

    def target(self, tgt):
        """The target's tokens with their places."""
        return self.placed(self.tgt(tgt))

    def masks(self, src, tgt):
        """For the source, the target and the memory; the padding is 0."""
        return combine_masks(src, tgt, 0)

    def encoded(self, src, mask):
        """The memory."""
        x = self.source(src)
        for layer in self.encoder:
            x = layer(x, mask)
        return x

    def decoded(self, tgt, memory, mask, memory_mask):
        """What each target position knows."""
        y = self.target(tgt)
        for layer in self.decoder:
            y = layer(y, memory, mask, memory_mask)
        return y

    def forward(self, src, tgt):
        """Logits (batch, tgt, vocab)."""
        own, mask, memory_mask = self.masks(src, tgt)
        memory = self.encoded(src, own)
        return self.head(self.decoded(tgt, memory, mask, memory_mask))


@animal(
    "translation_model",
    seen="note 4, line 190, forgets this mask (C-98)",
    symptom="the loss goes to 0, and translations are one word over and over",
    contract=FUTURE,
    says="Every row sees all tokens: is the causal mask missing",
)
class DecoderWithoutCausalMask(Translator):
    """The target is masked as the source is, for its padding only."""

    def masks(self, src, tgt):
        hides_pads = (tgt != 0)[:, None, None]
        return super().masks(src, tgt)._replace(tgt=hides_pads)


@animal(
    "translation_model",
    seen="note 2, line 240, has the causal mask in training only (C-43)",
    symptom="it writes a word, reads it with those behind it, and no score is "
    "what it was in training",
    contract=FUTURE,
    says="Every row sees all tokens: is the causal mask missing",
)
class CausalInTrainingOnly(Translator):
    """In use there is no future yet, so why hide it: the prefix is read anew,
    and its rows see each other."""

    def masks(self, src, tgt):
        masks = super().masks(src, tgt)
        hides_pads = (tgt != 0)[:, None, None]
        return masks if self.training else masks._replace(tgt=hides_pads)


@animal(
    "translation_model",
    seen="note 2, line 233, does not say that the target is shifted (C-42)",
    symptom="the loss is near 0 at once: each row copies its own answer",
    contract=FUTURE,
    says="The mask is off by one: a row sees the very token",
)
class ReadsItsOwnAnswer(Translator):
    """Sees one token of the future: the one that the row has to say."""

    def masks(self, src, tgt):
        length = tgt.shape[1]
        seen = torch.ones(length, length, dtype=torch.bool).tril(1)
        return super().masks(src, tgt)._replace(tgt=seen)


@animal(
    "translation_model",
    seen="a common slip: the data set shifts, and so does the model",
    symptom="the loss stays high, as each row must guess two tokens ahead",
    contract="Every target token of the past can move a logit",
    says="is the input shifted twice",
)
class ShiftsWhatIsShifted(Translator):
    """Puts a start token before a target that begins with one."""

    def target(self, tgt):
        return super().target(F.pad(tgt, (1, -1), value=1))


@animal(
    "translation_model",
    seen="a common slip",
    symptom="fluent sentences that have nothing to do with the source",
    contract=SOURCE,
    says="The source is not used at all",
)
class AsksTheTargetTwice(Translator):
    """Cross-attention gets the target for its keys, and the memory lies
    idle."""

    def decoded(self, tgt, memory, mask, memory_mask):
        y = self.target(tgt)
        for layer in self.decoder:
            y = layer(y, y, mask, mask)
        return y


@animal(
    "translation_model",
    seen="a common slip",
    symptom="what stands late in the source is translated badly, or not",
    contract=SOURCE,
    says="The causal mask is used for the source too",
)
class CausalAllOver(Translator):
    """One triangle for every attention, whoever asks whom."""

    def masks(self, src, tgt):
        past = torch.ones(tgt.shape[1], src.shape[1], dtype=torch.bool).tril()
        own, seen, cross = super().masks(src, tgt)
        return own & causal_mask(src.shape[1]), seen, cross & past


@animal(
    "translation_model",
    seen="a common slip",
    symptom="layers of the encoder never get a gradient, and it translates "
    "word by word",
    contract="Every weight of a module takes part",
    says="takes no part: no gradient reaches it",
)
class MemoryOfTheFirstLayer(Translator):
    """All layers of the decoder read what layer 0 of the encoder made."""

    def encoded(self, src, mask):
        return self.encoder[0](self.source(src), mask)


@animal(
    "translation_model",
    seen="a common slip",
    symptom="the same source is translated otherwise in every batch",
    contract=PADDING,
    says=PADDED,
)
class EncoderReadsPadding(Translator):
    """The decoder does not look at padding, but every word has."""

    def masks(self, src, tgt):
        return super().masks(src, tgt)._replace(src=None)


@animal(
    "translation_model",
    seen="a common slip",
    symptom="short sources in long batches are translated with words that "
    "nobody said",
    contract=PADDING,
    says=PADDED,
)
class DecoderReadsPadding(Translator):
    """The memory mask is left at its default, and that is none."""

    def masks(self, src, tgt):
        return super().masks(src, tgt)._replace(cross=None)


@animal(
    "translation_model",
    seen="a common slip",
    symptom="right in batches of one, and worse the more lengths differ",
    contract="A short source beside a long one has the logits that it has "
    "alone",
    says="Its padding, or the other sentence, counts",
)
class OneMaskForTheBatch(Translator):
    """Hides only what is padding in every sentence of the batch."""

    def masks(self, src, tgt):
        own = (src != 0).any(0)[None, None, None]
        return super().masks(src, tgt)._replace(src=own, cross=own)


@animal(
    "translation_model",
    seen="a common slip",
    symptom="the words are right, and their order is that of no language",
    contract="The order of the source counts",
    says="are positions added to the source",
)
class SourceWithoutPositions(Translator):
    """Only the target gets positions."""

    def source(self, src):
        return self.src(src)


@animal(
    "translation_model",
    seen="a common slip",
    symptom="the same source has another translation each time, searched "
    "greedily too",
    contract="The same inputs give the same output",
    says="dropout is on",
)
class DropsOutForEver(Translator):
    """Drops from its embeddings, by a function that is not told of `eval`."""

    def placed(self, x):
        return F.dropout(super().placed(x), 0.1, training=True)
