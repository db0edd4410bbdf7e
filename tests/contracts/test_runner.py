"""Whatever a function does, ``check`` comes back and leaves no traces."""

import os
import random
import signal
import threading
import time
import warnings

import numpy as np
import pytest
import torch
from contracts.known import gate_message
from contracts.right.attention import attention_by_matmul

from companion.contracts import check
from companion.contracts.engine import runner

pytestmark = pytest.mark.once


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(runner, "SECONDS", 0.3)


def workers():
    """The threads that still run a learner's function, a moment later."""
    for _ in range(100):
        names = [thread.name for thread in threading.enumerate()]
        if runner.WORKER not in names:
            break
        time.sleep(0.02)
    return names.count(runner.WORKER)


def test_an_endless_loop_is_stopped_and_located(impatient):
    def softmax(scores, dim):
        turns = 0
        while True:
            turns += 1

    message = gate_message("softmax", softmax)
    assert (
        "not come back after 0.3 seconds of computing, or 3.6 by the wall "
        "clock, and was stopped in line"
    ) in message
    assert "of `softmax`" in message
    assert workers() == 0


def test_a_loop_that_eats_exceptions_is_stopped_too(impatient):
    def softmax(scores, dim):
        for _ in range(3):
            try:
                while True:
                    pass
            except BaseException:
                continue

    assert "not come back" in gate_message("softmax", softmax)
    assert workers() == 0


def test_what_cannot_be_stopped_is_left_behind(impatient):
    wake = threading.Event()

    def softmax(scores, dim):
        wake.wait(60)  # No exception gets in before it is over.

    assert "not come back" in gate_message("softmax", softmax)
    assert not wake.is_set()
    wake.set()
    assert workers() == 0


def test_what_computes_little_has_time_by_the_wall(impatient, monkeypatch):
    pauses = [0.6]

    def softmax(scores, dim):
        time.sleep(pauses.pop() if pauses else 0)
        return torch.softmax(scores, dim)

    assert check("softmax", softmax).passed
    # Where no thread has a clock of its own, the wall's counts.
    monkeypatch.delattr(time, "pthread_getcpuclockid")
    pauses.append(0.6)
    assert "not come back" in gate_message("softmax", softmax)
    assert workers() == 0


def test_what_comes_back_each_time_and_is_slow_is_no_fault(impatient):
    def softmax(scores, dim):
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass
        return torch.softmax(scores, dim)

    report = check("softmax", softmax)
    assert not report.passed
    assert report.untried
    [slow] = report.failures
    assert slow.level == "risk"
    assert "One call takes 0." in slow.message


def test_a_call_that_stands_for_many_may_take_as_long_as_they(impatient):
    """All changes of a position go in one batch, which takes 24 times more."""

    def causal_attention(x):
        end = time.thread_time() + 0.02 * (len(x) // 2)
        while time.thread_time() < end:
            pass
        return attention_by_matmul(
            x, x, x, torch.ones(len(x[0]), len(x[0])).tril() > 0
        )

    [slow] = check("causal_attention", causal_attention).failures
    assert (slow.level, slow.contract) == ("risk", "No row sees its future")
    # How long is the wall's clock, in which other work counts.
    assert "One call takes 0." in slow.message
    assert workers() == 0


def test_what_does_not_come_back_the_third_time_is_a_fault(impatient):
    calls = []

    def softmax(scores, dim):
        calls.append(1)
        while len(calls) > 2:
            pass
        return torch.softmax(scores, dim)

    report = check("softmax", softmax)
    assert "not come back" in report.faults[-1].message


def test_what_sleeps_is_stopped_at_the_limit_by_the_wall(monkeypatch):
    monkeypatch.setattr(runner, "SECONDS", 0.2)
    monkeypatch.setattr(runner, "PATIENCE", 3)

    def softmax(scores, dim):
        while True:
            time.sleep(0.01)

    begin = time.monotonic()
    assert "or 0.6 by the wall clock" in gate_message("softmax", softmax)
    assert time.monotonic() - begin >= 0.6
    assert workers() == 0


def test_what_was_found_before_a_loop_is_kept(monkeypatch):
    # Time enough for the contracts before it, on a busy machine too.
    monkeypatch.setattr(runner, "SECONDS", 2.0)

    def attention(q, k, v, mask=None):
        while q.dtype == torch.float16:
            pass
        return attention_by_matmul(q, k, v, mask)

    report = check("attention", attention)
    (failure,) = report.failures
    assert failure.contract == "It works in half precision"
    assert "It agrees with PyTorch" in report.held
    assert report.untried


def test_the_learner_can_interrupt_a_check():
    def softmax(scores, dim):
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            pass

    # What a shell runs in the background is born deaf to it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            check("softmax", softmax)
    finally:
        signal.signal(signal.SIGINT, before)
    assert workers() == 0
    assert check("softmax", torch.softmax).passed


def test_a_check_inside_a_check_is_refused():
    def softmax(scores, dim):
        return check("softmax", torch.softmax)

    assert "is being checked called check()" in gate_message("softmax", softmax)


def elsewhere(task):
    """The result of ``task`` in a thread that is not the main one."""
    found = []
    thread = threading.Thread(target=lambda: found.append(task()))
    thread.start()
    thread.join()
    return found[0]


def test_it_works_in_another_thread():
    assert elsewhere(lambda: check("softmax", torch.softmax)).passed


def test_an_endless_loop_is_stopped_in_another_thread(impatient):
    def softmax(scores, dim):
        while True:
            pass

    assert "not come back" in elsewhere(
        lambda: gate_message("softmax", softmax)
    )
    assert workers() == 0


def meddles(scores, dim):
    torch.manual_seed(7)
    random.seed(7)
    np.random.seed(7)
    torch.set_grad_enabled(False)
    torch.set_default_dtype(torch.float64)
    torch.rand(2), random.random(), np.random.rand()
    return torch.softmax(scores, dim)


def test_nothing_global_is_changed():
    def states():
        numpy = np.random.get_state()
        return (
            torch.get_rng_state().tolist(),
            random.getstate(),
            (numpy[1].tolist(), numpy[2:]),
            torch.is_grad_enabled(),
            torch.get_default_dtype(),
            list(warnings.filters),
        )

    before = states()
    check("softmax", meddles)
    assert states() == before


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_the_mode_of_the_caller_is_kept_and_does_not_matter(mode):
    with mode():
        assert check("attention", attention_by_matmul).passed
        assert not torch.is_grad_enabled()


def test_the_default_number_type_and_device_of_the_caller_do_not_matter():
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            assert check("attention", attention_by_matmul).passed
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_warnings_are_neither_errors_nor_noise():
    def softmax(scores, dim):
        warnings.warn("deprecated", stacklevel=1)
        return torch.softmax(scores, dim)

    with warnings.catch_warnings(record=True) as noise:
        assert check("softmax", softmax).passed
    assert noise == []


def test_what_is_printed_is_shown_for_the_first_call_only(capsys):
    def softmax(scores, dim):
        print("scores", tuple(scores.shape))
        return torch.softmax(scores, dim)

    assert check("softmax", softmax).passed
    assert capsys.readouterr().out == "scores (2, 3, 5)\n"
