"""A process of its own for somebody's code: it may hang, crash, or take memory.

A thread that sits in C code cannot be stopped, and a crash takes its process
along. Neither reaches the process that asks. This keeps accidents away, and not
malice: the code may do whatever its user may.
"""

import contextlib
import ctypes
import io
import json
import math
import multiprocessing
import os
import re
import signal
import sys
import threading
import time
from argparse import ArgumentParser
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from companion.sanitize import sanitize

__all__ = [
    "LEFT_OUT",
    "MEMORY",
    "NO_MEMORY",
    "Ended",
    "IsolatedProcess",
    "Late",
    "Send",
    "add_memory",
    "explained",
    "note_if_unlimited",
    "time_limit",
]

Send = Callable[[dict], None]
"""Sends a message to the process that asks."""

STARTING = 120.0
"""How many seconds a process may take to import PyTorch."""

MEMORY = 4.0
"""How many GiB the code may take by default."""

LINES, WIDE = 20, 2000
"""So many lines and characters of what somebody's code prints are shown."""

LEFT_OUT = "… what else it prints is left out"
"""What then stands below them."""

LONGEST = 2**26
"""How many bytes a message may have."""

PR_SET_PDEATHSIG = 1
"""The number by which Linux is asked for a signal when the parent ends."""

PRELOADED = ["companion.commands.preloaded"]
"""What the first process imports for all others."""

LIMITED = sys.platform == "linux"
"""Elsewhere a system takes such a limit and does not keep it, or has none."""

NO_MEMORY = re.compile(
    r"MemoryError|bad_alloc|[Cc](an't|annot) allocate|[Oo]ut of memory"
    "|can't start new thread"
)
"""How Python, PyTorch and the system say that there is no more memory."""


class Late(Exception):
    """A process has not sent what was expected in time."""


class Ended(Exception):
    """A process ended before it sent what was expected."""


class IsolatedProcess:
    """A process that runs ``target(send, *args)``, killed when ``with`` ends.

    What the code prints is passed on in plain text, from the beginning to some
    ten thousand characters. The processes that it starts are killed with it, on
    systems that know groups of processes.

    Args:
        target: A function of a module. It gets ``send``, which takes a
            dictionary of what JSON knows.
        args: What else it gets.
        memory: How many GiB it may take, beside what PyTorch takes.
        show: Gets what the code prints.

    Raises:
        ValueError: ``memory`` is not a positive number.

    Example:
        >>> import time
        >>> with IsolatedProcess(time.sleep, (), memory=-1) as child:
        ...     child.receive(3)
        Traceback (most recent call last):
        ValueError: memory: expected more than 0 GiB, got -1
    """

    def __init__(
        self,
        target: Callable,
        args: tuple,
        *,
        memory: float = MEMORY,
        show: Callable[[str], object] = lambda text: None,
    ):
        if not 0 < memory < math.inf:
            raise ValueError(
                f"memory: expected more than 0 GiB, got {memory:g}"
            )
        self.memory, self.show = memory, show
        context = _context()
        self.pipe, self.sender = context.Pipe(duplex=False)
        self.process = context.Process(
            target=_begin,
            args=(self.sender, memory, target, args),
            daemon=True,
        )

    def __enter__(self) -> "IsolatedProcess":
        """Start the process."""
        self.process.start()
        self.sender.close()
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the process, and what it started."""
        with contextlib.suppress(AttributeError, ProcessLookupError):
            # Before the process is waited for: only then is the number its own.
            os.killpg(self.process.pid or 0, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        self.pipe.close()

    def begin(self) -> None:
        """Wait until PyTorch is imported and the code is about to be run.

        Raises:
            Late: It takes too long.
            Ended: The process has ended.
        """
        try:
            self.receive(STARTING)
        except Late:
            raise Late(
                f"It had not begun after {STARTING:g} seconds."
            ) from None

    def receive(self, seconds: float, longest: float = 0) -> dict:
        """Wait for the next message.

        Args:
            seconds: How long.
            longest: How long if it computes for less than ``seconds``, as on a
                busy machine, where the system tells.

        Returns:
            What ``send`` was given.

        Raises:
            Late: There is none; the message says what may be the reason.
            Ended: The process has ended, or sends what is no message.
        """
        begin, computed = time.monotonic(), self._computed()
        while True:
            passed = time.monotonic() - begin
            left = seconds - passed
            if left <= 0 and computed is not None:
                work = (self._computed() or computed) - computed
                left = min(seconds - work, longest - passed)
            if left <= 0:
                break
            if not self.pipe.poll(max(left, 0.02)):
                continue
            try:
                # No pickle: what comes from such a process is only text.
                message = json.loads(self.pipe.recv_bytes(LONGEST))
            except (EOFError, OSError, ValueError):
                message = None
            if not isinstance(message, dict):
                raise Ended(
                    "Its process ended before there was a result: it crashed, "
                    "something in it called `os._exit`, or it needed more "
                    f"memory. {allowed(self.memory)}"
                )
            if "printed" not in message:
                return message
            self.show(sanitize(str(message["printed"])))
        if computed is None:
            longest = 0
        raise Late(
            f"It had not come back after {time_limit(seconds, longest)}, and "
            "its process was killed. "
            "Does it wait for something, or is there a step in C that never "
            "ends?"
        )

    def _computed(self) -> float | None:
        """Return how long the process has computed, where Linux tells."""
        pid = self.process.pid
        if not sys.platform.startswith("linux") or pid is None:
            return None
        try:
            # Of clocks, a process has its own.
            return time.clock_gettime((~pid << 3) | 2)
        except OSError:
            return None


def _context() -> Any:
    """Choose how processes are started.

    Where it can be had, one process imports PyTorch and the contracts once, and
    is copied for each: that takes milliseconds, not seconds.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def add_memory(parser: ArgumentParser) -> None:
    """Add the option that raises the limit of memory."""
    parser.add_argument(
        "--memory",
        type=float,
        default=MEMORY,
        metavar="GIB",
        help="how much the code may take, on Linux; default: %(default)g",
    )


def note_if_unlimited() -> None:
    """Say that a system has no limit of memory, where it has none."""
    if not LIMITED:
        print(
            "note: this system keeps no limit of memory for a process; only "
            "the limit of time holds",
            file=sys.stderr,
        )


def allowed(memory: float) -> str:
    """Name the limit of memory, and how to raise it."""
    if not LIMITED:
        return ""
    return f"It may take {memory:g} GiB; `--memory {2 * memory:g}` allows more."


def time_limit(seconds: float, longest: float = 0) -> str:
    """Name the limit of time that ``receive`` was given."""
    named = f"{seconds:g} seconds"
    if not longest:
        return named
    return f"{named} of computing, or {longest:g} by the wall clock"


def explained(message: str, memory: float) -> str:
    """Add the limit of memory to what was said when it was reached."""
    if not NO_MEMORY.search(message):
        return message
    stop = "" if message.endswith((".", "!", "?")) else "."
    return f"{message}{stop} {allowed(memory)}".rstrip()


class _Printed(io.TextIOBase):
    """Sends what is printed, and no more than a screen can show."""

    def __init__(self, send: Send):
        super().__init__()
        self.send, self.left, self.lines = send, WIDE, LINES
        self.last, self.full = "\n", False

    def write(self, text: str) -> int:
        if self.full or not text:
            return len(text)
        lines = text.splitlines(keepends=True)[: self.lines]
        shown = "".join(lines)[: self.left]
        self.left -= len(shown)
        self.lines -= shown.count("\n")
        self.last = (self.last + shown)[-1]
        if len(shown) < len(text):
            self.full = True
            end = "" if self.last == "\n" else "\n"
            shown += f"{end}{LEFT_OUT}\n"
        self.send({"printed": shown})
        return len(text)


def _begin(
    pipe: Connection, memory: float, target: Callable, args: tuple
) -> None:
    """Do what the process does first."""
    with contextlib.suppress(AttributeError, OSError):
        os.setsid()  # A group of its own, and no terminal.
    if LIMITED:
        # Nobody would kill it if the process that asks were killed.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        _let_the_server_end()
    alone = threading.Lock()  # A thread that was given up may still print.

    def send(message: dict) -> None:
        data = json.dumps(message).encode()
        with alone:
            pipe.send_bytes(data)

    import torch

    # Nothing is left behind, and no window waits to be closed.
    sys.dont_write_bytecode = True
    os.environ["MPLBACKEND"] = "agg"
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    sys.stdout = sys.stderr = _Printed(send)
    if LIMITED:
        _limit(memory)
    torch.manual_seed(0)
    send({})
    target(send, *args)


def _let_the_server_end() -> None:
    """Close what would keep the first process alive as long as this one.

    It ends, and this one with it, when all who hold the pipe have ended.
    """
    from multiprocessing import forkserver

    server = getattr(forkserver, "_forkserver", None)
    pipe = getattr(server, "_forkserver_alive_fd", None)
    if pipe is not None:
        os.close(pipe)
        server._forkserver_alive_fd = None  # pyrefly: ignore


def _limit(memory: float) -> None:
    """Let this process take ``memory`` GiB more than it has."""
    import resource

    with open("/proc/self/status", encoding="ascii") as status:
        taken = next(int(x.split()[1]) for x in status if "VmData" in x)
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    # The largest number that the system takes; more is no limit.
    limit = min(int(memory * 2**30) + taken * 2**10, 2**62)
    if most != resource.RLIM_INFINITY:
        limit = min(limit, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
