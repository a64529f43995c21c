"""Trains many players at once: `python -m experiments.seeds` is `azjax seeds`."""

from azjax.cli import run

if __name__ == "__main__":
    run("azjax.cli.seeds")
