"""What every figure is for a notebook: an object that shows itself."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A self-contained piece of HTML, and the same thing in words.

    Attributes:
        html: What pages and notebooks show (see ``inline``).
        text: What a terminal shows.
    """

    html: str
    text: str

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.html, "text/plain": self.text}
