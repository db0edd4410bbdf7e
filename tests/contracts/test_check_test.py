"""``check_test``: a learner's test has to tell the sick from the healthy."""

import random
import re
import time

import numpy as np
import pytest
import torch
from torch import nn

from companion.attention import softmax
from companion.contracts import COMPONENTS, check
from companion.contracts.engine import runner
from companion.contracts.engine.correct import FUNCTIONS, MODULES, healthy
from companion.contracts.engine.exam import RUNS
from companion.zoo import ANIMALS, check_test

MASK = "causal_mask", "marks what is hidden"
TOKENS = torch.ones(2, 3, dtype=torch.long)
KNOWN = [c for c in COMPONENTS if c in FUNCTIONS or c in MODULES]


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """A busy machine is no loop that never ends."""
    monkeypatch.setattr(runner, "SECONDS", 60.0)


def no_future(fn):
    """Looks at one number, which is enough here."""
    assert not fn(5)[0, 1]


def told(test, patient=MASK):
    """The first failure's line and message."""
    report = check_test(*patient, test)
    assert not report.passed
    return report.failures[0]


# Those whom a test is tried on.


@pytest.mark.parametrize("component", KNOWN)
def test_every_healthy_one_has_a_name_of_its_own(component):
    found = healthy(component)
    assert len({one.name for one in found}) == len(found) >= 1


def test_most_components_have_several_healthy_ones():
    several = [c for c in COMPONENTS if len(healthy(c)) >= 2]
    assert len(several) >= 28


def test_a_healthy_one_takes_its_arguments_by_name():
    def by_name(fn):
        q, k, v = torch.randn(3, 2, 5, 7).unbind(0)
        seen = torch.ones(5, 5, dtype=torch.bool).tril()
        ones = torch.ones(2, 5, 1)
        assert fn(q=q, k=k, v=v, mask=seen).shape == (2, 5, 7)
        assert torch.allclose(fn(q, k, mask=seen, v=ones), ones)

    report = check_test("attention", "multiplied afterwards", by_name)
    assert report.passed, str(report)


def test_a_module_comes_as_a_module_whose_weights_are_its_own():
    seen = []

    def counts(fn):
        assert isinstance(fn, nn.Module)
        assert not fn.training
        seen.append(next(fn.parameters()).detach().clone())
        nn.init.zeros_(next(fn.parameters()))
        x = torch.randn(2, 5, 12)
        hidden = torch.tensor([3, 5])[:, None, None, None]
        real = torch.arange(5) < hidden
        moved = x.clone()
        moved[0, 3:] = torch.randn(2, 12)
        assert torch.allclose(fn(x, real)[0, :3], fn(moved, real)[0, :3])

    report = check_test("encoder", "mask in the first layer only", counts)
    assert report.passed, str(report)
    # Each run has a copy: what one run writes, the next does not find.
    assert all(weight.any() for weight in seen)


# What is said of a test.


def test_a_test_that_tells_them_apart_passes():
    report = check_test(*MASK, no_future)
    assert report.passed
    assert report.headline == (
        "no_future: it fails for the sick one, and passes for all 3 healthy "
        "ones"
    )
    assert report.held[-1] == "It fails for the sick one: marks what is hidden"
    assert report.held[0] == "It passes for a healthy one: ours"


def test_a_stub_is_told_that_nothing_is_written():
    def stub(fn):
        raise NotImplementedError

    report = check_test(*MASK, stub)
    assert len(report.failures) == 1
    assert report.failures[0].message == (
        "Nothing is written here yet. Write `def stub(fn)`, which returns "
        "nothing, and asserts what a healthy causal_mask does."
    )
    assert report.headline == "stub: it cannot be judged yet"
    assert len(report.untried) == 3


def test_what_lets_the_sick_one_through_is_told_the_story():
    def something(fn):
        assert fn(5).any()

    failure = told(something)
    assert failure.contract == "It fails for the sick one: marks what is hidden"
    assert failure.message.startswith("Your test lets the sick one through. ")
    [sick] = [a for a in ANIMALS if (a.component, a.name) == MASK]
    assert sick.story in failure.message
    assert sick.symptom in failure.message


def test_what_calls_a_healthy_one_sick_is_told_which_where_and_what_it_said():
    def exact(fn):
        x = torch.linspace(-2, 3, 12).repeat(2, 1)
        assert torch.equal(fn(x, -1), softmax(x, -1)), "not equal"

    report = check_test("softmax", "one sum for all", exact)
    assert report.held[0] == "It passes for a healthy one: ours"
    [failure] = [f for f in report.failures if "double" in f.contract]
    assert failure.message.startswith(
        "Your test calls a healthy one sick: ours in double precision. It "
        "fails in line 3 of `exact`, `assert torch.equal("
    )
    assert "`: not equal" in failure.message
    assert "Its last digits are its own" in failure.message


def test_what_fails_for_all_is_told_once():
    def nobody(fn):
        assert fn(5)[0, 1]
        assert not fn(5)[0, 1]

    report = check_test("causal_mask", "transposed triangle", nobody)
    assert len(report.failures) == 3
    assert len(report.grouped()) == 1
    assert report.held == ["It fails for the sick one: transposed triangle"]


def test_a_test_the_wrong_way_round_is_told_so():
    def inverted(fn):
        assert fn(5)[0, 1]

    report = check_test(*MASK, inverted)
    assert not report.held
    [[failure, *_]] = report.grouped()
    assert failure.message.startswith("Your test is the wrong way round: it ")


def test_what_raises_is_told_where():
    def strays(fn):
        assert fn(5)[7, 7]

    failure = told(strays)
    assert failure.message == (
        "It raised IndexError in line 2 of `strays`, `assert fn(5)[7, 7]`: "
        "index 7 is out of bounds for dimension 0 with size 5. The arguments "
        "were `fn`, ours."
    )


def test_what_leans_on_the_place_in_memory_is_told_whom_it_broke_on():
    def viewed(fn):
        flat = fn(torch.ones(2, 3), -1).view(6)
        assert torch.allclose(flat.sum(), torch.tensor(2.0))

    failure = told(viewed, ("softmax", "one sum for all"))
    assert failure.contract.endswith("ours elsewhere in memory")
    assert "`.reshape` copies where `.view` cannot." in failure.message


def test_what_finds_the_sick_one_without_an_assertion_is_an_accident():
    def accident(fn):
        if fn(5)[0, 1]:
            raise ValueError("sick")

    message = told(accident).message
    assert message.startswith("Your test finds the sick one by accident")
    assert "ValueError in line 3 of `accident`" in message


def test_what_never_calls_the_function_is_told_so():
    def elsewhere(fn):
        assert torch.ones(5, 5).tril()[0, 1] == 0

    assert "It never calls `fn`" in told(elsewhere).message


def test_what_returns_instead_of_asserting_is_told_so():
    def returns(fn):
        return not fn(5)[0, 1]

    assert "It returns a bool, which nobody looks at" in told(returns).message


@pytest.mark.parametrize(
    ("component", "animal", "args"),
    [
        ("causal_mask", "marks what is hidden", (5,)),
        ("combine_masks", "joined by or", (TOKENS, TOKENS, 0)),
        ("schedule", "a step late", (3, 512, 4000)),
        ("encoder", "forgets itself", (torch.ones(2, 5, 12),)),
    ],
)  # fmt: skip
def test_what_looks_only_at_the_shape_is_told_so(component, animal, args):
    def shaped(fn):
        result = fn(*args)
        several = result if isinstance(result, tuple) else (result,)
        for one in several:
            assert not hasattr(one, "shape") or one.ndim >= 1

    message = told(shaped, (component, animal)).message
    assert "it looks at the shape, and not at the numbers" in message


def test_what_depends_on_luck_is_told_how_often():
    def gambles(fn):
        row = torch.randint(0, 2, ()).item()
        assert not fn(2)[row, 1] or row

    failure = told(gambles)
    found = re.match(
        rf"Your test depends on luck: in (\d) of {RUNS} runs it lets the sick",
        failure.message,
    )
    assert found
    torch_draws = []
    for seed in range(RUNS):
        torch.manual_seed(seed)
        torch_draws.append(torch.randint(0, 2, ()).item())
    assert int(found[1]) == sum(torch_draws)


# The shape hook draws from `random` itself, to pick which entry of a list it
# looks at, and so it does in the thread that waits for this one.
@pytest.mark.once
def test_each_run_draws_its_own_numbers_whatever_was_drawn_before():
    drawn = []

    def draws(fn):
        drawn.append((torch.rand(()).item(), random.random(), np.random.rand()))
        no_future(fn)

    for seed in (11, 13):
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)
        assert check_test(*MASK, draws).passed
    first, second = drawn[: len(drawn) // 2], drawn[len(drawn) // 2 :]
    assert first == second
    assert len(set(first)) == RUNS


def test_what_calls_a_healthy_one_sick_by_bad_luck_is_told_so():
    def gambles(fn):
        assert not fn(5)[0, 1]
        assert torch.rand(()) < 0.6 or fn(5)[0, 1]

    message = told(gambles).message
    assert message.startswith("Your test depends on luck: in ")
    assert "it calls a healthy one sick, ours" in message


def test_what_never_ends_is_stopped_and_told_where(monkeypatch):
    monkeypatch.setattr(runner, "SECONDS", 0.2)

    def hangs(fn):
        while True:
            time.sleep(0.001)

    report = check_test(*MASK, hangs)
    assert report.failures[0].message.startswith(
        "Your test had not come back after 0.2 seconds of computing, or 2.4 by "
        "the wall clock, and was stopped in line "
    )
    assert len(report.untried) == 3


def test_a_loop_on_the_sick_one_keeps_what_was_found(monkeypatch):
    monkeypatch.setattr(runner, "SECONDS", 0.5)

    def hangs(fn):
        while fn(5)[0, 1]:
            time.sleep(0.001)

    report = check_test(*MASK, hangs)
    assert len(report.held) == 3
    assert "had not come back" in report.failures[0].message
    assert report.failures[0].contract.startswith("It fails for the sick one")


def test_only_the_first_call_is_heard(capsys):
    def chatty(fn):
        print("at work")
        no_future(fn)

    assert check_test(*MASK, chatty).passed
    assert capsys.readouterr().out == "at work\n"


def test_a_report_looks_like_that_of_check():
    passing, failing = (
        check_test(*MASK, test)._repr_mimebundle_()["text/html"]
        for test in (no_future, lambda fn: None)
    )
    assert 'class="verdict holds">✓ no_future: it fails' in passing
    assert 'class="verdict fails">✗ my_test: it does not tell' in failing
    assert "companion-check" in failing
    assert "<strong>Your test lets the sick one through.</strong>" in failing


def test_nothing_of_the_process_is_left_changed():
    def greedy(fn):
        torch.manual_seed(7)
        random.seed(7)
        np.random.seed(7)
        torch.set_default_dtype(torch.float64)
        no_future(fn)

    before = torch.get_rng_state()
    numpy = np.random.get_state()[1].copy()
    assert check_test(*MASK, greedy).passed
    assert torch.get_rng_state().equal(before)
    assert random.random() != random.Random(7).random()
    assert (np.random.get_state()[1] == numpy).all()
    assert torch.get_default_dtype() == torch.float32


# Bad input.


@pytest.mark.bad_input
@pytest.mark.parametrize("test", [None, 3, "assert"])
def test_what_is_no_function_is_told_to_be_passed_uncalled(test):
    message = told(test).message
    assert "Your test is not a function but a " in message
    assert "pass the test itself, and do not call it" in message


@pytest.mark.bad_input
def test_a_test_of_two_arguments_is_told_how_to_be_written():
    message = told(lambda fn, x: None).message
    assert (
        "missing a required argument: 'x'. Write `def my_test(fn)`" in message
    )


@pytest.mark.bad_input
@pytest.mark.parametrize("place", [0, 1])
def test_a_test_in_the_wrong_place_is_named(place):
    names = list(MASK)
    names[place] = no_future
    word = ("component", "animal")[place]
    with pytest.raises(TypeError, match=f"{word}: expected a name, got a fun"):
        check_test(*names, no_future)


@pytest.mark.bad_input
def test_an_unknown_component_or_animal_is_answered_by_those_there_are():
    with pytest.raises(ValueError, match=r"component: .*mean 'causal_mask'\?"):
        check_test("causal_masks", "transposed triangle", no_future)
    with pytest.raises(
        ValueError,
        match=r"animal: .*marks what is hidden.*mean 'transposed triangle'\?",
    ):
        check_test("causal_mask", "transposed triangles", no_future)


@pytest.mark.bad_input
def test_a_component_without_a_healthy_one_is_refused():
    with pytest.raises(ValueError, match="healthy implementation to compare"):
        check_test("parameter_count", "nothing is tied", no_future)


def test_check_within_a_test_is_an_error_and_not_a_deadlock():
    def nested(fn):
        assert check("causal_mask", fn).passed

    assert "called check()" in told(nested).message
