"""The questions in a terminal: asked, marked and reported."""
