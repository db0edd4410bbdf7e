"""Figures that work in a page, from disk, without a kernel and in Jupyter.

Each name is looked up when it is first used: the book is built, and the quiz is
shown, where neither torch nor matplotlib is installed.
"""

from importlib import import_module

HOME = {
    "Figure": "figure",
    "alignment_grid": "alignment",
    "beam_tree": "beam",
    "clinic": "clinic_cards",
    "data_flow": "flow",
    "depth_curves": "depth",
    "head_maps": "heads",
    "heatmap": "picture",
    "mask_builder": "maskbuilder",
    "noam_curve": "noam",
    "objectives": "objectives_tabs",
    "plot": "picture",
    "position_clocks": "clocks",
    "rotary_pair": "rotary",
    "run_doctor": "doctor",
    "sampling_bars": "sampling",
    "saturation": "saturation_scores",
    "score_matrix": "scores",
    "small_rnn": "unrolled",
    "source": "listing",
    "style": "picture",
    "unrolled_rnn": "unrolled",
    "warmup_curves": "warmup",
    "word_order": "order",
}
"""Public name -> the module it lives in."""

__all__ = sorted(HOME)


def __getattr__(name):
    if name not in HOME:
        raise AttributeError(f"companion.figures has no {name!r}")
    return getattr(import_module(f"{__name__}.{HOME[name]}"), name)


def __dir__():
    return sorted({*globals(), *HOME})
