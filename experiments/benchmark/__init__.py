"""Measures what the README claims: `python -m experiments.benchmark --help`."""
