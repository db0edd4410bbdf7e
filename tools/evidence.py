"""Numbers as prose writes them, and those that the cells of a chapter have."""

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

# Their text is another's: a listing of the package, the bank's questions, and
# what a plot shows in the words of its author.
NO_EVIDENCE = re.compile(r"figures\.source\(|interview\.show\(|figures\.plot\(")
ARITHMETIC = ast.Constant | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop
NUMBER = re.compile(
    # Not within a name: GPT-2, float16, d_1, 0x1f.
    r"(?<![A-Za-z_\d.])(?<![A-Za-z]-)"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"(?:[eE](?P<exponent>[-+]?\d+))?"
    r"(?P<power>⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)?"
    r"(?:\s?[×·]\s?10(?P<tens>⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+))?"
    r"(?:/(?P<divisor>\d+)(?!\d|\.\d))?"
    r"(?:\s?(?P<unit>%|M\b|thousand\b|million\b|billion\b))?"
    r"(?![A-Za-z_\d])"
)
SUPERSCRIPTS = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"
LOWERED = str.maketrans(SUPERSCRIPTS, "-0123456789")
UNITS = {"%": 1e-2, "M": 1e6, "thousand": 1e3, "million": 1e6, "billion": 1e9}


@dataclass(frozen=True)
class Number:
    """A number as it is written, and what it may be rounded from."""

    text: str
    value: float
    half: float
    start: int = 0
    end: int = 0
    percent: bool = False

    @property
    def constant(self) -> bool:
        """Whether it says too little to be looked for."""
        return self.text in ("0", "1")

    @property
    def digit(self) -> bool:
        """Whether it is a small count, of which every cell has some."""
        return self.text.isdecimal() and self.value < 10

    @property
    def rare(self) -> bool:
        """Whether it is hardly met by chance: it has three digits or more."""
        return len(re.findall(r"\d", self.text.lstrip("0."))) >= 3

    def others(self) -> list["Number"]:
        """What it would be with another last digit."""
        digits = re.match(r"[\d,.]*\d", self.text)[0]
        return [
            next(numbers(digits[:-1] + last + self.text[len(digits) :]))
            for last in "0123456789"
            if last != digits[-1]
        ]


def numbers(text: str) -> Iterator[Number]:
    """Read all numbers of a text, from left to right."""
    for match in NUMBER.finditer(text):
        digits = match["digits"].replace(",", "")
        places = len(digits.partition(".")[2])
        value, half = float(digits), 0.5 * 10**-places
        if match["power"] and value:
            value, half = value ** int(match["power"].translate(LOWERED)), 0.0
        tens = match["exponent"] or (match["tens"] or "0").translate(LOWERED)
        factor = 10.0 ** int(tens) * UNITS.get(match["unit"], 1)
        if match["divisor"] and int(match["divisor"]):
            value, half = value / int(match["divisor"]), 0.0
        yield Number(
            match[0],
            value * factor,
            half * factor,
            match.start(),
            match.end(),
            match["unit"] == "%",
        )


@dataclass
class Evidence:
    """Numbers that cells printed or that stand in their code."""

    runs: list[list[float]] = field(default_factory=list)
    ranges: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.values = sorted({v for run in self.runs for v in run})

    def has(self, number: Number) -> bool:
        """Whether a number is one of these, rounded as it is written."""
        if number.digit:
            return number.value in self.values
        wanted = [(number.value, number.half)]
        if number.percent:  # 83 % of a printed 83, too.
            wanted.append((100 * number.value, 100 * number.half))
        return any(self._near(*each) for each in wanted) or any(
            low <= number.value <= high and high - low <= 4.001 * number.half
            for low, high in self.ranges
        )

    def _near(self, value: float, half: float) -> bool:
        slack = half * (1 + 1e-9) + 1e-9 * abs(value)
        at = bisect_left(self.values, value - slack)
        return at < len(self.values) and self.values[at] <= value + slack

    def has_run(self, wanted: list[Number]) -> bool:
        """Whether numbers stand side by side in a line or a list."""
        size = len(wanted)
        return any(
            all(map(rounds, wanted, run[at : at + size]))
            for run in self.runs
            for at in range(len(run) - size + 1)
        )


def rounds(number: Number, value: float) -> bool:
    """Whether a value is this number, rounded as it is written."""
    slack = number.half * (1 + 1e-9) + 1e-9 * abs(value)
    return abs(number.value - value) <= slack


def evidence(cells: Iterable[dict]) -> Evidence:
    """Collect what code cells print, and what their code says."""
    runs, ranges = [], []
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        code = "".join(cell["source"])
        try:
            tree = ast.parse(code)
        except SyntaxError:  # A magic command of a notebook.
            continue
        runs += _literals(tree)
        ranges += _ranges(tree)
        if not NO_EVIDENCE.search(code):
            for output in cell["outputs"]:
                runs += _printed(output)
    return Evidence(runs, ranges)


def _printed(output: dict) -> Iterator[list[float]]:
    data = output.get("data", {})
    text = "".join(output.get("text", "") or data.get("text/plain", ""))
    for line in text.splitlines():
        found = list(numbers(line))
        yield [n.value for n in found]
        yield [100 * n.value for n in found if n.percent]


def _literals(tree: ast.AST) -> Iterator[list[float]]:
    for node in _computing(tree):
        value = _constant(node)
        if value is not None:
            yield [abs(value)]
        if isinstance(node, ast.List | ast.Tuple):
            run = [_constant(each) for each in node.elts]
            if None not in run:
                yield [abs(each) for each in run]


def _computing(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk through code, without what only says how a plot looks."""
    if isinstance(tree, ast.With) and "figures.style(" in ast.unparse(
        tree.items[0]
    ):
        return
    yield tree
    for child in ast.iter_child_nodes(tree):
        yield from _computing(child)


def _constant(node: ast.AST) -> float | None:
    """Compute an expression of numbers alone, such as 2**16 or -1 / 3."""
    if not isinstance(node, ast.expr):
        return None
    if not all(isinstance(each, ARITHMETIC) for each in ast.walk(node)):
        return None
    try:
        value = eval(ast.unparse(node), {"__builtins__": {}})
    except (ArithmeticError, TypeError):
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e300 else None


def _ranges(tree: ast.AST) -> Iterator[tuple[float, float]]:
    """Find what lies, so an assertion says, between two numbers."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assert):
            continue
        for inner in ast.walk(node):
            if isinstance(inner, ast.Compare) and len(inner.comparators) == 2:
                ends = _constant(inner.left), _constant(inner.comparators[1])
                if None not in ends:
                    yield tuple(sorted(map(abs, ends)))
