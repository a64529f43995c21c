"""Plays matches and tournaments: `python -m experiments.arena` is `azjax arena`."""

from azjax.cli import run

if __name__ == "__main__":
    run("azjax.cli.arena")
