"""The questions in a terminal: asked, marked and reported."""

from companion.extras import extra

with extra("interview"):
    import rich  # noqa: F401
