"""Feed-forward networks that look about, or have come out flat."""

import torch
import torch.nn.functional as F
from torch import nn

from companion.blocks import LayerNorm
from companion.zoo.animal import animal

APART = "No position sees another"


class Network(nn.Module):
    """Two matrices with a ReLU between them."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(12, 47), nn.Linear(47, 12)

    def forward(self, x):
        """The same for every position."""
        return self.down(self.up(x).relu())


@animal(
    "feed_forward",
    seen="a common slip: a convolution of width 1 is right, of width 3 not",
    symptom="a decoder's loss is too good: it reads the next word here",
    contract=APART,
    says="or a convolution run",
)
class ConvolutionOfWidthThree(Network):
    """Reads both neighbours of a position along with it."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Conv1d(12, 12, 3, padding=1)

    def forward(self, x):
        return super().forward(self.mix(x.mT).mT)


@animal(
    "feed_forward",
    seen="a common slip",
    symptom="rows change with the length of the sentence, padding included",
    contract=APART,
    says="Does a softmax, a norm",
)
class GateOverThePositions(Network):
    """The gate is a softmax over `dim=1`, and that is the positions."""

    def forward(self, x):
        return super().forward(x * x.softmax(1))


@animal(
    "feed_forward",
    seen="a common slip",
    symptom="it tests well, and trains otherwise with each size of batch",
    contract="In training mode too no sentence sees another",
    says="does a norm run over the batch (BatchNorm)",
)
class NormOverTheBatch(Network):
    """A BatchNorm inside, which in evaluation mode is only a scale."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(12)

    def forward(self, x):
        return super().forward(self.norm(x.mT).mT)


@animal(
    "feed_forward",
    seen="a common slip",
    symptom="two thirds of the weights are spent, and the loss is as without",
    contract="It is not linear",
    says="is the ReLU between them missing",
)
class NothingBetween(Network):
    """Two matrices in a row do what one could."""

    def forward(self, x):
        return self.down(self.up(x))


@animal(
    "feed_forward",
    seen="a common slip",
    symptom="the stream only ever grows, and norms have to take it back",
    contract="The output takes both signs",
    says="does the ReLU come last",
)
class EndsWithARelu(Network):
    """Every matrix is followed by a ReLU, the last one too."""

    def forward(self, x):
        return super().forward(x).relu()


@animal(
    "feed_forward",
    seen="a common slip",
    symptom="half of what arrives is thrown away, and the loss ends higher",
    contract="Every feature of the input counts, in both directions",
    says="does a ReLU cut the input",
)
class BeginsWithARelu(Network):
    """Cuts off the negative half of the stream before it reads it."""

    def forward(self, x):
        return super().forward(x.relu())


@animal(
    "feed_forward",
    seen="a common slip",
    symptom="with the layer's own norm and sum there are two of each, and deep "
    "stacks train badly",
    contract="The vectors it returns have sizes of their own",
    says="is the layer's norm inside",
)
class AddsAndNormsItself(Network):
    """Residual and norm are inside, and the layer around it has them too."""

    def __init__(self):
        super().__init__()
        self.norm = LayerNorm(12)

    def forward(self, x):
        return self.norm(x + super().forward(x))


@animal(
    "feed_forward",
    seen="a common slip",
    symptom="it learns as if a third of its weights were not there",
    contract="Every weight of a module takes part",
    says="`gate.weight` takes no part: no gradient reaches it",
)
class GateThatIsNotCalled(Network):
    """SwiGLU, whose gate is built, and lets through whatever comes."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(12, 47, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.up(x)))


@animal(
    "feed_forward",
    seen="a common slip",
    symptom="the same question has another answer each time, in use too",
    contract="The same inputs give the same output",
    says="dropout is on",
)
class DropsOutForEver(Network):
    """The function does not know that training is over: nobody told it."""

    def forward(self, x):
        return self.down(F.dropout(self.up(x).relu(), 0.1, training=True))


@animal(
    "feed_forward",
    seen="a common slip",
    symptom="words at the end of a sentence shout the others down",
    contract="Every position goes through the same weights",
    says="What a position gets depends on where it stands",
)
class LouderTowardsTheEnd(Network):
    """Scales a position by its place, as if each were to have its own
    network."""

    def forward(self, x):
        place = torch.arange(1, x.shape[1] + 1)[:, None]
        return super().forward(x) * place / x.shape[1]
