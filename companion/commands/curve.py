"""The picture of a run: its losses, and below them the learning rate."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib import pyplot as plt

from companion.figures import style

__all__ = ["Row", "draw", "thinned"]

Row = dict[str, float | None]
POINTS = 500
"""More cannot be told apart in a picture, and make its file large."""


def draw(log: Sequence[Row], path: Path) -> Path:
    """Draw the curve of all the steps in ``log``.

    Args:
        log: The rows, as ``read_log`` reads them.
        path: Where the picture goes.

    Returns:
        The path.

    Raises:
        ValueError: The log has no step.
        OSError: The picture cannot be written.
    """
    if not log:
        raise ValueError("log: expected at least one step, got none")
    checked = [row for row in log if row["validation"] is not None]
    with style():
        canvas, (loss, rate) = plt.subplots(
            2, sharex=True, figsize=(6, 5), height_ratios=(2, 1)
        )
        steps = thinned(log, "step")
        loss.plot(steps, thinned(log, "loss"), label="training", gid="loss")
        loss.plot(
            [row["step"] for row in checked],
            [row["validation"] for row in checked],
            marker="o",
            label="validation",
            gid="validation",
        )
        loss.set(ylabel="loss (nats a token)")
        loss.legend()
        rate.plot(steps, thinned(log, "rate"), gid="rate")
        rate.set(ylabel="learning rate", xlabel="step")
        canvas.savefig(path)
        plt.close(canvas)
    return path


def thinned(log: Sequence[Row], name: str) -> list[float]:
    """Make at most ``POINTS`` numbers of a column, each a mean over steps."""
    width = -(-len(log) // POINTS)
    parts = (log[i : i + width] for i in range(0, len(log), width))
    return [sum(row[name] or 0.0 for row in part) / len(part) for part in parts]
