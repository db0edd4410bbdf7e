"""The live figure of chapter 13: numbers that are rounded while one types."""

import ipywidgets as widgets

from companion.efficiency import quantize
from companion.figures.kit.digits import fixed, short
from companion.figures.kit.tables import table, tinted
from companion.figures.live.typed import matrix
from companion.figures.live.widget import Live, answered

NUMBERS = "0.1 -0.3 0.4 0.7  0.2 -0.6 0.5 7.0"
MOST = 16
"""So many numbers fit side by side."""


def try_rounding(numbers: str = NUMBERS) -> Live:
    """A row of numbers, how many bits they get, and who shares a scale.

    Args:
        numbers: What stands in the field at first.
    """
    return Live(
        _round,
        "run its cell to type a row of numbers, choose the bits and the size "
        "of a group, and see what each number becomes.",
        text=widgets.Text(
            value=numbers, description="numbers", continuous_update=False
        ),
        bits=widgets.IntSlider(value=4, min=2, max=8, description="bits"),
        group=widgets.Dropdown(
            options=["all", 2, 4, 8], value="all", description="share"
        ),
        symmetric=widgets.Checkbox(value=True, description="0 stands for 0"),
    )


def _round(text: str, bits: int, group: str | int, symmetric: bool) -> str:
    weight = matrix("numbers", text)
    if len(weight) != 1 or weight.shape[1] > MOST:
        raise ValueError(f"numbers: expected one row of at most {MOST}")
    per = "row" if group == "all" else int(group)
    stored = quantize(weight, bits, per=per, symmetric=symmetric)
    back = stored.dequantize()
    off = (back - weight)[0].tolist()
    rows = {
        "number": weight[0].tolist(),
        "comes back": back[0].tolist(),
        "off by": off,
    }
    top = float(weight.abs().max())
    cells = [tinted(row, top) for row in rows.values()]
    integers = "".join(f"<td>{n}</td>" for n in stored.integers[0].tolist())
    scales = ", ".join(short(s) for s in stored.scale[0].tolist())
    return answered(
        f"Scales: {scales}. The largest error is "
        f"{fixed(max(map(abs, off)), 3)}.",
        table(
            "rounding",
            f"in {bits} bits",
            [str(i) for i in range(1, weight.shape[1] + 1)],
            ["number", "integer", "comes back", "off by"],
            [cells[0], integers, *cells[1:]],
        ),
        label="Numbers in few bits",
    )
