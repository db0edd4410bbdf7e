"""The colours of ``base.css``, for what Python draws."""

import re

from companion.figures.kit.inline import BASE_STYLE

_FIRST_RULE = BASE_STYLE[: BASE_STYLE.index("}")]

PALETTE = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", _FIRST_RULE))
"""Name -> hexadecimal colour, of the light theme."""
