"""Writes the playground, `docs/playground/index.html`, and the page about a training next to it.

`proofs.json` in that folder has the results of exhaustive play.
"""

import pathlib
import tempfile

import azjax
from azjax.cli import explain
from azjax.cli.custom import Typed
from azjax.viz.playground import FIRST, TRAINING, pack_available, read_proofs, write_playground

FOLDER = pathlib.Path(__file__).parent / "playground"


def write_training() -> None:
    """Trains tic-tac-toe until the player is perfect, and writes the page about this run."""
    with tempfile.TemporaryDirectory() as folder:
        run_dir = pathlib.Path(folder, "tic_tac_toe")
        azjax.train("tic_tac_toe", run_dir, report=False)
        explain.explain(explain.Options(out=FOLDER / TRAINING, typed=Typed(run_dir)))


if __name__ == "__main__":
    write_training()
    packed = pack_available(read_proofs(FOLDER / "proofs.json"))
    page = write_playground(FOLDER / "index.html", azjax.load(FIRST), packed)
    print(f"{page}: {page.stat().st_size:,} bytes")
