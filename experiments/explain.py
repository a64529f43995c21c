"""Writes a page that explains a player: `python -m experiments.explain` is `azjax explain`."""

from azjax.cli import run_program

if __name__ == "__main__":
    run_program("azjax.cli.explain")
