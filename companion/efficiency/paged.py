"""A cache in pages, and requests that come and go.

Keys and values lie in blocks of a few positions each, anywhere in one pool. A
table says, for each sequence, which block holds its first positions, which the
next ones, and so on. So nothing is reserved for a text that may become long,
at most one block of a sequence is not full, and sequences that begin alike
point to the same blocks, until one of them writes: then it gets a copy of
that one block. Kwon et al. (2023) took all of it from operating systems.

Words, the same in the book, the code and the tests:
    block     neighbouring positions of a sequence, stored together
    slot      the place of a position in its block
    pool      all blocks there are
    table     the blocks of a sequence, in order
    row       a sequence in the batch of one step
    step      one pass of the model, which brings each row one token
"""

from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from companion.checks import check_sizes, trusting
from companion.multihead import KVCache
from companion.transformer import LanguageModel

__all__ = [
    "BlockTables",
    "PagedCache",
    "PagedLists",
    "Request",
    "Served",
    "serve",
    "timeline",
]


class BlockTables:
    """Which block holds which positions of which sequence; no numbers yet.

    Args:
        num_blocks: Size of the pool.
        block_size: Positions in a block.

    Raises:
        TypeError: a size is no int.
        ValueError: a size is below 1.

    Example:
        >>> tables = BlockTables(num_blocks=8, block_size=4)
        >>> for _ in range(9):
        ...     place = tables.append("a")
        >>> tables.table("a"), tables.length("a"), tables.empty_slots
        ([0, 1, 2], 9, 3)
        >>> tables.fork("a", "b")
        >>> tables.append("b")  # block, slot, and what is to be copied there
        (3, 1, 2)
        >>> tables.table("b"), tables.used_blocks
        ([0, 1, 3], 4)
    """

    def __init__(self, num_blocks: int, block_size: int):
        check_sizes(num_blocks=num_blocks, block_size=block_size)
        self.num_blocks, self.block_size = num_blocks, block_size
        self._free = deque(range(num_blocks))
        self._users = [0] * num_blocks
        self._tables: dict[Hashable, list[int]] = {}
        self._lengths: dict[Hashable, int] = {}

    def append(self, sequence: Hashable) -> tuple[int, int, int | None]:
        """Find a place for one more position of a sequence.

        A sequence that is not known begins. A last block that others use too
        is exchanged for a new one, to which the caller copies it.

        Args:
            sequence: Its name.

        Returns:
            The block, the slot, and the block to copy from, or None.

        Raises:
            MemoryError: no block is free. Nothing has changed then.
        """
        table = self._tables.get(sequence, [])
        length = self._lengths.get(sequence, 0)
        slot = length % self.block_size
        source = None
        if not slot:
            table = [*table, self._take()]
        elif self._users[table[-1]] > 1:
            source, new = table[-1], self._take()
            self._users[source] -= 1
            table = [*table[:-1], new]
        self._tables[sequence] = table
        self._lengths[sequence] = length + 1
        return table[-1], slot, source

    def fork(self, parent: Hashable, child: Hashable) -> None:
        """Let a new sequence begin with all that another has; nothing moves.

        Args:
            parent: The name of one that is there.
            child: A new name.

        Raises:
            ValueError: there is no ``parent``, or there is a ``child``.
        """
        table = self.table(parent)
        if child in self._tables:
            raise ValueError(f"child: expected a new name, got {child!r}")
        for block in table:
            self._users[block] += 1
        self._tables[child] = table
        self._lengths[child] = self._lengths[parent]

    def free(self, sequence: Hashable) -> None:
        """Forget a sequence; blocks that nobody uses any more become free.

        Args:
            sequence: Its name.

        Raises:
            ValueError: it is not there.
        """
        for block in self.table(sequence):
            self._users[block] -= 1
            if not self._users[block]:
                self._free.append(block)
        del self._tables[sequence], self._lengths[sequence]

    def table(self, sequence: Hashable) -> list[int]:
        """Return the blocks of a sequence, in order.

        Raises:
            ValueError: it is not there.
        """
        if sequence not in self._tables:
            raise ValueError(
                f"sequence: expected one of {[*self._tables]}, got {sequence!r}"
            )
        return list(self._tables[sequence])

    def length(self, sequence: Hashable) -> int:
        """Return how many positions a sequence has; 0 if it is not there."""
        return self._lengths.get(sequence, 0)

    @property
    def used_blocks(self) -> int:
        """How many blocks at least one sequence uses."""
        return self.num_blocks - len(self._free)

    @property
    def empty_slots(self) -> int:
        """How many slots of used blocks hold nothing."""
        filled: dict[int, int] = {}
        for sequence, table in self._tables.items():
            for i, block in enumerate(table):
                here = self._lengths[sequence] - i * self.block_size
                here = min(here, self.block_size)
                filled[block] = max(filled.get(block, 0), here)
        return sum(self.block_size - n for n in filled.values())

    def _take(self) -> int:
        if not self._free:
            raise MemoryError(
                f"all {self.num_blocks} blocks are in use: free a sequence"
            )
        block = self._free.popleft()
        self._users[block] = 1
        return block


class PagedLists:
    """Sequences of anything, in pages: the bookkeeping without a model.

    Args:
        num_blocks: Size of the pool.
        block_size: Items in a block.

    Example:
        >>> pages = PagedLists(num_blocks=8, block_size=4)
        >>> for letter in "catch":
        ...     pages.append("a", letter)
        >>> pages.fork("a", "b")
        >>> pages.append("b", "y")
        >>> "".join(pages.read("a")), "".join(pages.read("b"))
        ('catch', 'catchy')
        >>> pages.used_blocks
        3
    """

    def __init__(self, num_blocks: int, block_size: int):
        self.tables = BlockTables(num_blocks, block_size)
        self._pool: list[list] = [[None] * block_size] * num_blocks

    @property
    def used_blocks(self) -> int:
        """How many blocks at least one sequence uses."""
        return self.tables.used_blocks

    def append(self, sequence: Hashable, item: object) -> None:
        """Put an item behind a sequence, which begins if it is not there.

        Raises:
            MemoryError: no block is free.
        """
        block, slot, source = self.tables.append(sequence)
        items = [*self._pool[block if source is None else source]]
        items[slot] = item
        self._pool[block] = items

    def fork(self, parent: Hashable, child: Hashable) -> None:
        """Let a new sequence begin with all that another has.

        Raises:
            ValueError: there is no ``parent``, or there is a ``child``.
        """
        self.tables.fork(parent, child)

    def free(self, sequence: Hashable) -> None:
        """Forget a sequence.

        Raises:
            ValueError: it is not there.
        """
        self.tables.free(sequence)

    def read(self, sequence: Hashable) -> list:
        """Return the items of a sequence, in order.

        Raises:
            ValueError: it is not there.
        """
        blocks = self.tables.table(sequence)
        items = [item for block in blocks for item in self._pool[block]]
        return items[: self.tables.length(sequence)]


class PagedCache:
    """The keys and values of many sequences of one language model, in pages.

    Args:
        model: Whose keys and values; its positions are added to its
            embeddings.
        num_blocks: Size of the pool, which is allotted at once.
        block_size: Positions in a block.

    Attributes:
        tables: Where each position lies.
    """

    def __init__(self, model: LanguageModel, num_blocks: int, block_size: int):
        self.tables = BlockTables(num_blocks, block_size)
        self.model = model
        config, weight = model.config, model.embedding.weight
        heads = config.num_heads
        # Key or value, layer, block, slot, head, width of a head.
        self._pool = weight.new_zeros(
            2, config.num_layers, num_blocks, block_size, heads,
            config.d_model // heads,
        )  # fmt: skip

    @torch.no_grad()
    def read(
        self, sequences: Sequence[Hashable], tokens: Int[Tensor, "row new"]
    ) -> Float[Tensor, "row vocab"]:
        """Read new tokens in each row, and score what comes next.

        The rows may have any lengths, and each row any blocks.

        Args:
            sequences: The name of each row, known or new.
            tokens: What is new in each row, as many in each.

        Returns:
            The logits after the last new token.

        Raises:
            MemoryError: the pool is full.
        """
        starts = [self.tables.length(s) for s in sequences]
        blocks, slots = [], []
        for sequence in sequences:
            for _ in range(tokens.shape[1]):
                block, slot, source = self.tables.append(sequence)
                if source is not None:
                    self._pool[:, :, block] = self._pool[:, :, source]
                blocks.append(block)
                slots.append(slot)
        embedded = [
            self.model._embed(row.unsqueeze(0), start)
            for row, start in zip(tokens, starts, strict=True)
        ]
        tables = [self.tables.table(s) for s in sequences]
        width = max(map(len, tables))
        # A short table is filled up with any block: the mask hides it.
        filled = [table + [0] * (width - len(table)) for table in tables]
        key = torch.arange(width * self.tables.block_size)
        new = torch.arange(tokens.shape[1])
        query = torch.tensor(starts).unsqueeze(1) + new
        mask = (key <= query.unsqueeze(-1)).unsqueeze(1).to(tokens.device)
        places = torch.tensor(blocks), torch.tensor(slots)
        caches = [
            _LayerPages(pool, torch.tensor(filled), places)
            for pool in self._pool.unbind(1)
        ]
        with trusting():
            x = self.model.encoder(torch.cat(embedded), mask, caches)
            return self.model.logits(x[:, -1])


class _LayerPages(KVCache):
    """The pages of one layer, seen as the cache that its attention fills.

    Its length stays 0: where positions stand is told by the mask.
    """

    def __init__(self, pool: Tensor, tables: Tensor, places: tuple):
        super().__init__()
        self.pool, self.tables, self.places = pool, tables, places

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        """Write what is new to its places; gather the blocks of each row."""
        found = []
        for pool, x in zip(self.pool, (k, v), strict=True):
            pool[self.places] = x.transpose(1, 2).flatten(0, 1)
            blocks = pool[self.tables]  # row, block, slot, head, head_dim
            found.append(blocks.flatten(1, 2).transpose(1, 2))
        return tuple(found)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What somebody asks for.

    Attributes:
        arrival: The step before which it comes.
        prompt: What is to be continued, one token at least.
        new_tokens: How many tokens to write.
    """

    arrival: int
    prompt: tuple[int, ...]
    new_tokens: int


@dataclass(frozen=True, kw_only=True)
class Served:
    """What came of the requests, and what it took.

    Attributes:
        tokens: What was written for each request.
        rows: How many rows each step had.
        used_blocks: How many blocks were in use after each step.
        empty_slots: How many slots in them held nothing.
    """

    tokens: list[list[int]]
    rows: list[int]
    used_blocks: list[int]
    empty_slots: list[int]


def serve(
    requests: Sequence[Request], cache: PagedCache, max_rows: int
) -> Served:
    """Write greedily for many requests, which come and go between steps.

    Before a step whoever waits and fits begins, first come, first served: its
    prompt is read, and it gets its first token. One that is done leaves. A
    request begins only if the pool has room for all it may become, so that
    none has to be thrown out again.

    Args:
        requests: In the order of their arrival.
        cache: Where their keys and values go; empty.
        max_rows: Rows that a step has at most.

    Returns:
        The texts, and the rows and blocks of each step.

    Raises:
        ValueError: a request can never fit.

    Example:
        >>> from companion.transformer import LanguageModelConfig
        >>> model = LanguageModel(LanguageModelConfig(
        ...     vocab_size=7, d_model=8, num_heads=2, d_ff=8, num_layers=1,
        ...     dropout=0.0))
        >>> cache = PagedCache(model.eval(), num_blocks=8, block_size=4)
        >>> two = [Request(arrival=0, prompt=(1, 2), new_tokens=3),
        ...        Request(arrival=1, prompt=(3,), new_tokens=1)]
        >>> served = serve(two, cache, max_rows=2)
        >>> [*map(len, served.tokens)], served.rows
        ([3, 1], [1, 2, 1])
    """
    check_sizes(max_rows=max_rows)
    tables = cache.tables
    size = tables.block_size
    most = [-(-(len(r.prompt) + r.new_tokens) // size) for r in requests]
    if max(most, default=0) > tables.num_blocks:
        raise ValueError(
            f"requests: expected at most {tables.num_blocks} blocks each, got "
            f"one of {max(most)}"
        )
    written: list[list[int]] = [[] for _ in requests]
    waiting, running = deque(range(len(requests))), []
    rows, used, empty = [], [], []
    device = cache.model.embedding.weight.device
    while waiting or running:
        step = len(rows)
        reserved = sum(most[i] for i in running)
        begun = []
        while (
            waiting
            and requests[waiting[0]].arrival <= step
            and len(running) + len(begun) < max_rows
            and reserved + most[waiting[0]] <= tables.num_blocks
        ):
            begun.append(waiting.popleft())
            reserved += most[begun[-1]]
        if running:
            last = [[written[i][-1]] for i in running]
            logits = cache.read(running, torch.tensor(last, device=device))
            for i, token in zip(running, logits.argmax(-1), strict=True):
                written[i].append(int(token))
        for i in begun:
            prompt = torch.tensor([requests[i].prompt], device=device)
            written[i].append(int(cache.read([i], prompt).argmax()))
        running += begun
        rows.append(len(running))
        used.append(tables.used_blocks)
        empty.append(tables.empty_slots)
        for i in [*running]:
            if len(written[i]) >= requests[i].new_tokens:
                running.remove(i)
                tables.free(i)
    return Served(
        tokens=written, rows=rows, used_blocks=used, empty_slots=empty
    )


def timeline(
    requests: Sequence[Request], max_rows: int, *, continuous: bool
) -> list[int]:
    """Count the rows at work in each step, without a model.

    A padded batch begins when the one before it has ended to the last row, with
    whoever has come by then; a row that is done waits for the others. With
    ``continuous`` a place is taken again at the next step.

    Args:
        requests: In the order of their arrival.
        max_rows: Rows that a step has at most.
        continuous: Whether rows come and go one by one.

    Returns:
        How many rows brought a token, step by step.

    Raises:
        TypeError, ValueError: ``max_rows`` is no int from 1 up.

    Example:
        >>> few = [Request(arrival=0, prompt=(1,), new_tokens=n)
        ...        for n in (4, 1, 2, 1)]
        >>> timeline(few, 2, continuous=False)
        [2, 1, 1, 1, 2, 1]
        >>> timeline(few, 2, continuous=True)
        [2, 2, 2, 2]
    """
    check_sizes(max_rows=max_rows)
    waiting, running, busy = deque(requests), [], []
    while waiting or running:
        if continuous or not running:
            while (
                waiting
                and waiting[0].arrival <= len(busy)
                and len(running) < max_rows
            ):
                running.append(waiting.popleft().new_tokens)
        busy.append(len(running))
        running = [left - 1 for left in running if left > 1]
    return busy
