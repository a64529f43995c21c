"""Draws the pictures of the README and the guide from one run: `make pictures`."""

from azjax.cli import run_program

if __name__ == "__main__":
    run_program("experiments.pictures")

import contextlib
import dataclasses
import importlib.util
import pathlib
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

from azjax._commands import command
from azjax._files import check_folder
from azjax.cli import console, custom, explain
from azjax.viz import animation
from azjax.viz.live import solve

# For each part of the page: its address, the elements to click, and the width of the screen.
_SHOTS = {
    "explorer": ("board=X...O....&t=48", (), 1240),
    "play": ("", ("play-X", "cell 0", "cell 1", "thoughts", "truth"), 480),
}

_CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
_QUIET = (  # Chromium runs as root, without a graphics card and without any dialog.
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


@contextlib.contextmanager
def open_browser() -> Iterator[Any]:
    """Starts Chromium and yields Playwright's `Browser`; closes it at the end.

    Raises:
      ValueError: if Chromium or Playwright is missing.
    """
    path = next(filter(None, map(shutil.which, _CHROMIUM)), None)
    if path is None:
        raise ValueError("Chromium is missing: install it (Debian: apt-get install chromium)")
    if importlib.util.find_spec("playwright") is None:
        raise ValueError(
            f"Playwright is missing: install it with {command('pip', 'install', 'playwright')}"
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_QUIET))
        try:
            yield browser
        finally:
            browser.close()


@dataclasses.dataclass(frozen=True)
class Options:
    """Draws the animation of a run and the parts of its page, for the README and the guide."""

    out: pathlib.Path = pathlib.Path("docs")
    """Folder for the pictures; existing ones are replaced."""
    typed: custom.OfPlayer = custom.PlayerOptions()


def draw(options: Options) -> int:
    """Draws the pictures; returns the exit status."""
    path = options.out / "animation.svg"
    check_folder(path)
    run_dir, player = custom.open_player(options.typed)
    animation.draw_run(run_dir, player.game, solve(player.game)).save(path)
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        page = pathlib.Path(folder) / "explain.html"
        typed = dataclasses.replace(options.typed, run_dir=run_dir)
        explain.explain(explain.Options(out=page, typed=typed))
        for kind, (address, clicks, width) in _SHOTS.items():
            tab = browser.new_page(
                viewport={"width": width, "height": 900},
                reduced_motion="reduce",
                color_scheme="light",
            )
            tab.goto(f"{page.as_uri()}#{address}")
            tab.add_style_tag(content=".az-contents { position: static }")  # Not over the part.
            part = tab.locator(f".az-component[data-kind={kind}]")
            for name in clicks:
                part.locator(f"[data-focus='{name}']").click()
                still = "e => e.getAnimations({subtree: true}).length === 0"
                tab.wait_for_function(still, arg=part.element_handle())
            part.screenshot(path=options.out / f"{kind}.png")
            tab.close()
    print(f"pictures of {run_dir}: {options.out}")
    return 0


main = console.make_main(draw, Options, "experiments.pictures", "some pictures may be old")
