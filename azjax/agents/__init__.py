"""Players: whatever chooses moves, as records of pure, batched functions over any `Game`."""

from azjax.agents.agent import (
    Agent,
    Decision,
    decide,
    network_agent,
    perfect_agent,
    random_agent,
    sampled,
    search_agent,
    tabulated,
)
from azjax.agents.anytime import anytime_agent
from azjax.agents.negamax import alpha_beta_agent, minimax_agent
from azjax.agents.persistent import (
    Memory,
    PersistentConfig,
    load_memory,
    persistent_agent,
    save_memory,
)

__all__ = [
    "Agent",
    "Decision",
    "Memory",
    "PersistentConfig",
    "alpha_beta_agent",
    "anytime_agent",
    "decide",
    "load_memory",
    "minimax_agent",
    "network_agent",
    "perfect_agent",
    "persistent_agent",
    "random_agent",
    "sampled",
    "save_memory",
    "search_agent",
    "tabulated",
]
