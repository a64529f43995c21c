"""Writes a player to a file for JAX or ONNX: `python -m experiments.export` is `azjax export`."""

from azjax.cli import run_program

if __name__ == "__main__":
    run_program("azjax.cli.export")
