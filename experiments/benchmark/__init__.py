"""Measures speed and the time to a perfect player: `python -m experiments.benchmark --help`."""
