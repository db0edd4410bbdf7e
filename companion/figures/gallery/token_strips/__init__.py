"""Lines of text in pieces, which grow from characters and bytes to tokens."""

from collections.abc import Mapping, Sequence
from html import escape

from companion.figures.kit.figure import Figure
from companion.figures.kit.inline import figure_parts, inline
from companion.figures.kit.play import Parts, played, slider
from companion.figures.kit.tables import word

SPACE = "␣"
CAPTION = """A box is one symbol for the model. Darker boxes hold more bytes.
The sign ␣ is a space, and two hexadecimal digits are a byte that is no whole
character."""
CONTROLS = '<div class="controls"></div>\n'


def token_strips(
    lines: Sequence[str],
    stages: Mapping[str, Sequence[Sequence[bytes]]],
    *,
    caption: str = "",
) -> Figure:
    r"""Move through several ways to cut lines of text, drawn as rows of boxes.

    Args:
        lines: What each line is called.
        stages: The name of a way -> for each line its pieces, in bytes. If
            there is only one way, there is nothing to move.
        caption: What else the reader should see in it.

    Raises:
        ValueError: There is no way, or one has not as many lines as names.

    Example:
        >>> line = [char.encode() for char in "小猫"]
        >>> token_strips(["中文"], {"characters": [line]}).text
        'Text in pieces. characters: 中文 2.'
    """
    if not stages or any(len(cut) != len(lines) for cut in stages.values()):
        raise ValueError(
            "stages: expected one way to cut or more, each with as many lines "
            f"as names, {len(lines)}, got {[len(c) for c in stages.values()]}"
        )
    names = list(stages)

    def show(stage: int) -> Parts:
        cut = stages[names[stage]]
        return {
            "strip": ["".join(map(_box, pieces)) for pieces in cut],
            "count": [str(len(pieces)) for pieces in cut],
            "says": escape(_says(names[stage], lines, cut)),
        }

    told = f"{CAPTION} {caption}".strip()
    if len(names) == 1:
        html = inline(
            "strips",
            body=_body(lines, show(0)),
            label="Text in pieces",
            caption=told,
            style=figure_parts(__file__)["style"],
        )
    else:
        html = played(
            "strips",
            show,
            [slider("Cut into", names, 0)],
            lambda parts: CONTROLS + _body(lines, parts),
            module=__file__,
            label="Text in pieces",
            caption=told,
        )
    first = _says(names[0], lines, stages[names[0]])
    return Figure(html, f"Text in pieces. {first}")


def _says(
    name: str, lines: Sequence[str], cut: Sequence[Sequence[bytes]]
) -> str:
    counts = ", ".join(
        f"{line} {len(pieces)}" for line, pieces in zip(lines, cut, strict=True)
    )
    return f"{name}: {counts}."


def shown(piece: bytes) -> str:
    r"""Write a piece so that every byte of it can be seen.

    Example:
        >>> shown(b" cat"), shown("猫".encode()), shown(b"\xe7\x8c")
        ('␣cat', '猫', 'e7 8c')
    """
    try:
        return piece.decode().replace(" ", SPACE)
    except UnicodeDecodeError:
        return piece.hex(" ")


def _box(piece: bytes) -> str:
    heat = min(50, 7 * (len(piece) - 1))
    style = f'class="piece" style="--heat:{heat}%"'
    return f"<span {style}>{word(shown(piece))}</span>"


def _body(lines: Sequence[str], parts: Parts) -> str:
    rows = "".join(
        f"<tr><th scope=row>{word(line)}</th>"
        f'<td class="strip" data-part="strip">{strip}</td>'
        f'<td class="count" data-part="count">{count}</td></tr>'
        for line, strip, count in zip(
            lines, parts["strip"], parts["count"], strict=True
        )
    )
    return f"""<div class="scroll"><table class="cells"><thead><tr><td></td>
<th scope=col>pieces</th><th scope=col>how many</th></tr></thead>
<tbody>{rows}</tbody></table></div>
<p class="says" aria-live="polite" data-part="says">{parts["says"]}</p>"""
