"""Tries contracts on a function that can neither hang nor leave traces."""

import contextlib
import ctypes
import functools
import io
import random
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor
from torch.utils import checkpoint

from companion.contracts.engine.blame import now_at, text_of
from companion.contracts.engine.compare import Broken, NotTried, furthest
from companion.contracts.engine.component import title
from companion.contracts.engine.forms.adopt import adopt
from companion.contracts.engine.forms.other_ways import (
    ASK_FIRST,
    ASK_SHIFTED,
    other_ways,
)
from companion.contracts.engine.guard import Guarded, Raised, Stop
from companion.contracts.engine.levels import (
    FAULT,
    RISK,
    level_of,
    same_cause_same_level,
)
from companion.contracts.engine.modules.around import Around
from companion.contracts.engine.modules.common import (
    module_kept,
    module_of,
    works_at_home,
    zeros_moved,
)
from companion.contracts.engine.modules.devices import (
    Moved,
    made_on_the_cpu,
    on_the_cpu,
)
from companion.contracts.engine.modules.taking_part import OF_MODULES
from companion.contracts.engine.universal import (
    GATE,
    contracts_of,
    level_of_known,
)

__all__ = [
    "EITHER_FIRST",
    "NOT_TRIED",
    "SECONDS",
    "WHICH_FIRST",
    "WORKER",
    "again",
    "as_asked",
    "assumed",
    "at_home",
    "called",
    "contracts_for",
    "finishes",
    "gate_shut",
    "in_time",
    "is_fault",
    "outcomes",
    "stop",
    "thread_for",
    "too_long",
    "undisturbed",
]

SECONDS = 5.0
"""How long all contracts of a component may compute, together."""

PATIENCE = 12
"""How many times as long they may take by the wall, as on a busy machine."""

WORKER = "contracts"
"""The name of the thread a learner's function runs in."""

Found = Sequence[tuple[str, Broken | None]]
"""The name of each contract, and what broke it."""

ALONE = threading.Lock()
"""One check at a time: what ``undisturbed`` puts back belongs to all."""


class FirstPrint(io.TextIOBase):
    """What the learner prints, from the first call only.

    The contracts call a function dozens of times.
    """

    def __init__(self, fn: Guarded, stream: io.TextIOBase):
        super().__init__()
        self.fn, self.stream = fn, stream

    def write(self, text: str) -> int:
        """Pass on what is printed, unless a later call prints it."""
        learners = threading.current_thread().name == WORKER
        if not (learners and self.fn.calls):
            self.stream.write(text)
        return len(text)


class KeepsAll:
    """Stands for the older checkpoint, whose single gradients cannot be asked.

    It computes the same, and keeps what that one would compute once more.
    """

    @staticmethod
    def apply(function: Callable, preserve: bool, *args: Any) -> Any:
        """Call the function."""
        return function(*args)


@contextlib.contextmanager
def undisturbed(fn: Guarded) -> Iterator[Moved]:
    """Put back what a function may change for the whole process.

    A module gets back its numbers and modes, in case a call changes them. Grad
    mode is not among it: that belongs to a thread, and a function runs in one
    of its own. Warnings are not shown: what they warn of, contracts find.

    Raises:
        RuntimeError: the function that is being checked called ``check``.
    """
    if threading.current_thread().name == WORKER:
        raise RuntimeError("a function that is being checked called check()")
    gpus = torch.cuda.device_count() if torch.cuda.is_initialized() else 0
    dtype, python = torch.get_default_dtype(), random.getstate()
    threads = torch.get_num_threads()
    numpy = np.random.get_state()
    with (
        ALONE,
        warnings.catch_warnings(),
        contextlib.redirect_stdout(FirstPrint(fn, sys.stdout)),
        torch.random.fork_rng(range(gpus)),
        # Numbers are the same everywhere, and every device has not float64.
        Moved(module_of(fn)) as lodged,
        made_on_the_cpu(),
        on_the_cpu(),
        module_kept(module_of(fn)),
        zeros_moved(fn),
        mock.patch.object(checkpoint, "CheckpointFunction", KeepsAll),
    ):
        warnings.simplefilter("ignore")
        torch.set_default_dtype(torch.float32)
        # For tensors this small a second thread takes longer to wake up.
        torch.set_num_threads(1)
        try:
            yield lodged
        finally:
            torch.set_num_threads(threads)
            torch.set_default_dtype(dtype)
            random.setstate(python)
            np.random.set_state(numpy)


def contracts_for(fn: Guarded) -> dict[str, Callable]:
    """Name -> contract, without those that ``fn`` cannot break.

    Of what is no module, or takes no mask, or showed that it cannot be tried.
    """
    given, module = contracts_of(fn.component), module_of(fn)
    left_out = OF_MODULES if module is None else ()
    return {
        name: contract
        for name, contract in given.items()
        if contract not in left_out
        and name not in fn.not_tried
        and not (fn.takes_no_mask and hasattr(contract, "sends_masks"))
    }


def outcomes(
    fn: Guarded,
    mask: str | None = None,
    *,
    begun: Found = (),
    brief: bool = False,
) -> list[tuple[str, Broken | None]]:
    """Return what each contract found; after the gate nothing more.

    Before, it is found out how ``fn`` wants to be called.

    Args:
        fn: What is tried.
        mask: What True means in its masks.
        begun: What was found already, when it was known how to call it.
        brief: Whether the first fault ends it.
    """
    tried = [*begun]

    def task() -> None:
        if not begun:
            adopt(fn, mask, no_fault)
            fn.not_tried.clear()  # That was of some other way to call it.
        try_all(fn, tried, brief=brief)

    late = in_time(fn, task)
    takes = slow(fn)
    names = list(contracts_for(fn))  # It is known by now how it is called.
    # A copy: a thread that could not be stopped may still write to the list.
    found = tried[: len(names)]
    if brief and is_fault(found) and not gate_shut(found):
        return found
    if len(found) < len(names) and not gate_shut(found):
        where = f"was stopped {late or ''}".rstrip()
        message = (
            f"It had not come back after {too_long(SECONDS)} and {where}. "
            "Does a loop never end, or run over single numbers?"
        )
        broken = Broken(message, level=FAULT)
        if takes:
            message = SLOW.format(f"{takes:.1f}", too_long(SECONDS))
            broken = Broken(message, level=RISK, why=NO_FAULT)
        found.append((names[len(found)], broken))
    same_cause_same_level(broken for _, broken in found if broken)
    return found


SLOW = (
    "One call takes {0} seconds, and all contracts together have {1} so that "
    "they were stopped here: build a smaller one."
)
NO_FAULT = "What is slow is not wrong, and the rest could not be tried."


def slow(fn: Guarded) -> float:
    """Return how long a call takes that comes back, if that is too long.

    It is not, if the last call has not come back in much more time.
    """
    now = time.monotonic() if fn.since is None else fn.since
    last = (time.monotonic() - now) / fn.stands_for
    many = fn.longest > SECONDS / 50 and last < 4 * fn.longest
    return fn.longest if many else 0.0


def gate_shut(found: Found) -> bool:
    """Tell whether nothing more is tried until the last of these holds."""
    return 0 < len(found) <= len(GATE) and found[-1][1] is not None


def is_fault(found: Found) -> bool:
    """Tell whether the last of these is a fault."""
    last = found[-1][1] if found else None
    return last is not None and last.level == FAULT


def again(fn: Guarded) -> Guarded:
    """Return the same with the same call, for another task."""
    other = Guarded(fn.component, fn.given)
    other.form, other.calls = fn.form, fn.calls
    other.unwritten = fn.unwritten
    other.not_tried = dict(fn.not_tried)
    return other


def at_home(fn: Guarded, lodged: Moved) -> tuple[str, Broken | None]:
    """Return what is found where the module lives, when all held here."""
    there, found, home = again(fn), [], lodged.home

    def task() -> None:
        found.append(outcome(lambda fn: works_at_home(fn, home), there))

    with lodged.back():
        late = in_time(there, task)
    if not found:
        found = [Broken(f"On {home} it had to be stopped {late or ''}.")]
    if found[0]:
        found[0].level = FAULT
    return title(works_at_home), found[0]


def called(fn: Guarded) -> tuple[str, ...]:
    """Tell how ``fn`` was called, if not as the contracts call.

    And what was moved in it, and what it left untried.
    """
    said = sentence(fn.form.said) if fn.form else ""
    left = (f"{NOT_TRIED}{name}. {why}." for name, why in fn.not_tried.items())
    yours = f"Called as yours: {said}" if said else ""
    return tuple(filter(None, (yours, around(fn), fn.gains, *left)))


def around(fn: Guarded) -> str:
    """Tell what stands around a module, such as tables that it was given."""
    module = module_of(fn)
    parts = () if module is None else module.modules()
    said = (m.said for m in parts if isinstance(m, Around) and m.said)
    return "; ".join(said)


NOT_TRIED = "Not tried: "


def assumed(fn: Guarded, found: Found, mask: str | None) -> tuple[str, ...]:
    """Tell how ``fn`` was called, and what would hold, were it read otherwise.

    Args:
        fn: What was tried.
        found: What the contracts found.
        mask: What was said about its masks.
    """
    told = called(fn)
    broken = [b for _, b in found if b and b.level == FAULT]
    whole = len(found) == len(contracts_for(fn))
    # What wants other axes can be called in no other way.
    wants_more = len(found) <= len(GATE) and (
        fn.component.name == "label_smoothing"
    )
    if not broken or not (whole or wants_more):
        return told
    ways: list[str] = []
    other = Guarded(fn.component, fn.given)
    names = (name for name, b in found if b and b.level == FAULT)
    other.broke = contracts_for(fn).get(next(names))

    def task() -> None:
        for words, form in other_ways(fn, mask):
            other.form = form
            if no_fault(other):
                ways.append(words)
                return

    in_time(other, task)
    return (*told, *ways)


WHICH_FIRST = "which axis comes first"
EITHER_FIRST = (
    "It is right if the sequence comes first in yours, as in PyTorch's layers "
    "without `batch_first=True`, and wrong if the batch does."
)


WHO_SHIFTS = "who shifts the targets"
EITHER_SHIFTS = (
    "It is right if yours is given whole targets and shifts them itself, and "
    "wrong if it is given what the decoder reads."
)
QUESTIONS = (
    (ASK_FIRST, EITHER_FIRST, WHICH_FIRST),
    (ASK_SHIFTED, EITHER_SHIFTS, WHO_SHIFTS),
)
"""What begins the question, why a fault is none yet, and what both are of."""


def as_asked(found: Found, said: tuple[str, ...]) -> None:
    """Make a question of faults, where no fault is left with it answered.

    Args:
        found: What the contracts found.
        said: What is told of how it was called.
    """
    for begins, why, cause in QUESTIONS:
        if any(text.startswith(begins) for text in said):
            for _, broken in found:
                if broken and broken.level == FAULT:
                    broken.level, broken.why, broken.cause = RISK, why, cause
            return


def sentence(parts: tuple[str, ...]) -> str:
    """Join what was assumed."""
    return "; ".join(parts) + "." if parts else ""


def no_fault(fn: Guarded) -> bool:
    """Tell whether no contract finds a fault; stop at the first that does."""
    fn.not_tried.clear()
    contracts = [*contracts_for(fn).values()]
    # A fault that is no matter of how it is called breaks the same one again.
    contracts.sort(key=lambda contract: contract is not fn.broke)
    kept = []
    with fn.without_causes():
        for contract in contracts:
            broken = outcome(contract, fn)
            level = broken and (broken.level or level_of(contract)[0])
            # What cannot be called so at all is not right so.
            if level == FAULT or (broken and contract in GATE):
                fn.broke = contract
                return False
            if not broken and title(contract) not in fn.not_tried:
                kept.append(contract)
    fn.kept = fn.form, (*kept,)
    return True


def try_all(
    fn: Guarded, tried: list[tuple[str, Broken | None]], *, brief: bool = False
) -> None:
    """Append to ``tried`` at each step, so that what was found remains."""
    left = [*contracts_for(fn).items()][len(tried) :]
    form, kept = fn.kept
    known = kept if form == fn.form else ()
    for name, contract in left:
        broken = None if contract in known else outcome(contract, fn)
        if name in fn.not_tried:
            continue
        if broken:
            if not broken.level:
                broken.level, broken.why = level_of_known(fn, broken.cause)
            if not broken.level:
                broken.level, broken.why = level_of(contract)
            cause = named_cause(contract, fn, tried, broken)
            attribute(broken, cause, contract)
        tried.append((name, broken))
        if broken and (contract in GATE or (brief and is_fault(tried))):
            return


def attribute(
    broken: Broken, earlier: Broken | None, contract: Callable
) -> None:
    """Put ``broken`` down to what broke earlier, if that explains it.

    Another convention explains other numbers, but neither NaN nor an exception
    nor what rare inputs do.
    """
    if earlier is None:
        return
    numbers = broken.got is None or bool(broken.got.isfinite().all())
    usual = level_of(contract)[0] == FAULT and not isinstance(broken, Raised)
    if earlier.level == FAULT or (numbers and usual):
        broken.cause = earlier.cause
        broken.level, broken.why = earlier.level, earlier.why


def named_cause(
    contract: Callable,
    fn: Guarded,
    tried: list[tuple[str, Broken | None]],
    found: Broken,
) -> Broken | None:
    """Return what was named before, if it alone breaks ``contract`` too.

    A contract's own message may then point at what is in order. What is no
    fault explains its own numbers, and no others.
    """
    hints = fn.component.hints
    for earlier in (broken for _, broken in tried if broken):
        if earlier.cause in hints:
            mistake = Guarded(fn.component, hints[earlier.cause])
            broken = outcome(contract, mistake)
            # What raises is a mistake that needs other sizes.
            follows = broken is not None and not isinstance(broken, Raised)
            if follows and earlier.level != FAULT:
                follows = alike(broken.got, found.got)
            return earlier if follows else None
    return None


def alike(one: Tensor | None, other: Tensor | None) -> bool:
    """Tell whether two results are the same, if there are any to compare."""
    if one is None or other is None or one.shape != other.shape:
        return True
    return furthest(one.float(), other.float(), 0.01) is None


def outcome(contract: Callable, fn: Guarded) -> Broken | None:
    """Return what ``contract`` finds broken, or None; also if not tried."""
    try:
        contract(fn)
    except Broken as broken:
        return broken
    except NotTried as reason:
        fn.not_tried[title(contract)] = str(reason)
    except Stop:
        raise
    except BaseException as error:
        # Raised while a result was looked at, say by a subclass of Tensor.
        name, said = type(error).__name__, text_of(error)
        return Broken(f"What it returned cannot be used: {name}: {said}")
    return None


@functools.cache
def warm_up() -> None:
    """Have torch import what a gradient needs, before any clock starts.

    An import that is stopped half-way stays broken in the whole process.
    """
    with torch.inference_mode(False), torch.enable_grad():
        x = torch.ones(2, requires_grad=True)
        torch.autograd.grad((x * 1).sum(), x)


def too_long(seconds: float) -> str:
    """Name a limit of time."""
    wall = PATIENCE * seconds
    return f"{seconds:g} seconds of computing, or {wall:g} by the wall clock,"


def own_clock() -> Callable[[], float]:
    """Return what tells any thread how long this one has computed since.

    Where a system cannot tell, it is the time that has passed.
    """
    try:
        number = time.pthread_getcpuclockid(threading.get_ident())
        start = time.clock_gettime(number)
    except (AttributeError, OSError):
        start = time.monotonic()
        return lambda: time.monotonic() - start
    return lambda: time.clock_gettime(number) - start


Clock = list[Callable[[], float]]
"""A thread's own clock, as soon as it runs."""


def thread_for(
    task: Callable[[], object], name: str | None = None
) -> tuple[threading.Thread, threading.Event, Clock]:
    """Make a thread for ``task``, what tells that it has ended, its clock."""
    # Not Thread.join: once interrupted, it takes a thread that runs for dead.
    finished = threading.Event()
    clock: Clock = []

    def work() -> None:
        clock.append(own_clock())
        # Twice, since a Stop can also arrive on the way out.
        with contextlib.suppress(Stop), contextlib.suppress(Stop):
            try:
                task()
            finally:
                finished.set()

    # A daemon, so that a function stuck in C cannot keep Python from ending.
    thread = threading.Thread(target=work, name=name, daemon=True)
    return thread, finished, clock


def finishes(finished: threading.Event, clock: Clock, seconds: float) -> bool:
    """Wait for what has just begun, and tell whether it ends in time.

    It may compute for ``seconds``, whatever else the machine does meanwhile.
    """
    end = time.monotonic() + PATIENCE * seconds
    while not finished.is_set():
        try:
            spent = clock[0]() if clock else 0.0
        except OSError:  # The thread has ended just now.
            return True
        left = min(seconds - spent, end - time.monotonic())
        if left <= 0:
            return False
        finished.wait(max(left, 0.02))
    return True


def in_time(fn: Guarded, task: Callable[[], None]) -> str | None:
    """Run ``task``; if it takes too long, stop it and return where it was."""
    warm_up()
    thread, finished, clock = thread_for(task, WORKER)
    try:
        thread.start()
        done = finishes(finished, clock, SECONDS)
        return None if done else now_at(thread)
    finally:
        # Also when the learner interrupts the cell.
        fn.stopped.set()
        stop(thread, finished)


def stop(thread: threading.Thread, finished: threading.Event) -> None:
    """Raise ``Stop`` in ``thread``, again while the learner's code eats it."""
    for _ in range(50):
        if finished.is_set():
            return
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Stop)
        )
        finished.wait(0.02)
