"""Batched Monte Carlo tree search with any evaluator, built on `mctx`.

`PUCT` is AlphaZero's search, `Gumbel` that of Gumbel AlphaZero, and `UCT` the classic one without
priors. `MctxGumbel` and `MctxMuZero` are mctx's own policies. A custom algorithm is any object with
the members of `Algorithm`. The tree, Gumbel's selection below the root and its transform of Q come
from `mctx`. The loop is `simulate.grow`; unlike the loop of `mctx.search`, it does not search below
finished games. `paths.grow` is its form for GPUs.
"""

from azjax.search import paths, simulate
from azjax.search.algorithm import (
    NEVER,
    ROOT,
    UNVISITED,
    Algorithm,
    Expansion,
    Roots,
    SearchResult,
    Selection,
    Tree,
    draw_by_visits,
    legal_actions,
    make_result,
    next_outcome,
    split_each,
    visit_shares,
)
from azjax.search.evaluators import (
    Evaluator,
    network_evaluator,
    rollout_evaluator,
    uniform_evaluator,
)
from azjax.search.gumbel import Gumbel
from azjax.search.make import make_search, search_roots
from azjax.search.puct import PUCT, with_dirichlet
from azjax.search.uct import UCT
from azjax.search.with_mctx import MctxGumbel, MctxMuZero, MctxPolicy, mctx_fns

_ALL = (PUCT, Gumbel, UCT, MctxGumbel, MctxMuZero)
ALGORITHMS = {algorithm.algorithm: algorithm for algorithm in _ALL}

__all__ = ["ALGORITHMS", "Algorithm", "Evaluator", "Expansion", "Gumbel", "MctxGumbel"]
__all__ += ["MctxMuZero", "MctxPolicy", "NEVER", "PUCT", "ROOT", "Roots", "SearchResult"]
__all__ += ["Selection", "Tree", "UCT", "UNVISITED", "draw_by_visits", "legal_actions"]
__all__ += ["make_result", "make_search", "mctx_fns", "network_evaluator", "next_outcome", "paths"]
__all__ += ["rollout_evaluator", "search_roots", "simulate", "split_each", "uniform_evaluator"]
__all__ += ["visit_shares", "with_dirichlet"]
