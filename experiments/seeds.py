"""Trains many players at once: `python -m experiments.seeds` is `azjax seeds`."""

from azjax.cli import run_program

if __name__ == "__main__":
    run_program("azjax.cli.seeds")
