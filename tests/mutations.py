"""Deliberate mistakes in the code, to check that the tests notice them. Run by hand, not by pytest.

    python tests/mutations.py               # all of them, two at a time
    python tests/mutations.py gumbel keys   # those whose name or tests contain one of these words

Each mistake replaces a text in one file of a copy of the tree; at least one of its tests must fail.
Name a single quick test. The output shows which test noticed a mistake, and its CPU seconds.
`tests/programs/test_mutations.py` checks that all texts and tests exist.
"""

import argparse
import ast
import graphlib
import importlib
import multiprocessing
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import traceback
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parent.parent


class Mutation(NamedTuple):
    """A mistake.

    Attributes:
      name: its area and what goes wrong.
      file: the file to change.
      old: the text to replace, which occurs exactly once.
      new: the replacement.
      tests: test files or single tests, of which at least one must fail.
    """

    name: str
    file: str
    old: str
    new: str
    tests: str


MUTATIONS = [
    # Searches.
    Mutation(
        "search: an action is legal if its logit is not low",
        "azjax/search/tree.py",
        "children_prior_logits[node] != NEVER",
        "children_prior_logits[node] > NEVER",
        "tests/search/test_search.py::test_no_evaluator_makes_a_search_play_an_illegal_action",
    ),
    Mutation(
        "search: logits of legal actions may be -inf",
        "azjax/search/tree.py",
        "clipped = jnp.clip(logits.astype(jnp.float32), -_LARGEST, _LARGEST)",
        "clipped = logits.astype(jnp.float32)",
        "tests/search/test_search.py::test_a_logit_of_minus_infinity_is_a_prior_of_almost_zero",
    ),
    Mutation(
        "search: with NaN values Gumbel plays action 0",
        "azjax/search/gumbel.py",
        "jnp.where(legal[action], action, jnp.argmax(legal))",
        "jnp.where(True, action, jnp.argmax(legal))",
        "tests/search/test_search.py::test_no_evaluator_makes_a_search_play_an_illegal_action",
    ),
    Mutation(
        "search: with NaN values UCT plays action 0",
        "azjax/search/uct.py",
        "score = jnp.where(jnp.isnan(score), jnp.inf, score)",
        "score = jnp.where(jnp.isnan(score), -jnp.inf, score)",
        "tests/search/test_search.py::test_no_evaluator_makes_a_search_play_an_illegal_action",
    ),
    Mutation(
        "search: the random order in which UCT tries actions has ties",
        "azjax/search/uct.py",
        "first = jnp.argmax(jnp.where(untried, order, -jnp.inf))",
        "first = jnp.argmax(jnp.where(untried, 1e6 + order, -jnp.inf))",
        "tests/search/test_uct.py::test_untried_actions_are_tried_in_uniformly_random_order",
    ),
    Mutation(
        "search: all positions of a batch use the first one's key below the root",
        "azjax/search/make.py",
        "jax.vmap(jax.random.fold_in, (0, None))(simulator.keys, i)",
        "jax.vmap(jax.random.fold_in, (0, None))("
        "simulator.keys[:1].repeat(len(simulator.keys)), i)",
        "tests/search/test_search.py::test_a_result_does_not_depend_on_the_batch_around_it",
    ),
    Mutation(
        "search: all positions of a batch try actions in the first one's order",
        "azjax/search/uct.py",
        "        keys_order, keys_action = split_each(roots.keys)\n",
        "        keys_order, keys_action = split_each(roots.keys)\n"
        "        keys_order = keys_order[:1].repeat(len(keys_order))\n",
        "tests/search/test_search.py::test_a_result_does_not_depend_on_the_batch_around_it",
    ),
    Mutation(
        "search: a truncated random game counts as a draw",
        "azjax/search/evaluators.py",
        "jnp.where(jax.vmap(game.is_over)(states), total, jnp.nan)",
        "total",
        "tests/search/test_evaluators.py::test_a_rollout_that_max_plies_cuts_off_has_no_value",
    ),
    Mutation(
        "search: NaN of a network is ignored",
        "azjax/runs/player.py",
        "jnp.isnan(tree.raw_values) | jnp.any(jnp.isnan(tree.children_prior_logits), -1)",
        "jnp.zeros(tree.raw_values.shape, bool)",
        "tests/test_api.py::test_a_network_that_returns_nan_is_named",
    ),
    Mutation(
        "modes: a quantized network needs the promotion of ranks",
        "azjax/networks/quantized.py",
        "* factor[None])",
        "* factor)",
        "tests/training/test_modes.py::test_every_package_works",
    ),
    # Games.
    Mutation(
        "games: discs are flipped without a disc at the other end",
        "azjax/games/othello.py",
        "jnp.where(is_held, runs, 0)",
        "runs",
        "tests/games/test_games.py",
    ),
    Mutation(
        "games: pgx's reward goes to the next player",
        "azjax/games/from_pgx.py",
        "reward = after.rewards[state.current_player]",
        "reward = after.rewards[after.current_player]",
        "tests/games/test_pgx.py",
    ),
    Mutation(
        "lines: symmetric copies get the untransformed move",
        "azjax/proof/moves.py",
        "transformed = symmetries[:, actions]",
        "transformed = symmetries[:1].repeat(len(symmetries), axis=0)[:, actions]",
        "tests/proof/test_exhaustive.py",
    ),
    Mutation(
        "games: half of a hash identifies a position",
        "azjax/games/hashing.py",
        "== second[:, None]",
        "== jnp.asarray(high)[candidates]",
        "tests/games/test_hashing.py",
    ),
    Mutation(
        "verification: a larger game is verified in every iteration",
        "azjax/proof/callbacks.py",
        "is_last or loop.iteration % self.every == 0)",
        "True)",
        "tests/proof/test_callbacks.py",
    ),
    Mutation(
        "certificate: positions are not evaluated in slices",
        "azjax/proof/certificate.py",
        "(states,), size, advance",
        "(states,), len(solution.decisions), advance",
        "tests/proof/test_certificate.py",
    ),
    # Exhaustive play and repair.
    Mutation(
        "lines: the opponent plays the policy of the player",
        "azjax/proof/moves.py",
        "is_player = player == seat",
        "is_player = player == player",
        "tests/proof/test_exhaustive.py",
    ),
    Mutation(
        "repair: the worst mistake of a game is repaired, not the last",
        "azjax/proof/repair.py",
        "if most > _CLEARLY:",
        "if False:",
        "tests/proof/test_repair.py",
    ),
    Mutation(
        "repair: results after a move do not lower its value",
        "azjax/proof/repair.py",
        "self.expected[action] = min(self.expected[action], value)",
        "self.expected[action] = min(self.expected[action], 1.0)",
        "tests/proof/test_repair.py",
    ),
    Mutation(
        "repair: a position counts as lost before every move is refuted",
        "azjax/proof/repair.py",
        "return not (self.legal & ~self.refuted).any()",
        "return self.refuted.any()",
        "tests/proof/test_repair.py",
    ),
    Mutation(
        "repair: refuted moves are not transformed for symmetric copies",
        "azjax/proof/repair.py",
        "np.stack(refuted)[:, np.argsort(each)] for each",
        "np.stack(refuted) for each",
        "tests/proof/test_repair.py",
    ),
    Mutation(
        "repair: symmetric copies keep the losing move",
        "azjax/proof/repair.py",
        "symmetries = action_symmetries(game, symmetric)\n",
        "symmetries = action_symmetries(game, False)\n",
        "tests/proof/test_repair.py",
    ),
    Mutation(
        "repair: an override table is used in all positions",
        "azjax/proof/overrides.py",
        "action = jnp.where(is_in_table, ",
        "action = jnp.where(is_in_table | True, ",
        "tests/proof/test_overrides.py",
    ),
    Mutation(
        "repair: symmetry violations are not repaired",
        "azjax/proof/repair.py",
        "moves, nothing, action_symmetries(game, True))",
        "moves, nothing, action_symmetries(game, False))",
        "tests/proof/test_repair.py",
    ),
    Mutation(
        "lines: the move of any symmetric copy is right in all of them",
        "azjax/proof/moves.py",
        "is_same_move[:, one] |= is_same & (",
        "is_same_move[:, one] |= (",
        "tests/proof/test_exhaustive.py",
    ),
    Mutation(
        "proof: symmetric copies count as proved without comparison",
        "azjax/proof/seat.py",
        "if symmetric and not is_exact and not last.ends.moves[2] and not last.sampled:",
        "if False:",
        "tests/programs/test_players.py::test_symmetry_is_checked_before_a_proof",
    ),
    Mutation(
        "lines: moves of searches are not compared in symmetric copies if the network is exact",
        "azjax/proof/seat.py",
        "is_exact = network.exact and not self.simulations and not len(table.actions)",
        "is_exact = True",
        "tests/programs/test_players.py::test_symmetry_is_checked_before_a_proof",
    ),
    Mutation(
        "lines: a sampled position represents one game",
        "azjax/proof/sampling.py",
        'drawn["group"], drawn["games"] = group, between',
        'drawn["group"], drawn["games"] = group, 1',
        "tests/proof/test_exhaustive.py",
    ),
    Mutation(
        "lines: positions with equal hashes are merged",
        "azjax/games/rows.py",
        "same = equal_neighbors(words)\n    if",
        "same = equal_neighbors([hashed])\n    if",
        "tests/games/test_rows.py",
    ),
    Mutation(
        "lines: a part counts as done before its children are written",
        "azjax/proof/exhaustive.py",
        """            ply_files.save(children[number], after)
            ply_files.save(paths[number], **ends)
""",
        """            ply_files.save(paths[number], **ends)
            ply_files.save(children[number], after)
""",
        "tests/proof/test_ply_files.py",
    ),
    Mutation(
        "lines: children are deleted before the next ply is written",
        "azjax/proof/ply_files.py",
        "    write_ply(ply_path(folder, ply + 1), merged, most)\n",
        """    merged = list(merged)
    for path in here.glob("children-*.npy"):
        path.unlink()
    write_ply(ply_path(folder, ply + 1), merged, most)
""",
        "tests/proof/test_ply_files.py",
    ),
    Mutation(
        "lines: children stay if the exploration was killed before their deletion",
        "azjax/proof/exhaustive.py",
        """            ply_files.gather(folder, ply, most, part_size)
        for path in ply_folder.glob("children-*.npy"):
            path.unlink()
""",
        """            ply_files.gather(folder, ply, most, part_size)
            for path in ply_folder.glob("children-*.npy"):
                path.unlink()
""",
        "tests/proof/test_ply_files.py",
    ),
    Mutation(
        "lines: a ply is written in place",
        "azjax/proof/ply_files.py",
        """    temporary = ply_folder.with_suffix(".tmp")
""",
        """    temporary = ply_folder
""",
        "tests/proof/test_ply_files.py",
    ),
    Mutation(
        "lines: a file is written in place",
        "azjax/proof/ply_files.py",
        "    with replacing(path) as temporary:\n        temporary.write_bytes(",
        "    if True:\n        path.write_bytes(",
        "tests/proof/test_ply_files.py",
    ),
    Mutation(
        "lines: an explored ply does not shrink on disk",
        "azjax/proof/ply_files.py",
        'repack_fields(np.array(load(path))[["parent", "action"]])',
        'np.array(load(path))[["parent", "action"]]',
        "tests/proof/test_exhaustive.py::test_a_ply_that_was_explored_takes_little_space",
    ),
    Mutation(
        "lines: parts without a sampled position are kept",
        "azjax/proof/ply_files.py",
        "for part in (part for part in parts if len(part)):",
        "for part in parts:",
        "tests/proof/test_exhaustive.py::test_no_size_of_parts_is_too_small_for_a_sample",
    ),
    Mutation(
        "lines: an illegal move of the player is made",
        "azjax/proof/moves.py",
        "        if not is_legal.all():\n            row = is_legal.argmin()",
        "        if False:\n            row = is_legal.argmin()",
        "tests/proof/test_moves.py::test_an_illegal_move_in_a_symmetric_copy_is_refused",
    ),
    Mutation(
        "lines: an endless game is explored without end",
        "azjax/proof/exhaustive.py",
        "if ply + shortest >= game.max_plies:",
        "if ply > 9:",
        "tests/proof/test_exhaustive.py::test_a_game_that_lasts_too_long_is_refused",
    ),
    Mutation(
        "lines: illegal moves are replayed",
        "azjax/proof/lines.py",
        "return after, (ply >= count) | is_legal",
        "return after, (ply >= 0) | is_legal",
        "tests/proof/test_lines.py::test_only_legal_moves_are_replayed",
    ),
    Mutation(
        "lines: positions of a part are not merged",
        "azjax/proof/moves.py",
        "return merge(children), {",
        "return children, {",
        "tests/proof/test_exhaustive.py::test_exhaustive_play_equals_the_reference",
    ),
    Mutation(
        "lines: positions of different parts are not merged",
        "azjax/proof/ply_files.py",
        "lambda bucket: merge(np.concatenate(bucket))",
        "lambda bucket: np.concatenate(bucket)",
        "tests/proof/test_exhaustive.py::test_exhaustive_play_equals_the_reference",
    ),
    Mutation(
        "lines: the opponent's positions count as decisions",
        "azjax/proof/moves.py",
        '"decisions": moves.is_player.sum()',
        '"decisions": len(moves.is_player)',
        "tests/proof/test_exhaustive.py::test_exhaustive_play_equals_the_reference",
    ),
    Mutation(
        "lines: each sample has as many positions as all together may have",
        "azjax/proof/sampling.py",
        "totals[0] > 0, most // GROUPS",
        "totals[0] > 0, most",
        "tests/proof/test_sampling.py",
    ),
    Mutation(
        "lines: as many positions as allowed are a sample",
        "azjax/proof/ply_files.py",
        "sum(map(len, whole)) > most:",
        "sum(map(len, whole)) >= most:",
        "tests/proof/test_sampling.py::test_exactly_the_allowed_number_of_positions_is_not_sampled",
    ),
    Mutation(
        "lines: the samples share their positions",
        "azjax/proof/sampling.py",
        "np.random.default_rng(seed).random(GROUPS), np",
        "np.random.default_rng(seed).random(1).repeat(GROUPS), np",
        "tests/proof/test_sampling.py",
    ),
    Mutation(
        "lines: the samples of all plies share one seed",
        "azjax/proof/ply_files.py",
        "make_sampler(whole, most, int(ply_folder.name))",
        "make_sampler(whole, most, 0)",
        "tests/proof/test_sampling.py",
    ),
    Mutation(
        "lines: the seed of a sample has no effect",
        "azjax/proof/sampling.py",
        "np.random.default_rng(seed).random(GROUPS), np",
        "np.random.default_rng(0).random(GROUPS), np",
        "tests/proof/test_sampling.py",
    ),
    Mutation(
        "lines: positions are sampled without their weights",
        "azjax/proof/sampling.py",
        'passed[group - 1] + np.cumsum(mine["games"])',
        'passed[group - 1] + np.cumsum(np.full(len(mine), mine["games"].mean()))',
        "tests/proof/test_sampling.py",
    ),
    Mutation(
        "lines: sampling restarts with every part",
        "azjax/proof/sampling.py",
        "        passed[group - 1] = reached[-1]\n",
        "",
        "tests/proof/test_sampling.py",
    ),
    Mutation(
        "lines: intervals are four times too narrow",
        "azjax/proof/sampling.py",
        "shares.std(ddof=1) / np.sqrt(GROUPS)",
        "shares.std(ddof=1) / GROUPS",
        "tests/proof/test_sampling.py",
    ),
    Mutation(
        "lines: the interval has 90% instead of 95%",
        "azjax/proof/sampling.py",
        "stats.t.ppf((1 + confidence) / 2, GROUPS - 1)",
        "stats.t.ppf(confidence, GROUPS - 1)",
        "tests/proof/test_sampling.py",
    ),
    Mutation(
        "lines: the games of all samples are added",
        "azjax/proof/sampling.py",
        "games = self.games[:1] + self.games[1:]",
        "games = self.games[:1] + self.games[1:].sum(axis=0)",
        "tests/proof/test_sampling.py",
    ),
    Mutation(
        "lines: the shares of won and lost games are swapped",
        "azjax/proof/sampling.py",
        "estimate = games[:, column].mean()",
        "estimate = games[:, 2 - column].mean()",
        "tests/proof/test_sampling.py",
    ),
    Mutation(
        "lines: a start is not transformed for symmetric copies",
        "azjax/proof/ply_files.py",
        "played = [[tuple(symmetry[list(line)]) for line in starts] for symmetry in symmetries]",
        "played = [[tuple(line) for line in starts] for symmetry in symmetries]",
        "tests/proof/test_exhaustive.py::test_symmetric_copies_are_explored_as_the_reference_does",
    ),
    Mutation(
        "lines: symmetry violations are stored for the first part only",
        "azjax/proof/moves.py",
        '"unlike": moves.violations + (offset, 0)}',
        '"unlike": moves.violations[: None if not offset else 0] + (offset, 0)}',
        "tests/proof/test_exhaustive.py::test_a_broken_symmetry_is_found_in_every_part",
    ),
    Mutation(
        "lines: lost games are stored only from the first ends",
        "azjax/proof/moves.py",
        "np.stack([ended + offset, last], axis=1)[columns == 2][:_LOST]",
        "np.stack([ended + offset, last], axis=1)[:_LOST][columns[:_LOST] == 2]",
        "tests/proof/test_exhaustive.py::test_each_part_keeps_as_many_lost_games_as_it_may",
    ),
    Mutation(
        "lines: files of an interrupted ply are kept",
        "azjax/proof/ply_files.py",
        """    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
""",
        """    temporary.mkdir(exist_ok=True)
""",
        "tests/proof/test_ply_files.py",
    ),
    Mutation(
        "lines: a sample is drawn after its ply is renamed",
        "azjax/proof/ply_files.py",
        "        draw = make_sampler",
        "        temporary = temporary.rename(ply_folder)\n        draw = make_sampler",
        "tests/proof/test_ply_files.py",
    ),
    Mutation(
        "lines: all parts of a ply are in memory",
        "azjax/proof/ply_files.py",
        "            if len(waiting) == _WORKERS:",
        "            if False:",
        "tests/proof/test_ply_files.py::test_few_parts_are_in_memory_at_a_time",
    ),
    Mutation(
        "lines: a position that is drawn twice is explored twice",
        "azjax/proof/sampling.py",
        """    return lambda rows: merge(
        np.concatenate([draw_one""",
        """    return lambda rows: (
        np.concatenate([draw_one""",
        "tests/proof/test_sampling.py",
    ),
    Mutation(
        "lines: files of the same content can be exchanged",
        "azjax/proof/ply_files.py",
        'f"{path.parent.stem}/{path.name}".encode() + content',
        "content",
        "tests/proof/test_ply_files.py::test_no_damage_changes_a_result",
    ),
    Mutation(
        "lines: an exploration resumes with other settings",
        "azjax/proof/ply_files.py",
        "_read_json(folder / name)) != given:",
        "_read_json(folder / name)) == 0:",
        "tests/proof/test_exhaustive.py::test_a_folder_with_other_settings_is_refused",
    ),
    Mutation(
        "lines: positions without legal moves are dropped silently",
        "azjax/proof/moves.py",
        "    if not has_move.all():",
        "    if False:",
        "tests/proof/test_moves.py::test_a_position_without_a_legal_move_that_is_not_over_is_refused",
    ),
    Mutation(
        "lines: one action is used for all positions",
        "azjax/proof/moves.py",
        """    if chosen.shape != (copies.shape[0] * copies.shape[1],):
""",
        """    chosen = np.resize(chosen, copies.shape[0] * copies.shape[1])
    if False:
""",
        "tests/proof/test_moves.py::test_a_player_must_return_one_action_for_each_position",
    ),
    Mutation(
        "rows: zero rows give no batch",
        "azjax/games/rows.py",
        "    if not count:\n",
        "    if False:\n",
        "tests/games/test_rows.py::test_any_number_of_rows_is_processed_in_batches",
    ),
    Mutation(
        "solver: an endless game is enumerated without end",
        "azjax/games/solver.py",
        "if len(layers) > game.max_plies:",
        "if len(layers) > 99:",
        "tests/games/test_solver.py::test_a_game_that_exceeds_its_limits_is_not_enumerated",
    ),
    Mutation(
        "solver: a game may exceed its most_positions",
        "azjax/games/solver.py",
        "if offset > most:",
        "if size > most:",
        "tests/games/test_solver.py::test_a_game_that_exceeds_its_limits_is_not_enumerated",
    ),
    Mutation(
        "proof: a sample without a lost game is called unbeatable",
        "azjax/proof/seat.py",
        "not (last.sampled or last.breaks_symmetry",
        "not (last.breaks_symmetry",
        "tests/programs/test_unbeatable.py::test_a_sample_proves_nothing",
    ),
    Mutation(
        "proof: the exit status ignores the positions left out",
        "azjax/cli/lines.py",
        "return 0 if proof.is_proof else 1",
        "return 1 if proof.lost else 0",
        "tests/programs/test_unbeatable.py::test_a_sample_proves_nothing",
    ),
    Mutation(
        "proof: JSON hides that positions were left out",
        "azjax/cli/lines.py",
        '"sampled": last.sampled,',
        '"sampled": False,',
        "tests/programs/test_unbeatable.py::test_a_sample_proves_nothing",
    ),
    Mutation(
        "proof: only samples with a lost game count as samples",
        "azjax/proof/exhaustive.py",
        "bool(ends.games[1:].any())",
        "bool(ends.games[1:, 2].any())",
        "tests/programs/test_unbeatable.py::test_a_sample_proves_nothing",
    ),
    Mutation(
        "proof: a sample on disk is read as the whole exploration",
        "azjax/proof/seat.py",
        '(f"-{most}" if most else "")',
        '""',
        "tests/programs/test_unbeatable.py::test_a_sample_proves_nothing",
    ),
    Mutation(
        "proof: both seats share an exploration",
        "azjax/proof/overrides.py",
        'f"{iteration}-{seat_name}-{simulations}{TABLE_SUFFIX}"',
        'f"{iteration}-{simulations}{TABLE_SUFFIX}"',
        "tests/programs/test_unbeatable.py::test_a_player_never_resumes_the_exploration_of_another",
    ),
    Mutation(
        "proof: a search resumes the exploration of the network alone",
        "azjax/proof/overrides.py",
        'f"{iteration}-{seat_name}-{simulations}{TABLE_SUFFIX}"',
        'f"{iteration}-{seat_name}{TABLE_SUFFIX}"',
        "tests/programs/test_unbeatable.py::test_a_player_never_resumes_the_exploration_of_another",
    ),
    Mutation(
        "proof: a network resumes the exploration of another one",
        "azjax/proof/seat.py",
        "jax.tree.leaves((player.params, *moves))",
        "jax.tree.leaves(moves)",
        "tests/programs/test_unbeatable.py::test_a_player_never_resumes_the_exploration_of_another",
    ),
    Mutation(
        "proof: an override table resumes the exploration of another one",
        "azjax/proof/seat.py",
        "moves = player.overrides, table.states, table.actions",
        "moves = player.overrides, table.states",
        "tests/programs/test_unbeatable.py::test_an_override_table_is_used_only_with_repair_rounds",
    ),
    Mutation(
        "proof: the exploration of all symmetric copies is ignored",
        "azjax/proof/seat.py",
        '(folder, last), symmetric = explore("-copies"), False',
        '(folder, _), symmetric = explore("-copies"), False',
        "tests/programs/test_unbeatable.py::test_a_move_that_breaks_symmetry_in_one_position_counts",
    ),
    Mutation(
        "proof: a random search is accepted",
        "azjax/proof/deciding.py",
        "if not search.is_deterministic:",
        "if False:",
        "tests/programs/test_unbeatable.py::test_a_random_search_is_refused",
    ),
    Mutation(
        "proof: an override table is used without repair rounds",
        "azjax/proof/seat.py",
        "if rounds and path.exists():",
        "if path.exists():",
        "tests/programs/test_unbeatable.py::test_an_override_table_is_used_only_with_repair_rounds",
    ),
    Mutation(
        "proof: the result names the next override table instead of the explored one",
        "azjax/proof/seat.py",
        "                return proof  # Every first move is refuted",
        "                return proof._replace(table=better)  # Every first move is refuted",
        "tests/programs/test_unbeatable.py::test_a_seat_that_cannot_be_saved_stays_lost",
    ),
    Mutation(
        "proof: symmetry violations are read from the first part only",
        "azjax/proof/exhaustive.py",
        'bool(len(file["unlike"]))',
        '(path.stem == "ends-000000" and bool(len(file["unlike"])))',
        "tests/proof/test_exhaustive_symmetry.py::test_every_part_is_searched_for_broken_symmetry",
    ),
    Mutation(
        "lines: the last reply is forgotten at later plies",
        "azjax/proof/exhaustive.py",
        "            rows, moves = chosen\n",
        """            rows, moves = chosen
            if int(ply_folder.name) > 4:
                has_others = moves.played.sum(axis=1) > 1
                moves.played[~moves.is_player & has_others, -1] = False
""",
        "tests/proof/test_exhaustive.py",
    ),
    Mutation(
        "lines: a draw counts as a win",
        "azjax/proof/moves.py",
        "columns = (1 - rewards * signs).astype(int)[over]",
        "columns = np.where(rewards, 1 - rewards * signs, 0).astype(int)[over]",
        "tests/proof/test_exhaustive.py::test_exhaustive_play_equals_the_reference",
    ),
    Mutation(
        "lines: a game may last one ply longer than its max_plies",
        "azjax/proof/exhaustive.py",
        "if ply + shortest >= game.max_plies:",
        "if ply + shortest > game.max_plies:",
        "tests/proof/test_exhaustive.py::test_a_game_that_lasts_too_long_is_refused",
    ),
    Mutation(
        "lines: an exploration that compared no copies resumes as one that did",
        "azjax/proof/exhaustive.py",
        '"compare": bool(compare),',
        '"compare": False,',
        "tests/proof/test_exhaustive.py::test_a_folder_with_other_settings_is_refused",
    ),
    Mutation(
        "lines: an illegal move is reported for another position",
        "azjax/proof/moves.py",
        "lambda row: line_to(places[row])",
        "line_to",
        "tests/proof/test_moves.py::test_an_illegal_move_is_reported_with_its_own_position",
    ),
    Mutation(
        "repair: an override is used when the other player is to move",
        "azjax/proof/overrides.py",
        "jnp.all(contents(states, axes=1) == in_table[row], axis=1)",
        "jnp.all((contents(states, axes=1) == in_table[row])[:, :-2], axis=1)",
        "tests/proof/test_overrides.py::test_only_the_whole_state_identifies_a_position",
    ),
    Mutation(
        "proof: a network resumes the exploration of one with another encoding",
        "azjax/proof/seat.py",
        "network.encoding, network.symmetric",
        "network.symmetric",
        "tests/proof/test_seat.py::test_everything_that_determines_the_moves_is_in_the_digest",
    ),
    Mutation(
        "proof: an override table resumes the exploration of one with other positions",
        "azjax/proof/seat.py",
        "moves = player.overrides, table.states, table.actions",
        "moves = player.overrides, table.actions",
        "tests/proof/test_seat.py::test_everything_that_determines_the_moves_is_in_the_digest",
    ),
    Mutation(
        "proof: explorations of other players are deleted",
        "azjax/proof/seat.py",
        'glob(f"{name}-overrides-*")',
        'glob("*-overrides-*")',
        "tests/proof/test_seat.py::"
        "test_an_exploration_of_an_earlier_table_is_deleted_and_others_stay",
    ),
    Mutation(
        "proof: an exploration that found broken symmetry is a proof",
        "azjax/proof/seat.py",
        "last.sampled or last.breaks_symmetry",
        "last.sampled",
        "tests/proof/test_seat.py::test_a_proof_needs_all_games_in_all_copies_without_a_loss",
    ),
    Mutation(
        "repair: the best move may be a refuted one",
        "azjax/proof/repair.py",
        "left = np.where(self.legal & ~self.refuted, self.expected",
        "left = np.where(self.legal, self.expected",
        "tests/proof/test_repair.py::test_the_best_move_is_not_a_refuted_one",
    ),
    Mutation(
        "repair: of equal mistakes the first is repaired",
        "azjax/proof/repair.py",
        "and gain > most:",
        "and gain >= most:",
        "tests/proof/test_repair.py::test_lost_games_correct_expected_values",
    ),
    Mutation(
        "repair: search values of refuted moves are used",
        "azjax/proof/repair.py",
        "(visits[row] > 0) & ~losing",
        "visits[row] > 0",
        "tests/proof/test_repair.py::test_search_values_of_refuted_moves_are_ignored",
    ),
    Mutation(
        "repair: a move has the value of its last result",
        "azjax/proof/repair.py",
        "self.expected[action] = min(self.expected[action], value)",
        "self.expected[action] = value",
        "tests/proof/test_repair.py::test_updates_of_moves_accumulate",
    ),
    Mutation(
        "repair: another game clears a refuted move",
        "azjax/proof/repair.py",
        "self.refuted[action] |= is_lost",
        "self.refuted[action] = is_lost",
        "tests/proof/test_repair.py::test_updates_of_moves_accumulate",
    ),
    Mutation(
        "repair: the number of rounds is not saved",
        "azjax/proof/seat.py",
        "save_table(path, better)",
        "save_table(path, better._replace(rounds=table.rounds))",
        "tests/programs/test_unbeatable.py::test_the_limit_of_rounds_counts_all_calls",
    ),
    Mutation(
        "repair: the number of rounds is not read",
        "azjax/proof/overrides.py",
        'file["rounds"].item()',
        "0",
        "tests/programs/test_unbeatable.py::test_the_limit_of_rounds_counts_all_calls",
    ),
    Mutation(
        "repair: symmetric copies are not repaired",
        "azjax/proof/seat.py",
        "self.seat, analyze, proof.symmetric)",
        "self.seat, analyze, False)",
        "tests/programs/test_unbeatable.py::test_symmetric_copies_are_repaired_alike",
    ),
    Mutation(
        "proof: a search resumes the exploration of one with other settings",
        "azjax/proof/seat.py",
        "network.symmetric, player.parts.search\n",
        "network.symmetric\n",
        "tests/programs/test_unbeatable.py::test_a_player_never_resumes_the_exploration_of_another",
    ),
    Mutation(
        "repair: an override table with an illegal move is read",
        "azjax/proof/overrides.py",
        "if not fits or not (legal & moves)",
        "if not fits or not (moves)",
        "tests/proof/test_overrides.py::test_a_file_that_is_not_a_table_is_refused",
    ),
    Mutation(
        "repair: every round searches as long as the first",
        "azjax/proof/seat.py",
        "table.rounds + generation // _PATIENCE",
        "generation // _PATIENCE",
        "tests/programs/test_unbeatable.py::test_each_round_searches_longer",
    ),
    Mutation(
        "repair: a search that does not end the losses is not prolonged",
        "azjax/proof/seat.py",
        "table.rounds + generation // _PATIENCE",
        "table.rounds",
        "tests/programs/test_unbeatable.py::test_repairs_that_do_not_end_search_longer",
    ),
    Mutation(
        "proof: a player's overrides are not part of the name of its exploration",
        "azjax/proof/seat.py",
        "moves = player.overrides, table.states",
        "moves = table.states, table.states",
        "tests/proof/test_seat.py",
    ),
    Mutation(
        "quantized: ties go to the lowest action in any orientation",
        "azjax/networks/quantized.py",
        "group.actions[None], group.actions.shape[1])",
        "jnp.arange(group.actions.shape[1]), group.actions.shape[1])",
        "tests/networks/test_quantized.py",
    ),
    Mutation(
        "quantized: sums are not bounded",
        "azjax/networks/quantized.py",
        "if largest >= EXACT:",
        "if largest >= 2 * EXACT:",
        "tests/networks/test_quantized.py",
    ),
    Mutation(
        "overrides: the move is not turned back",
        "azjax/players/oriented.py",
        "jnp.asarray(moves)[jnp.argmax(found.is_smallest, axis=1), actions[row]]",
        "actions[row]",
        "tests/players/test_oriented.py",
    ),
    Mutation(
        "pruning: an override is kept only if the player would make the same move",
        "azjax/proof/pruning.py",
        "changes = (row >= 0) & (action != alone)",
        "changes = (row >= 0) & (action == alone)",
        "tests/proof/test_pruning.py",
    ),
    Mutation(
        "proof: the goals of the exit status are swapped",
        "azjax/cli/verify.py",
        'if options.until == "unbeatable" else',
        'if options.until != "unbeatable" else',
        "tests/programs/test_unbeatable.py::test_the_goal_determines_the_exit_status",
    ),
    Mutation(
        "proof: --simulations has no effect",
        "azjax/cli/verify.py",
        "options.simulations or None,",
        "None,",
        "tests/programs/test_unbeatable.py::test_a_search_with_blunders_is_not_perfect",
    ),
    Mutation(
        "proof: symmetric copies are not compared",
        "azjax/proof/seat.py",
        'explore("-compared", symmetric=True, compare=True)',
        'explore("-compared", symmetric=True)',
        "tests/programs/test_unbeatable.py::test_a_move_that_breaks_symmetry_in_one_position_counts",
    ),
    Mutation(
        "repair: refuted moves of the table are tried again",
        "azjax/proof/seat.py",
        "make_analyze(game, decide, table)",
        "make_analyze(game, decide, empty_table(game))",
        "tests/programs/test_unbeatable.py::test_each_round_searches_longer",
    ),
    Mutation(
        "repair: games after a repair are explored without it",
        "azjax/proof/seat.py",
        "act = make_act(override_agent(game, agent, table))",
        "act = make_act(agent)",
        "tests/programs/test_unbeatable.py::test_symmetric_copies_are_repaired_alike",
    ),
    Mutation(
        "repair: an override table is written in place",
        "azjax/proof/overrides.py",
        'with replacing(path) as temporary, temporary.open("wb") as file:',
        'with path.open("wb") as file:',
        "tests/proof/test_overrides.py::test_a_table_is_written_atomically",
    ),
    Mutation(
        "programs: a late Ctrl-C ends a program that has already stopped",
        "azjax/_interrupts.py",
        "while self.made and now.listens",
        "while False and now.listens",
        "tests/programs/test_interrupts.py::"
        "test_a_program_that_stops_by_itself_waits_for_the_signal_thread",
    ),
    # The certificate.
    Mutation(
        "certificate: unbeatable is called perfect",
        "azjax/proof/certificate.py",
        'if content["perfect"]:',
        'if content["unbeatable"]:',
        "tests/proof/test_certificate.py::test_one_fault_of_any_kind_is_too_many",
    ),
    Mutation(
        "certificate: sums of losing lines wrap around",
        "azjax/proof/verify.py",
        "most = min(_MOST_LINES, np.iinfo(np.int32).max // solution.legal.shape[1])",
        "most = _MOST_LINES",
        "tests/proof/test_verify.py::test_very_many_losing_lines_of_many_actions_fit_in_32_bits",
    ),
    Mutation(
        "certificate: sums of lines from lost positions wrap around",
        "azjax/proof/verify.py",
        "later = jnp.minimum(jnp.sum(later, axis=1, dtype=jnp.int32), most)",
        "later = jnp.sum(later, axis=1, dtype=jnp.int32)",
        "tests/proof/test_verify.py::test_very_many_losing_lines_of_many_actions_fit_in_32_bits",
    ),
    Mutation(
        "certificate: searches with noise",
        "azjax/proof/certificate.py",
        "result = find(params, jax.random.key(0), states)",
        "result = find(params, jax.random.key(0), states, add_noise=True)",
        "tests/proof/test_certificate.py",
    ),
    Mutation(
        "certificate: searches at temperature 1",
        "azjax/proof/certificate.py",
        "result = find(params, jax.random.key(0), states)",
        "result = find(params, jax.random.key(0), states, 1.0)",
        "tests/proof/test_certificate.py",
    ),
    Mutation(
        "certificate: searches with default settings",
        "azjax/proof/certificate.py",
        "for kind in (PUCT(), Gumbel(), search)}",
        "for kind in (PUCT(), Gumbel())}",
        "tests/proof/test_certificate.py",
    ),
    Mutation(
        "certificate: both searches are PUCT",
        "azjax/proof/certificate.py",
        "int(verify_one(params, s).blunders)",
        "int(verify_one(params, searches[0]).blunders)",
        "tests/proof/test_certificate.py",
    ),
    Mutation(
        "certificate: unbeatable in one seat suffices",
        "azjax/proof/certificate.py",
        "return self.losing_lines_first + self.losing_lines_second == 0",
        "return self.losing_lines_first == 0",
        "tests/proof/test_certificate.py",
    ),
    Mutation(
        "certificate: the goal is reached in one seat",
        "azjax/proof/certificate.py",
        "not np.any(verdict.losing_lines)",
        "not np.any(verdict.losing_lines[0])",
        "tests/proof/test_certificate.py",
    ),
    Mutation(
        "certificate: losing lines of both seats are swapped",
        "azjax/proof/certificate.py",
        "losing_lines_first=int(raw.losing_lines[0])",
        "losing_lines_first=int(raw.losing_lines[1])",
        "tests/proof/test_certificate.py::test_each_number_of_a_verdict_has_its_place",
    ),
    Mutation(
        "certificate: the labels of both seats are swapped",
        "azjax/proof/certificate.py",
        '"losing_lines_first": "losing lines as first',
        '"losing_lines_first": "losing lines as second',
        "tests/proof/test_certificate.py::test_each_number_of_a_verdict_has_its_place",
    ),
    Mutation(
        "certificate: training stops although a search has blunders",
        "azjax/proof/callbacks.py",
        '(self._goal == "unbeatable" or certificate.perfect)',
        "True",
        "tests/proof/test_callbacks.py::test_the_training_stops_when_the_goal_is_proved",
    ),
    Mutation(
        "certificate: an old certificate stays after more training",
        "azjax/proof/callbacks.py",
        "if self._trained or not self._path.exists():",
        "if not self._path.exists():",
        "tests/proof/test_callbacks.py::"
        "test_a_new_certificate_replaces_an_old_one_only_after_training",
    ),
    Mutation(
        "certificate: a resumed run that has reached its goal trains on",
        "azjax/proof/callbacks.py",
        "        if loop.iteration > 0:\n            self._check_goal(loop)",
        "        pass",
        "tests/proof/test_callbacks.py::test_a_resumed_run_stops_at_once_if_its_goal_is_proved",
    ),
    # Gumbel.
    Mutation(
        "gumbel: halving ignores Q",
        "azjax/search/gumbel.py",
        "gumbel + logits - jnp.max(logits) + qtransform(tree, node)",
        "gumbel + logits - jnp.max(logits)",
        "tests/search/test_gumbel.py::test_gumbel_equals_the_textbook",
    ),
    Mutation(
        "gumbel: halving takes Q unscaled",
        "azjax/search/gumbel.py",
        "jnp.max(logits) + qtransform(tree, node)",
        "jnp.max(logits) + jnp.where(visits > 0, tree.qvalues(node), tree.raw_values[node])",
        "tests/search/test_gumbel.py::test_gumbel_equals_the_textbook",
    ),
    Mutation(
        "gumbel: halving ignores the noise",
        "azjax/search/gumbel.py",
        "jnp.maximum(-1e9, gumbel + logits",
        "jnp.maximum(-1e9, logits",
        "tests/search/test_gumbel.py::test_gumbel_equals_the_textbook",
    ),
    Mutation(
        "gumbel: the action is chosen without the noise",
        "azjax/search/gumbel.py",
        "jnp.where(finalist, gumbel + improved, -jnp.inf)",
        "jnp.where(finalist, improved, -jnp.inf)",
        "tests/search/test_gumbel.py::test_gumbel_equals_the_textbook",
    ),
    Mutation(
        "gumbel: interior nodes use the prior only",
        "azjax/search/gumbel.py",
        "None, tree, node, None, qtransform=qtransform",
        "None, tree, node, None, qtransform=lambda tree, node: 0.0",
        "tests/search/test_gumbel.py::test_gumbel_equals_the_textbook",
    ),
    Mutation(
        "gumbel: gumbel_scale has no effect",
        "azjax/search/gumbel.py",
        "scale = jnp.where(roots.add_noise, jnp.float32(self.gumbel_scale), 0.0)",
        "scale = jnp.where(roots.add_noise, jnp.float32(1), 0.0)",
        "tests/search/test_gumbel.py::test_the_noise_is_gumbels_times_its_scale",
    ),
    Mutation(
        "puct: noise for one position is added to all",
        "azjax/search/puct.py",
        "jnp.where(roots.add_noise[:, None], noisy, roots.logits)",
        "jnp.where(roots.add_noise[0], noisy, roots.logits)",
        "tests/search/test_search.py::test_noise_may_be_added_to_some_positions",
    ),
    Mutation(
        "gumbel: value_scale has no effect",
        "azjax/search/gumbel.py",
        "value_scale=self.value_scale / 2",
        "value_scale=0.05",
        "tests/search/test_gumbel.py::test_gumbel_equals_the_textbook",
    ),
    Mutation(
        "gumbel: maxvisit_init has no effect",
        "azjax/search/gumbel.py",
        "maxvisit_init=self.maxvisit_init",
        "maxvisit_init=50.0",
        "tests/search/test_gumbel.py::test_gumbel_equals_the_textbook",
    ),
    Mutation(
        "gumbel: max_considered_actions has no effect",
        "azjax/search/gumbel.py",
        "            self.max_considered_actions, jnp.sum(",
        "            16, jnp.sum(",
        "tests/search/test_gumbel.py::test_gumbel_plays_a_finalist_of_the_considered_actions",
    ),
    Mutation(
        "gumbel: the first visits ignore the noise",
        "azjax/search/gumbel.py",
        "jnp.nan_to_num(gumbel + roots.logits)",
        "jnp.nan_to_num(roots.logits)",
        "tests/search/test_gumbel.py::test_gumbel_equals_the_textbook",
    ),
    # PUCT.
    Mutation(
        "puct: dirichlet_alpha has no effect",
        "azjax/search/puct.py",
        "jax.random.loggamma, a=alpha,",
        "jax.random.loggamma, a=0.3,",
        "tests/search/test_search.py::test_noise_acts_in_full_on_two_legal_actions",
    ),
    Mutation(
        "puct: dirichlet_fraction has no effect",
        "azjax/search/puct.py",
        "prior = (1 - fraction) * jax.nn.softmax(roots.logits) + fraction * noise",
        "prior = 0.75 * jax.nn.softmax(roots.logits) + 0.25 * noise",
        "tests/search/test_search.py::test_noise_acts_in_full_on_two_legal_actions",
    ),
    Mutation(
        "puct: noise and move share a key",
        "azjax/search/puct.py",
        "key_noise, key_action = split_each(roots.keys)",
        "key_noise = key_action = split_each(roots.keys)[0]",
        "tests/training/test_keys.py",
    ),
    # Training.
    Mutation(
        "training: samples are not augmented by symmetry",
        "azjax/training/step.py",
        "samples = jax.vmap(parts.targets.augment)(keys[:, 1], samples)",
        "samples = samples",
        "tests/training/test_iteration.py::test_batches_are_samples_under_every_symmetry",
    ),
    Mutation(
        "training: the settings of the targets have no effect",
        "azjax/training/targets.py",
        "make=functools.partial(make_samples, config)",
        "make=functools.partial(make_samples, TargetConfig())",
        "tests/training/test_iteration.py::test_the_buffer_holds_the_configured_targets",
    ),
    Mutation(
        "training: only the losses of the last step are reported",
        "azjax/training/step.py",
        "losses=jax.tree.map(jnp.mean, losses),",
        "losses=jax.tree.map(lambda loss: loss[-1], losses),",
        "tests/training/test_iteration.py::test_losses_are_the_means_over_the_steps",
    ),
    Mutation(
        "training: only programs find contradictions",
        "azjax/training/step.py",
        "check_parts(parts, 1 if axis_name is None else jax.lax.axis_size(axis_name))",
        "pass",
        "tests/training/test_step.py::test_contradictions_are_rejected_without_a_program",
    ),
    Mutation(
        "training: every move counts as a finished game",
        "azjax/training/step.py",
        "jnp.sum(transitions.discount == 0, dtype=jnp.float32)",
        "jnp.sum(transitions.discount <= 0, dtype=jnp.float32)",
        "tests/training/test_iteration.py::test_only_games_that_ended_are_counted",
    ),
    # Self-play and matches.
    Mutation(
        "self-play: the value of the best action is recorded",
        "azjax/training/selfplay.py",
        "root_value=result.policy_value,",
        "root_value=jnp.take_along_axis(result.q_values, result.action[:, None], 1)[:, 0],",
        "tests/training/test_selfplay.py::test_transitions_record_the_results_of_the_search",
    ),
    Mutation(
        "self-play: the mean of all visits is recorded",
        "azjax/training/selfplay.py",
        "root_value=result.policy_value,",
        "root_value=result.value,",
        "tests/training/test_selfplay.py::test_transitions_record_the_results_of_the_search",
    ),
    Mutation(
        "search: actions without a visit count as drawn",
        "azjax/search/algorithm.py",
        "weights = jnp.where(self.visit_counts > 0, self.action_weights, 0.0)",
        "weights = self.action_weights",
        "tests/search/test_search.py::test_policy_value_is_the_mean_value_of_visited_actions",
    ),
    Mutation(
        "positions: a position is drawn as often as it was reached",
        "azjax/training/positions.py",
        "begins = stays & ~archive.full[place]",
        "begins = stays",
        "tests/training/test_positions.py::test_positions_are_drawn_uniformly",
    ),
    Mutation(
        "positions: entries with one slot are mixed",
        "azjax/training/positions.py",
        'lambda old, new: old.at[to].set(new, mode="drop"), archive.entries',
        "lambda old, new: old.at[place].set(new) if new.ndim > 1 else "
        "old.at[place[::-1]].set(new[::-1]), archive.entries",
        "tests/training/test_positions.py::test_plies_stay_with_their_positions",
    ),
    Mutation(
        "self-play: only played positions enter the buffer",
        "azjax/training/starts.py",
        "moved = where(game.is_over(state), one, Games(state, one.ply + 1))",
        "moved = one",
        "tests/training/test_positions.py::test_each_game_is_stored_before_and_after_a_random_move",
    ),
    Mutation(
        "training: games continue that should restart",
        "azjax/training/step.py",
        "if not parts.selfplay.carry_over:",
        "if False:",
        "tests/training/test_positions.py::test_games_restart_in_each_iteration_without_carry_over",
    ),
    Mutation(
        "verify: games from lost positions count",
        "azjax/proof/verify.py",
        "jnp.where(is_lost[rows], later",
        "jnp.where(is_lost[rows] & False, later",
        "tests/proof/test_verify.py",
    ),
    Mutation(
        "self-play: one game too many restarts",
        "azjax/training/starts.py",
        "jnp.arange(together) < total",
        "jnp.arange(together) <= total",
        "tests/training/test_selfplay.py::test_only_finished_games_restart",
    ),
    Mutation(
        "arena: both seats share a key",
        "azjax/players/arena.py",
        "key_seat = jax.random.fold_in(key, seat)",
        "key_seat = key",
        "tests/training/test_keys.py",
    ),
    Mutation(
        "arena: all batches have the same games",
        "azjax/players/arena.py",
        "key_batch = jax.random.fold_in(key, batch)",
        "key_batch = key",
        "tests/training/test_keys.py tests/players/test_arena.py",
    ),
    # Keys.
    Mutation(
        "keys: restarts reuse the key of the search",
        "azjax/training/selfplay.py",
        "restart(start, keys[:, 1], over, moved)",
        "restart(start, keys[:, 0], over, moved)",
        "tests/training/test_keys.py",
    ),
    Mutation(
        "keys: learning reuses the key of self-play",
        "azjax/training/step.py",
        "_learn(parts, key_learn, state.learner, replay, axis_name)",
        "_learn(parts, key_play, state.learner, replay, axis_name)",
        "tests/training/test_keys.py",
    ),
    Mutation(
        "keys: augmentation reuses the key of sampling",
        "azjax/training/step.py",
        "(keys[:, 1], samples)",
        "(keys[:, 0], samples)",
        "tests/training/test_keys.py",
    ),
    Mutation(
        "keys: games start with the key of the network",
        "azjax/training/step.py",
        "game_keys = jax.random.split(key_games, parts.selfplay.games)",
        "game_keys = jax.random.split(key_network, parts.selfplay.games)",
        "tests/training/test_keys.py",
    ),
    # Loggers, callbacks and several processes.
    Mutation(
        "loggers: a resumed run keeps later points of TensorBoard",
        "azjax/training/loggers.py",
        "purge_step=loop.iteration + 1",
        "purge_step=None",
        "tests/training/test_loggers.py",
    ),
    Mutation(
        "callbacks: NumPy's scalars stay as they are in a record",
        "azjax/training/metrics.py",
        "name: _number(name, value) for name, value in metrics.items()",
        "name: value for name, value in metrics.items()",
        "tests/training/test_training_loop.py",
    ),
    Mutation(
        "processes: a C++ stack is printed when another process has died",
        "azjax/cli/relay.py",
        "if _ABORT in held or _ENDED in held:",
        "if _ENDED in held:",
        "tests/programs/test_distributed.py::"
        "test_native_output_is_relayed_and_an_abort_becomes_a_sentence",
    ),
    # Networks, programs and pictures.
    Mutation(
        "keys: all iterations share their keys",
        "azjax/training/step.py",
        "    key = jax.random.fold_in(state.key, state.iteration)\n    key_play",
        "    key = state.key\n    key_play",
        "tests/training/test_keys.py",
    ),
    Mutation(
        "verify: a value of 0 has the right sign",
        "azjax/proof/verify.py",
        "~(values * truth > 0)",
        "(values * truth < 0)",
        "tests/proof/test_verify.py",
    ),
    Mutation(
        "verify: the opponent plays the policy",
        "azjax/proof/verify.py",
        "jnp.where(is_mover[:, None], chosen[..., None], legal)",
        "jnp.broadcast_to(chosen[..., None], (*chosen.shape, 2))",
        "tests/proof/test_verify.py",
    ),
    Mutation(
        "labelled: a win that becomes a draw is not an error",
        "azjax/proof/labelled.py",
        "is_error = chosen < best",
        "is_error = (chosen < best) & (chosen < 0)",
        "tests/proof/test_labelled.py",
    ),
    Mutation(
        "labelled: decisive positions count in the mean of the classes",
        "azjax/proof/labelled.py",
        " and row[0] not in positions.apart",
        "",
        "tests/proof/test_labelled.py",
    ),
    Mutation(
        "labelled: training evaluates the parameters, not their average",
        "azjax/training/loop.py",
        "one_copy(self.state.learner.ema_params)",
        "one_copy(self.state.learner.variables)",
        "tests/programs/test_labelled_evaluation.py::test_training_evaluates_the_averaged_network_without_search",
    ),
    Mutation(
        "viz: finished games are the last mover's loss",
        "azjax/viz/positions.py",
        "np.where(same, 1, -1)",
        "np.where(same, -1, 1)",
        "tests/viz/test_atlas.py",
    ),
    Mutation(
        "targets: a truncated game counts as a draw",
        "azjax/training/targets.py",
        "jnp.where(last.discount == 0, last.reward, last.root_value)",
        "last.reward",
        "tests/training/test_targets.py::test_a_cut_off_game_is_bootstrapped_with_the_root_value",
    ),
    Mutation(
        "targets: td_lambda forgets the last position",
        "azjax/training/targets.py",
        "carry = (1 - td_lambda) * last.root_value + td_lambda * cut",
        "carry = cut",
        "tests/training/test_targets.py::test_td_lambda_is_a_mean_of_n_step_returns",
    ),
    Mutation(
        "learner: value_weight has no effect",
        "azjax/training/loss.py",
        "return minimized + value_weight * squared + penalty,",
        "return minimized + squared + penalty,",
        "tests/training/test_learner.py::test_the_loss_against_numpy",
    ),
    Mutation(
        "learner: policy_surprise weighs all samples equally",
        "azjax/training/loss.py",
        "1 - policy_surprise + policy_surprise * kl / jnp.maximum(mean, 1e-9)",
        "1 - policy_surprise + policy_surprise",
        "tests/training/test_learner.py::test_the_loss_against_numpy",
    ),
    Mutation(
        "learner: surprise weights are normalized on each device",
        "azjax/training/loss.py",
        "mean = jnp.mean(kl) if axis_name is None else jax.lax.pmean(jnp.mean(kl), axis_name)",
        "mean = jnp.mean(kl)",
        "tests/training/test_learner.py::test_devices_average_their_gradients",
    ),
    Mutation(
        "learner: weight decay includes normalization scales",
        "azjax/training/learner.py",
        'name in ("bias", "scale")',
        'name in ("bias",)',
        "tests/training/test_learner.py::test_weight_decay_leaves_biases_and_scales_alone",
    ),
    Mutation(
        "modes: a search mixes types",
        "azjax/search/puct.py",
        "(1 + visits).astype(jnp.float32)",
        "(1 + visits)",
        "tests/training/test_modes.py::test_searches",
    ),
    Mutation(
        "learner: final_learning_rate has no effect",
        "azjax/training/learner.py",
        "floor = config.final_learning_rate / config.learning_rate",
        "floor = 0.1",
        "tests/training/test_learner.py::test_the_schedule_rises_and_falls",
    ),
    Mutation(
        "learner: the parameter average has no warm-up",
        "azjax/training/learner.py",
        "jnp.minimum(ema_decay, (1 + state.step) / (10 + state.step))",
        "ema_decay * jnp.ones(())",
        "tests/training/test_learner.py::test_the_average_follows_the_parameters",
    ),
    Mutation(
        "learner: gradients are not averaged over devices",
        "azjax/training/learner.py",
        "vector, losses = jax.lax.pmean((vector, losses), axis_name)",
        "losses = jax.lax.pmean(losses, axis_name)",
        "tests/training/test_learner.py::test_devices_average_their_gradients",
    ),
    Mutation(
        "replay: all shards draw the same indices",
        "azjax/training/replay.py",
        "jax.vmap(mixing(ring().sample))(state, keys)",
        "jax.vmap(mixing(ring().sample), (0, None))(state, keys[0])",
        "tests/training/test_replay.py::test_draws_are_independent",
    ),
    Mutation(
        "network: evaluation_dtype has no effect",
        "azjax/networks/resnet_inference.py",
        "evaluated = choose_dtype(config.evaluation_dtype, platform, convolves)",
        'evaluated = jnp.dtype("float32")',
        "tests/networks/test_network.py",
    ),
    Mutation(
        "network: learning_dtype has no effect",
        "azjax/networks/mlp.py",
        "module.clone(dtype=learned)",
        "module",
        "tests/networks/test_network.py",
    ),
    Mutation(
        "network: symmetries are inverted",
        "azjax/networks/group.py",
        "actions=np.argsort(symmetries.actions[order], axis=1)",
        "actions=symmetries.actions[order]",
        "tests/networks/test_network.py",
    ),
    Mutation(
        "network: the proof uses other statistics than training",
        "azjax/networks/resnet_inference.py",
        'weights["bias"] -= statistics[norm]["mean"] * scale',
        "pass",
        "tests/networks/test_network.py",
    ),
    Mutation(
        "network: statistics come from one device",
        "azjax/networks/resnet.py",
        "axis_name=self.axis_name if train else None",
        "axis_name=None",
        "tests/networks/test_network.py tests/training/test_step.py",
    ),
    Mutation(
        "network: statistics of a custom network differ between devices",
        "azjax/networks/modules.py",
        "jax.lax.pmean(updated, axis_name)",
        "updated",
        "tests/networks/test_network.py",
    ),
    Mutation(
        "network: statistics of an NNX module differ between devices",
        "azjax/networks/nnx.py",
        "return jax.lax.pmean(leaf, axis_name) if is_float else leaf",
        "return leaf",
        "tests/networks/test_nnx.py::test_other_statistics_are_averaged_over_the_devices",
    ),
    Mutation(
        "network: an NNX module normalizes by the batch of one device",
        "azjax/networks/nnx.py",
        "axis_name=axis_name, raise_if_not_found=False",
        "axis_name=None, raise_if_not_found=False",
        "tests/networks/test_nnx.py::test_batches_are_normalized_over_all_devices",
    ),
    Mutation(
        "network: an NNX module plays with batch statistics",
        "azjax/networks/nnx.py",
        "        module.eval()\n",
        "        module.train()\n",
        "tests/networks/test_nnx.py::test_its_outputs_equal_those_of_the_module",
    ),
    Mutation(
        "network: all seeds of an NNX module have the same weights",
        "azjax/networks/nnx.py",
        "return _variables(make(nnx.Rngs(key)))",
        "return _variables(make(nnx.Rngs(0)))",
        "tests/networks/test_nnx.py::test_weights_are_drawn_from_the_key",
    ),
    Mutation(
        "learner: integers are averaged",
        "azjax/training/learner.py",
        "return average if jnp.issubdtype(new.dtype, jnp.inexact) else new",
        "return average",
        "tests/networks/test_nnx.py::test_a_saved_training_resumes_bit_for_bit",
    ),
    Mutation(
        "devices: explicit settings are rounded",
        "azjax/runs/config.py",
        "return value if name in keep else -(-value // num_devices) * num_devices",
        "return -(-value // num_devices) * num_devices",
        "tests/runs/test_config.py::test_settings_are_rounded_up_for_the_devices",
    ),
    Mutation(
        "devices: settings of the command line are treated as defaults",
        "azjax/programs/prepare.py",
        "fit_devices(config, num_devices, keep)",
        "fit_devices(config, num_devices)",
        "tests/programs/test_distributed.py::test_given_settings_are_not_rounded",
    ),
    Mutation(
        "devices: a resumed run has other settings",
        "azjax/programs/prepare.py",
        '    if fixed:\n        return config, ""\n',
        "",
        "tests/programs/test_distributed.py::test_a_resumed_run_keeps_its_settings",
    ),
    Mutation(
        "devices: more devices than divide the batch",
        "azjax/runs/config.py",
        "not any(number % devices for number in evenly)",
        "not all(number % devices for number in evenly)",
        "tests/programs/test_distributed.py::test_cores_that_divide_games_and_batch_are_devices_of_a_new_run",
    ),
    Mutation(
        "programs: naming the preset's kind resets its values",
        "azjax/cli/options.py",
        "value = value if chosen == current else kinds.classes[chosen]()",
        "value = kinds.classes[chosen]()",
        "tests/programs/test_options.py::test_an_option_chooses_the_kind_of_network",
    ),
    Mutation(
        "programs: a small custom game has the preset of tic-tac-toe",
        "azjax/runs/presets.py",
        "is_tiny = made.is_small if measured else (made.most_positions or 0) <= _FEW",
        "is_tiny = made.is_small",
        "tests/programs/test_options.py::test_a_custom_game_has_the_preset_for_its_number_of_positions",
    ),
    Mutation(
        "programs: a custom game starts JAX before the devices are chosen",
        "azjax/cli/options.py",
        'if not {"-h", "--help"} & set(arguments):',
        "if False:",
        "tests/programs/test_options.py::test_a_custom_game_is_made_after_the_devices_are_chosen",
    ),
    Mutation(
        "custom: a file imports what another one found next to it",
        "azjax/cli/functions.py",
        "if any(_IMPORTED.get(name, files) != files for name, files in modules.items()):",
        "if False:",
        "tests/programs/test_custom.py::test_a_file_imports_the_files_next_to_it",
    ),
    Mutation(
        "rules: a player is loaded with other rules",
        "azjax/runs/loading.py",
        "        behavior.check_rules(run_dir, game, known=known)",
        "        pass",
        "tests/runs/test_behavior.py",
    ),
    Mutation(
        "rules: training resumes with other arrays",
        "azjax/runs/behavior.py",
        "if resume and states != ",
        "if not resume and states != ",
        "tests/runs/test_behavior.py",
    ),
    Mutation(
        "rules: only the first position is compared",
        "azjax/runs/behavior.py",
        "        states = after",
        "        break",
        "tests/runs/test_behavior.py",
    ),
    Mutation(
        "rules: outputs of a network are not compared",
        "azjax/runs/behavior.py",
        "if not (same_arrays and np.allclose(",
        "if not (same_arrays or np.allclose(",
        "tests/programs/test_custom.py",
    ),
    Mutation(
        "rules: training resumes with other rules",
        "azjax/cli/train.py",
        "custom.check_edited(options.run_dir, options.config, options.typed, resume=True)",
        "pass",
        "tests/programs/test_custom.py",
    ),
    Mutation(
        "mistakes: a network of another game is accepted",
        "azjax/networks/base.py",
        "if network.made_for not in (None, wanted):",
        "if False:",
        "tests/proof/test_mistakes.py",
    ),
    Mutation(
        "mistakes: outputs of a loss are not checked",
        "azjax/training/learner.py",
        "check_losses(loss(outputs, params, samples, axis_name))",
        "loss(outputs, params, samples, axis_name)",
        "tests/proof/test_mistakes.py",
    ),
    Mutation(
        "mistakes: outputs of an evaluator are not checked",
        "azjax/search/evaluators.py",
        '        check_heads(outputs, check_batch(game, states), game, "the evaluator")\n',
        "",
        "tests/proof/test_mistakes.py",
    ),
    Mutation(
        "mistakes: parts are not checked",
        "azjax/training/parts.py",
        "    _check_members(parts)\n",
        "",
        "tests/proof/test_mistakes.py",
    ),
    Mutation(
        "settings: similar names are not suggested",
        "azjax/_settings.py",
        "names, n=1)",
        "names, n=1, cutoff=1)",
        "tests/test_settings.py::test_errors_suggest_similar_names",
    ),
    Mutation(
        "programs: functions that cannot be called are listed",
        "azjax/cli/functions.py",
        "if least <= arguments and",
        "if",
        "tests/programs/test_custom.py",
    ),
    Mutation(
        "evaluators: rollouts have the wrong perspective",
        "azjax/search/evaluators.py",
        "step.state, total + weight * step.reward, weight * step.discount",
        "step.state, total + weight * step.reward, weight * jnp.abs(step.discount)",
        "tests/search/test_evaluators.py::test_rollouts_average_to_the_value_of_random_play",
    ),
    Mutation(
        "evaluators: all rollouts of a batch are equal",
        "azjax/search/evaluators.py",
        "batch_keys(keys, batch)",
        "jnp.broadcast_to(batch_keys(keys)[:1], (batch,))",
        "tests/search/test_evaluators.py::test_rollouts_differ_between_the_rows_of_a_batch",
    ),
    Mutation(
        "agents: sampling and acting share a key",
        "azjax/players/agent.py",
        "jax.random.categorical(key_draw, ",
        "jax.random.categorical(key_act, ",
        "tests/training/test_keys.py",
    ),
    Mutation(
        "agents: alpha-beta cuts with the wrong bound",
        "azjax/players/negamax.py",
        "((node.best < node.beta) | (not prune))",
        "((node.best < node.alpha) | (node.best < node.beta - 1) | (not prune))",
        "tests/players/test_agents.py",
    ),
    Mutation(
        "lecture: the exploration of a persistent player has no effect",
        "experiments/lecture/persistent.py",
        "score = value + config.exploration * bound",
        "score = value + jnp.sqrt(2.0) * bound",
        "tests/programs/test_lecture_persistent.py::test_visits_are_distributed_as_in_the_reference",
    ),
    Mutation(
        "lecture: a persistent player sees outcomes for player 0",
        "experiments/lecture/persistent.py",
        "q_values=sign * mean,",
        "q_values=mean,",
        "tests/programs/test_lecture_persistent.py::test_visits_are_distributed_as_in_the_reference",
    ),
    Mutation(
        "uct: exploration has no effect",
        "azjax/search/uct.py",
        "bound = settings.exploration * jnp",
        "bound = 1.4142135 * jnp",
        "tests/search/test_uct.py::test_the_exploration_constant",
    ),
    Mutation(
        "tree: finished games are searched below",
        "azjax/search/simulate.py",
        "jnp.where(over, 0.0, value)",
        "value",
        "tests/search/test_search.py::test_a_finished_game_in_the_tree_has_the_value_of_its_result",
    ),
    Mutation(
        "mctx: nodes below finished games stay in the tree",
        "azjax/search/bridge.py",
        "return key, _remove_below_finished(tree, i + 1)",
        "return key, tree",
        "tests/search/test_bridge.py::test_both_engines_find_the_same",
    ),
    Mutation(
        "mctx: finished games keep visits of moves",
        "azjax/search/bridge.py",
        '    "children_visits": 0,\n',
        "",
        "tests/search/test_bridge.py::test_both_engines_find_the_same",
    ),
    Mutation(
        "mctx: all simulations draw with the first one's index",
        "azjax/search/bridge.py",
        "jnp.full_like(tree.embeddings.simulation, i)",
        "jnp.zeros_like(tree.embeddings.simulation)",
        "tests/search/test_bridge.py::test_both_engines_find_the_same",
    ),
    Mutation(
        "mctx: the engine has no effect",
        "azjax/search/make.py",
        'if engine == "mctx":',
        'if engine == "none":',
        "tests/search/test_bridge.py::test_the_engine_is_the_one_chosen",
    ),
    Mutation(
        "mctx: the engine of the algorithm overrides the given one",
        "azjax/search/algorithm.py",
        'getattr(algorithm, "engine", "azjax") if engine is None else engine',
        'getattr(algorithm, "engine", engine or "azjax")',
        "tests/search/test_bridge.py::test_the_engine_is_the_one_chosen",
    ),
    Mutation(
        "mctx: legal actions are passed as invalid",
        "azjax/search/bridge.py",
        "return ~jax.vmap(game.legal_actions)(states)",
        "return jax.vmap(game.legal_actions)(states)",
        "tests/search/test_mctx_policies.py::test_the_functions_keep_the_game_s_conventions",
    ),
    Mutation(
        "mctx: a policy explores in evaluation",
        "azjax/search/bridge.py",
        "jnp.where(noisy, defaults[name], 0.0)",
        "jnp.where(True, defaults[name], 0.0)",
        "tests/search/test_mctx_policies.py::"
        "test_a_policy_searches_each_position_with_its_own_key_noise_and_temperature",
    ),
    Mutation(
        "mctx: a policy breaks ties with the key of the search",
        "azjax/search/bridge.py",
        "explores = noisy | (roots.temperature > 0)",
        "explores = noisy | (roots.temperature >= 0)",
        "tests/search/test_mctx_policies.py::test_equal_positions_get_equal_moves",
    ),
    Mutation(
        "certificate: a custom search is verified with 32 simulations",
        "azjax/proof/certificate.py",
        "if num_simulations is None and kind.algorithm not in ALGORITHMS:",
        "if False:",
        "tests/proof/test_certificate.py::test_a_custom_search_is_verified_after_them",
    ),
    Mutation(
        "mctx: all positions of a batch share an evaluation key",
        "azjax/search/bridge.py",
        "batch_keys(key, check_batch(game, states))",
        "jnp.broadcast_to(key, check_batch(game, states))",
        "tests/search/test_mctx_policies.py::test_each_position_has_a_key_for_its_rollout",
    ),
    Mutation(
        "ratings: the advantage of moving first is ignored",
        "azjax/players/ratings.py",
        "win = (eye[first] - eye[second] + eye[-2]) / 2",
        "win = (eye[first] - eye[second]) / 2",
        "tests/players/test_ratings.py",
    ),
    Mutation(
        "checkpoint: the worst one is kept as the best",
        "azjax/runs/checkpoint.py",
        "best = max(steps",
        "best = min(steps",
        "tests/runs/test_checkpoint.py",
    ),
    Mutation(
        "checkpoint: dtypes that NumPy lacks are lost",
        "azjax/runs/storage.py",
        "np.concatenate(parts).view(like.dtype)",
        "np.concatenate(parts)",
        "tests/runs/test_checkpoint.py",
    ),
    Mutation(
        "checkpoint: keys are restored as the default implementation",
        "azjax/runs/checkpoint.py",
        "fitted = {part: storage.fit_keys(tree, written[part]) for part, tree in target.items()}",
        "fitted = target",
        "tests/runs/test_checkpoint.py",
    ),
    Mutation(
        "player: the parameters are played, not their average",
        "azjax/runs/checkpoint.py",
        "return {_PLAYER: state.learner.ema_params, _REST: rest}",
        "return {_PLAYER: state.learner.variables, _REST: rest}",
        "tests/test_api.py::test_the_player_is_the_averaged_network",
    ),
    Mutation(
        "metrics: seconds of earlier sessions are ignored",
        "azjax/training/metrics.py",
        'return max([0.0, *(r["seconds"] for r in records if r["iteration"] <= iteration)])',
        "return 0.0",
        "tests/training/test_metrics.py::test_returns_the_seconds_of_an_earlier_session",
    ),
    Mutation(
        "display: a missing verdict is displayed",
        "azjax/training/metrics.py",
        "    if record.blunders is None:\n        return {}",
        "    if False:\n        return {}",
        "tests/training/test_metrics.py",
    ),
    Mutation(
        "runs: a broken link counts as a free name",
        "azjax/runs/directory.py",
        "    if os.path.islink(path) and not os.path.exists(path):",
        "    if False:",
        "tests/programs/test_programs.py::test_an_unusable_run_directory_is_refused",
    ),
    Mutation(
        "runs: parent folders of a refused run stay",
        "azjax/runs/directory.py",
        "        for folder in absent:",
        "        for folder in absent[:1]:",
        "tests/runs/test_checkpoint.py::test_check_free_leaves_no_parent_folders",
    ),
    Mutation(
        "commands: arguments are not quoted",
        "azjax/_commands.py",
        "return shlex.join([*_program(module), *map(str, arguments)])",
        'return " ".join([*_program(module), *map(str, arguments)])',
        "tests/test_commands.py::test_paths_and_arguments_are_quoted_for_a_shell",
    ),
    Mutation(
        "commands: a script of another environment is named",
        "azjax/_commands.py",
        "[module if found and os.path.samefile(found, own) else _shorten(own)]",
        "[module if found else _shorten(own)]",
        "tests/test_commands.py::test_the_command_is_short_and_of_this_environment",
    ),
    Mutation(
        "display: the live table stays open while results are printed",
        "azjax/runs/callbacks.py",
        """    def on_end(self, loop: Loop) -> None:
        \"\"\"Closes the sink:""",
        """    def on_the_end(self, loop: Loop) -> None:
        \"\"\"Closes the sink:""",
        "tests/training/test_metrics.py::test_what_callbacks_print_at_the_end_is_below_the_table",
    ),
    Mutation(
        "console: long computations are silent in a pipe",
        "azjax/cli/console.py",
        "with _lines(describe) if bar.disable else bar:",
        "with bar:",
        "tests/programs/test_progress.py",
    ),
    Mutation(
        "display: a narrower terminal keeps the rows that it wrapped",
        "azjax/training/metrics.py",
        "if self._console.width < self._widest:",
        "if False:",
        "tests/training/test_metrics.py::test_a_narrower_terminal_shows_one_table",
    ),
    Mutation(
        "report: matches exceed their time",
        "azjax/viz/matches.py",
        "        if pieces and time.monotonic() >= end:",
        "        if False:",
        "tests/viz/test_report.py::test_matches_end_when_their_time_is_over",
    ),
    Mutation(
        "memory: nothing is rejected",
        "azjax/training/memory.py",
        "if needs.total <= needs.limit:",
        "if needs.total <= needs.limit or True:",
        "tests/training/test_memory.py::test_training_that_does_not_fit_is_rejected_with_advice",
    ),
    Mutation(
        "processes: a flag counts only if all processes set it",
        "azjax/_processes.py",
        "raised = np.any(",
        "raised = np.all(",
        "tests/programs/test_distributed.py",
    ),
    Mutation(
        "viz: names of actions are those at the root of the tree",
        "azjax/viz/tree.py",
        "name_actions(game, _state(result, row, parent))",
        "name_actions(game, _state(result, row, 0))",
        "tests/viz/test_pictures.py",
    ),
    Mutation(
        "viz: a small game with a custom display has the names of the page",
        "azjax/viz/positions.py",
        "game.step is made.step and (game.display is made.display or not game.is_small)",
        "game.step is made.step",
        "tests/viz/test_atlas.py",
    ),
    Mutation(
        "viz: the map adds errors of members instead of averaging",
        "azjax/viz/atlas.py",
        'add(error, mode="drop") / members',
        'add(error, mode="drop")',
        "tests/viz/test_atlas.py",
    ),
    Mutation(
        "viz: a trace backs up values without sign changes",
        "azjax/viz/trace.py",
        "discount * value)",
        "abs(discount) * value)",
        "tests/viz/test_trace.py",
    ),
    Mutation(
        "viz: the page backs up values without sign changes",
        "azjax/viz/js/search.js",
        "value = f32(child.reward + child.discount * value);",
        "value = f32(child.reward + Math.abs(child.discount) * value);",
        "tests/viz/test_live.py",
    ),
    Mutation(
        "viz: the page's sequential halving ends at one action",
        "azjax/viz/js/algorithms.js",
        "left > 1 ? Math.max(2, Math.floor(left / 2)) : 1;",
        "Math.max(1, Math.floor(left / 2));",
        "tests/viz/test_live.py",
    ),
    Mutation(
        "viz: the page's rollouts share their key with the tree",
        "azjax/viz/js/search.js",
        "drawsPriors ? splitKey(key) : [key]",
        "drawsPriors ? [key, splitKey(key)[1]] : [key]",
        "tests/viz/test_live.py",
    ),
    Mutation(
        "viz: the text of a search needs a missing setting",
        "azjax/viz/js/words.js",
        "node.parent === null && settings.add_noise",
        "node.parent === null && settings.noise > 0",
        "tests/viz/test_legible.py::test_words_read_only_what_a_search_has_and_mention_its_noise",
    ),
    Mutation(
        "viz: the general table style overrides a specific one",
        "azjax/viz/js/training.css",
        ".azjax .az-training { border-collapse",
        ".az-training { border-collapse",
        "tests/viz/test_explain.py",
    ),
    Mutation(
        "viz: a chart on a narrow screen has no names of lines",
        "azjax/viz/chart.py",
        'node("div", scrolls, chart, _names(chart))',
        'node("div", scrolls, chart)',
        "tests/viz/test_report.py::test_lines_of_a_report_have_their_names_on_a_phone",
    ),
    Mutation(
        "guide: search fails in a guide opened from a folder",
        "mkdocs.yml",
        "  - offline #",
        "  #",
        "tests/programs/test_guide.py::test_the_guide_has_what_it_needs",
    ),
    Mutation(
        "viz: self-play games are shown without noise",
        "azjax/viz/games.py",
        "search(jax.random.fold_in(key, ply), states, temperatures, True)",
        "search(jax.random.fold_in(key, ply), states, temperatures, False)",
        "tests/viz/test_report.py",
    ),
    Mutation(
        "programs: losing lines of both seats are swapped",
        "azjax/proof/callbacks.py",
        '"losing_lines_first": int(verdict.losing_lines[0]),',
        '"losing_lines_first": int(verdict.losing_lines[1]),',
        "tests/proof/test_callbacks.py",
    ),
    Mutation(
        "programs: the checkpoint with most blunders is the best",
        "azjax/training/metrics.py",
        "return -record.blunders - loss / 1e3",
        "return record.blunders - loss / 1e3",
        "tests/training/test_training_loop.py",
    ),
    Mutation(
        "programs: the parameters are verified, not their average",
        "azjax/training/loop.py",
        "one_copy(self.state.learner.ema_params)",
        "one_copy(self.state.learner.variables)",
        "tests/proof/test_callbacks.py",
    ),
    Mutation(
        "players: the number of simulations has no effect",
        "azjax/cli/players.py",
        "number = spec.number or search.num_simulations",
        "number = search.num_simulations",
        "tests/programs/test_players.py::test_searches_have_the_settings_of_the_run",
    ),
    Mutation(
        "lecture: the first player is ignored",
        "experiments/lecture/matches.py",
        "return games._replace(outcomes=-games.outcomes)",
        "return games",
        "tests/programs/test_lecture.py::test_outcomes_are_those_of_the_first_player",
    ),
    Mutation(
        "games: a diagonal of Connect Four does not win",
        "azjax/games/in_a_row.py",
        "((0, 1), (1, 0), (1, 1), (1, -1))",
        "((0, 1), (1, 0), (1, 1))",
        "tests/games/test_games.py",
    ),
    Mutation(
        "games: the sign changes although the player moves again",
        "azjax/games/base.py",
        "discount = jnp.where(same_player, jnp.float32(1), jnp.float32(-1))",
        "discount = -jnp.ones_like(reward)",
        "tests/search/test_search.py::test_backup_keeps_the_sign_where_a_player_moves_twice",
    ),
    # Games, networks and the files around them.
    Mutation(
        "games: a swap does not move the stone",
        "azjax/games/hex.py",
        "jnp.where(action == cells, state.board, board)",
        "jnp.where(action == cells, -board, board)",
        "tests/games/test_games.py::test_a_swap_takes_over_the_mirrored_stone",
    ),
    Mutation(
        "games: a swap can be undone by a swap",
        "azjax/games/hex.py",
        "is_first = _joins(board, n), jnp.all(state.board == 0)",
        "is_first = _joins(board, n), jnp.sum(state.board != 0) <= 1",
        "tests/games/test_games.py::test_a_swap_takes_over_the_mirrored_stone",
    ),
    Mutation(
        "games: a swap is not counted in the positions",
        "azjax/games/hex.py",
        "\n        * (1 + swap),",
        ",",
        "tests/games/test_games.py::test_games_have_the_published_values",
    ),
    Mutation(
        "games: columns of Hex share bits beyond 16",
        "azjax/games/hex.py",
        "bits = jnp.uint32(1) << jnp.arange(n, dtype=jnp.uint32)",
        "bits = jnp.uint32(1) << (jnp.arange(n, dtype=jnp.uint32) % 16)",
        "tests/games/test_games.py::test_a_long_path_connects_the_sides_of_the_largest_board",
    ),
    Mutation(
        "games: all sides of Hex are X's",
        "azjax/games/hexagons.py",
        "_side(rows[::-1], 2, COLOR_O), _side(columns, 5, COLOR_O)",
        "_side(rows[::-1], 2, COLOR_X), _side(columns, 5, COLOR_X)",
        "tests/viz/test_drawing.py::test_hexagons_lean_to_the_right_between_sides_of_two_colors",
    ),
    Mutation(
        "games: a side of Hex is drawn twice",
        "azjax/games/hexagons.py",
        "_side(centers[: -n - 1 : -1], 1, COLOR_X)",
        "_side(centers[-n:], 1, COLOR_X)",
        "tests/viz/test_drawing.py::test_hexagons_lean_to_the_right_between_sides_of_two_colors",
    ),
    Mutation(
        "games: long rows of discs are not flipped",
        "azjax/games/othello.py",
        "for _ in range(n - 3):",
        "for _ in range(min(n - 3, 4)):",
        "tests/games/test_games.py::test_discs_are_turned_across_the_largest_board",
    ),
    Mutation(
        "games: discs are counted in eight bits",
        "azjax/games/othello.py",
        "jnp.sum(board * mark, dtype=jnp.int32)",
        "jnp.sum(board * mark, dtype=jnp.int8)",
        "tests/games/test_games.py::test_discs_are_turned_across_the_largest_board",
    ),
    Mutation(
        "games: capturing every piece does not end the game",
        "azjax/games/breakthrough.py",
        "won = jnp.any(board[:columns] == 1) | ~jnp.any(board == -1)",
        "won = jnp.any(board[:columns] == 1)",
        "tests/games/test_games.py::test_capturing_every_piece_wins",
    ),
    Mutation(
        "games: max_plies of Breakthrough counts one player's moves",
        "azjax/games/breakthrough.py",
        "max_plies=2 * columns * (2 * rows - 3)",
        "max_plies=columns * (2 * rows - 3)",
        "tests/games/test_games.py::test_the_bounds_on_positions_and_plies_hold",
    ),
    Mutation(
        "games: the picture shows one of several moves to a cell",
        "azjax/games/breakthrough.py",
        "np.bincount(to, np.asarray(values), cells)",
        "np.asarray(values)[np.searchsorted(np.sort(to), np.arange(cells)) % len(to)]",
        "tests/viz/test_drawing.py::test_breakthrough_shows_values_and_labels_where_a_move_leads",
    ),
    Mutation(
        "games: O's moves are drawn in X's direction",
        "azjax/games/breakthrough.py",
        "to = target if int(state.player) == 0 else cells - 1 - target",
        "to = target",
        "tests/viz/test_drawing.py::test_breakthrough_shows_values_and_labels_where_a_move_leads",
    ),
    Mutation(
        "games: lines of five have the labels of four",
        "azjax/games/connect_four.py",
        "positions=positions if size == _SIZE else None",
        "positions=positions if size[:2] == _SIZE[:2] else None",
        "tests/games/test_games.py::test_records_can_be_hashed",
    ),
    Mutation(
        "games: X is to move in all labelled positions",
        "azjax/games/connect_four.py",
        "(np.count_nonzero(boards, axis=1) % 2).astype(np.int8)",
        "np.zeros(len(boards), np.int8)",
        "tests/proof/test_labelled.py",
    ),
    Mutation(
        "games: the bound of positions gives O too few stones",
        "azjax/games/square.py",
        "math.comb(n, n // 2) for n",
        "math.comb(n, n // 3) for n",
        "tests/games/test_games.py::test_the_bounds_on_positions_and_plies_hold",
    ),
    Mutation(
        "games: chess pieces change color with the turn",
        "azjax/games/from_pgx.py",
        "-np.flip(grid, axis=0) if player else grid",
        "np.flip(grid, axis=0) if player else grid",
        "tests/games/test_pgx.py::test_chess_has_the_same_names_of_moves_for_both_players",
    ),
    Mutation(
        "games: chess moves are named from White's side",
        "azjax/games/from_pgx.py",
        "range(1, size + 1) if int(player(state)) == 0 else range(size, 0, -1)",
        "range(1, size + 1)",
        "tests/games/test_pgx.py::test_chess_has_the_same_names_of_moves_for_both_players",
    ),
    Mutation(
        "positions: slots depend on the lowest bits only",
        "azjax/games/hashing.py",
        "return (mixed ^ (mixed >> 13)) % np.uint32(count)",
        "return weigh(numbers, 2 * weights + 1) % np.uint32(count)",
        "tests/training/test_positions.py::test_buckets_are_uniform",
    ),
    Mutation(
        "hashing: duplicates shift later rows",
        "azjax/games/hashing.py",
        "rows = different[order].astype(np.int32)",
        "rows = order.astype(np.int32)",
        "tests/games/test_hashing.py",
    ),
    Mutation(
        "hashing: at most two positions share half a hash",
        "azjax/games/hashing.py",
        "most, same = most + 1, same[1:] & same[:-1]",
        "most, same = 2, same[:0]",
        "tests/games/test_hashing.py",
    ),
    Mutation(
        "positions: new entries overwrite the buffer from its start",
        "azjax/training/positions.py",
        "archive.used + jnp.cumsum(begins, dtype=jnp.int32) - 1, size",
        "jnp.cumsum(begins, dtype=jnp.int32) - 1, size",
        "tests/training/test_positions.py::test_positions_are_drawn_uniformly",
    ),
    Mutation(
        "positions: the buffer replaces short openings",
        "azjax/training/starts.py",
        "found &= uniform[1] < config.opening_share * config.archive_share",
        "found &= uniform[0] < config.opening_share * config.archive_share",
        "tests/training/test_positions.py::test_the_buffer_is_chosen_independently_of_the_opening_length",
    ),
    Mutation(
        "keys: an opening shares its key with the position buffer",
        "azjax/training/starts.py",
        "        key, key_archive = jax.random.split(key)\n",
        "        key_archive = key\n",
        "tests/training/test_keys.py::test_training_uses_every_key_once",
    ),
    Mutation(
        "keys: the position buffer shares its key with restarts",
        "azjax/training/selfplay.py",
        "new_starts(game, keys[:, 2], games)",
        "new_starts(game, keys[:, 1], games)",
        "tests/training/test_keys.py::test_training_uses_every_key_once",
    ),
    Mutation(
        "keys: all moves of an opening share a key",
        "azjax/players/openings.py",
        "jax.random.split(key, plies))",
        "jax.numpy.broadcast_to(key, (plies,)))",
        "tests/players/test_arena.py::test_random_openings",
    ),
    Mutation(
        "targets: legal actions are not transformed with a sample",
        "azjax/training/targets.py",
        "Sample(planes, sample.legal[actions], sample.policy[actions]",
        "Sample(planes, sample.legal, sample.policy[actions]",
        "tests/training/test_targets.py::test_augmentation_draws_a_symmetry_for_each_sample",
    ),
    Mutation(
        "runs: links are followed out of the run directory",
        "azjax/runs/directory.py",
        "        if path.is_symlink():",
        "        if False:",
        "tests/runs/test_lock.py::test_a_link_that_leads_out_of_the_folder_is_refused",
    ),
    Mutation(
        "runs: a link's target is deleted",
        "azjax/_files.py",
        "    if path.is_dir() and not path.is_symlink():",
        "    if path.is_dir():\n        path = path.resolve()",
        "tests/runs/test_checkpoint.py::test_nothing_outside_a_run_is_changed",
    ),
    Mutation(
        "runs: a number that another program took meanwhile is an error",
        "azjax/runs/directory.py",
        "        if not os.path.lexists(path):\n            raise\n        return False",
        "        raise",
        "tests/runs/test_checkpoint.py::test_programs_that_start_together_get_different_numbers",
    ),
    Mutation(
        "checkpoint: files that it does not list are read",
        "azjax/runs/checkpoint.py",
        '[folder / f for f in files if f.startswith(f"{part}/")]',
        '(folder / part).glob("*.npz")',
        "tests/runs/test_checkpoint.py::test_files_that_a_checkpoint_does_not_list_are_ignored",
    ),
    Mutation(
        "interrupts: the exit status is that of Ctrl-C after every signal",
        "azjax/cli/console.py",
        "status = 128 + interrupts.now.signal",
        "status = 130",
        "tests/programs/test_interrupts.py"
        "::test_a_program_that_stops_by_itself_reports_the_first_signal",
    ),
    Mutation(
        "lock: several processes hold it",
        "azjax/runs/lock.py",
        "fcntl.LOCK_EX | fcntl.LOCK_NB",
        "fcntl.LOCK_SH | fcntl.LOCK_NB",
        "tests/runs/test_lock.py",
    ),
    Mutation(
        "lock: a killed program keeps its lock",
        "azjax/runs/lock.py",
        "        if not _leads_to(path, file):",
        "        if not _leads_to(path, file) or path.stat().st_size:",
        "tests/runs/test_lock.py",
    ),
    Mutation(
        "lock: a moved run releases the lock of its successor",
        "azjax/runs/lock.py",
        "return os.path.samestat(os.fstat(file.fileno()), path.stat())",
        "return path.exists() and os.fstat(file.fileno()).st_nlink > 0",
        "tests/runs/test_lock.py",
    ),
    Mutation(
        "processes: all processes do the work of the first",
        "azjax/_processes.py",
        "in_all(action if jax.process_index() == 0 else lambda: None)",
        "in_all(action)",
        "tests/programs/test_distributed.py::test_requests_and_errors_reach_all_processes",
    ),
    Mutation(
        "processes: errors without a message are lost",
        "azjax/_processes.py",
        "_share(str(error) or type(error).__name__)",
        "_share(str(error))",
        "tests/programs/test_distributed.py::test_requests_and_errors_reach_all_processes",
    ),
    Mutation(
        "processes: long errors are not shortened",
        "azjax/_processes.py",
        "text.encode()[:_MOST_BYTES]",
        "text.encode()",
        "tests/programs/test_distributed.py::test_requests_and_errors_reach_all_processes",
    ),
    Mutation(
        "processes: the number of devices is not checked",
        "azjax/_processes.py",
        "if len(set(counts.values())) > 1:",
        "if len(counts.values()) < 1:",
        "tests/programs/test_distributed.py::test_processes_with_unequal_numbers_of_devices_are_rejected",
    ),
    Mutation(
        "presets: a large game learns as fast as Connect Four",
        "azjax/runs/presets.py",
        "learning_rate=1e-3, decay_steps=30_000",
        "learning_rate=2e-3, decay_steps=30_000",
        "tests/runs/test_presets.py",
    ),
    Mutation(
        "presets: settings of enumerable games are kept",
        "azjax/runs/presets.py",
        "            carry_over=False,\n",
        "",
        "tests/runs/test_presets.py",
    ),
    Mutation(
        "presets: the paper's preset has no weight decay",
        "azjax/runs/presets.py",
        "            l2=1e-4,\n",
        "",
        "tests/runs/test_presets.py",
    ),
    Mutation(
        "presets: smoke keeps a large position buffer",
        "azjax/runs/presets.py",
        "archive=min(config.selfplay.archive, 1024)",
        "archive=config.selfplay.archive",
        "tests/runs/test_presets.py",
    ),
    Mutation(
        "memory: each device counts all games",
        "azjax/training/memory.py",
        "_bytes_of((state.replay, state.games)) // mesh.size +",
        "_bytes_of((state.replay, state.games)) +",
        "tests/training/test_memory.py::test_each_device_holds_its_share",
    ),
    Mutation(
        "memory: the position buffer is not counted",
        "azjax/training/memory.py",
        "// mesh.size + _bytes_of(state.archive)",
        "// mesh.size",
        "tests/training/test_memory.py::test_each_device_holds_its_share",
    ),
    Mutation(
        "memory: donated buffers count twice",
        "azjax/training/memory.py",
        " - used.alias_size_in_bytes",
        "",
        "tests/training/test_memory.py::test_work_is_the_extra_memory_of_the_largest_program",
    ),
    Mutation(
        "memory: the limit of a container is ignored",
        "azjax/training/memory.py",
        "min(memory, int(limit))) // len(devices)",
        "memory) // len(devices)",
        "tests/training/test_memory.py::test_a_container_has_no_more_than_its_limit",
    ),
    Mutation(
        "ratings: the error of a mean of rates is that of one rate",
        "azjax/players/ratings.py",
        "np.hypot.reduce(rates[:, :1] - rates[:, 1:]) / len(rates)",
        "np.abs(rates[:, :1] - rates[:, 1:]).sum(axis=0) / len(rates)",
        "tests/players/test_ratings.py",
    ),
    Mutation(
        "network: shared heads start too large",
        "azjax/networks/equivariant.py",
        "lecun_normal()(key, (inputs, outputs), jnp.float32)",
        "lecun_normal()(key, (inputs // copies, outputs), jnp.float32)",
        "tests/networks/test_network.py::test_shared_heads_are_initialized_with_the_scale_of_plain_heads",
    ),
    Mutation(
        "network: learning_dtype has no effect on shared layers",
        "azjax/networks/equivariant.py",
        "lambda x: x.astype(self.dtype), weights",
        "lambda x: x, weights",
        "tests/runs/test_config.py::test_the_arithmetic_is_a_setting_of_layers_that_symmetries_share",
    ),
    Mutation(
        "network: shared heads return bfloat16",
        "azjax/networks/equivariant.py",
        "return dense(name, hidden).astype(jnp.float32)",
        "return dense(name, hidden)",
        "tests/networks/test_network.py::test_outputs_are_float32_for_every_arithmetic",
    ),
    Mutation(
        "network: kernels are given back with rows for columns",
        "azjax/networks/convolution.py",
        "reshape(3, 3, *kernel.shape[:0:-1])",
        "reshape(3, 3, *kernel.shape[:0:-1]).swapaxes(0, 1)",
        "tests/networks/test_network.py::test_every_form_convolves_and_restores_its_kernel",
    ),
    Mutation(
        "viz: weights are truncated, not rounded",
        "azjax/viz/networks.py",
        "np.uint32(2 ** (8 * dropped) // 2)",
        "np.uint32(0)",
        "tests/viz/test_networks.py",
    ),
    Mutation(
        "viz: the page gets kernels in their internal layout",
        "azjax/networks/resnet_inference.py",
        'restore(layer["kernel"], board_shape)',
        'layer["kernel"]',
        "tests/viz/test_networks.py",
    ),
    Mutation(
        "viz: the page ignores LayerNorm",
        "azjax/networks/resnet_inference.py",
        'functools.partial(Plain, "resnet", config.blocks, has_norm)',
        'functools.partial(Plain, "resnet", config.blocks, False)',
        "tests/viz/test_networks.py",
    ),
    Mutation(
        "network: residual blocks start with random outputs",
        "azjax/networks/resnet.py",
        'is_zero=self.norm != "batch" and name.endswith("_b"),',
        "is_zero=False,",
        "tests/networks/test_network.py",
    ),
    Mutation(
        "network: shared residual blocks start with random outputs",
        "azjax/networks/resnet_inference.py",
        'zeros=tuple(name for name in names if name.endswith("_b")),',
        "zeros=(),",
        "tests/networks/test_network.py",
    ),
    Mutation(
        "network: residual blocks have no skip connection",
        "azjax/networks/resnet.py",
        'relu(jax.tree.map(jnp.add, x, layer(f"block{i}_b", inner)))',
        'relu(layer(f"block{i}_b", inner))',
        "tests/networks/test_network.py",
    ),
    Mutation(
        "network: LayerNorm normalizes each symmetric part separately",
        "azjax/networks/resnet.py",
        "    parts = [part.astype(jnp.float32) for part in jax.tree.leaves(x)]\n",
        "    if isinstance(x, list):\n        return [standardize(part, axis) for part in x]\n"
        "    parts = [part.astype(jnp.float32) for part in jax.tree.leaves(x)]\n",
        "tests/networks/test_network.py",
    ),
    Mutation(
        "viz: every network reads the mover's perspective",
        "azjax/viz/networks.py",
        '{"encoding": network.encoding,',
        '{"encoding": "relative",',
        "tests/viz/test_networks.py",
    ),
    Mutation(
        "learner: policy_surprise has no effect",
        "azjax/training/learner.py",
        "policy_surprise=config.policy_surprise",
        "policy_surprise=0.0",
        "tests/runs/test_config.py::test_every_setting_changes_the_program",
    ),
    Mutation(
        "self-play: temperature_plies has no effect",
        "azjax/training/selfplay.py",
        "games.ply < config.temperature_plies",
        "games.ply < 30",
        "tests/runs/test_config.py::test_every_setting_changes_the_program",
    ),
    Mutation(
        "self-play: games_at_once has no effect",
        "azjax/training/selfplay.py",
        "limit = config.games_at_once or games",
        "limit = games",
        "tests/runs/test_config.py::test_every_setting_changes_the_program",
    ),
    Mutation(
        "programs: the seed has no effect",
        "azjax/programs/prepare.py",
        "jax.random.key(config.seed)",
        "jax.random.key(0)",
        "tests/programs/test_start.py::test_a_run_uses_the_seed_of_its_settings",
    ),
    Mutation(
        "lowering: games are played in groups on every platform",
        "azjax/training/selfplay.py",
        'if config.games_at_once or platform != "cpu":',
        "if config.games_at_once:",
        "tests/training/test_lowering.py::test_an_iteration_is_lowered_for_an_accelerator",
    ),
    Mutation(
        "lowering: convolutions have the form for CPUs on every platform",
        "azjax/networks/convolution.py",
        'is_small and dtype == jnp.float32 and platform == "cpu"',
        "is_small and dtype == jnp.float32",
        "tests/training/test_lowering.py::test_an_iteration_is_lowered_for_an_accelerator",
    ),
    Mutation(
        "lowering: the network is built for the default backend",
        "azjax/runs/config.py",
        "make_network(config.network, game, platform)",
        "make_network(config.network, game)",
        "tests/training/test_lowering.py::test_an_iteration_is_lowered_for_an_accelerator",
    ),
    Mutation(
        "lowering: every GPU has bfloat16",
        "azjax/networks/base.py",
        "or int(generation) >= _AMPERE",
        "or True",
        "tests/training/test_lowering.py::test_gpus_have_bfloat16_from_ampere_on",
    ),
    Mutation(
        "cost: the cost of a loop includes that of inner loops",
        "experiments/benchmark/loops.py",
        "left = max(0, total.flops - flops), max(0, total.bytes - moved)",
        "left = total.flops, total.bytes",
        "tests/programs/test_cost.py::test_trips_are_counted_and_inner_loops_excluded",
    ),
    Mutation(
        "cost: a vmapped loop ends with its first row",
        "experiments/benchmark/loops.py",
        "return jnp.any(continues(",
        "return jnp.all(continues(",
        "tests/programs/test_cost.py::test_finished_rows_keep_their_carry",
    ),
    Mutation(
        "cost: rows of a vmapped loop continue after their end",
        "experiments/benchmark/loops.py",
        'if params["cond_jaxpr"].out_avals[0].shape:',
        "if False:",
        "tests/programs/test_cost.py::test_finished_rows_keep_their_carry",
    ),
    # Programs.
    Mutation(
        "programs: a resumed run is compiled for keys of JAX's default",
        "azjax/programs/prepare.py",
        "training.abstract_state(parts, mesh) if state is None else state",
        "training.abstract_state(parts, mesh)",
        "tests/programs/test_programs.py::test_a_resumed_run_is_lowered_for_its_own_state",
    ),
    Mutation(
        "programs: the seconds of earlier sessions are forgotten",
        "azjax/programs/prepare.py",
        "started - seconds)",
        "started)",
        "tests/programs/test_programs.py::test_a_finished_run_is_resumed",
    ),
    Mutation(
        "programs: a resumed run does not save its plan",
        "azjax/programs/prepare.py",
        'processes.in_first(lambda: files.write_json(run_dir / "plan.json", content))',
        "pass",
        "tests/programs/test_programs.py::test_a_finished_run_is_resumed",
    ),
    Mutation(
        "programs: damaged checkpoints stay where they are",
        "azjax/programs/prepare.py",
        "set_aside=True",
        "set_aside=False",
        "tests/programs/test_programs.py::test_a_damaged_run_continues_from_an_older_checkpoint",
    ),
    Mutation(
        "programs: a new run takes the number of a broken link",
        "azjax/runs/directory.py",
        "path for path in paths if not os.path.lexists(path)",
        "path for path in paths if not os.path.exists(path)",
        "tests/programs/test_programs.py::test_without_a_run_the_newest_is_taken",
    ),
    Mutation(
        "train: any certificate counts as the goal",
        "azjax/proof/callbacks.py",
        'certificate is not None and (self._goal == "unbeatable" or certificate.perfect)',
        "certificate is not None",
        "tests/programs/test_programs.py::test_stops_as_soon_as_the_goal_is_reached",
    ),
    Mutation(
        "train: the last network of a larger game is not examined",
        "azjax/proof/callbacks.py",
        "is_due=is_last or loop.iteration % self.every == 0",
        "is_due=loop.iteration % self.every == 0",
        "tests/programs/test_programs.py::test_a_larger_game_is_examined_now_and_then_and_at_the_end",
    ),
    Mutation(
        "train: --examine-every has no effect",
        "azjax/proof/callbacks.py",
        "self.every = min(every, most_between or every)",
        "self.every = every",
        "tests/programs/test_programs.py::test_a_larger_game_is_examined_now_and_then_and_at_the_end",
    ),
    Mutation(
        "train: a run that reached its goal trains on when it is resumed",
        "azjax/proof/callbacks.py",
        "        if loop.iteration > 0:\n            self._check_goal(loop)",
        "        pass",
        "tests/programs/test_programs.py::test_stops_as_soon_as_the_goal_is_reached",
    ),
    Mutation(
        "train: the last iteration is not saved",
        "azjax/runs/callbacks.py",
        "if loop.is_last or loop.iteration % self._every == 0",
        "if loop.iteration % self._every == 0",
        "tests/programs/test_programs.py::test_ctrl_c_finishes_the_iteration_and_saves",
    ),
    Mutation(
        "train: the number of checkpoints to keep has no effect",
        "azjax/programs/run.py",
        "            plan.keep_checkpoints,\n",
        "            3,\n",
        "tests/programs/test_programs.py::test_a_training_writes_checkpoints_records_and_a_certificate",
    ),
    Mutation(
        "train: a report is written again without training",
        "azjax/viz/callbacks.py",
        'if not self._trained and (self._run_dir / "report.html").exists()',
        "if False",
        "tests/programs/test_programs.py::test_a_finished_run_is_resumed",
    ),
    Mutation(
        "train: the report solves the game again",
        "azjax/programs/run.py",
        "solution = verification and verification.solution",
        "solution = None",
        "tests/programs/test_programs.py::test_results_in_memory_are_reused",
    ),
    Mutation(
        "train function: the seed has no effect",
        "azjax/programs/training.py",
        'presets.get(plan["preset"]), game=name, seed=seed)',
        'presets.get(plan["preset"]), game=name)',
        "tests/programs/test_train_function.py::test_presets_and_smoke_choose_the_settings",
    ),
    Mutation(
        "train function: the plan of a resumed run cannot be changed",
        "azjax/programs/training.py",
        "saved | changes",
        "changes | saved",
        "tests/programs/test_train_function.py::test_a_resumed_run_equals_an_uninterrupted_one",
    ),
    Mutation(
        "train function: the metrics of custom callbacks are not written",
        "azjax/programs/run.py",
        "[*callbacks, Sink(lambda loop: metrics.JsonLines(path, start)), *displays]",
        "[Sink(lambda loop: metrics.JsonLines(path, start)), *callbacks, *displays]",
        "tests/programs/test_train_function.py::test_a_run_from_python_is_a_run",
    ),
    Mutation(
        "train function: a run without a goal has not reached it",
        "azjax/programs/run.py",
        'self.goal == "never" or proved',
        "proved",
        "tests/programs/test_train_function.py::test_a_run_from_python_is_a_run",
    ),
    Mutation(
        "train function: the rules of a resumed custom run are not compared",
        "azjax/programs/training.py",
        "        behavior.check_rules(run_dir, custom.game, resume=True)\n",
        "",
        "tests/programs/test_train_function.py::test_custom_parts_are_trained_resumed_and_loaded",
    ),
    Mutation(
        "players: the override table of the second seat is ignored",
        "azjax/cli/players.py",
        "for seat in range(2)]",
        "for seat in range(1)]",
        "tests/programs/test_players.py::test_a_repaired_player_plays_by_its_override_table",
    ),
    Mutation(
        "players: another algorithm has the settings of the run",
        "azjax/cli/players.py",
        'if spec.name not in ("alphazero", search.algorithm)',
        'if spec.name != "alphazero"',
        "tests/programs/test_players.py::test_searches_have_the_settings_of_the_run",
    ),
    Mutation(
        "players: a time does not size the tree",
        "azjax/cli/players.py",
        "max(256, min(int(_FASTEST * spec.seconds), MOST_SIMULATIONS))",
        "MOST_SIMULATIONS",
        "tests/programs/test_players.py::test_a_time_in_place_of_a_number",
    ),
    Mutation(
        "players: two players have one name",
        "azjax/cli/players.py",
        "agent if names.count(agent.name) == 1 else agent._replace(name=spec)",
        "agent",
        "tests/programs/test_players.py::test_players_have_different_names",
    ),
    Mutation(
        "play: the seats stay when another game is played",
        "azjax/cli/play.py",
        "table.seats = o, x",
        "table.seats = x, o",
        "tests/programs/test_play.py::test_seats_are_exchanged_when_playing_again",
    ),
    Mutation(
        "play: the second player's reward counts for the first",
        "azjax/cli/table.py",
        "sign = 1 if int(self.game.player(position.state)) == 0 else -1",
        "sign = 1",
        "tests/programs/test_play.py::test_a_game_in_which_the_mover_loses",
    ),
    Mutation(
        "play: a repaired player moves second by default",
        "azjax/cli/play.py",
        "is_first = is_shipped and has_overrides(opponent)",
        "is_first = False",
        "tests/programs/test_play.py::test_the_default_opponent",
    ),
    Mutation(
        "play: the seed has no effect",
        "azjax/cli/play.py",
        "jax.random.key(options.seed)",
        "jax.random.key(0)",
        "tests/programs/test_play.py::test_the_same_seed_plays_the_same_game",
    ),
    Mutation(
        "programs: JSON has a first line",
        "azjax/cli/__init__.py",
        '{"-h", "--help", "--json"}',
        '{"-h", "--help"}',
        "tests/programs/test_cli.py::test_a_line_is_printed_before_the_program_is_imported",
    ),
    Mutation(
        "programs: every process has a first line",
        "azjax/cli/__init__.py",
        'os.environ.get("JAX_PROCESS_ID", "0") == "0"',
        "True",
        "tests/programs/test_cli.py::test_a_line_is_printed_before_the_program_is_imported",
    ),
    Mutation(
        "options: a resumed run takes other settings",
        "azjax/cli/options.py",
        "changes + list_changes(saved.config, options.config)",
        "changes",
        "tests/programs/test_options.py::test_settings_of_another_kind_are_refused",
    ),
]


# Imported once; each mistake is then made in a fork of the process. None starts a thread of JAX.
LIBRARIES = "chex flashbax flax.nnx jax.numpy mctx numpy optax pytest rich.console scipy tyro"
TIMEOUT = 600  # Seconds after which a test counts as hanging.


class Result(NamedTuple):
    """What the tests of a mistake did.

    Attributes:
      failed: the test that noticed it; empty if none did.
      why: why it was not noticed.
      seconds: CPU time.
    """

    failed: str
    why: str
    seconds: float


def copy_tree(folder: pathlib.Path) -> None:
    """Copies what tests need; the copy shares the compilation cache of the original."""

    def ignore(source: str, names: list[str]) -> set[str]:
        outputs = {"runs", "build", "dist", "site"} if pathlib.Path(source) == ROOT else set()
        return {name for name in names if name.startswith(".") or name in outputs}

    shutil.copytree(ROOT, folder, ignore=ignore)
    cache = ROOT / ".pytest_cache"
    cache.mkdir(exist_ok=True)
    (folder / ".pytest_cache").symlink_to(cache)


def start_worker(temporary: str) -> None:
    """Moves this process to its own copy of the tree, and imports the library from there."""
    folder = pathlib.Path(temporary) / str(os.getpid())
    copy_tree(folder)
    os.chdir(folder)
    sys.path[0] = str(folder)
    for module in find_imports():
        importlib.import_module(module)


def find_imports() -> dict[str, set[str]]:
    """Returns the modules of the library, each with the modules that it imports."""
    files = {}
    for path in sorted(pathlib.Path("azjax").rglob("*.py")):
        name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        files[name] = ast.parse(path.read_text())
    files.pop("azjax.__main__")
    imports: dict[str, set[str]] = {}
    for name, tree in files.items():
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        given = {(f"{n.module}.{each.name}", n.module) for n in nodes for each in n.names}
        found = {whole if whole in files else package for whole, package in given}
        imports[name] = found & files.keys() - {name, "azjax"}
    return imports


def load_again(file: str) -> None:
    """Executes a changed module again, and all that import it, in the order of their imports."""
    imports = find_imports()
    changed = {file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")}
    for module in graphlib.TopologicalSorter(imports).static_order():
        if module in changed or imports[module] & changed:
            changed.add(module)
            importlib.reload(sys.modules[module])


def run_tests(mutation: Mutation, log: pathlib.Path) -> int:
    """Runs the tests of a mistake that are not slow until one fails; returns the exit status."""
    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if mutation.file.startswith("azjax/") and mutation.file.endswith(".py"):
        load_again(mutation.file)
    options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    return importlib.import_module("pytest").main([*options, *mutation.tests.split()])


def attempt(mutation: Mutation) -> Result:
    """Makes a mistake in the copy of this process, runs its tests in a fork, and undoes it."""
    path, log = pathlib.Path(mutation.file), pathlib.Path(f"{os.getcwd()}.log")
    text, times = path.read_text(), path.stat()
    if text.count(mutation.old) != 1:
        why = f"its text is in {mutation.file} {text.count(mutation.old)} times"
        return Result("", why, 0.0)
    path.write_text(text.replace(mutation.old, mutation.new))
    # Python compiles a file again if its time or size changed: every mistake has its own time.
    later = times.st_mtime + 2 + MUTATIONS.index(mutation)
    os.utime(path, (later, later))
    try:
        if not (process := os.fork()):
            status = 70
            try:
                signal.alarm(TIMEOUT)
                status = run_tests(mutation, log)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(status)
        _, status, usage = os.wait4(process, 0)
    finally:
        path.write_text(text)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    lines, seconds = log.read_text(errors="replace").splitlines(), usage.ru_utime + usage.ru_stime
    failed = [line.split(" - ")[0].split(" ", 1)[1] for line in lines if line.startswith("FAILED ")]
    if failed and not any(line.startswith("ERROR ") for line in lines):
        return Result(failed[0], "", seconds)  # Errors outside a test do not count.
    status, last = os.waitstatus_to_exitcode(status), "".join(lines[-1:])
    return Result("", f"pytest ended with {status}: {last}", seconds)


def main() -> int:
    """Makes each mistake separately; the exit status is 0 if all were noticed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="only mistakes with one of these words")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    options = parser.parse_args()
    words = options.words or [""]
    chosen = [m for m in MUTATIONS if any(word in f"{m.name} {m.tests}" for word in words)]
    os.environ["JAX_PLATFORMS"] = "cpu"
    for library in LIBRARIES.split():
        importlib.import_module(library)
    unnoticed, seconds, fork = 0, 0.0, multiprocessing.get_context("fork")
    with (
        tempfile.TemporaryDirectory() as temporary,
        fork.Pool(options.jobs, start_worker, (temporary,)) as pool,
    ):
        for mutation, result in zip(chosen, pool.imap(attempt, chosen), strict=True):
            unnoticed += not result.failed
            seconds += result.seconds
            verdict = f"noticed in {result.seconds:5.1f} s" if result.failed else "NOT NOTICED"
            print(f"{verdict:<18} {mutation.name}  {result.failed or result.why}", flush=True)
    noticed = len(chosen) - unnoticed
    print(f"{noticed} of {len(chosen)} mistakes were noticed, in {seconds:.0f} CPU seconds")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
