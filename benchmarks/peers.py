"""The same encoder-decoder, built from four libraries.

Each peer is used as its own documentation uses it: its own places for
dropout, its own masks, logits for every position, padding left out by the loss.
All have sinusoidal positions, one table for source, target and output, and the
sizes of a ``Size``.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from companion.data.vocabulary import Vocabulary
from companion.positions import sinusoidal
from companion.transformer import Transformer, TransformerConfig

PAD, BOS, EOS = Vocabulary.pad, Vocabulary.bos, Vocabulary.eos


class Size(NamedTuple):
    """How large a model is, and the batches that it is trained on."""

    name: str
    d_model: int
    num_heads: int
    d_ff: int
    num_layers: int
    vocab_size: int = 8000
    batch: int = 32
    length: int = 32
    dropout: float = 0.1


SIZES = (
    Size("small", 128, 4, 512, 2),
    Size("medium", 256, 8, 1024, 3),
    Size("base", 512, 8, 2048, 6),
)
TOY = Size("toy", 16, 2, 32, 1, vocab_size=997, batch=3, length=7)


def ours(size: Size) -> Transformer:
    """The package's model."""
    return Transformer(
        TransformerConfig(
            src_vocab_size=size.vocab_size,
            tgt_vocab_size=size.vocab_size,
            d_model=size.d_model,
            num_heads=size.num_heads,
            d_ff=size.d_ff,
            num_layers=size.num_layers,
            dropout=size.dropout,
            shared_vocab=True,
        )
    )


class TorchPeer(nn.Module):
    """``nn.Transformer`` between an embedding and the same table transposed."""

    def __init__(self, size: Size):
        super().__init__()
        self.embedding = nn.Embedding(size.vocab_size, size.d_model)
        nn.init.normal_(self.embedding.weight, std=size.d_model**-0.5)
        self.register_buffer("positions", sinusoidal(1024, size.d_model))
        self.dropout = nn.Dropout(size.dropout)
        self.body = nn.Transformer(
            size.d_model,
            size.num_heads,
            size.num_layers,
            size.num_layers,
            size.d_ff,
            size.dropout,
            batch_first=True,
        )
        # The paper's post-LN stacks end without one more norm.
        self.body.encoder.norm = self.body.decoder.norm = None

    def embed(self, tokens: Tensor) -> Tensor:
        """Rows of the table times √d, plus positions, after dropout."""
        x = self.embedding(tokens) * math.sqrt(self.embedding.embedding_dim)
        return self.dropout(x + self.positions[: tokens.shape[1]])

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Logits for each position of ``tgt``."""
        length = tgt.shape[1]
        hidden = torch.ones(length, length, dtype=torch.bool, device=src.device)
        said = self.body(
            self.embed(src),
            self.embed(tgt),
            tgt_mask=hidden.triu(1),
            src_key_padding_mask=src == PAD,
            tgt_key_padding_mask=tgt == PAD,
            memory_key_padding_mask=src == PAD,
            tgt_is_causal=True,
        )
        return F.linear(said, self.embedding.weight)

    def loss(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Nats a real token."""
        return _cross_entropy(self(src, tgt[:, :-1]), tgt[:, 1:])


class HuggingFacePeer(nn.Module):
    """Marian: post-LN, sinusoidal positions, tied tables, as in the paper."""

    def __init__(self, size: Size):
        super().__init__()
        from transformers import MarianConfig, MarianMTModel

        width = {"d_model": size.d_model, "vocab_size": size.vocab_size}
        for side in ("encoder", "decoder"):
            width[f"{side}_layers"] = size.num_layers
            width[f"{side}_attention_heads"] = size.num_heads
            width[f"{side}_ffn_dim"] = size.d_ff
        config = MarianConfig(
            **width,
            dropout=size.dropout,
            activation_function="relu",
            scale_embedding=True,
            max_position_embeddings=1024,
            pad_token_id=PAD,
            bos_token_id=BOS,
            eos_token_id=EOS,
            decoder_start_token_id=BOS,
            forced_eos_token_id=None,
        )
        self.model = MarianMTModel(config)

    def loss(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Nats a real token."""
        logits = self.model(
            input_ids=src,
            attention_mask=src != PAD,
            decoder_input_ids=tgt[:, :-1],
            use_cache=False,
        ).logits
        return _cross_entropy(logits, tgt[:, 1:])


class XTransformersPeer(nn.Module):
    """x-transformers: pre-LN and no biases in attention; that is its default.

    With its fast attention, and without dropout on the attention's weights,
    which would select the slow path.
    """

    def __init__(self, size: Size):
        super().__init__()
        from x_transformers import XTransformer

        one = _x_transformers_side(size)
        both = {
            f"{side}_{name}": value
            for side in ("enc", "dec")
            for name, value in one.items()
        }
        self.model = XTransformer(
            dim=size.d_model,
            tie_token_emb=True,
            ignore_index=PAD,
            pad_value=PAD,
            **both,
        )
        # It offers no switch for this tie, which saves it a table to update.
        decoder = self.model.decoder.net
        decoder.to_logits.weight = decoder.token_emb.emb.weight

    def loss(self, src: Tensor, tgt: Tensor) -> Tensor:
        """Nats a real token."""
        return self.model(src, tgt, mask=src != PAD)


def _x_transformers_side(size: Size) -> dict:
    return {
        "num_tokens": size.vocab_size,
        "max_seq_len": 1024,
        "depth": size.num_layers,
        "heads": size.num_heads,
        "attn_dim_head": size.d_model // size.num_heads,
        "ff_mult": size.d_ff / size.d_model,
        "ff_dropout": size.dropout,
        "emb_dropout": size.dropout,
        "attn_flash": True,
    }


def _cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(
        logits.flatten(0, 1), target.flatten(), ignore_index=PAD
    )


PEERS = {
    "nn.Transformer": TorchPeer,
    "Hugging Face": HuggingFacePeer,
    "x-transformers": XTransformersPeer,
}


def batches(
    size: Size, count: int, *, device: torch.device | str = "cpu"
) -> list[tuple[Tensor, Tensor]]:
    """Random sentences of 3/5 of the length to all of it: a fifth is pad."""
    generator = torch.Generator().manual_seed(0)
    made = []
    for _ in range(count):
        pair = (_sentences(size, generator) for _ in range(2))
        made.append(tuple(tokens.to(device) for tokens in pair))
    return made


def _sentences(size: Size, generator: torch.Generator) -> Tensor:
    shape = size.batch, size.length
    tokens = torch.randint(EOS + 1, size.vocab_size, shape, generator=generator)
    tokens[:, 0] = BOS
    least = math.ceil(size.length * 3 / 5)
    words = torch.randint(
        least, size.length + 1, shape[:1], generator=generator
    )
    words[0] = size.length
    place = torch.arange(size.length)
    tokens[place == words[:, None] - 1] = EOS
    return tokens.masked_fill(place >= words[:, None], PAD)
