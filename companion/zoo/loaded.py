"""Encoder layers into which the weights were loaded the wrong way.

The files hold the right numbers, and no shape complains.
"""

import torch.nn.functional as F

from companion.zoo.animal import animal
from companion.zoo.layers import AGREES, finished, gathered, normed

SQUARE = ("w_q", "w_k", "w_v", "w_o")


@animal(
    "encoder_layer",
    seen="a common slip: some libraries keep (in, out), some (out, in)",
    symptom="the weights load without a word, and the answers are noise",
    contract=AGREES,
    says="The matrices w_q, w_k, w_v and w_o are transposed",
)
def matrices_the_other_way_round(x, weights, num_heads, mask=None):
    """The four square matrices fit both ways, and are taken transposed."""
    weights = weights | {name: weights[name].T for name in SQUARE}
    return finished(x, gathered(x, weights, num_heads, mask), weights)


@animal(
    "encoder_layer",
    seen="a common slip: `norm1` and `norm2` tell nobody where they stand",
    symptom="loaded weights answer worse than they should, and no test of "
    "shapes knows why",
    contract=AGREES,
    says="The norms have changed places",
)
def norms_that_changed_places(x, weights, num_heads, mask=None):
    """The first norm's gain and bias go to the second, and the other way."""
    names = {"gain_1": "gain_2", "bias_1": "bias_2"}
    names |= {there: here for here, there in names.items()}
    swapped = weights | {name: weights[old] for name, old in names.items()}
    return finished(x, gathered(x, swapped, num_heads, mask), swapped)


@animal(
    "encoder_layer",
    seen="a common slip",
    symptom="loaded weights answer almost right, and a little worse than told",
    contract=AGREES,
    says="GELU stands where ReLU is asked for",
)
def bends_in_another_way(x, weights, num_heads, mask=None):
    """What was trained with a ReLU is run with a GELU."""
    said = gathered(x, weights, num_heads, mask)
    x = normed(x + F.linear(said, weights["w_o"]), weights, 1)
    inner = F.gelu(F.linear(x, weights["w_1"], weights["b_1"]))
    thought = F.linear(inner, weights["w_2"], weights["b_2"])
    return normed(x + thought, weights, 2)
