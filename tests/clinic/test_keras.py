"""What the repaired notebook of chapter 14 does in Keras, where it was written.

The numbers are those of the lab's table. Keras runs on PyTorch here; what is
TensorFlow's is asserted where that is installed, and skipped elsewhere.
"""

import math
from importlib.util import find_spec

import pytest
import torch
from torch import nn

# Looked for and not imported: its backend is chosen before the first import.
pytestmark = pytest.mark.skipif(
    find_spec("keras") is None, reason="Keras is not installed"
)

LAYERS, WIDTH, WITHIN, VOCABULARY = 4, 128, 512, 8500


@pytest.fixture(scope="module")
def keras(tmp_path_factory):
    """Keras on PyTorch; nothing else sees the settings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERAS_BACKEND", "torch")
        patch.setenv("KERAS_HOME", str(tmp_path_factory.mktemp("keras")))
        import keras

        yield keras


def dense(keras, width):
    return keras.layers.Dense(width)


@pytest.fixture
def attend(keras):
    """The notebook's attention, with its cast and its -1e9."""

    class Attention(keras.layers.Layer):
        def call(self, q, k, v, mask=None):
            ops = keras.ops
            scores = ops.matmul(q, ops.swapaxes(k, -1, -2))
            width = ops.cast(ops.shape(k)[-1], "float32")
            scores = scores / ops.sqrt(width)
            if mask is not None:
                scores = scores + mask * -1e9
            weights = ops.softmax(scores, axis=-1)
            return ops.matmul(weights, v), weights

    return Attention


@pytest.fixture
def layer(keras):
    """One layer of the notebook; ``cured`` calls its network, too."""

    class Layer(keras.layers.Layer):
        def __init__(self, cured=False):
            super().__init__()
            self.cured = cured
            self.maps = [dense(keras, WIDTH) for _ in range(4)]
            self.up, self.down = dense(keras, WITHIN), dense(keras, WIDTH)
            self.norms = [
                keras.layers.LayerNormalization(epsilon=1e-6) for _ in range(2)
            ]

        def build(self, shape):
            parts = [*self.maps, self.norms[0]]
            for part in parts + self.cured * [self.up, self.norms[1]]:
                part.build(shape)
            if self.cured:
                self.down.build((*shape[:-1], WITHIN))

        def call(self, x, mask=None):
            q, k, v = (one(x) for one in self.maps[:3])
            scores = keras.ops.matmul(q, keras.ops.swapaxes(k, -1, -2))
            weights = keras.ops.softmax(scores / math.sqrt(WIDTH))
            attended = self.maps[3](keras.ops.matmul(weights, v))
            out1 = self.norms[0](x + attended)
            if not self.cured:
                return out1
            inner = self.down(keras.ops.relu(self.up(out1)))
            return self.norms[1](out1 + inner)

    return Layer


def test_a_class_that_is_misspelt_raises(keras):
    # 6. Findings 1 to 5 and 9 are names, which Python itself looks up.
    with pytest.raises(AttributeError, match="LayerNoRMALIZATION"):
        _ = keras.layers.LayerNoRMALIZATION
    assert not hasattr(nn, "LayerNoRMALIZATION")


def test_a_name_that_is_never_made_raises_when_the_layer_is_called(keras):
    # Building says nothing yet: a name in ``call`` is looked up when it runs.
    class Layer(keras.layers.Layer):
        def call(self, x):
            return out2  # noqa: F821

    run = Layer()
    with pytest.raises(NameError, match="out2"):
        run(torch.zeros(2, 3, 4))


def test_training_and_mask_by_position_raise(keras):
    class Layer(keras.layers.Layer):
        def call(self, x, training, mask):
            return x

    x = torch.zeros(2, 3, 4)
    with pytest.raises(ValueError, match="passed as positional arguments"):
        Layer()(x, False, None)
    assert Layer()(x, training=False, mask=None).shape == x.shape


def test_methods_within_init_are_no_methods(keras):
    class Layer(keras.layers.Layer):
        def __init__(self):
            super().__init__()

            def call(self, x):
                return x

    with pytest.raises(NotImplementedError, match="does not have a `call`"):
        Layer()(torch.zeros(2, 3, 4))


def test_what_is_never_called_is_not_counted(layer):
    x = torch.zeros(2, 3, WIDTH)
    lost, cured = layer(), layer(cured=True)
    lost(x), cured(x)
    network = cured.count_params() - lost.count_params()
    assert network == 131_968
    assert LAYERS * network == 527_872
    ends = VOCABULARY * WIDTH + WIDTH * VOCABULARY + VOCABULARY
    assert ends + LAYERS * lost.count_params() == 2_449_716
    assert ends + LAYERS * cured.count_params() == 2_977_588


def test_an_encoder_with_the_name_transformer_builds_and_runs(keras, layer):
    class Transformer(keras.Model):
        def __init__(self, pe_input, pe_target):
            super().__init__()
            self.table = torch.zeros(1, pe_input, WIDTH)
            self.encoder = layer(cured=True)

        def call(self, x):
            return self.encoder(x + self.table[:, : x.shape[1]])

    x = torch.randn(2, 3, WIDTH)
    for nowhere in (7, None):
        assert Transformer(5, pe_target=nowhere)(x).shape == x.shape


def test_without_a_causal_mask_every_row_moves_with_its_future(layer):
    run = layer(cured=True)
    x = torch.randn(1, 5, WIDTH)
    y = x.clone()
    y[0, -1] += torch.randn(WIDTH)
    moved = (run(x) - run(y)).abs().amax(-1)[0]
    assert (moved > 1e-4).all()


def test_attention_that_is_made_in_each_call_is_not_tracked(keras, attend):
    class Layer(keras.layers.Layer):
        def call(self, x):
            return attend()(x, x, x)[0]

    run = Layer()
    run(torch.zeros(2, 3, 4))
    assert [type(each) for each in run._flatten_layers()] == [Layer]


def test_on_pytorch_the_cast_does_no_harm_in_half_precision(keras, attend):
    x = torch.randn(2, 5, 4).half()
    output, weights = attend(dtype="float16")(x, x, x)
    assert output.dtype == weights.dtype == torch.float16


def test_on_pytorch_only_a_row_of_padding_is_nan(keras, attend):
    x = torch.randn(1, 5, 4).half()
    pad = torch.tensor([0, 0, 0, 1, 1]).half()
    run = attend(dtype="float16")
    assert not run(x, x, x, pad)[1].isnan().any()
    assert run(x, x, x, torch.ones(5).half())[1].isnan().all()


def test_a_mask_without_a_default_has_to_be_given(keras):
    class Layer(keras.layers.Layer):
        def call(self, x, mask):
            return x

    with pytest.raises(TypeError, match="missing a required argument: 'mask'"):
        Layer()(torch.zeros(2, 3, 4))


def test_a_sequence_beyond_the_table_raises_and_does_not_say_why(keras):
    table = torch.zeros(1, 10_000, 4)

    class Layer(keras.layers.Layer):
        def call(self, x):
            return x + table[:, : x.shape[1]]

    assert Layer()(torch.zeros(1, 10_000, 4)).shape == (1, 10_000, 4)
    with pytest.raises(RuntimeError, match=r"10001.* must match") as found:
        Layer()(torch.zeros(1, 10_001, 4))
    assert "long" not in str(found.value)


def test_an_embedding_starts_smaller_than_the_positions(keras):
    table = keras.layers.Embedding(VOCABULARY, WIDTH)
    table.build(None)
    start = table.embeddings.value.detach()
    assert start.abs().max() <= 0.05
    words = start.std().item() * math.sqrt(WIDTH)
    assert words == pytest.approx(0.1 / math.sqrt(12) * math.sqrt(WIDTH), 0.01)
    # The root of the mean square of sines and cosines.
    assert 2 < math.sqrt(0.5) / words < 2.3


def test_without_a_mask_and_with_norms_after_the_sums_it_runs(layer):
    # 20, 21 and 22: matters of style, so nothing is raised.
    x = torch.randn(2, 3, WIDTH)
    assert layer(cured=True)(x, mask=None).shape == x.shape


def test_in_tensorflow_the_cast_raises_in_half_precision():
    tf = pytest.importorskip("tensorflow")
    scores = tf.zeros((5, 5), tf.float16)
    with pytest.raises(TypeError, match=r"same dtype|float16.*float32"):
        _ = scores / tf.math.sqrt(tf.cast(4, tf.float32))


def test_in_tensorflow_a_mask_times_a_thousand_million_makes_every_row_nan():
    tf = pytest.importorskip("tensorflow")
    mask = tf.constant([[0, 0, 0, 1, 1]], tf.float16)
    weights = tf.nn.softmax(tf.zeros((5, 5), tf.float16) + mask * -1e9)
    assert tf.math.is_nan(weights).numpy().any(-1).all()
