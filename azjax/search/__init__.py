"""Batched Monte Carlo tree search over any evaluator, on `mctx`.

`PUCT` is AlphaZero's search, `Gumbel` is Gumbel AlphaZero's, `UCT` is the classic one, which
knows no priors; whatever has the members of `Algorithm` is another. All see values in [-1, 1],
never an illegal action at any depth, and games that end inside the tree. `mctx` gives the tree
and Gumbel's selection; the walk through the tree is written here for games, which have no moves
after their end (`simulate.py`).
"""

from azjax.search.algorithm import (
    Algorithm,
    Engine,
    Roots,
    SearchResult,
    Selection,
    check_algorithm,
    make_result,
    visit_shares,
)
from azjax.search.bridge import MctxFns, mctx_fns
from azjax.search.gumbel import Gumbel
from azjax.search.make import Search, make_resumable, make_search
from azjax.search.puct import PUCT
from azjax.search.tree import NEVER, ROOT, Tree, legal_actions
from azjax.search.uct import UCT

ALGORITHMS = {"puct": PUCT, "gumbel": Gumbel, "uct": UCT}

__all__ = [
    "ALGORITHMS",
    "NEVER",
    "PUCT",
    "ROOT",
    "UCT",
    "Algorithm",
    "Engine",
    "Gumbel",
    "MctxFns",
    "Roots",
    "Search",
    "SearchResult",
    "Selection",
    "Tree",
    "check_algorithm",
    "legal_actions",
    "make_resumable",
    "make_result",
    "make_search",
    "mctx_fns",
    "visit_shares",
]
