"""The programs: `python -m experiments.train`, `experiments.verify`, `experiments.benchmark`."""
