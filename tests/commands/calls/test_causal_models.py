"""Models of ids that are to predict the next token, and those that may be."""

import pytest
from commands.parts import contracts, excuses, faults, said, told_of

FUTURE = "No logit knows a token of its future"

OF_A_DECODER = """
class Characters(nn.Module):
    def __init__(self, vocab_size, d_model, nhead, num_layers, max_len=64):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(max_len, d_model)
        layer = nn.TransformerDecoderLayer(d_model, nhead, 24, batch_first=True)
        self.decoder = nn.TransformerDecoder(layer, num_layers)
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        n = ids.size(1)
        past = torch.full((n, n), -torch.inf).triu(1)
        x = self.embed(ids) + self.places(torch.arange(n))
        x = self.decoder(x, x, tgt_mask=past)
        return self.out(x)
"""


def test_a_decoder_whose_memory_is_what_it_decodes_sees_the_future(told):
    parts, left = told(OF_A_DECODER)
    assert left == {}
    assert FUTURE in contracts(parts["Characters"])
    assert "`decoder` gets as its memory what it decodes" in told_of(
        parts["Characters"]
    )


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        # Its memory is hidden as well: it is right.
        ("tgt_mask=past", "tgt_mask=past, memory_mask=past"),
        ("(x, x, tgt_mask=past)", "(x, x, past, past)"),
    ],
)
def test_with_a_mask_for_its_memory_it_is_right(told, right, wrong):
    parts, left = told(OF_A_DECODER.replace(right, wrong))
    assert left == {}
    assert not faults(parts["Characters"])


@pytest.mark.parametrize(
    "body", ["self.decoder(x, x)", "self.decoder(x, x.tanh(), tgt_mask=past)"]
)
def test_it_is_not_judged_where_the_code_does_not_tell(told, body):
    parts, left = told(
        OF_A_DECODER.replace("self.decoder(x, x, tgt_mask=past)", body)
    )
    assert parts == {}
    assert "every row sees all tokens" in left["Characters"]


WITH_TARGETS = OF_A_DECODER.replace(
    "forward(self, ids)", "forward(self, ids, target_ids=None)"
).replace(
    "tgt_mask=past)\n        return self.out(x)",
    "past, past)\n        if target_ids is None:\n"
    "            return self.out(x[:, -1:])\n        return self.out(x)",
)


def test_a_model_that_answers_everywhere_if_it_has_targets_gets_them(told):
    parts, left = told(WITH_TARGETS)
    assert left == {}
    assert not faults(parts["Characters"])
    assert "it was called as (tokens, targets)" in said(parts["Characters"])
    parts, _ = told(WITH_TARGETS.replace("past, past)", "past.mT, past.mT)"))
    assert faults(parts["Characters"])


UNMASKED = """
class Layer(nn.Module):
    def __init__(self, d_model, nhead):
        super().__init__()
        self.attention = nn.MultiheadAttention(d_model, nhead)
        self.up, self.down = nn.Linear(d_model, 24), nn.Linear(24, d_model)
        self.n1, self.n2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x):
        x = self.n1(x + self.attention(x, x, x)[0])
        return self.n2(x + self.down(self.up(x).relu()))


class NextToken(nn.Module):
    def __init__(self, vocab_size, d_model, nhead, max_len=64):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(max_len, d_model)
        self.layer = Layer(d_model, nhead)
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        x = self.embed(ids) + self.places(torch.arange(ids.size(1)))
        return self.out(self.layer(x.transpose(0, 1)).transpose(0, 1))
"""


def test_an_order_in_which_sentences_see_each_other_excuses_nothing(told):
    parts, left = told(UNMASKED)
    assert parts == {}
    assert "every row sees all tokens" in left["NextToken"]


def test_a_name_tells_that_the_next_token_is_predicted(told):
    parts, _ = told(UNMASKED.replace("NextToken", "TinyGPT"))
    assert FUTURE in contracts(parts["TinyGPT"])
    assert "is the causal mask missing" in told_of(parts["TinyGPT"])
    _, left = told(UNMASKED.replace("NextToken", "TinyBERT"))
    assert "every row sees all tokens" in left["TinyBERT"]


NORM_FIRST = """
class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = num_heads
        self.q, self.k, self.v, self.o = (
            nn.Linear(d_model, d_model) for _ in range(4)
        )

    def forward(self, q, k, v):
        q, k, v = (
            f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for f, x in ((self.q, q), (self.k, k), (self.v, v))
        )
        weights = (q @ k.mT / q.size(-1) ** 0.5).softmax(-1)
        return self.o((weights @ v).transpose(1, 2).flatten(2))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.attention = Attention(d_model, num_heads)
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.attention(y, y, y)
        return x + self.down(self.up(self.norm2(x)).relu())
"""


def test_keys_and_values_that_skip_the_norm_of_the_queries_are_a_risk(told):
    skipped = NORM_FIRST.replace("(y, y, y)", "(y, x, x)")
    parts, left = told(skipped)
    assert left == {}
    assert not faults(parts["EncoderLayer"])
    assert contracts(parts["EncoderLayer"]) == (
        "Queries, keys and values go through the same norm"
    )
    assert "`attention` gets queries that went through `norm1`" in told_of(
        parts["EncoderLayer"]
    )
    for right in (NORM_FIRST, skipped.replace("(y, x, x)", "(x, x, x)")):
        parts, _ = told(right)
        assert "the same norm" not in contracts(parts["EncoderLayer"])


def test_another_sequence_need_not_go_through_the_norm_of_the_first(told):
    crossed = NORM_FIRST.replace("(self, x)", "(self, x, context)")
    crossed = crossed.replace("(y, y, y)", "(y, context, context)")
    parts, left = told(crossed)
    assert left == {}
    assert not contracts(parts["EncoderLayer"])


LAZY = """
class MultiHeadAttention(nn.Module):
    def __init__(self, num_hiddens, num_heads, bias=False):
        super().__init__()
        self.heads = num_heads
        self.q, self.k, self.v, self.o = (
            nn.LazyLinear(num_hiddens, bias=bias) for _ in range(4)
        )

    def forward(self, queries, keys, values, valid_lens):
        q, k, v = (
            f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for f, x in ((self.q, queries), (self.k, keys), (self.v, values))
        )
        scores = q @ k.mT / q.size(-1) ** 0.5
        if valid_lens is not None:
            hidden = torch.arange(k.size(2)) >= valid_lens[:, None]
            scores = scores.masked_fill(hidden[:, None, None], -1e6)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


def test_parameters_without_a_shape_get_one_by_a_call(told):
    parts, left = told(LAZY)
    assert left == {}
    assert not faults(parts["MultiHeadAttention"])
    parts, _ = told(LAZY.replace("q.size(-1) ** 0.5", "q.size(-1)"))
    assert faults(parts["MultiHeadAttention"])


ENDLESS = """
class LanguageModel(nn.Module):
    def __init__(self, vocab_size, d_model):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.out, self.calls = nn.Linear(d_model, vocab_size), 0

    def forward(self, ids):
        self.calls += 1
        while self.calls > 30:
            self.calls += 1
        return self.out(self.words(ids).cumsum(1).tanh())
"""


def test_what_takes_too_long_in_sizes_that_nobody_chose_is_not_judged(told):
    parts, left = told(ENDLESS)
    assert parts == {}
    assert left["LanguageModel"].startswith("It had not come back after 5 sec")


CACHED = """
class Attention(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.maps = nn.ModuleList(
            nn.Linear(args.dim, args.dim) for _ in range(4)
        )
        sizes = args.max_batch_size, args.max_seq_len, args.dim
        self.keys, self.values = torch.zeros(sizes), torch.zeros(sizes)
        self.heads = args.n_heads

    def forward(self, x, start_pos):
        b, n, _ = x.shape
        q, k, v = (f(x) for f in self.maps[:3])
        end = start_pos + n
        self.keys[:b, start_pos:end] = k.detach()
        self.values[:b, start_pos:end] = v.detach()
        k = torch.cat([self.keys[:b, :start_pos], k], 1)
        v = torch.cat([self.values[:b, :start_pos], v], 1)
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in (q, k, v)
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        future = torch.ones(n, end).triu(start_pos + 1).bool()
        weights = scores.masked_fill(future, -torch.inf).softmax(-1)
        return self.maps[3]((weights @ v).transpose(1, 2).flatten(2))


@dataclass
class Args:
    dim: int = 64
    n_heads: int = 4
    vocab_size: int = 50
    max_seq_len: int = 64
    max_batch_size: int = 4


class Speaker(nn.Module):
    def __init__(self, args: Args):
        super().__init__()
        self.embed = nn.Embedding(args.vocab_size, args.dim)
        self.places = nn.Embedding(args.max_seq_len, args.dim)
        self.attention = Attention(args)
        self.out = nn.Linear(args.dim, args.vocab_size)

    def forward(self, tokens, start_pos: int):
        at = torch.arange(tokens.shape[1]) + start_pos
        x = self.embed(tokens) + self.places(at)
        return self.out(x + self.attention(x, start_pos))
"""


def test_a_cache_is_built_for_as_many_sentences_as_contracts_send(told):
    text = "from dataclasses import dataclass\n" + CACHED
    parts, left = told(text)
    assert left == {}
    assert not faults(parts["Speaker"])
    parts, _ = told(text.replace("triu(start_pos + 1)", "triu(start_pos + 2)"))
    assert FUTURE in contracts(parts["Speaker"])


PADDED = """
class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = num_heads
        self.into = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x, mask):
        n = x.shape[1]
        q, k, v = (
            y.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for y in self.into(x).chunk(3, -1)
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        future = torch.ones(n, n).triu(1).bool()
        scores = scores.masked_fill(future, -torch.inf) + mask
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

class Speaker(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, max_len=64):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(max_len, d_model)
        self.attention = Attention(d_model, num_heads)
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, ids, attention_mask):
        x = self.embed(ids) + self.places(torch.arange(ids.shape[1]))
        hidden = HIDDEN
        return self.out(x + self.attention(x, hidden[:, None, None] * -1e9))
"""


@pytest.mark.parametrize(
    ("name", "hidden", "given"),
    [
        ("attention_mask", "1 - attention_mask.long()", "1"),
        ("attention_mask", "1 - attention_mask", "1"),
        ("padding_mask", "padding_mask.float()", "0"),
        ("padding_mask", "(~padding_mask).float()", "1"),
    ],
)
def test_a_mask_of_padding_that_is_required_hides_nothing(
    told, name, hidden, given
):
    text = PADDED.replace("attention_mask", name).replace("HIDDEN", hidden)
    parts, left = told(text)
    assert left == {}
    assert not faults(parts["Speaker"])
    assert f"was {given} for every token" in said(parts["Speaker"])
    parts, _ = told(text.replace("triu(1)", "triu(2)"))
    assert FUTURE in contracts(parts["Speaker"])


def test_what_cannot_be_called_so_is_not_said_to_be_right_so(told):
    text = OF_A_DECODER.replace("(self, ids)", "(self, ids, padding=None)")
    text = text.replace(
        "tgt_mask=past)", "past, past, tgt_key_padding_mask=padding)"
    ).replace("return self.out(x)", "return self.out(x).softmax(-1)")
    parts, _ = told(text)
    assert contracts(parts["Characters"]) == (
        "It returns logits, not probabilities"
    )
    assert "no contract finds a fault" not in said(parts["Characters"])


TURNED = """
class Characters(nn.Module):
    def __init__(self, vocab_size, d_model, nhead):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        layer = nn.TransformerEncoderLayer(d_model, nhead, 24)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(d_model, vocab_size)
        self.count = vocab_size

    def forward(self, ids):
        return self.out(self.encoder(self.embed(ids))).view(-1, self.count)
"""


def test_flat_logits_may_belong_to_sentences_that_come_second(told):
    parts, left = told(TURNED)
    assert parts == {}
    assert "every row sees all tokens" in left["Characters"]
    # Under a name that predicts the next token it is a fault.
    parts, _ = told(TURNED.replace("Characters", "MiniGPT"))
    assert faults(parts["MiniGPT"])


ENCODES = """
class NAME(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(64, d_model)
        layer = nn.TransformerEncoderLayer(
            d_model, n_heads, 24, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2)

    def forward(self, x, mask=None):
        x = self.embed(x) + self.places(torch.arange(x.shape[1]))
        return self.encoder(x, mask)
"""


def test_an_encoder_of_ids_is_given_no_causal_mask(told):
    parts, left = told(ENCODES.replace("NAME", "TextEncoder"))
    assert parts == {}
    assert "every row sees all tokens" in left["TextEncoder"]
    parts, left = told(ENCODES.replace("NAME", "Characters"))
    assert left == {}
    assert FUTURE in contracts(parts["Characters"])


MASK_GIVEN = """
class Writer(nn.Module):
    def __init__(self, vocab_size, d_model=32, nhead=4, max_len=64):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(max_len, d_model)
        layer = nn.TransformerEncoderLayer(
            d_model, nhead, 2 * d_model, 0.0, batch_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, ids, mask=None):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        return self.out(self.layers(x, mask=mask))

    def NAME(self, ids, count):
        for _ in range(count):
            past = torch.ones(ids.shape[1], ids.shape[1]).triu(1).bool()
            best = self(CALL)[:, -1].argmax(-1, keepdim=True)
            ids = torch.cat([ids, best], 1)
        return ids
"""


@pytest.mark.parametrize("call", ["ids", "ids, None", "ids, mask=None"])
def test_a_model_that_writes_without_its_mask_is_wrong(told, call):
    text = MASK_GIVEN.replace("CALL", call)
    parts, _ = told(text.replace("NAME", "generate"))
    [fault] = faults(parts["Writer"])
    assert fault.endswith("its own `generate` calls it without.")
    # What another method does may be meant for all of a sentence.
    parts, _ = told(text.replace("NAME", "embed"))
    assert not faults(parts["Writer"])


@pytest.mark.parametrize(
    "call", ["ids, past", "ids, mask=past", "*(ids, past)"]
)
def test_a_model_that_writes_with_its_mask_is_right(told, call):
    text = MASK_GIVEN.replace("CALL", call)
    parts, left = told(text.replace("NAME", "generate"))
    assert left == {}
    assert not faults(parts["Writer"])


OF_VECTORS = """
class Layer(nn.Module):
    def __init__(self, hidden_dim, num_heads):
        super().__init__()
        self.attend = nn.MultiheadAttention(
            hidden_dim, num_heads, batch_first=True
        )
        self.network = nn.Sequential(
            nn.Linear(hidden_dim, 29), nn.ReLU(), nn.Linear(29, hidden_dim)
        )
        self.norm1, self.norm2 = (nn.LayerNorm(hidden_dim) for _ in "12")

    def forward(self, x):
        past = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        x = self.norm1(x + self.attend(x, x, x, attn_mask=past)[0])
        return self.norm2(CARRIED + self.network(x))


class Series(nn.Module):
    def __init__(self, input_dim, hidden_dim, output_dim, num_heads):
        super().__init__()
        self.into = nn.Linear(input_dim, hidden_dim)
        self.layers = nn.ModuleList(
            Layer(hidden_dim, num_heads) for _ in range(2)
        )
        self.out_of = nn.Linear(hidden_dim, output_dim)

    def forward(self, x):
        x = self.into(x)
        for layer in self.layers:
            x = layer(x)
        return self.out_of(x)
"""


def test_no_residual_is_asked_for_around_what_leads_into_a_stack(told):
    parts, left = told(OF_VECTORS.replace("CARRIED", "x"))
    assert left == {}
    assert "a language model that was made" in said(parts["Series"])
    assert not faults(parts["Series"])
    parts, _ = told(OF_VECTORS.replace("CARRIED", "0"))
    [fault] = faults(parts["Series"])
    assert fault.startswith("With the weights of `layers.0.network` at 0")


UNREAD = """
class Model(nn.Module):
    def __init__(self, vocab_size, d_model, nhead, with_residual: bool):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(64, d_model)
        self.attend = nn.MultiheadAttention(d_model, nhead, batch_first=True)
        self.norm, self.adds = nn.LayerNorm(d_model), with_residual
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, ids, attention_mask=None):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        past = torch.ones(ids.shape[1], ids.shape[1]).triu(1).bool()
        past = past[None].repeat(len(ids), 1, 1)
        if attention_mask is not None:
            past = past | HIDDEN
        past = past.repeat_interleave(self.attend.num_heads, 0)
        y = self.attend(x, x, x, attn_mask=past)[0]
        return self.out(self.norm(x + y if self.adds else y))
"""


def test_a_mask_that_a_causal_model_never_reads_is_a_risk(told):
    hides = "~attention_mask.bool()[:, None, :]"
    parts, left = told(UNREAD.replace("HIDDEN", hides))
    assert left == {}
    assert "`attention_mask`" not in told_of(parts["Model"])
    parts, _ = told(UNREAD.replace("HIDDEN", "False"))
    assert not faults(parts["Model"])
    assert "Whatever `attention_mask` hides" in told_of(parts["Model"])


def test_a_switch_for_residuals_is_on(told):
    parts, _ = told(UNREAD.replace("HIDDEN", "False"))
    assert "with_residual=True" in said(parts["Model"])


VOCABULARY_IN_THE_MIDDLE = """
class GPT(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, max_len):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(max_len, d_model)
        self.layer = nn.TransformerEncoderLayer(
            d_model, num_heads, 24, batch_first=True
        )
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        past = torch.ones(ids.shape[1], ids.shape[1]).tril() == 1
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        return self.out(self.layer(x, ~past)).transpose(1, 2)
"""


def test_a_model_may_give_logits_with_the_vocabulary_in_the_middle(told):
    parts, _ = told(VOCABULARY_IN_THE_MIDDLE)
    model = parts["GPT"]
    assert not faults(model)
    assert "its logits were (batch, vocab, seq)" in said(model)
    # Cut anew in place of turned, they belong to other tokens.
    cut = ".reshape(len(ids), -1, ids.shape[1])"
    parts, _ = told(VOCABULARY_IN_THE_MIDDLE.replace(".transpose(1, 2)", cut))
    assert "which is in their future" in faults(parts["GPT"])[0]


STRICTLY_BEFORE = """
class History(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x):
        heads = self.qkv(x).unflatten(-1, (3, self.num_heads, -1))
        q, k, v = heads.permute(2, 0, 3, 1, 4)
        before = torch.ones(x.shape[1], x.shape[1]).tril(-1)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        weights = scores.masked_fill(before == 0, -1e9).softmax(-1) * before
        return self.out((weights @ v).transpose(1, 2).flatten(2))
"""


def test_attention_to_what_stands_before_alone_is_a_risk(told):
    parts, _ = told(STRICTLY_BEFORE)
    history = parts["History"]
    assert not faults(history)
    assert "Every row sees itself and all its past" in contracts(history)
    assert "as in knowledge tracing" in excuses(history)
    # Left with equal weights, the first row sees its future.
    wrong = STRICTLY_BEFORE.replace(".softmax(-1) * before", ".softmax(-1)")
    parts, _ = told(wrong)
    assert "Row 0 moves with position 1" in faults(parts["History"])[0]
