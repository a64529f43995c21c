"""Trains a player: `python -m experiments.train` is `azjax train`."""

from azjax.cli import run_program

if __name__ == "__main__":
    run_program("azjax.cli.train")
