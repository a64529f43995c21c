"""Plays at the terminal: `python -m experiments.play` is `azjax play`."""

from azjax.cli import run

if __name__ == "__main__":
    run("azjax.cli.play")
