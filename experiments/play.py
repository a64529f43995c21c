"""Plays at the terminal: `python -m experiments.play` is `azjax play`."""

from azjax.cli import run_program

if __name__ == "__main__":
    run_program("azjax.cli.play")
