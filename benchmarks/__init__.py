"""Speed, memory and learning, side by side with three other libraries.

machine        the clock, and what a number means nothing without
peers          the same model from four libraries
race_training  a step of training, and its share of what the machine can do
race_decoding  greedy and beam search against length
memory         the peak memory of attention
imports        what an import costs
learning       seconds until a small task is known
report         the results as JSON and as a page
"""

import sys

from companion.extras import extra

try:
    with extra("train"):
        import torch  # noqa: F401
except ModuleNotFoundError as missing:
    # One line, as the commands of the package say it.
    sys.exit(f"error: {missing}")
