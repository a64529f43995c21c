"""Visualization: states, search trees, games, training curves, pages and widgets."""
