"""Pictures: traces and trees of searches, the whole game at a glance, pages and widgets.

What draws itself needs no import from here: states, and search results.
"""
