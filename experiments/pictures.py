"""Draws the pictures of the README and the guide from one run: `make pictures`."""

from azjax.cli import run_program

if __name__ == "__main__":
    run_program("experiments.pictures")

import dataclasses
import pathlib
import tempfile

from azjax.cli import console, custom, explain
from azjax.drawing import check_folder
from azjax.viz import animation
from azjax.viz.live import solve
from experiments.browser import open_browser

# For each part of the page: its address, the elements to click, and the width of the screen.
_SHOTS = {
    "explorer": ("board=X...O....&t=48", (), 1240),
    "play": ("", ("play-X", "cell 0", "cell 1", "thoughts", "truth"), 480),
}


@dataclasses.dataclass(frozen=True)
class Options:
    """Draws the animation of a run and the parts of its page, for the README and the guide."""

    out: pathlib.Path = pathlib.Path("docs")
    """Folder for the pictures; existing ones are replaced."""
    typed: custom.Option = custom.NOTHING


def draw(options: Options) -> int:
    """Draws the pictures; returns the exit status."""
    path = options.out / "animation.svg"
    check_folder(path)
    run_dir, player = custom.open_run(options.typed)
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
