"""Visualization: states, search trees, games, training curves and pages."""
