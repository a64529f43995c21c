"""Trains a player: `python -m experiments.train` is `azjax train`."""

from azjax.cli import run

if __name__ == "__main__":
    run("azjax.cli.train")
