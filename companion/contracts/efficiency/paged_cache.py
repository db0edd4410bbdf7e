"""Contracts of a cache in pages: blocks, sharing, copy on write.

What is checked is a class, or a function that makes one. Its objects have four
methods, ``append(sequence, item)``, ``fork(parent, child)``,
``free(sequence)`` and ``read(sequence)``, and a property ``used_blocks``. The
items are numbers here, where a model stores keys and values.
"""

from collections.abc import Callable

from companion.contracts.engine.blame import raised_at
from companion.contracts.engine.compare import Broken
from companion.contracts.engine.component import Component
from companion.contracts.engine.guard import STRAY, Guarded, Raised, Stop

__all__ = ["PAGED_CACHE"]

METHODS = ("append", "fork", "free", "read")
SIZE, POOL = 4, 12

Trace = list[tuple]


def appended(sequence: str, *items: int) -> Trace:
    """Steps that put items behind a sequence."""
    return [("append", sequence, item) for item in items]


PROBE = [*appended("a", 1, 2, 3), ("read", "a"), ("used",)]


class Driven:
    """A cache that takes steps, and whose answers are kept.

    A step is a method and its arguments, or ("used",) or ("full", sequence).
    Two caches are equal if they answer three items alike: one that keeps
    something of another does not.
    """

    def __init__(self, fn: Guarded, cache: object, sizes: tuple):
        self.fn, self.cache, self.sizes = fn, cache, sizes

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Driven):
            return NotImplemented
        return self(PROBE) == other(PROBE)

    def __repr__(self) -> str:
        return f"a {type(self.cache).__name__}"

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, trace: Trace) -> list:
        try:
            found = [self.step(*step) for step in trace]
        except (Stop, Broken):
            raise
        except Exception as error:
            cause = f"{type(error).__name__} {raised_at(error)}".rstrip()
            raise Raised(
                self.fn.explain(error, self.sizes), cause=cause
            ) from None
        asked = "read", "used", "full"
        return [
            answer
            for (action, *_), answer in zip(trace, found, strict=True)
            if action in asked
        ]

    def step(self, action: str, *args) -> object:
        if action == "full":
            return refuses(self.cache, *args)
        if action == "used":
            used = self.cache.used_blocks
            used = used() if callable(used) else used
            if isinstance(used, int):
                return used
            raise Broken(
                f"`used_blocks` is a {type(used).__name__}: expected how many "
                "blocks are in use, an int."
            )
        result = getattr(self.cache, action)(*args)
        # At once: it may be the very list that grows later.
        return listed(result) if action == "read" else None


def listed(items: object) -> list:
    """Require what can be read from first to last."""
    try:
        return list(items)  # type: ignore[call-overload]
    except TypeError:
        raise Broken(
            f"`read` returned a {type(items).__name__}: expected the items of "
            "the sequence, in order."
        ) from None


def refuses(cache, sequence: str) -> bool:
    """Whether one item more is an error, whatever kind of one."""
    try:
        cache.append(sequence, -1)
    except Exception:
        return True
    return False


def read(fn: Guarded, result: object, args: tuple) -> Driven:
    """What contracts see of a cache: its answers."""
    missing = [m for m in METHODS if not callable(getattr(result, m, None))]
    # Of the class: to ask the object is to compute it.
    if not hasattr(type(result), "used_blocks"):
        missing += [m for m in ["used_blocks"] if m not in dir(result)]
    if missing:
        likely = STRAY["NoneType"] if result is None else ""
        raise Broken(
            f"It makes a {type(result).__name__} without `{missing[0]}`: "
            f"expected {fn.component.returns}. {likely}".rstrip()
        )
    return Driven(fn, result, args)


PAGED_CACHE = Component(
    name="paged_cache",
    signature="paged_cache(num_blocks, block_size)",
    returns="an object with `append(sequence, item)`, `fork(parent, child)`, "
    "`free(sequence)`, `read(sequence)` and `used_blocks`",
    shape_contract="It makes a cache with four methods and a property",
    read=read,
    gradient=False,
    cases=lambda: {"for a pool of twelve blocks": (POOL, SIZE)},
)


def require(
    fn: Guarded, trace: Trace, expected: list, says: str, pool: int = POOL
) -> None:
    """Raise Broken unless these are the answers."""
    got = fn(pool, SIZE)(trace)
    if got != expected:
        raise Broken(f"{says} It says {got}: expected {expected}.")


NINE = tuple(range(1, 10))
READ_BOTH = [("read", "a"), ("read", "b")]


@PAGED_CACHE.contract
def own_items(fn: Guarded) -> None:
    """Each sequence reads its own items, in order."""
    trace = [
        step
        for n in range(1, 7)
        for step in (*appended("a", n), *appended("b", 10 * n))
    ]
    says = "Two sequences grew by turns, to six items each, and were read."
    both = [[1, 2, 3, 4, 5, 6], [10, 20, 30, 40, 50, 60]]
    require(fn, trace + READ_BOTH, both, says)


@PAGED_CACHE.contract
def few_blocks(fn: Guarded) -> None:
    """A sequence takes no more blocks than its items fill."""
    for count, blocks in ((1, 1), (4, 1), (5, 2), (8, 2), (9, 3)):
        trace = [*appended("a", *NINE[:count]), ("used",)]
        says = (
            f"{count} items in blocks of {SIZE}. Blocks are counted. Is one "
            "taken before it is needed, or the room of a long text reserved?"
        )
        require(fn, trace, [blocks], says)


@PAGED_CACHE.contract
def shared(fn: Guarded) -> None:
    """A fork takes no block, and reads what its parent had."""
    trace = [*appended("a", *NINE), ("fork", "a", "b"), *READ_BOTH, ("used",)]
    says = (
        "A sequence of nine was forked; both were read, and blocks counted. "
        "Are blocks copied where a number of users would do?"
    )
    require(fn, trace, [[*NINE], [*NINE], 3], says)


@PAGED_CACHE.contract
def copied_on_write(fn: Guarded) -> None:
    """Who writes into a shared block changes nobody else's items."""
    fork = [*appended("a", *NINE), ("fork", "a", "b")]
    for first, second in ("ab", "ba"):
        trace = [
            *fork,
            *appended(first, 50),
            ("read", second),
            *appended(second, 60),
            *READ_BOTH,
        ]
        says = (
            f"Nine items were forked; then `{first}` got 50 and `{second}` 60. "
            f"Read were `{second}` in between, and both. The last block is "
            "shared: copy it, with what is in it, before one of them writes."
        )
        ends = {first: [*NINE, 50], second: [*NINE, 60]}
        require(fn, trace, [[*NINE], ends["a"], ends["b"]], says)


@PAGED_CACHE.contract
def only_that_block(fn: Guarded) -> None:
    """What is copied is the one block that is written to, if it is shared."""
    fork = [*appended("a", *NINE), ("fork", "a", "b")]
    trace = [*fork, *appended("b", 50, 51), ("used",), *appended("a", 60)]
    says = (
        "Nine items were forked, and both wrote. Blocks are counted after the "
        "first write and at the end. Two full blocks stay shared, and the last "
        "to write owns its block alone."
    )
    require(fn, [*trace, ("used",)], [4, 4], says)
    full = [*appended("a", *NINE[:8]), ("fork", "a", "b"), *appended("b", 50)]
    says = "Eight items fill two blocks: the next takes a new one, no copy."
    require(fn, [*full, ("used",), *READ_BOTH], [
        3, [*NINE[:8]], [*NINE[:8], 50]
    ], says)  # fmt: skip


@PAGED_CACHE.contract
def used_again(fn: Guarded) -> None:
    """Blocks that are free are used again."""
    trace: Trace = []
    for n in range(6):
        trace += [*appended("a", n, n, n, n, n), ("read", "a"), ("free", "a")]
    says = "Six sequences of five came and went, in a pool of two blocks."
    try:
        require(fn, trace, [[n] * 5 for n in range(6)], says, pool=2)
    except Broken as broken:
        if "It raised" not in broken.message:
            raise
        raise Broken(f"{says} {broken.message}", cause=broken.cause) from None


@PAGED_CACHE.contract
def freed(fn: Guarded) -> None:
    """A block is free when its last user has gone, and not before."""
    fork = [*appended("a", *NINE), ("fork", "a", "b")]
    others = appended("c", *range(100, 120))
    trace = [*fork, ("free", "a"), ("used",), *others, ("read", "b")]
    says = (
        "Nine items were forked, the parent was freed, and another sequence "
        "came. Blocks were counted after the free, and the fork was read."
    )
    require(fn, trace, [3, [*NINE]], says)
    trace = [*fork, *appended("b", 50), ("free", "b"), ("used",)]
    trace += [("read", "a"), ("free", "a"), ("used",)]
    says = (
        "A fork wrote and was freed; then the parent was. Blocks were counted "
        "after each. Does a copy forget that the old block lost a user?"
    )
    require(fn, trace, [3, [*NINE], 0], says)


@PAGED_CACHE.contract
def full_pool(fn: Guarded) -> None:
    """A full pool is an error, and changes nothing."""
    trace = [*appended("a", *NINE[:8]), ("full", "b"), ("full", "a")]
    trace += [("read", "a"), ("used",)]
    says = (
        "Eight items fill a pool of two blocks. Two more appends are to raise "
        "an error, of any kind, and to leave the items as they were."
    )
    require(fn, trace, [True, True, [*NINE[:8]], 2], says, pool=2)


# Known mistakes


class Pages:
    """A cache in pages, right, for others to get one thing wrong."""

    def __init__(self, num_blocks: int, block_size: int):
        self.size = block_size
        self.pool = [[0] * block_size for _ in range(num_blocks)]
        self.users = [0] * num_blocks
        self.tables: dict[str, list[int]] = {}
        self.lengths: dict[str, int] = {}

    @property
    def used_blocks(self) -> int:
        return sum(n > 0 for n in self.users)

    def take(self) -> int:
        block = self.users.index(0)
        self.users[block] = 1
        return block

    def append(self, sequence: str, item: int) -> None:
        length = self.lengths.get(sequence, 0)
        table = self.tables.get(sequence, [])
        if length % self.size == 0:
            table.append(self.take())
        elif self.users[table[-1]] > 1:
            self.own(table)
        self.tables[sequence] = table
        self.lengths[sequence] = length + 1
        self.pool[table[-1]][length % self.size] = item

    def own(self, table: list[int]) -> None:
        new = self.take()
        self.pool[new] = [*self.pool[table[-1]]]
        self.users[table[-1]] -= 1
        table[-1] = new

    def fork(self, parent: str, child: str) -> None:
        self.tables[child] = [*self.tables[parent]]
        self.lengths[child] = self.lengths[parent]
        for block in self.tables[child]:
            self.users[block] += 1

    def free(self, sequence: str) -> None:
        for block in self.tables.pop(sequence):
            self.users[block] -= 1
        del self.lengths[sequence]

    def read(self, sequence: str) -> list[int]:
        items = [x for b in self.tables[sequence] for x in self.pool[b]]
        return items[: self.lengths[sequence]]


def wrong(symptom: str) -> Callable[[type[Pages]], type[Pages]]:
    """Register a class of caches; what is made of it is the mistake."""

    def register(kind: type[Pages]) -> type[Pages]:
        def make(num_blocks, block_size):
            return kind(num_blocks, block_size)

        make.__name__, make.__doc__ = kind.__name__, kind.__doc__
        PAGED_CACHE.mistake(symptom=symptom)(make)
        return kind

    return register


@wrong("answers to one question contain sentences of each other")
class WritesIntoSharedBlocks(Pages):
    """No copy on write."""

    def own(self, table):
        pass


@wrong("the first words after a fork are right, and those before are gone")
class NewBlockIsEmpty(Pages):
    """A new block on write, and nothing is copied into it."""

    def own(self, table):
        self.users[table[-1]] -= 1
        table[-1] = self.take()


@wrong("the pool fills up over a day, and the server is started anew")
class OldBlockKeepsItsUser(Pages):
    """After a copy the old block is not told that one user has gone."""

    def own(self, table):
        old = table[-1]
        super().own(table)
        self.users[old] += 1


@wrong("ten samples of one long prompt take ten times its memory")
class CopiesAtTheFork(Pages):
    """Each block is copied at once, whether anybody writes or not."""

    def fork(self, parent, child):
        for item in self.read(parent):
            self.append(child, item)


@wrong("a sample that goes on costs its whole prompt once more")
class CopiesTheWholeTable(Pages):
    """All blocks are copied at the first write."""

    def own(self, table):
        for i, old in enumerate(table):
            table[i] = self.take()
            self.pool[table[i]] = [*self.pool[old]]
            self.users[old] -= 1


@wrong("a second sample reads what the first one wrote")
class OneTableForBoth(Pages):
    """A fork gets the very list of its parent, and not a copy."""

    def fork(self, parent, child):
        super().fork(parent, child)
        self.tables[child] = self.tables[parent]


@wrong("when one sample ends, the others go on in somebody else's text")
class FreesSharedBlocks(Pages):
    """Blocks are free as soon as one of their users has gone."""

    def free(self, sequence):
        for block in self.tables.pop(sequence):
            self.users[block] = 0
        del self.lengths[sequence]


@wrong("the server serves a hundred requests, and then no more")
class NeverFrees(Pages):
    """The table is forgotten, and its blocks are not given back."""

    def free(self, sequence):
        del self.tables[sequence], self.lengths[sequence]


@wrong("a little more memory than the tokens need, for each request")
class OneBlockAhead(Pages):
    """The next block is taken when one has become full."""

    def append(self, sequence, item):
        if sequence not in self.tables:
            self.tables[sequence], self.lengths[sequence] = [self.take()], 0
        table, length = self.tables[sequence], self.lengths[sequence]
        if self.users[table[-1]] > 1:
            self.own(table)
        self.pool[table[-1]][length % self.size] = item
        self.lengths[sequence] = length + 1
        if (length + 1) % self.size == 0:
            table.append(self.take())


@wrong("under load the oldest conversation turns into another one")
class OverwritesWhenFull(Pages):
    """If no block is free, block 0 is taken from whoever has it."""

    def take(self):
        block = self.users.index(0) if 0 in self.users else 0
        self.users[block] = 1
        return block
