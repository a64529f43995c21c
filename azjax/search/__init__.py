"""Batched Monte Carlo tree search with any evaluator, built on `mctx`.

`PUCT` is AlphaZero's search, `Gumbel` that of Gumbel AlphaZero, and `UCT` the classic one without
priors. A custom algorithm is any object with the members of `Algorithm`. The three algorithms take
values in [-1, 1], never choose an illegal action at any depth, and handle games that end inside the
tree. The tree, Gumbel's selection below the root and its transform of Q come from `mctx`. The loop
is in `simulate.py`; unlike the loop of `mctx.search`, it does not search below finished games.
"""

from azjax.search.algorithm import (
    NEVER,
    ROOT,
    Algorithm,
    Roots,
    SearchResult,
    Selection,
    Tree,
    draw_by_visits,
    legal_actions,
    make_result,
    split_each,
    visit_shares,
)
from azjax.search.evaluators import network_evaluator, rollout_evaluator, uniform_evaluator
from azjax.search.gumbel import Gumbel
from azjax.search.make import make_search
from azjax.search.puct import PUCT, with_dirichlet
from azjax.search.reuse import reroot
from azjax.search.uct import UCT
from azjax.search.with_mctx import MctxPolicy, mctx_fns

ALGORITHMS = {"puct": PUCT, "gumbel": Gumbel, "uct": UCT}

__all__ = ["ALGORITHMS", "NEVER", "PUCT", "ROOT", "UCT", "Algorithm", "Gumbel", "MctxPolicy"]
__all__ += ["Roots", "SearchResult", "Selection", "Tree", "draw_by_visits", "legal_actions"]
__all__ += ["make_result", "make_search", "mctx_fns", "network_evaluator", "reroot"]
__all__ += ["rollout_evaluator", "split_each", "uniform_evaluator", "visit_shares"]
__all__ += ["with_dirichlet"]
