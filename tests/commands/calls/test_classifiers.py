"""What makes one row of a sentence has no contracts, and one question."""

import pytest
from commands.parts import faults

CLASSIFIES = """
class Classifier(nn.Module):
    def __init__(self, SIZE, d_model, nhead, num_classes, max_len=64):
        super().__init__()
        self.embed = EMBED
        self.places = nn.Embedding(max_len, d_model)
        layer = nn.TransformerEncoderLayer(d_model, nhead, 24, FIRST)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(d_model, num_classes)

    def forward(self, x):
        h = self.embed(x) + self.places(torch.arange(x.size(1)))
        return self.out(self.encoder(h).mean(1))
"""
OF_IDS = "vocab_size", "nn.Embedding(vocab_size, d_model)"
OF_VECTORS = "input_dim", "nn.Linear(input_dim, d_model)"
APART = "A sentence gets other numbers in a batch than alone"


def written(kind, first):
    text = CLASSIFIES.replace("SIZE", kind[0]).replace("EMBED", kind[1])
    return text.replace("FIRST", first)


@pytest.mark.parametrize("kind", [OF_IDS, OF_VECTORS])
def test_a_classifier_whose_attention_runs_over_the_batch_is_told(told, kind):
    parts, left = told(written(kind, ""))
    assert parts == {}
    assert left["Classifier"].startswith(APART)
    assert "`batch_first` is False in `encoder.layers.0`" in left["Classifier"]
    assert "Nothing else of it is judged: no " in left["Classifier"]


@pytest.mark.parametrize("kind", [OF_IDS, OF_VECTORS])
def test_of_a_right_one_it_is_told_that_it_is_not_judged(told, kind):
    parts, left = told(written(kind, "batch_first=True"))
    assert parts == {}
    assert APART not in left["Classifier"]
    # Where the sequence comes first, the batch comes out in front.
    columns = written(kind, "").replace("x.size(1)", "x.size(0)")
    columns = columns.replace(
        "h = self.embed(x) +", "h = self.embed(x).mT.mT +"
    )
    columns = columns.replace(
        "self.places(torch.arange(x.size(0)))",
        "self.places(torch.arange(x.size(0)))[:, None]",
    )
    parts, left = told(columns.replace("mean(1)", "mean(0)"))
    assert APART not in left["Classifier"]


def test_one_that_is_built_for_one_length_is_asked_in_that(told):
    text = written(OF_VECTORS, "FIRST").replace(
        "self.places(torch.arange(x.size(1)))", "self.places.weight"
    )
    parts, left = told(text.replace("FIRST", ""))
    assert parts == {}
    assert left["Classifier"].startswith(APART)
    parts, left = told(text.replace("FIRST", "batch_first=True"))
    assert parts == {}
    assert APART not in left["Classifier"]


def test_what_draws_in_evaluation_is_not_asked(told):
    drawn = written(OF_IDS, "batch_first=True").replace(
        "mean(1)", "mean(1) + torch.rand(1)"
    )
    _, left = told(drawn)
    assert APART not in left["Classifier"]


OF_PICTURES = """
class Layer(nn.Module):
    def __init__(self, emb_size, num_heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(emb_size, num_heads, FIRST)
        self.norm = nn.LayerNorm(emb_size)

    def forward(self, x):
        return self.norm(x + self.attention(x, x, x)[0])


class VisionTransformer(nn.Module):
    def __init__(self, img_size, patch_size, emb_size, num_heads, num_classes):
        super().__init__()
        self.cut = nn.Conv2d(3, emb_size, patch_size, patch_size)
        count = (img_size // patch_size) ** 2
        self.first = nn.Parameter(torch.zeros(1, 1, emb_size))
        self.places = nn.Parameter(torch.zeros(1, count + 1, emb_size))
        self.layers = nn.Sequential(
            *(Layer(emb_size, num_heads) for _ in "12")
        )
        self.out = nn.Linear(emb_size, num_classes)

    def forward(self, x):
        x = self.cut(x).flatten(2).mT
        x = torch.cat([self.first.expand(len(x), -1, -1), x], 1)
        return self.out(self.layers(x + self.places)ROW)
"""
PICTURES = [
    ("[:, 0]", "All pictures get the same numbers"),
    (".mean(1)", "A picture gets other numbers in a batch than alone"),
]


@pytest.mark.parametrize(("row", "words"), PICTURES)
def test_a_vision_transformer_whose_pictures_see_each_other_is_told(
    told, row, words
):
    text = OF_PICTURES.replace("ROW", row)
    _, left = told(text.replace(", FIRST", ""))
    assert left["VisionTransformer"].startswith(words)
    assert "`batch_first` is False" in left["VisionTransformer"]
    parts, left = told(text.replace("FIRST", "batch_first=True"))
    assert left["VisionTransformer"].startswith("no usual call")
    assert not faults(parts["Layer"])


def test_sentences_that_all_get_the_same_are_told(told):
    text = written(OF_IDS, "").replace("max_len=64):", "max_len=64):")
    text = text.replace(".mean(1)", "[:, 0]").replace(
        "h = self.embed(x)", "h = self.embed(0 * x)"
    )
    _, left = told(text)
    assert left["Classifier"].startswith("All sentences get the same numbers")
