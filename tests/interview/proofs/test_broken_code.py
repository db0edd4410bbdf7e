"""A broken function that a question shows violates the contract it should.

That each one fails and that its solution passes, ``test_bank.py`` tests.
"""

import pytest
from interview.proving import question, shown

from companion.contracts import check

pytestmark = pytest.mark.once

HINTS = {
    "rnn-states-all-alike": "Every step shows the last state",
    "rnn-deaf-to-the-past": "cut it",
    "seq2seq-right-one-at-a-time": "asked with the query of sentence 0",
    "seq2seq-never-sure": "The lengths are divided out",
    "attention-padding-takes-a-share": "set to 0, a score like any other",
    "attention-a-loud-pad": "only wiped out after it",
    "attention-right-weights-wrong-slopes": "gradient of `scores` is wrong",
    "transformer-a-gpt-too-good-to-be-true": "does a norm or a mean run over",
    "transformer-2048-too-many": "A norm at the end of encoder and decoder",
    "training-a-rate-that-jumps": "The ramp is step · warmup^-1.5, not",
    "decoding-a-beam-that-says-little": "the first finished hypothesis",
    "decoding-noise-from-the-nucleus": "come back in sorted order",
    "variants-a-model-that-says-mask": "what the token was before it was",
    "variants-heads-that-nobody-asks": "All query heads get key head 0",
    "variants-a-stream-too-small": "divides by the length of the vector",
}


@pytest.mark.parametrize(("name", "hint"), HINTS.items())
def test_a_broken_function_violates_the_contract_its_symptom_points_at(
    name, hint
):
    report = check(question(name).task.component, shown(name))
    assert hint in " ".join(str(report).split())
