"""Whole models that want masks, a memory, another order or parts of a file.

Each stands beside a wrong one that differs in a line, so that it is judged.
"""

from commands.parts import contracts, excuses, faults, said, told_of

GIVEN_A_MASK = """
class Positions(nn.Module):
    def __init__(self, d_model, max_len=64):
        super().__init__()
        self.table = nn.Parameter(torch.randn(max_len, 1, d_model))

    def forward(self, x):
        return x + self.table[: x.size(0)]


class WordModel(nn.Module):
    def __init__(self, ntoken, ninp, nhead, nhid, nlayers):
        super().__init__()
        self.positions = Positions(ninp)
        layer = nn.TransformerEncoderLayer(ninp, nhead, nhid, 0.0)
        self.stack = nn.TransformerEncoder(layer, nlayers)
        self.words = nn.Embedding(ntoken, ninp)
        self.out = nn.Linear(ninp, ntoken)

    def forward(self, src, src_mask=None):
        x = self.positions(self.words(src))
        return self.out(self.stack(x, src_mask))
"""
FUTURE = "No logit knows a token of its future"


def test_a_model_that_may_be_given_its_causal_mask_is_judged_with_it(told):
    parts, left = told(GIVEN_A_MASK)
    assert left == {}
    model = parts["WordModel"]
    assert not faults(model)
    assert contracts(model) == FUTURE
    assert "if it is always given the causal mask" in excuses(model)
    assert "the sequence comes first" in said(model)
    # With it no contract may fail, or the question is left.
    wrong = "self.out(self.stack(x, src_mask)).softmax(-1)"
    _, left = told(
        GIVEN_A_MASK.replace("self.out(self.stack(x, src_mask))", wrong)
    )
    assert "every row sees all tokens" in left["WordModel"]


IDS_FIRST = """
class TextEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, nhead, num_layers, max_len=64):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Parameter(torch.randn(max_len, 1, d_model))
        layer = nn.TransformerEncoderLayer(d_model, nhead, 24)
        self.stack = nn.TransformerEncoder(layer, num_layers)

    def forward(self, tokens, src_key_padding_mask=None):
        x = self.words(tokens) + self.places[: tokens.size(0)]
        return self.stack(x, src_key_padding_mask=src_key_padding_mask)
"""


def test_an_encoder_of_ids_may_have_the_sequence_first(told):
    _, left = told(IDS_FIRST)
    assert "every row sees all tokens" in left["TextEncoder"]
    # Places that are counted along the other axis are wrong in either.
    wrong = IDS_FIRST.replace(
        "[: tokens.size(0)]", "[: tokens.size(1)].transpose(0, 1)"
    )
    parts, _ = told(wrong)
    assert faults(parts["TextEncoder"])


CAPTIONS = """
class CaptionDecoder(nn.Module):
    def __init__(self, vocab_size, embed_dim, num_heads, num_layers):
        super().__init__()
        self.words = nn.Embedding(vocab_size, embed_dim)
        self.places = nn.Parameter(torch.randn(1, 64, embed_dim))
        layer = nn.TransformerDecoderLayer(
            embed_dim, num_heads, 24, batch_first=True
        )
        self.stack = nn.TransformerDecoder(layer, num_layers)
        self.out = nn.Linear(embed_dim, vocab_size)

    def forward(self, tgt, memory):
        n = tgt.size(1)
        x = self.words(tgt) + self.places[:, :n]
        future = torch.ones(n, n).triu(1).bool()
        return self.out(self.stack(x, memory, tgt_mask=future))
"""


def test_a_decoder_of_ids_is_judged_beside_a_memory(told):
    parts, left = told(CAPTIONS)
    assert left == {}
    assert parts["CaptionDecoder"]["component"] == "language_model"
    assert not faults(parts["CaptionDecoder"])
    assert "the same for all sentences" in said(parts["CaptionDecoder"])
    parts, _ = told(CAPTIONS.replace("self.places[:, :n]", "0"))
    assert told_of(parts["CaptionDecoder"])
    _, left = told(CAPTIONS.replace(", tgt_mask=future", ""))
    assert "every row sees all tokens" in left["CaptionDecoder"]


IN_PARTS = """
class MyEncoder(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(64, d_model)
        self.layer = nn.TransformerEncoderLayer(
            d_model, n_heads, 24, 0.0, batch_first=True
        )

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        return self.layer(x, src_key_padding_mask=ids == 0)


class MyDecoder(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(64, d_model)
        self.layer = nn.TransformerDecoderLayer(
            d_model, n_heads, 24, 0.0, batch_first=True
        )
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, ids, memory, hidden):
        n = ids.shape[1]
        x = self.words(ids) + self.places(torch.arange(n))
        future = torch.ones(n, n).triu(1).bool()
        x = self.layer(x, memory, future, memory_key_padding_mask=hidden)
        return self.out(x)


class Translator(nn.Module):
    def __init__(self, encoder, decoder, scale: float = 1.0):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, src, tgt):
        return self.decoder(tgt, self.encoder(src), src == 0)
"""


def test_an_encoder_and_a_decoder_are_handed_to_what_wants_them(told):
    parts, _ = told(IN_PARTS)
    assert parts["Translator"]["component"] == "translation_model"
    assert not faults(parts["Translator"])
    parts, _ = told(IN_PARTS.replace("future, memory_key", "None, memory_key"))
    assert "in their future" in faults(parts["Translator"])[0]


SIGNS = """
class SignTranslator(nn.Module):
    def __init__(self, input_dim, vocab_size, d_model, num_heads):
        super().__init__()
        self.enter = nn.Linear(input_dim, d_model)
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(64, d_model)
        self.whole = nn.Transformer(
            d_model, num_heads, 1, 1, 24, 0.0, batch_first=True
        )
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, src, tgt):
        n = tgt.shape[1]
        future = torch.ones(n, n).triu(1).bool()
        y = self.words(tgt) + self.places(torch.arange(n))
        return self.out(self.whole(self.enter(src), y, tgt_mask=future))
"""


def test_the_source_may_be_vectors_and_the_target_ids(told):
    parts, left = told(SIGNS)
    assert left == {}
    assert not faults(parts["SignTranslator"])
    assert "`src` was the same for all sentences" in said(
        parts["SignTranslator"]
    )
    parts, _ = told(SIGNS.replace("triu(1)", "triu(2)"))
    assert "in their future" in faults(parts["SignTranslator"])[0]


ONE_STEP = """
class TinyModel(nn.Module):
    def __init__(self, vocab, width, heads, longest=32):
        super().__init__()
        self.words = nn.Embedding(vocab, width)
        self.places = nn.Embedding(longest, width)
        self.layer = nn.TransformerEncoderLayer(
            width, heads, 24, 0.0, batch_first=True
        )
        self.out = nn.Linear(width, vocab)

    def forward(self, ids):
        n = ids.shape[1]
        x = self.words(ids) + self.places(torch.arange(n))
        x = self.layer(x, torch.ones(n, n).triu(1).bool())
        logits = self.out(x)
        return logits.squeeze(1) if n == 1 else logits
"""


def test_logits_of_a_single_token_may_lack_the_axis_of_the_sequence(told):
    parts, _ = told(ONE_STEP)
    assert not faults(parts["TinyModel"])
    assert "to generate the next" in excuses(parts["TinyModel"])
    parts, _ = told(ONE_STEP.replace("logits.squeeze(1)", "logits[0]"))
    assert faults(parts["TinyModel"])


NEVER_PADS = """
class Translator(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, d_model, heads):
        super().__init__()
        self.source = nn.Embedding(src_vocab, d_model)
        self.target = nn.Embedding(tgt_vocab, d_model)
        self.places = nn.Embedding(64, d_model)
        self.whole = nn.Transformer(
            d_model, heads, 1, 1, 24, 0.0, batch_first=True
        )
        self.out = nn.Linear(d_model, tgt_vocab)

    def forward(self, src, tgt):
        x, y = (
            table(ids) + self.places(torch.arange(ids.shape[1]))
            for table, ids in ((self.source, src), (self.target, tgt))
        )
        future = torch.ones(tgt.shape[1], tgt.shape[1]).triu(1).bool()
        return self.out(self.whole(x, y, tgt_mask=future))
"""


def test_a_translator_that_never_speaks_of_padding_has_a_risk(told):
    parts, _ = told(NEVER_PADS)
    assert not faults(parts["Translator"])
    assert "no source is ever padded" in excuses(parts["Translator"])
    # One that knows padding, and does not hide it, is wrong.
    knows = NEVER_PADS.replace(
        "        future = ", "        pad = 0\n        future = "
    )
    parts, _ = told(knows)
    assert faults(parts["Translator"])
    parts, _ = told(NEVER_PADS.replace("triu(1)", "triu(2)"))
    assert "in their future" in faults(parts["Translator"])[0]


CAPTIONS_IN_COLUMNS = """
class CaptionDecoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, max_len=64):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(max_len, d_model)
        layer = nn.TransformerDecoderLayer(d_model, num_heads, 24)
        self.decoder = nn.TransformerDecoder(layer, num_layers)
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, tgt_tokens, memory):
        n = tgt_tokens.size(0)
        x = self.embed(tgt_tokens) + self.places(torch.arange(n))[:, None]
        past = nn.Transformer.generate_square_subsequent_mask(n)
        return self.out(self.decoder(x, memory, tgt_mask=past))
"""


def test_what_writes_beside_a_memory_may_have_the_sequence_first(told):
    parts, left = told(CAPTIONS_IN_COLUMNS)
    assert left == {}
    assert not faults(parts["CaptionDecoder"])
    assert "it got the sequence first" in said(parts["CaptionDecoder"])
    turned = CAPTIONS_IN_COLUMNS.replace("tgt_mask=past)", "past).flip(0)")
    parts, _ = told(turned)
    assert faults(parts["CaptionDecoder"])


ASKS_KEYS = """
class CrossAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = num_heads
        self.q, self.k, self.v, self.o = (
            nn.Linear(d_model, d_model) for _ in range(4)
        )

    def forward(self, x, mem, mem_mask):
        q, k, v = (
            f(y).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for f, y in ((self.q, x), (self.k, mem), (self.v, mem))
        )
        scores = q @ k.mT / q.size(-1) ** 0.5
        hidden = mem_mask[:, None, None, :]
        scores = scores.masked_fill(hidden, -torch.inf)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


def test_attention_to_another_sequence_may_want_a_mask_of_its_keys(told):
    parts, left = told(ASKS_KEYS)
    assert left == {}
    assert not faults(parts["CrossAttention"])
    assert "its masks are (batch, key)" in said(parts["CrossAttention"])
    parts, _ = told(ASKS_KEYS.replace("softmax(-1)", "softmax(-2)"))
    assert faults(parts["CrossAttention"])


ASKED_FIRST = """
class CrossAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))

    def forward(self, x, y):
        q, k, v = self.q(y), self.k(x), self.v(x)
        return (q @ k.mT * k.size(-1) ** -0.5).softmax(-1) @ v
"""


def test_what_is_asked_may_stand_first_whatever_its_name(told):
    parts, left = told(ASKED_FIRST)
    assert left == {}
    assert not told_of(parts["CrossAttention"])
    cut = "self.k(x).view(len(y), y.size(1), -1)"
    parts, _ = told(ASKED_FIRST.replace("self.k(x)", cut))
    assert "by the length of the queries" in told_of(parts["CrossAttention"])


ONE_EXPERT = """
class SparseMLP(nn.Module):
    def __init__(self, d_model, d_ff, n_experts=1, top_k=1):
        super().__init__()
        self.gate, self.top_k = nn.Linear(d_model, n_experts), top_k
        self.experts = nn.ModuleList(
            nn.Sequential(
                nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model)
            )
            for _ in range(n_experts)
        )

    def forward(self, x):
        share, which = self.gate(x).softmax(-1).topk(self.top_k)
        return sum(
            (share * (which == i)).sum(-1, keepdim=True) * expert(x)
            for i, expert in enumerate(self.experts)
        )
"""


def test_a_router_is_judged_with_several_experts(told):
    parts, left = told(ONE_EXPERT)
    assert left == {}
    assert not faults(parts["SparseMLP"])
    assert "n_experts=4, top_k=2" in said(parts["SparseMLP"])
    # With more by default, of which a token asks one, whose share is 1.
    alone = ONE_EXPERT.replace("n_experts=1", "n_experts=4").replace(
        "self.gate(x).softmax(-1).topk(self.top_k)",
        "self.gate(x).topk(self.top_k)\n        share = share.softmax(-1)",
    )
    parts, _ = told(alone)
    assert "`gate.weight` takes no part" in told_of(parts["SparseMLP"])


COSINES = """
import math
from torch.optim.lr_scheduler import LambdaLR


class WarmupCosine(LambdaLR):
    def __init__(self, optimizer, warmup, total):
        super().__init__(optimizer, lambda step: min(1, step / warmup))


class CosineWarmupScheduler:
    def __init__(self, optimizer, warmup, total):
        self.optimizer = optimizer


class Optimizers:
    def __init__(self, optimizer):
        self.optimizer = optimizer
"""


def test_rates_by_another_rule_are_told_as_not_judged(told):
    parts, left = told(COSINES)
    assert parts == {}
    assert {*left} == {"WarmupCosine", "CosineWarmupScheduler"}
    assert all("by a rule of its own" in why for why in left.values())


IN_COLUMNS = """
class Translator(nn.Module):
    def __init__(self, num_tokens, d_model, num_heads, max_len=64):
        super().__init__()
        self.embed = nn.Embedding(num_tokens, d_model)
        self.places = nn.Parameter(torch.randn(max_len, 1, d_model))
        self.model = nn.Transformer(d_model, num_heads, 1, 1, 24, 0.0)
        self.out = nn.Linear(d_model, num_tokens)

    def embedded(self, ids):
        x = self.embed(ids).transpose(0, 1)
        return x + self.places[: x.size(0)]

    def forward(self, src, tgt, tgt_mask=None, src_pad_mask=None):
        return self.out(
            self.model(
                self.embedded(src),
                self.embedded(tgt),
                tgt_mask=tgt_mask,
                src_key_padding_mask=src_pad_mask,
                memory_key_padding_mask=src_pad_mask,
            )
        )
"""


def test_logits_may_come_with_the_sequence_first(told):
    parts, left = told(IN_COLUMNS)
    assert left == {}
    assert not faults(parts["Translator"])
    assert "its logits came with the sequence first" in said(
        parts["Translator"]
    )
    by_sentence = IN_COLUMNS.replace(".transpose(0, 1)\n", "\n").replace(
        "x + self.places[: x.size(0)]",
        "(x + self.places[: x.size(0)]).transpose(0, 1)",
    )
    parts, _ = told(by_sentence)
    assert "positions counted along the batch" in told_of(parts["Translator"])


OF_INPUTS = """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = num_heads
        self.q, self.k, self.v, self.out = (
            nn.Linear(d_model, d_model) for _ in range(4)
        )

    def forward(self, inputs_q, inputs_kv, mask=None):
        q, k, v = (
            f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for f, x in (
                (self.q, inputs_q), (self.k, inputs_kv), (self.v, inputs_kv)
            )
        )
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
"""


def test_keys_and_values_may_come_from_inputs_of_their_own(told):
    parts, left = told(OF_INPUTS)
    assert left == {}
    assert not faults(parts["MultiHeadAttention"])
    parts, _ = told(OF_INPUTS.replace("softmax(-1)", "softmax(-2)"))
    assert faults(parts["MultiHeadAttention"])


ITS_OWN_PADDING = """
PAD = 1


class Translator(nn.Module):
    def __init__(self, vocab_size, d_model, nhead, num_layers, max_len=64):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(max_len, d_model)
        self.layers = nn.Transformer(
            d_model, nhead, num_layers, num_layers, 29, 0.0, batch_first=True
        )
        self.out = nn.Linear(d_model, vocab_size)

    def embedded(self, ids):
        return self.words(ids) + self.places(torch.arange(ids.shape[1]))

    def forward(self, src, tgt):
        pads = src == PAD
        past = torch.ones(tgt.shape[1], tgt.shape[1]).triu(1).bool()
        seen = self.layers(
            self.embedded(src),
            self.embedded(tgt),
            tgt_mask=past,
            src_key_padding_mask=pads,
            tgt_key_padding_mask=tgt == PAD,
            memory_key_padding_mask=MEMORY,
        )
        return self.out(seen)
"""


def test_a_translator_may_have_another_id_for_padding(told):
    parts, left = told(ITS_OWN_PADDING.replace("MEMORY", "pads"))
    assert left == {}
    assert not faults(parts["Translator"])
    assert "padding was 1 in what it got" in said(parts["Translator"])
    parts, _ = told(ITS_OWN_PADDING.replace("MEMORY", "None"))
    assert "the mask of the source's padding" in faults(parts["Translator"])[0]


WITH_NONE = """
def create_mask(src, tgt, pad):
    past = torch.ones(tgt.shape[1], tgt.shape[1]).tril().bool()
    of_target = (tgt != pad)[:, None, None, :] & past
    return (src != pad)[:, None, None, :], of_target, None


class Translator(nn.Module):
    def __init__(self, vocab_size, d_model, nhead, num_layers, max_len=64):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.positions = nn.Parameter(torch.ones(max_len, d_model))
        self.layers = nn.Transformer(
            d_model, nhead, num_layers, num_layers, 29, 0.0, batch_first=True
        )
        self.out = nn.Linear(d_model, vocab_size)

    def embedded(self, ids):
        return self.words(ids) + self.positions[: ids.shape[1]]

    def forward(self, src, tgt):
        pads, past = src == 0, torch.ones(tgt.shape[1], tgt.shape[1]).triu(1)
        seen = self.layers(
            self.embedded(src),
            self.embedded(tgt),
            tgt_mask=past.bool(),
            src_key_padding_mask=pads,
            memory_key_padding_mask=MEMORY,
        )
        return self.out(seen)
"""


def test_masks_may_come_with_none_and_positions_begin_with_ones(told):
    parts, left = told(WITH_NONE.replace("MEMORY", "pads"))
    assert left == {}
    assert not any(map(faults, parts.values()))
    assert "order" not in told_of(parts["Translator"])
    parts, _ = told(WITH_NONE.replace("MEMORY", "None"))
    assert faults(parts["Translator"])


COUNTED_ALONG_THE_FIRST = """
class Block(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(d_model) for _ in "12")
        self.heads, self.qkv = heads, nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.ff = nn.Sequential(
            nn.Linear(d_model, 29), nn.ReLU(), nn.Linear(29, d_model)
        )

    def forward(self, x):
        q, k, v = (
            each.unflatten(-1, (self.heads, -1)).permute(1, 2, 0, 3)
            for each in self.qkv(self.norm1(x)).chunk(3, -1)
        )
        past = torch.ones(len(x), len(x)).tril().bool()
        y = F.scaled_dot_product_attention(q, k, v, past)
        y = x + self.out(y.permute(2, 0, 1, 3).flatten(2))
        return BEFORE + self.ff(self.norm2(y))


class LanguageModel(nn.Module):
    def __init__(self, vocab_size, d_model, heads, num_layers, max_len):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(max_len, d_model)
        self.layers = nn.ModuleList(
            Block(d_model, heads) for _ in range(num_layers)
        )
        self.out = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(len(ids)))[:, None]
        for layer in self.layers:
            x = layer(x)
        return self.out(x)
"""


def test_what_is_wrong_either_way_is_told_in_the_better_one(told):
    text = "import torch.nn.functional as F\n" + COUNTED_ALONG_THE_FIRST
    parts, _ = told(text.replace("BEFORE", "y"))
    assert not faults(parts["LanguageModel"])
    parts, _ = told(text.replace("BEFORE", "x"))
    assert "for so fewer contracts fail" in said(parts["LanguageModel"])
    [fault] = faults(parts["LanguageModel"])
    assert fault.startswith("With the weights of `layers.0.ff` at 0")


HIDES_ITS_PADDING = """
SRC_PAD, PAD = 2, 1


class Attention(nn.Module):
    def __init__(self, d_model, nhead):
        super().__init__()
        self.attend = nn.MultiheadAttention(d_model, nhead, batch_first=True)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x, memory, pads, past=None):
        y = self.attend(
            x, memory, memory, key_padding_mask=pads, attn_mask=past
        )
        return self.norm(x + y[0])


class LanguageModel(nn.Module):
    def __init__(self, vocab_size, d_model, nhead, max_len):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(max_len, d_model)
        self.attend = Attention(d_model, nhead)
        self.out = nn.Linear(d_model, vocab_size)

    def embedded(self, ids):
        return self.words(ids) + self.places(torch.arange(ids.shape[1]))

    def looked(self, ids):
        past = torch.ones(ids.shape[1], ids.shape[1]).triu(1) * FAR
        x, pads = self.embedded(ids), torch.zeros(ids.shape)
        pads = pads.masked_fill(ids == PAD, -1e9)
        return self.attend(x, x, pads, past)

    def forward(self, ids):
        return self.out(self.looked(ids))


class Translator(LanguageModel):
    def __init__(self, vocab_size, d_model, nhead, max_len):
        super().__init__(vocab_size, d_model, nhead, max_len)
        self.look, self.ask = (Attention(d_model, nhead) for _ in "12")

    def forward(self, src, tgt):
        x, pads = self.embedded(src), src == SRC_PAD
        return self.out(self.ask(self.looked(tgt), self.look(x, x, pads), pads))
"""


def test_models_may_have_their_own_ids_for_padding(told):
    parts, _ = told(HIDES_ITS_PADDING.replace("FAR", "-1e9"))
    for name, pads in ("LanguageModel", "1"), ("Translator", "2 and 1"):
        assert not faults(parts[name])
        assert f"padding was {pads} in what it got" in said(parts[name])
    parts, left = told(HIDES_ITS_PADDING.replace("FAR", "0.0"))
    assert "every row sees all tokens" in left["LanguageModel"]
    assert "which is in their future" in faults(parts["Translator"])[0]


ZEROS_FIRST = """
class Translator(nn.Module):
    def __init__(self, vocab_size, d_model, nhead, num_layers, max_len=64):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(max_len, d_model)
        self.body = nn.Transformer(
            d_model, nhead, num_layers, num_layers, 24, batch_first=True
        )
        self.out = nn.Linear(d_model, vocab_size)

    def embedded(self, ids):
        return self.words(ids) + self.places(torch.arange(ids.shape[1]))

    def forward(self, src, tgt, teacher_forcing_ratio=1.0):
        tgt, pads = tgt[:, :-1], src == 0
        past = torch.ones(tgt.shape[1], tgt.shape[1]).triu(1) == 1
        y = self.body(
            self.embedded(src), self.embedded(tgt), tgt_mask=past,
            src_key_padding_mask=pads, memory_key_padding_mask=pads,
        )
        return nn.functional.pad(self.out(y), (0, 0, 1, 0))
"""


def test_a_first_row_of_zeros_says_that_targets_are_whole(told):
    parts, left = told(ZEROS_FIRST)
    assert left == {}
    model = parts["Translator"]
    assert not faults(model)
    assert "it got whole targets, which it shifts itself" in said(model)
    parts, _ = told(ZEROS_FIRST.replace("triu(1)", "triu(2)"))
    assert any("in their future" in f for f in faults(parts["Translator"]))
    # A row in front of targets that are not shifted is one too many.
    parts, _ = told(ZEROS_FIRST.replace("tgt[:, :-1]", "tgt"))
    assert "Translator" not in parts
