"""The page of a comparison: error against iterations, evaluations, moves and seconds."""

import pathlib
from collections.abc import Sequence

import numpy as np

from azjax.comparison import AXES, Comparison, Curves, Effect
from azjax.viz.chart import line_chart, side_by_side
from azjax.viz.page import Section, scrolling, table, write_page


def write_comparison(
    path: pathlib.Path, comparison: Comparison, effects: Sequence[Effect]
) -> pathlib.Path:
    """Writes a page with the curves of all settings and their effects; returns its path."""
    curves = comparison.curves
    charts = [_chart(axis, curves) for axis in AXES]
    seeds = len(curves[0].errors[0])
    intro = (
        f"Lines are medians of {seeds} seeds, and areas reach from the first to the third "
        "quartile. The error is the share of positions where the network, without search, gives up "
        "a win or a draw. A ratio below 1 means less than in the first setting. Its interval has "
        "95%, and p is corrected for the number of settings."
    )
    sections = [Section("Errors", intro, element=side_by_side(charts))]
    if effects:
        sections.append(Section("Effects", element=_table(curves, effects)))
    return write_page(path, f"Comparison of settings: {comparison.game}", sections)


def _chart(axis: str, curves: Sequence[Curves]):
    """Draws all settings over common points: those of every setting."""
    xs = sorted({x for one in curves for x in getattr(one, axis)})
    lines, bands = {}, {}
    for one in curves:
        own = getattr(one, axis)
        quartiles = np.quantile(100 * np.array(one.errors), [0.25, 0.5, 0.75], axis=1)
        rows = [np.interp(xs, own, row, left=np.nan, right=np.nan).tolist() for row in quartiles]
        bands[one.name], lines[one.name] = (rows[0], rows[2]), rows[1]
    return line_chart("error", xs, lines, log=True, unit="%", x_label=axis, bands=bands)


def _table(curves: Sequence[Curves], effects: Sequence[Effect]):
    rows = []
    for one, effect in zip(curves[1:], effects, strict=True):
        middle, low, high = effect.ratio
        cells = f"{middle:.2f}", f"{low:.2f} to {high:.2f}", f"{effect.p_value:.3f}"
        rows.append((one.name, *cells))
    return scrolling(table(rows, ("setting", f"ratio of {effects[0].measure}", "interval", "p")))
