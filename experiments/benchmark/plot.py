"""The picture of the scaling model."""

import pathlib
import textwrap

from experiments.benchmark.model import Point

_STYLES = {"weak": ("#0072B2", "o"), "strong": ("#D55E00", "s")}


def draw_scale(path: pathlib.Path, lines: dict[str, list[Point]], said: list[str]) -> None:
    """Draws games a second and efficiency over devices, with the assumptions as a caption.

    Args:
      path: `.png`, `.svg` or `.pdf`.
      lines: the model's points, by names such as `weak, ring`.
      said: the assumptions, in sentences.
    """
    import matplotlib  # An extra, and slow to import.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6.2))
    rates, shares = figure.subplots(1, 2)
    for name, points in lines.items():
        kind, way = name.split(", ")
        color, marker = _STYLES[kind]
        devices = [point.devices for point in points]
        style = {"color": color, "marker": marker, "markersize": 3, "label": name}
        style["linestyle"] = "-" if way == "ring" else "--"
        rates.loglog(devices, [point.games_per_second for point in points], **style)
        shares.semilogx(devices, [100 * point.efficiency for point in points], **style)
        if way == "ring":
            ideal = [n * points[0].games_per_second for n in devices]
            rates.loglog(devices, ideal, color=color, linewidth=0.6, linestyle=":")
    rates.set(title="games/s (dotted: ideal)", xlabel="devices")
    shares.set(title="parallel efficiency, %", xlabel="devices", ylim=(0, 105))
    for axes in (rates, shares):
        axes.set_xscale("log", base=2)
        axes.grid(alpha=0.3)
    rates.legend()
    figure.subplots_adjust(left=0.07, right=0.98, top=0.94, bottom=0.3)
    caption = "\n".join(textwrap.wrap(" ".join(line.strip() for line in said), 150))
    figure.text(0.02, 0.02, caption, fontsize=8, va="bottom")
    with matplotlib.rc_context({"svg.hashsalt": "azjax"}):
        figure.savefig(path, dpi=150)
