"""Classes that want to be built in other ways, and those that cannot be."""

import pytest
from commands.parts import contracts, faults, said

OF_CLASSES = """
class SelfAttention(nn.Module):
    def __init__(self, hid_dim, n_heads, dropout):
        super().__init__()
        self.heads = n_heads
        self.into = nn.Linear(hid_dim, 3 * hid_dim)
        self.out = nn.Linear(hid_dim, hid_dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for y in self.into(x).chunk(3, -1)
        )
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return self.out((self.drop(weights) @ v).transpose(1, 2).flatten(2))


class PositionwiseFeedforward(nn.Module):
    def __init__(self, hid_dim, pf_dim):
        super().__init__()
        self.up = nn.Linear(hid_dim, pf_dim)
        self.down = nn.Linear(pf_dim, hid_dim)

    def forward(self, x):
        return self.down(self.up(x).relu())


class Layer(nn.Module):
    def __init__(
        self, hid_dim, n_heads, pf_dim, self_attention,
        positionwise_feedforward, dropout,
    ):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(hid_dim) for _ in "12")
        self.attention = self_attention(hid_dim, n_heads, dropout)
        self.network = positionwise_feedforward(hid_dim, pf_dim)

    def forward(self, x):
        x = self.norms[0](x + self.attention(x))
        return self.norms[1](x + self.network(x))
"""


def test_a_layer_gets_the_classes_of_which_it_builds_its_parts(told):
    parts, left = told(OF_CLASSES)
    assert left == {}
    assert not faults(parts["Layer"])
    assert "self_attention=SelfAttention" in said(parts["Layer"])
    parts, _ = told(OF_CLASSES.replace("self.up(x).relu()", "self.up(x)"))
    assert faults(parts["Layer"])


NEVER_BUILT = """
class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len=64):
        BUILD

    def forward(self, x):
        return x + self.table[: x.shape[1]]
"""


@pytest.mark.parametrize(
    "build",
    [
        # The table is a parameter, and is written into.
        "super().__init__(); "
        "self.table = nn.Parameter(torch.zeros(max_len, d_model)); "
        "self.table[:, 0::2] = 1.0",
        "self.table = nn.Parameter(torch.zeros(max_len, d_model))",
        "super().__init__(); self.inner = nn.Linear(d_model, width=d_model)",
        "super().__init__(); self.inner = Lineal(d_model, d_model)",
    ],
)
def test_what_raises_in_any_size_has_a_risk(section_of, build):
    section = section_of(NEVER_BUILT.replace("BUILD", build))
    [left] = section.unjudged
    assert left["level"] == "risk"


def test_what_raises_for_its_sizes_has_none(section_of):
    build = "super().__init__(); assert d_model % 512 == 0"
    section = section_of(NEVER_BUILT.replace("BUILD", build))
    [left] = section.unjudged
    assert left["level"] == ""


INSIDE = """
if True:
    try:
        class PositionalEncoding(nn.Module):
            def __init__(self, d_model, max_len=64):
                super().__init__()
                self.table = nn.Parameter(torch.randn(max_len, d_model))

            def forward(self, x):
                return x + self.table[: x.shape[1]]
    except NameError:
        pass

if __name__ == "__main__":
    class SelfAttention(nn.Module):
        pass
"""


def test_what_stands_under_an_if_is_judged(told):
    parts, left = told(INSIDE)
    assert left == {}
    assert [*parts] == ["PositionalEncoding"]
    assert not faults(parts["PositionalEncoding"])
    # Where the batch is counted, it is asked which axis comes first.
    parts, left = told(INSIDE.replace("x.shape[1]]", "x.shape[0], None]"))
    assert parts == {}
    assert "along what stands first" in left["PositionalEncoding"]


OTHER_NAMES = """
class MultiHeadAttention(nn.Module):
    def __init__(self, dim_tokens, dim_attn, n_heads, batch_first: bool):
        super().__init__()
        self.heads = n_heads
        self.into = nn.Linear(dim_tokens, 3 * dim_attn)
        self.out = nn.Linear(dim_attn, dim_tokens)
        self.batch_first = batch_first

    def forward(self, x):
        x = x if self.batch_first else x.transpose(0, 1)
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for y in self.into(x).chunk(3, -1)
        )
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        x = self.out((weights @ v).transpose(1, 2).flatten(2))
        return x if self.batch_first else x.transpose(0, 1)
"""


def test_widths_and_a_switch_by_other_names_are_known(told):
    parts, left = told(OTHER_NAMES)
    assert left == {}
    part = parts["MultiHeadAttention"]
    assert not faults(part)
    assert "batch_first=True" in said(part)
    parts, _ = told(OTHER_NAMES.replace("softmax(-1)", "softmax(1)"))
    assert contracts(parts["MultiHeadAttention"])


N_EMBEDDINGS = """
class Attention(nn.Module):
    def __init__(self, n_embeddings, n_heads):
        super().__init__()
        self.heads = n_heads
        self.into = nn.Linear(n_embeddings, 3 * n_embeddings)

    def forward(self, x):
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for y in self.into(x).chunk(3, -1)
        )
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return (weights @ v).transpose(1, 2).flatten(2)
"""


def test_beside_heads_n_embeddings_is_a_width(told):
    parts, left = told(N_EMBEDDINGS)
    assert left == {}
    assert not faults(parts["Attention"])
    parts, _ = told(N_EMBEDDINGS.replace("softmax(-1)", "softmax(-2)"))
    assert faults(parts["Attention"])


ACTIVATED = """
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ffd, ARGUMENT):
        super().__init__()
        self.up = nn.Linear(d_model, d_ffd)
        self.down = nn.Linear(d_ffd, d_model)
        CHOICE

    def forward(self, x):
        return self.down(self.act(self.up(x)))
"""
BY_WORD = """if act_fn == "gelu":
            self.act = nn.functional.gelu
        elif act_fn == "relu":
            self.act = nn.functional.relu"""


@pytest.mark.parametrize(
    ("argument", "choice", "built"),
    [
        ("activation", "self.act = activation", "activation=ReLU(…)"),
        ("activation", "self.act = activation()", "activation=ReLU(…)"),
        ("nonlinearity", "self.act = nonlinearity", "nonlinearity=ReLU(…)"),
        ("act: str", "self.act = getattr(nn.functional, act)", "act='relu'"),
        ("act_fn", BY_WORD, "act_fn='gelu'"),
    ],
    ids=["called", "built", "other name", "word", "compared"],
)
def test_an_activation_is_given_as_it_is_used(told, argument, choice, built):
    text = ACTIVATED.replace("ARGUMENT", argument).replace("CHOICE", choice)
    parts, left = told(text)
    assert left == {}
    assert not faults(parts["FeedForward"])
    assert f"d_model=12, d_ffd=24, {built}" in said(parts["FeedForward"])
