"""Writes a page about a training run: `python -m experiments.report` is `azjax report`."""

from azjax.cli import run_program

if __name__ == "__main__":
    run_program("azjax.cli.report")
