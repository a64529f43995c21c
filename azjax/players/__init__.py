"""Players as records of pure, batched functions over any `Game`."""

from azjax.players.agent import (
    Agent,
    Decision,
    as_agent,
    decide,
    minimax_agent,
    network_agent,
    perfect_agent,
    random_agent,
    search_agent,
)

__all__ = ["Agent", "Decision", "as_agent", "decide", "minimax_agent"]
__all__ += ["network_agent", "perfect_agent", "random_agent", "search_agent"]
