"""Writes the playground, `docs/playground/index.html`; `proofs.json` next to it has the counts."""

import pathlib

import azjax
from azjax.viz.playground import FIRST, pack_available, read_proofs, write_playground

FOLDER = pathlib.Path(__file__).parent / "playground"

if __name__ == "__main__":
    packed = pack_available(read_proofs(FOLDER / "proofs.json"))
    page = write_playground(FOLDER / "index.html", azjax.load(FIRST), packed)
    print(f"{page}: {page.stat().st_size:,} bytes")
