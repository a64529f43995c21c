"""Examines a trained network: `python -m experiments.verify` is `azjax verify`."""

from azjax.cli import run

if __name__ == "__main__":
    run("azjax.cli.verify")
