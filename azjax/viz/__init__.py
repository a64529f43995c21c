"""Pictures: traces and trees of searches, the whole game at a glance, pages and widgets."""
