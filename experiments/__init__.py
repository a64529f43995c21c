"""The programs, such as `python -m experiments.train`."""
