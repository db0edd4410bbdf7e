"""Figures that work in a page, from disk, without a kernel and in Jupyter.

A figure is a folder of ``gallery``, named as the function that makes it; what
several share is ``kit``, what needs a kernel ``live``.

Each name is looked up when it is first used: the book is built, and the quiz is
shown, where neither torch nor matplotlib is installed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from companion.extras import extra

if TYPE_CHECKING:
    from companion.figures.gallery.alignment_grid import alignment_grid
    from companion.figures.gallery.alignment_plane import alignment_plane
    from companion.figures.gallery.attention_flow import attention_flow
    from companion.figures.gallery.attention_pull import attention_pull
    from companion.figures.gallery.beam_tree import beam_tree
    from companion.figures.gallery.cache_growth import cache_growth
    from companion.figures.gallery.clinic import clinic
    from companion.figures.gallery.clock_rows import clock_rows
    from companion.figures.gallery.data_flow import data_flow
    from companion.figures.gallery.depth_curves import depth_curves
    from companion.figures.gallery.four_questions import four_questions
    from companion.figures.gallery.head_cut import head_cut
    from companion.figures.gallery.head_flow import head_flow
    from companion.figures.gallery.head_maps import head_maps
    from companion.figures.gallery.head_ties import head_ties
    from companion.figures.gallery.lstm_cell import lstm_cell
    from companion.figures.gallery.machine import machine
    from companion.figures.gallery.mask_builder import mask_builder
    from companion.figures.gallery.mask_grids import mask_grids
    from companion.figures.gallery.matrices import matrices
    from companion.figures.gallery.merge_steps import merge_steps
    from companion.figures.gallery.noam_curve import noam_curve
    from companion.figures.gallery.norm_grid import norm_grid
    from companion.figures.gallery.norm_places import norm_places
    from companion.figures.gallery.number_lines import number_lines
    from companion.figures.gallery.objectives import objectives
    from companion.figures.gallery.page_tables import page_tables
    from companion.figures.gallery.paths import paths
    from companion.figures.gallery.position_clocks import position_clocks
    from companion.figures.gallery.position_doors import position_doors
    from companion.figures.gallery.ravine import ravine
    from companion.figures.gallery.recurrence import recurrence
    from companion.figures.gallery.roofline import roofline
    from companion.figures.gallery.rotary_pair import rotary_pair
    from companion.figures.gallery.run_doctor import run_doctor
    from companion.figures.gallery.sampling_bars import sampling_bars
    from companion.figures.gallery.saturation import saturation
    from companion.figures.gallery.score_matrix import score_matrix
    from companion.figures.gallery.swapped_words import swapped_words
    from companion.figures.gallery.teacher_forcing import teacher_forcing
    from companion.figures.gallery.tile_sweep import tile_sweep
    from companion.figures.gallery.todays_block import todays_block
    from companion.figures.gallery.token_strips import token_strips
    from companion.figures.gallery.unrolled_rnn import small_rnn, unrolled_rnn
    from companion.figures.gallery.verdicts import verdicts
    from companion.figures.gallery.warmup_curves import warmup_curves
    from companion.figures.gallery.wirings import wirings
    from companion.figures.gallery.word_order import word_order
    from companion.figures.gallery.word_walks import word_walks
    from companion.figures.kit.figure import Figure
    from companion.figures.kit.listing import source
    from companion.figures.kit.picture import heatmap, plot, style

__all__ = [
    "Figure",
    "alignment_grid",
    "alignment_plane",
    "attention_flow",
    "attention_pull",
    "beam_tree",
    "cache_growth",
    "clinic",
    "clock_rows",
    "data_flow",
    "depth_curves",
    "four_questions",
    "head_cut",
    "head_flow",
    "head_maps",
    "head_ties",
    "heatmap",
    "lstm_cell",
    "machine",
    "mask_builder",
    "mask_grids",
    "matrices",
    "merge_steps",
    "noam_curve",
    "norm_grid",
    "norm_places",
    "number_lines",
    "objectives",
    "page_tables",
    "paths",
    "plot",
    "position_clocks",
    "position_doors",
    "ravine",
    "recurrence",
    "roofline",
    "rotary_pair",
    "run_doctor",
    "sampling_bars",
    "saturation",
    "score_matrix",
    "small_rnn",
    "source",
    "style",
    "swapped_words",
    "teacher_forcing",
    "tile_sweep",
    "todays_block",
    "token_strips",
    "unrolled_rnn",
    "verdicts",
    "warmup_curves",
    "wirings",
    "word_order",
    "word_walks",
]
# What is no figure, or stands in the folder of another.
_ELSEWHERE = {
    "Figure": "kit.figure",
    "heatmap": "kit.picture",
    "plot": "kit.picture",
    "small_rnn": "gallery.unrolled_rnn",
    "source": "kit.listing",
    "style": "kit.picture",
}
FIGURES = tuple(name for name in __all__ if name not in _ELSEWHERE)
"""The figures; each is a function, and a folder of ``gallery``."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"companion.figures has no {name!r}")
    module = _ELSEWHERE.get(name, f"gallery.{name}")
    with extra("figures"):
        return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
