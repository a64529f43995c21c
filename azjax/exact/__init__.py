"""Exact players: exhaustive play in one seat, repair, and override tables."""
