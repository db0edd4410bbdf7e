"""A model is one graph to the compiler, and gives the same numbers."""

import pytest
import torch

from companion import checks
from companion.data.vocabulary import Vocabulary
from companion.training import Objective
from companion.transformer import (
    LanguageModel,
    LanguageModelConfig,
    Transformer,
    TransformerConfig,
)
from companion.variants import BART, GPT, T5, BARTConfig, GPTConfig, T5Config

pytestmark = pytest.mark.once

VOCAB, PAD = 19, Vocabulary.pad
SIZES = {"d_model": 12, "num_heads": 3, "d_ff": 20, "num_layers": 2}
SIZES |= {"dropout": 0.0}


def compiled(module):
    torch._dynamo.reset()
    return torch.compile(module, fullgraph=True, backend="aot_eager")


def tokens(*shape):
    ids = torch.randint(3, VOCAB, shape)
    ids[1, 3:] = PAD
    return ids


def translator(**changes):
    sizes = {"src_vocab_size": VOCAB, "tgt_vocab_size": VOCAB}
    return Transformer(TransformerConfig(**sizes, **SIZES, **changes))


def writers():
    settings = {"vocab_size": VOCAB, **SIZES}
    yield LanguageModel(LanguageModelConfig(**settings))
    yield LanguageModel(LanguageModelConfig(**settings, pad=None))
    yield GPT(GPTConfig(**settings, max_len=11))
    yield GPT(GPTConfig(**settings, max_len=11, pad=PAD))


@pytest.mark.parametrize(
    "make",
    [
        translator,
        lambda: translator(norm_first=True, shared_vocab=True),
        lambda: T5(T5Config(vocab_size=VOCAB, **SIZES)),
        lambda: BART(BARTConfig(vocab_size=VOCAB, max_len=11, **SIZES)),
    ],
    ids=["post-norm", "pre-norm", "T5", "BART"],
)
def test_a_translator_is_one_graph(make):
    model, batch = make(), (tokens(3, 5), tokens(3, 7))
    torch.testing.assert_close(compiled(model)(*batch), model(*batch))


@pytest.mark.parametrize("number", range(4))
def test_a_language_model_is_one_graph(number):
    model, ids = list(writers())[number], tokens(3, 7)
    torch.testing.assert_close(compiled(model)(ids), model(ids))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_training_objective_is_one_graph_with_the_same_gradients(smoothing):
    for model, batch in (
        (translator(), (tokens(3, 5), tokens(3, 7))),
        (list(writers())[3], (tokens(3, 7),)),
    ):
        objective = Objective(model, smoothing=smoothing)
        (plain, count) = objective(*batch)
        expected = torch.autograd.grad(plain, [*model.parameters()])
        loss, number = compiled(objective)(*batch)
        torch.testing.assert_close(loss, plain)
        assert int(number) == count == int(objective.count(*batch))
        got = torch.autograd.grad(loss, [*model.parameters()])
        torch.testing.assert_close(got, expected)


class Waiting(torch.overrides.TorchFunctionMode):
    """Fails where a number is read from a tensor, as if it were elsewhere."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        assert name not in {"item", "tolist", "nonzero", "__bool__", "__int__"}
        return func(*args, **(kwargs or {}))


def test_ids_on_an_accelerator_are_checked_without_waiting_for_it():
    ids = tokens(3, 7).to("meta")  # A device whose numbers cannot be read.
    with Waiting():
        checks.check_ids("ids", ids, VOCAB)
        for model in writers():
            model = model.to("meta")
            assert model(ids).shape == (3, 7, VOCAB)
    with pytest.raises(AssertionError), Waiting():
        checks.check_ids("ids", tokens(3, 7), VOCAB)
