"""Plays matches and tournaments: `python -m experiments.arena` is `azjax arena`."""

from azjax.cli import run_program

if __name__ == "__main__":
    run_program("azjax.cli.arena")
