"""The decoder without a memory of its own: what a cache is measured against."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.masks import causal_mask, padding_mask
from companion.transformer import Transformer


class RecomputingDecoder:
    """As ``CachedDecoder``, but each step computes all positions again."""

    def __init__(
        self,
        model: Transformer,
        src: Int[Tensor, "sentence src"],
        beam: int = 1,
    ):
        real = padding_mask(src, model.config.pad)
        memory = model.encode(src, real)
        self.model = model
        self.memory = memory.repeat_interleave(beam, dim=0)
        self.real = real.repeat_interleave(beam, dim=0)
        self.said = src.new_empty(len(src) * beam, 0)

    def step(self, tokens: Int[Tensor, " row"]) -> Float[Tensor, "row vocab"]:
        """Reads one token more in each row; the logits of the next one."""
        self.said = torch.cat([self.said, tokens.unsqueeze(1)], dim=1)
        mask = causal_mask(self.said.shape[1], device=tokens.device)
        states = self.model.decode(self.said, self.memory, mask, self.real)
        return self.model.logits(states[:, -1])

    def reorder(self, rows: Int[Tensor, " row"]) -> None:
        """Row i goes on from what row ``rows[i]`` of its sentence has said."""
        self.said = self.said[rows]

    def keep(
        self, sentences: Int[Tensor, " kept"], rows: Int[Tensor, " kept_row"]
    ) -> None:
        """Forgets all other sentences; ``rows`` are those of the kept ones."""
        self.said = self.said[rows]
        self.memory, self.real = self.memory[rows], self.real[rows]
