"""Whatever a learner's function returns or raises: ``check`` tells."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from companion.contracts import COMPONENTS, check

NUMBERS = st.sampled_from([torch.float32, torch.float64, torch.int64])
SHAPES = st.lists(st.integers(0, 4), max_size=4)
TENSORS = st.builds(
    lambda shape, dtype: torch.full(shape, 3, dtype=dtype), SHAPES, NUMBERS
)
OTHERS = st.one_of(
    st.none(), st.text(), st.floats(), st.lists(st.integers(), max_size=3)
)
ERRORS = st.sampled_from(
    [ValueError, TypeError, IndexError, RuntimeError, KeyError, StopIteration]
)
KINDS = st.sampled_from(sorted(COMPONENTS))


@given(KINDS, TENSORS | OTHERS)
def test_who_always_returns_the_same_is_told_what_is_wrong(kind, value):
    report = check(kind, lambda *args, **named: value)
    assert not report.passed
    assert report.failures[0].message.strip()
    assert report.failures[0].contract in str(report)


@given(KINDS, ERRORS, st.text(max_size=20))
def test_who_raises_is_told_what_was_raised(kind, error, words):
    def raises(*args, **named):
        raise error(words)

    report = check(kind, raises)
    assert not report.passed
    assert error.__name__ in report.failures[0].message
