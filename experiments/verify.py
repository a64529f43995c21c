"""Examines a trained network: `python -m experiments.verify` is `azjax verify`."""

from azjax.cli import run_program

if __name__ == "__main__":
    run_program("azjax.cli.verify")
