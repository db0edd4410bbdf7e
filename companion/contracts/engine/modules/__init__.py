"""Modules: what is inside, and whether each weight takes part."""
