"""Writes the playground, `docs/playground/index.html`; counts come from `proofs.json` next to it."""

import pathlib

from azjax.viz.playground import read_proofs, write_playground

FOLDER = pathlib.Path(__file__).parent / "playground"

if __name__ == "__main__":
    page = write_playground(FOLDER / "index.html", read_proofs(FOLDER / "proofs.json"))
    print(f"{page}: {page.stat().st_size:,} bytes")
