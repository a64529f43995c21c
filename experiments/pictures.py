"""Draws the pictures of the README and the guide, all of one run: `make pictures`."""

from azjax.cli import run_program

if __name__ == "__main__":
    run_program("experiments.pictures")

import dataclasses
import pathlib
import tempfile
from typing import Any

from azjax.cli import console, explain, own
from azjax.cli.browser import open_browser
from azjax.drawing import check_folder
from azjax.viz import atlas, film
from azjax.viz.live import solve

# What a part of the page shows, by its address; what is clicked there; and the screen's width.
_SHOTS = {
    "explorer": ("board=X...O....&t=48", (), 1240),
    "encoding": ("board=X...O....", (), 1000),
    "play": ("", ("play-X", "cell 0", "cell 1", "thoughts", "truth"), 480),
}


@dataclasses.dataclass(frozen=True)
class Options:
    """Draws the film of a run and the parts of its page, for the README and the guide."""

    out: pathlib.Path = pathlib.Path("docs")
    """The folder of the pictures; those that are there are replaced."""
    typed: own.Option = own.NOTHING


def draw(options: Options) -> int:
    """Draws them; returns the exit status."""
    check_folder(options.out / "film.svg")
    run_dir, player = own.open_run(options.typed)
    places = atlas.make_atlas(player.game, solve(player.game))
    film.film(places, *atlas.load_snapshots(run_dir)).save(options.out / "film.svg")
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        page = pathlib.Path(folder) / "explain.html"
        explain.explain(explain.Options(page, dataclasses.replace(options.typed, run_dir=run_dir)))
        for kind, shot in _SHOTS.items():
            _shoot(browser, page, kind, options.out / f"{kind}.png", *shot)
    print(f"pictures of {run_dir}: {options.out}")
    return 0


def _shoot(
    browser: Any,
    page: pathlib.Path,
    kind: str,
    path: pathlib.Path,
    address: str,
    clicks: tuple[str, ...],
    width: int,
) -> None:
    """Takes a picture of one part of the page."""
    tab = browser.new_page(
        viewport={"width": width, "height": 900}, reduced_motion="reduce", color_scheme="light"
    )
    tab.goto(f"{page.as_uri()}#{address}")
    part = tab.locator(f".az-component[data-kind={kind}]")
    for name in clicks:
        part.locator(f"[data-focus='{name}']").click()
        tab.wait_for_function(
            "e => e.getAnimations({subtree: true}).length === 0", arg=part.element_handle()
        )
    part.screenshot(path=path)
    tab.close()


main = console.make_main(draw, Options, "experiments.pictures", "the pictures are not all new")
