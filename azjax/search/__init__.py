"""Batched Monte Carlo tree search over any evaluator, on `mctx`.

PUCT is AlphaZero's search, Gumbel is Gumbel AlphaZero's, UCT is the classic one, which knows
no priors. All see values in [-1, 1], never an illegal action at any depth, and games that end
inside the tree. `mctx` holds the tree; the walk through it is written here for games, which
have no moves after their end (`tree.py`).
"""

from azjax.search.gumbel import considered_visits
from azjax.search.make import Resumable, Search, make_resumable, make_search
from azjax.search.plan import SearchConfig, SearchResult
from azjax.search.puct import Terms, puct_action, puct_terms
from azjax.search.retrace import History, retrace
from azjax.search.uct import uct_action

__all__ = [
    "History",
    "Resumable",
    "Search",
    "SearchConfig",
    "SearchResult",
    "Terms",
    "considered_visits",
    "make_resumable",
    "make_search",
    "puct_action",
    "puct_terms",
    "retrace",
    "uct_action",
]
