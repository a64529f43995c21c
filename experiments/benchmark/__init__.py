"""Measures the README's claims: `python -m experiments.benchmark --help`."""
