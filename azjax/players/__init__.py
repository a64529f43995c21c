"""Players as records of pure, batched functions over any `Game`."""

from azjax.players.agent import (
    Agent,
    Decision,
    anytime_agent,
    as_agent,
    decide,
    network_agent,
    perfect_agent,
    random_agent,
    search_agent,
)
from azjax.players.negamax import alpha_beta_agent, minimax_agent

__all__ = [
    "Agent",
    "Decision",
    "alpha_beta_agent",
    "anytime_agent",
    "as_agent",
    "decide",
    "minimax_agent",
    "network_agent",
    "perfect_agent",
    "random_agent",
    "search_agent",
]
