"""The questions as HTML: in a chapter, on the bank page and in a notebook."""
