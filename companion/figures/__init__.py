"""Figures that work in a page, from disk, without a kernel and in Jupyter.

A figure is a folder of ``gallery``, named as the function that makes it; what
several share is ``kit``, what needs a kernel ``live``.

Each name is looked up when it is first used: the book is built, and the quiz is
shown, where neither torch nor matplotlib is installed.
"""

from importlib import import_module

from companion.extras import extra

FIGURES = (
    "alignment_grid",
    "beam_tree",
    "clinic",
    "data_flow",
    "depth_curves",
    "head_maps",
    "mask_builder",
    "noam_curve",
    "objectives",
    "position_clocks",
    "rotary_pair",
    "run_doctor",
    "sampling_bars",
    "saturation",
    "score_matrix",
    "unrolled_rnn",
    "warmup_curves",
    "word_order",
)
HOME = {name: f"gallery.{name}" for name in FIGURES} | {
    "Figure": "kit.figure",
    "heatmap": "kit.picture",
    "plot": "kit.picture",
    "small_rnn": "gallery.unrolled_rnn",
    "source": "kit.listing",
    "style": "kit.picture",
}
"""Public name -> the module it lives in."""

__all__ = sorted(HOME)


def __getattr__(name):
    if name not in HOME:
        raise AttributeError(f"companion.figures has no {name!r}")
    with extra("figures"):
        return getattr(import_module(f"{__name__}.{HOME[name]}"), name)


def __dir__():
    return sorted({*globals(), *HOME})
