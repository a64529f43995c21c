"""Visualization: states, search trees, games, training curves and pages."""

from azjax.viz.pictures import draw_state, draw_states, draw_tree, sample_games

__all__ = ["draw_state", "draw_states", "draw_tree", "sample_games"]
