"""Mistakes put into the code one at a time, to see that the tests notice: by hand, not by pytest.

    python tests/mutations.py               # all of them, two at a time: about twelve minutes
    python tests/mutations.py gumbel keys   # those whose name holds one of these words

Each mistake is a replacement of text in one file, made in a copy of the tree, and the tests
that should fail with it. `tests/programs/test_mutations.py` holds the table to the code: a text
that is no longer there, or a test that is gone, fails there.
"""

import argparse
import concurrent.futures
import pathlib
import shutil
import subprocess
import sys
import tempfile
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parent.parent


class Mutation(NamedTuple):
    """A mistake.

    Attributes:
      name: what it does wrong, after the name of its area.
      file: where.
      old: the text that it replaces, which must be there exactly once.
      new: what it puts in its place.
      tests: files of tests, or single ones, of which at least one must fail.
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
        "tests/core/test_legality.py",
    ),
    Mutation(
        "search: logits of legal actions may be -inf",
        "azjax/search/tree.py",
        "clipped = jnp.clip(logits.astype(jnp.float32), -_LARGEST, _LARGEST)",
        "clipped = logits.astype(jnp.float32)",
        "tests/core/test_legality.py",
    ),
    Mutation(
        "search: where values are NaN, Gumbel plays action 0",
        "azjax/search/gumbel.py",
        "jnp.where(legal[action], action, jnp.argmax(legal))",
        "jnp.where(True, action, jnp.argmax(legal))",
        "tests/core/test_legality.py",
    ),
    Mutation(
        "search: where values are NaN, UCT plays action 0",
        "azjax/search/uct.py",
        "score = jnp.where(jnp.isnan(score), jnp.inf, score)",
        "score = jnp.where(jnp.isnan(score), -jnp.inf, score)",
        "tests/core/test_legality.py",
    ),
    Mutation(
        "search: UCT tries actions in an order of few levels",
        "azjax/search/uct.py",
        "first = jnp.argmax(jnp.where(untried, order, -jnp.inf))",
        "first = jnp.argmax(jnp.where(untried, 1e6 + order, -jnp.inf))",
        "tests/core/test_uct.py",
    ),
    Mutation(
        "search: all positions of a batch share the key of the first below the root",
        "azjax/search/make.py",
        "jax.vmap(jax.random.fold_in, (0, None))(keys_tree, i)",
        "jax.vmap(jax.random.fold_in, (0, None))(keys_tree[:1].repeat(len(keys_tree)), i)",
        "tests/core/test_legality.py",
    ),
    Mutation(
        "search: all positions of a batch share the order of the first",
        "azjax/search/uct.py",
        "keys_order, keys_action = keys[:, 0], keys[:, 1]",
        "keys_order, keys_action = keys[:1, 0].repeat(len(keys)), keys[:, 1]",
        "tests/core/test_legality.py",
    ),
    Mutation(
        "search: a random game that is cut off counts as a draw",
        "azjax/evaluators.py",
        "jnp.where(jax.vmap(game.is_over)(states), total, jnp.nan)",
        "total",
        "tests/core/test_evaluators.py",
    ),
    Mutation(
        "search: a network's NaN is nothing to speak of",
        "azjax/player.py",
        "jnp.isnan(tree.raw_values) | jnp.any(jnp.isnan(tree.children_prior_logits), -1)",
        "jnp.zeros(tree.raw_values.shape, bool)",
        "tests/core/test_api.py",
    ),
    # Games.
    Mutation(
        "games: discs are turned that no other disc holds",
        "azjax/games/othello.py",
        "jnp.where(is_held, found, 0)",
        "found",
        "tests/core/test_games.py",
    ),
    Mutation(
        "games: pgx's reward goes to who moves next",
        "azjax/games/from_pgx.py",
        "reward = after.rewards[state.current_player]",
        "reward = after.rewards[after.current_player]",
        "tests/core/test_pgx.py",
    ),
    Mutation(
        "lines: the move of a position is made in its images, too",
        "azjax/lines.py",
        "transformed = images[:, actions]",
        "transformed = images[:1].repeat(len(images), axis=0)[:, actions]",
        "tests/core/test_lines.py",
    ),
    Mutation(
        "games: half a hash is enough to know a position by",
        "azjax/hashing.py",
        "== second[:, None]",
        "== jnp.asarray(high)[found]",
        "tests/core/test_hashing.py",
    ),
    Mutation(
        "games: a larger game is examined in every iteration",
        "experiments/proof.py",
        "or state.iteration % proof.every)",
        "or False)",
        "tests/programs/test_proof.py",
    ),
    Mutation(
        "games: what is examined in slices is examined in part",
        "azjax/certificate.py",
        "(solution.decision_states,), size, functools",
        "(solution.decision_states,), len(solution.decisions), functools",
        "tests/core/test_certificate.py",
    ),
    # Lines.
    Mutation(
        "lines: the opponent follows the player's policy, too",
        "azjax/lines.py",
        "own = player == seat",
        "own = player == player",
        "tests/core/test_lines.py",
    ),
    Mutation(
        "mending: the worst mistake of a game is mended, not the last",
        "azjax/mending.py",
        "if most > _CLEARLY:",
        "if False:",
        "tests/core/test_mending.py",
    ),
    Mutation(
        "mending: what a move led to is forgotten",
        "azjax/mending.py",
        "self.expected[action] = min(self.expected[action], worth)",
        "self.expected[action] = min(self.expected[action], 1.0)",
        "tests/core/test_mending.py",
    ),
    Mutation(
        "mending: a position counts as lost before every move is refuted",
        "azjax/mending.py",
        "return not (self.legal & ~self.refuted).any()",
        "return self.refuted.any()",
        "tests/core/test_mending.py",
    ),
    Mutation(
        "mending: what is refuted in a position is not so in its images",
        "azjax/mending.py",
        "np.stack(refuted)[:, np.argsort(image)] for image",
        "np.stack(refuted) for image",
        "tests/core/test_mending.py",
    ),
    Mutation(
        "mending: images of a position keep the move that loses",
        "azjax/mending.py",
        "moves, refuted, images_of(game, symmetric))",
        "moves, refuted, images_of(game, False))",
        "tests/core/test_mending.py",
    ),
    Mutation(
        "mending: a book moves in positions that are not in it",
        "azjax/mending.py",
        "action = jnp.where(is_known, ",
        "action = jnp.where(is_known | True, ",
        "tests/core/test_mending.py",
    ),
    Mutation(
        "mending: what images do otherwise stays so",
        "azjax/mending.py",
        "moves, nothing, images_of(game, True))",
        "moves, nothing, images_of(game, False))",
        "tests/core/test_mending.py",
    ),
    Mutation(
        "lines: any image's move is right in all of them",
        "azjax/lines.py",
        "alike[:, one] |= is_same & (",
        "alike[:, one] |= (",
        "tests/core/test_lines.py",
    ),
    Mutation(
        "mending: images that nobody asked about are proved",
        "experiments/lines.py",
        "if symmetric and not found.ends.moves[2] and not found.sampled:",
        "if False:",
        "tests/programs/test_players.py",
    ),
    Mutation(
        "lines: what a sample stands for is forgotten",
        "azjax/lines.py",
        'drawn["group"], drawn["games"] = group, between',
        'drawn["group"], drawn["games"] = group, 1',
        "tests/core/test_lines.py",
    ),
    Mutation(
        "lines: positions that share a hash are taken for one",
        "azjax/rows.py",
        "same = equal_neighbours(words)\n    if",
        "same = equal_neighbours([hashed])\n    if",
        "tests/core/test_rows.py",
    ),
    Mutation(
        "lines: a part counts as done before what follows from it is written",
        "azjax/lines.py",
        """            _save(layer / f"children-{number:06d}.npy", children)
            _save(paths[number], **found)
""",
        """            _save(paths[number], **found)
            _save(layer / f"children-{number:06d}.npy", children)
""",
        "tests/core/test_lines_files.py",
    ),
    Mutation(
        "lines: what follows a ply is dropped before the next ply stands",
        "azjax/lines.py",
        "    _write_ply(_layer(folder, ply + 1), merged, most)\n",
        """    merged = list(merged)
    for path in found:
        path.unlink()
    _write_ply(_layer(folder, ply + 1), merged, most)
""",
        "tests/core/test_lines_files.py",
    ),
    Mutation(
        "lines: what follows a ply stays if the walk was killed before it was dropped",
        "azjax/lines.py",
        """            _gather(folder, ply, most, part_size)
        for path in layer.glob("children-*.npy"):
            path.unlink()
""",
        """            _gather(folder, ply, most, part_size)
            for path in layer.glob("children-*.npy"):
                path.unlink()
""",
        "tests/core/test_lines_files.py",
    ),
    Mutation(
        "lines: a ply is written in place",
        "azjax/lines.py",
        """    beside = layer.with_suffix(".tmp")
""",
        """    beside = layer
""",
        "tests/core/test_lines_files.py",
    ),
    Mutation(
        "lines: a file is written in place",
        "azjax/lines.py",
        "    with replacing(path) as beside, beside.open",
        "    with path.open",
        "tests/core/test_lines_files.py",
    ),
    Mutation(
        "lines: a ply that was followed takes as much space as before",
        "azjax/lines.py",
        'repack_fields(np.load(path)[["parent", "action"]])',
        'np.load(path)[["parent", "action"]]',
        "tests/core/test_lines.py::test_a_ply_that_was_followed_takes_little_space",
    ),
    Mutation(
        "lines: parts of which nothing is drawn stay",
        "azjax/lines.py",
        "enumerate((part for part in drawn if len(part)), start=1)",
        "enumerate(drawn, start=1)",
        "tests/core/test_lines.py::test_no_size_of_parts_is_too_small_for_a_sample",
    ),
    Mutation(
        "lines: an illegal move of the player is made",
        "azjax/lines.py",
        "        if not is_legal.all():\n            row = is_legal.argmin()",
        "        if False:\n            row = is_legal.argmin()",
        "tests/core/test_lines.py::test_an_illegal_move_in_a_symmetric_copy_is_refused",
    ),
    Mutation(
        "lines: a game without an end is followed without end",
        "azjax/lines.py",
        "if ply + shortest >= game.max_plies:",
        "if ply > 9:",
        "tests/core/test_lines.py::test_a_game_that_lasts_too_long_is_refused",
    ),
    Mutation(
        "lines: illegal moves are replayed",
        "azjax/lines.py",
        "return after, (ply >= count) | is_legal",
        "return after, (ply >= 0) | is_legal",
        "tests/core/test_lines.py::test_only_legal_moves_are_replayed",
    ),
    Mutation(
        "lines: positions of a part are not merged",
        "azjax/lines.py",
        "return _merge(children), {",
        "return children, {",
        "tests/core/test_lines.py::test_exhaustive_play_equals_the_reference",
    ),
    Mutation(
        "lines: positions of different parts are not merged",
        "azjax/lines.py",
        "lambda bucket: _merge(np.concatenate(bucket))",
        "lambda bucket: np.concatenate(bucket)",
        "tests/core/test_lines.py::test_exhaustive_play_equals_the_reference",
    ),
    Mutation(
        "lines: the opponent's positions count as decisions",
        "azjax/lines.py",
        '"decisions": moves.own.sum()',
        '"decisions": len(moves.own)',
        "tests/core/test_lines.py::test_exhaustive_play_equals_the_reference",
    ),
    Mutation(
        "lines: each sample has as many positions as all may have",
        "azjax/lines.py",
        "totals[0] > 0, most // GROUPS",
        "totals[0] > 0, most",
        "tests/core/test_lines_samples.py",
    ),
    Mutation(
        "lines: as many positions as allowed are a sample",
        "azjax/lines.py",
        "bounds[-1] > most:",
        "bounds[-1] >= most:",
        "tests/core/test_lines_samples.py::test_as_many_positions_as_allowed_are_no_sample",
    ),
    Mutation(
        "lines: the samples share their positions",
        "azjax/lines.py",
        "np.random.default_rng(seed).random(GROUPS), np",
        "np.random.default_rng(seed).random(1).repeat(GROUPS), np",
        "tests/core/test_lines_samples.py",
    ),
    Mutation(
        "lines: the samples of all plies begin at the same places",
        "azjax/lines.py",
        "_sampler(whole, most, int(layer.name))",
        "_sampler(whole, most, 0)",
        "tests/core/test_lines_samples.py",
    ),
    Mutation(
        "lines: the seed of a sample is without effect",
        "azjax/lines.py",
        "np.random.default_rng(seed).random(GROUPS), np",
        "np.random.default_rng(0).random(GROUPS), np",
        "tests/core/test_lines_samples.py",
    ),
    Mutation(
        "lines: positions are drawn alike, however many games lead there",
        "azjax/lines.py",
        'passed[group - 1] + np.cumsum(mine["games"])',
        'passed[group - 1] + np.cumsum(np.full(len(mine), mine["games"].mean()))',
        "tests/core/test_lines_samples.py",
    ),
    Mutation(
        "lines: the draw begins again with every part",
        "azjax/lines.py",
        "        passed[group - 1] = reached[-1]\n",
        "",
        "tests/core/test_lines_samples.py",
    ),
    Mutation(
        "lines: intervals are four times too narrow",
        "azjax/lines.py",
        "shares.std(ddof=1) / np.sqrt(GROUPS)",
        "shares.std(ddof=1) / GROUPS",
        "tests/core/test_lines_samples.py",
    ),
    Mutation(
        "lines: an interval of 90% is said to be of 95%",
        "azjax/lines.py",
        "stats.t.ppf((1 + confidence) / 2, GROUPS - 1)",
        "stats.t.ppf(confidence, GROUPS - 1)",
        "tests/core/test_lines_samples.py",
    ),
    Mutation(
        "lines: the games of all samples are added",
        "azjax/lines.py",
        "games = self.games[:1] + self.games[1:]",
        "games = self.games[:1] + self.games[1:].sum(axis=0)",
        "tests/core/test_lines_samples.py",
    ),
    Mutation(
        "lines: the share of the games won is that of the games lost",
        "azjax/lines.py",
        "estimate = games[:, column].mean()",
        "estimate = games[:, 2 - column].mean()",
        "tests/core/test_lines_samples.py",
    ),
    Mutation(
        "lines: a start is followed as it is in all its images",
        "azjax/lines.py",
        "played = [[tuple(image[list(line)]) for line in starts] for image in images]",
        "played = [[tuple(line) for line in starts] for image in images]",
        "tests/core/test_lines.py::test_symmetric_copies_are_followed_as_the_reference_does",
    ),
    Mutation(
        "lines: a broken symmetry is looked for in the first part alone",
        "azjax/lines.py",
        '"unlike": moves.unlike + (offset, 0)}',
        '"unlike": moves.unlike[: None if not offset else 0] + (offset, 0)}',
        "tests/core/test_lines.py::test_a_broken_symmetry_is_found_in_every_part",
    ),
    Mutation(
        "lines: lost games are looked for among the first ends alone",
        "azjax/lines.py",
        "np.stack([ended + offset, last], axis=1)[columns == 2][:_LOST]",
        "np.stack([ended + offset, last], axis=1)[:_LOST][columns[:_LOST] == 2]",
        "tests/core/test_lines.py::test_each_part_keeps_as_many_lost_games_as_it_may",
    ),
    Mutation(
        "lines: what was written of a ply before it was killed stays",
        "azjax/lines.py",
        """    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
""",
        """    beside.mkdir(exist_ok=True)
""",
        "tests/core/test_lines_files.py",
    ),
    Mutation(
        "lines: a sample is drawn after its ply stands",
        "azjax/lines.py",
        "        draw, paths = _sampler",
        "        beside = beside.rename(layer)\n        draw, paths = _sampler",
        "tests/core/test_lines_files.py",
    ),
    Mutation(
        "lines: all parts of a ply are in memory",
        "azjax/lines.py",
        "            if len(waiting) == _WORKERS:",
        "            if False:",
        "tests/core/test_lines_files.py::test_few_parts_are_in_memory_at_a_time",
    ),
    Mutation(
        "lines: a position that is drawn twice is followed twice",
        "azjax/lines.py",
        """    return lambda rows: _merge(
        np.concatenate([draw_one""",
        """    return lambda rows: (
        np.concatenate([draw_one""",
        "tests/core/test_lines_samples.py",
    ),
    Mutation(
        "lines: the walk of one seat goes on with the positions of the other",
        "azjax/lines.py",
        "json.loads(path.read_text())) != given:",
        "json.loads(path.read_text())) == 0:",
        "tests/core/test_lines.py::test_a_folder_of_another_walk_is_refused",
    ),
    Mutation(
        "lines: games end without a trace where no move is legal",
        "azjax/lines.py",
        "    if not goes_on.all():",
        "    if False:",
        "tests/core/test_lines.py::test_a_position_without_a_legal_move_that_is_not_over_is_refused",
    ),
    Mutation(
        "lines: a player that answers for one position answers for all",
        "azjax/lines.py",
        """    if chosen.shape != (asked.shape[0] * asked.shape[1],):
""",
        """    chosen = np.resize(chosen, asked.shape[0] * asked.shape[1])
    if False:
""",
        "tests/core/test_lines.py::test_a_player_answers_with_one_action_for_each_position",
    ),
    Mutation(
        "rows: no rows are no batch",
        "azjax/rows.py",
        "    if not count:\n",
        "    if False:\n",
        "tests/core/test_rows.py::test_any_number_of_rows_is_done_in_batches",
    ),
    Mutation(
        "oracle: a game without an end is enumerated without end",
        "azjax/oracle.py",
        "if len(layers) > game.max_plies:",
        "if len(layers) > 99:",
        "tests/core/test_oracle.py::test_a_game_beyond_its_own_limits_is_not_enumerated",
    ),
    Mutation(
        "oracle: a game has more positions than it says",
        "azjax/oracle.py",
        "if offset > most:",
        "if size > most:",
        "tests/core/test_oracle.py::test_a_game_beyond_its_own_limits_is_not_enumerated",
    ),
    Mutation(
        "proof: a sample without a lost game is called unbeatable",
        "experiments/lines.py",
        "not (self.found.sampled or self.found.unlike",
        "not (self.found.unlike",
        "tests/programs/test_unbeatable.py::test_a_sample_proves_nothing",
    ),
    Mutation(
        "proof: the exit status ignores the positions left out",
        "experiments/lines.py",
        "return 0 if walk.is_proof else 1",
        "return 1 if walk.found.ends.moves[2] else 0",
        "tests/programs/test_unbeatable.py::test_a_sample_proves_nothing",
    ),
    Mutation(
        "proof: JSON hides that positions were left out",
        "experiments/lines.py",
        '"sampled": found.sampled,',
        '"sampled": False,',
        "tests/programs/test_unbeatable.py::test_a_sample_proves_nothing",
    ),
    Mutation(
        "proof: a sample is one only if it lost a game",
        "azjax/lines.py",
        "bool(ends.games[1:].any())",
        "bool(ends.games[1:, 2].any())",
        "tests/programs/test_unbeatable.py::test_a_sample_proves_nothing",
    ),
    Mutation(
        "proof: a sample on disk is taken for all games",
        "experiments/lines.py",
        '(f"-{most}" if most else "")',
        '""',
        "tests/programs/test_unbeatable.py::test_a_sample_proves_nothing",
    ),
    Mutation(
        "proof: both seats share a traversal",
        "experiments/lines.py",
        'return f"{player.iteration}-{seat}-{simulations}"',
        'return f"{player.iteration}-{simulations}"',
        "tests/programs/test_unbeatable.py::test_no_player_goes_on_where_another_was",
    ),
    Mutation(
        "proof: a search goes on where the network alone was",
        "experiments/lines.py",
        'return f"{player.iteration}-{seat}-{simulations}"',
        'return f"{player.iteration}-{seat}"',
        "tests/programs/test_unbeatable.py::test_no_player_goes_on_where_another_was",
    ),
    Mutation(
        "proof: a network goes on where another one was",
        "experiments/lines.py",
        "(player.params, book.states, book.actions)",
        "(book.states, book.actions)",
        "tests/programs/test_unbeatable.py::test_no_player_goes_on_where_another_was",
    ),
    Mutation(
        "proof: a book goes on where one with other moves was",
        "experiments/lines.py",
        "(player.params, book.states, book.actions)",
        "(player.params, book.states)",
        "tests/programs/test_unbeatable.py::test_a_book_is_played_if_it_is_asked_for",
    ),
    Mutation(
        "proof: what all symmetric copies lead to is ignored",
        "experiments/lines.py",
        '(folder, found), symmetric = walk("-images"), False',
        '(folder, _), symmetric = walk("-images"), False',
        "tests/programs/test_unbeatable.py::test_what_is_done_differently_in_one_symmetric_copy_counts",
    ),
    Mutation(
        "proof: a search that draws lots is accepted",
        "experiments/lines.py",
        "if not search.is_deterministic:",
        "if False:",
        "tests/programs/test_unbeatable.py::test_nothing_is_proved_of_a_search_that_draws_lots",
    ),
    Mutation(
        "proof: a book is played without being asked for",
        "experiments/lines.py",
        "if rounds and path.exists():",
        "if path.exists():",
        "tests/programs/test_unbeatable.py::test_a_book_is_played_if_it_is_asked_for",
    ),
    Mutation(
        "proof: the next book is named with the games of the last one",
        "experiments/lines.py",
        "better, starts = _improve(",
        "better, starts = book, _ = _improve(",
        "tests/programs/test_unbeatable.py::test_what_is_lost_whatever_is_played_stays_so",
    ),
    Mutation(
        "proof: broken symmetry is looked for in the first part alone",
        "azjax/lines.py",
        'unlike = unlike or bool(len(file["unlike"]))',
        'unlike = unlike or (not number and bool(len(file["unlike"])))',
        "tests/core/test_lines_symmetry.py::test_every_part_is_searched_for_broken_symmetry",
    ),
    Mutation(
        "mending: the best move may be a refuted one",
        "azjax/mending.py",
        "left = np.where(self.legal & ~self.refuted, self.expected",
        "left = np.where(self.legal, self.expected",
        "tests/core/test_mending.py::test_the_best_move_is_no_refuted_one",
    ),
    Mutation(
        "mending: of equal mistakes the first is mended",
        "azjax/mending.py",
        "and gain > most:",
        "and gain >= most:",
        "tests/core/test_mending.py::test_experience_corrects_what_was_expected",
    ),
    Mutation(
        "mending: a search is believed about refuted moves",
        "azjax/mending.py",
        "(visits[row] > 0) & ~losing",
        "visits[row] > 0",
        "tests/core/test_mending.py::test_nothing_is_expected_of_what_the_book_refutes",
    ),
    Mutation(
        "mending: a move is worth what it led to last",
        "azjax/mending.py",
        "self.expected[action] = min(self.expected[action], worth)",
        "self.expected[action] = worth",
        "tests/core/test_mending.py::test_all_that_moves_led_to_is_remembered",
    ),
    Mutation(
        "mending: a refuted move is one no longer after another game",
        "azjax/mending.py",
        "self.refuted[action] |= is_lost",
        "self.refuted[action] = is_lost",
        "tests/core/test_mending.py::test_all_that_moves_led_to_is_remembered",
    ),
    Mutation(
        "mending: the count of the rounds is not saved",
        "experiments/lines.py",
        "save_book(path, better)",
        "save_book(path, better._replace(rounds=book.rounds))",
        "tests/programs/test_unbeatable.py::test_as_many_rounds_are_made_as_asked_for",
    ),
    Mutation(
        "mending: the count of the rounds is not read",
        "azjax/mending.py",
        'file["rounds"].item()',
        "0",
        "tests/programs/test_unbeatable.py::test_as_many_rounds_are_made_as_asked_for",
    ),
    Mutation(
        "mending: what is repaired is not so in symmetric copies",
        "experiments/lines.py",
        "SEATS[seat], think, walk.symmetric)",
        "SEATS[seat], think, False)",
        "tests/programs/test_unbeatable.py::test_symmetric_copies_are_repaired_alike",
    ),
    Mutation(
        "proof: a search goes on where one with other settings was",
        "experiments/lines.py",
        "network.symmetric, player.parts.search\n",
        "network.symmetric\n",
        "tests/programs/test_unbeatable.py::test_no_player_goes_on_where_another_was",
    ),
    Mutation(
        "mending: a book with a move that is not legal is read",
        "azjax/mending.py",
        "if not fits or not (legal & moves)",
        "if not fits or not (moves)",
        "tests/core/test_mending.py::test_a_file_that_is_no_book_is_named",
    ),
    Mutation(
        "mending: every round thinks as long as the first",
        "experiments/lines.py",
        "* 2**book.rounds",
        "",
        "tests/programs/test_unbeatable.py::test_each_round_thinks_longer",
    ),
    Mutation(
        "proof: the goals of the exit status are exchanged",
        "experiments/verify.py",
        'if options.until == "unbeatable" else',
        'if options.until != "unbeatable" else',
        "tests/programs/test_unbeatable.py::test_the_goal_decides_on_the_exit_status",
    ),
    Mutation(
        "proof: other searches are examined than asked for",
        "experiments/verify.py",
        "for number in options.simulations or _PROVED",
        "for number in _PROVED",
        "tests/programs/test_unbeatable.py::test_a_search_that_errs_is_not_perfect",
    ),
    Mutation(
        "proof: symmetric copies are not compared",
        "experiments/lines.py",
        'walk("-compared", symmetric=True, compare=True)',
        'walk("-compared", symmetric=True)',
        "tests/programs/test_unbeatable.py::test_what_is_done_differently_in_one_symmetric_copy_counts",
    ),
    Mutation(
        "mending: what a book refutes is tried again",
        "experiments/lines.py",
        "make_decide(make_agent(player, number)), book)",
        "make_decide(make_agent(player, number)), empty_book(game))",
        "tests/programs/test_unbeatable.py::test_each_round_thinks_longer",
    ),
    Mutation(
        "mending: what comes of a repair is followed without it",
        "experiments/lines.py",
        "act = make_act(book_agent(game, base, book))",
        "act = make_act(base)",
        "tests/programs/test_unbeatable.py::test_symmetric_copies_are_repaired_alike",
    ),
    Mutation(
        "mending: a book is written in place",
        "azjax/mending.py",
        'with replacing(path) as beside, beside.open("wb") as file:',
        'with path.open("wb") as file:',
        "tests/core/test_mending.py::test_a_book_is_written_whole_or_not_at_all",
    ),
    Mutation(
        "programs: one that stops by itself is ended by a thread that hears of Ctrl-C late",
        "experiments/interrupts.py",
        "while self.made and now.listens",
        "while False and now.listens",
        "tests/programs/test_interrupts.py::"
        "test_a_program_that_stops_by_itself_waits_for_the_thread_that_listens",
    ),
    # The certificate.
    Mutation(
        "certificate: whoever is unbeatable is called perfect",
        "azjax/certificate.py",
        'if content["perfect"]:',
        'if content["unbeatable"]:',
        "tests/core/test_certificate.py::test_one_fault_of_any_kind_is_too_many",
    ),
    Mutation(
        "certificate: sums of losing lines wrap around",
        "azjax/verify.py",
        "most = min(_MOST_LINES, np.iinfo(np.int32).max // num_actions)",
        "most = _MOST_LINES",
        "tests/core/test_verify.py::test_very_many_losing_lines_of_many_actions_fit_in_32_bits",
    ),
    Mutation(
        "certificate: sums of lines lost in vain wrap around",
        "azjax/verify.py",
        "jnp.minimum(later, most)",
        "later",
        "tests/core/test_verify.py::test_very_many_losing_lines_of_many_actions_fit_in_32_bits",
    ),
    Mutation(
        "certificate: searches with noise",
        "azjax/certificate.py",
        "result = find(params, jax.random.key(0), states)",
        "result = find(params, jax.random.key(0), states, add_noise=True)",
        "tests/core/test_certificate.py",
    ),
    Mutation(
        "certificate: searches at temperature 1",
        "azjax/certificate.py",
        "result = find(params, jax.random.key(0), states)",
        "result = find(params, jax.random.key(0), states, 1.0)",
        "tests/core/test_certificate.py",
    ),
    Mutation(
        "certificate: searches with default settings",
        "azjax/certificate.py",
        "Gumbel(), search.algorithm: search}",
        "Gumbel()}",
        "tests/core/test_certificate.py",
    ),
    Mutation(
        "certificate: both proofs by PUCT",
        "azjax/certificate.py",
        "int(judge_one(params, s).blunders)",
        "int(judge_one(params, searches[0]).blunders)",
        "tests/core/test_certificate.py",
    ),
    Mutation(
        "certificate: unbeatable from one seat",
        "azjax/certificate.py",
        "return self.losing_lines_first + self.losing_lines_second == 0",
        "return self.losing_lines_first == 0",
        "tests/core/test_certificate.py",
    ),
    Mutation(
        "certificate: the goal is reached from one seat",
        "azjax/certificate.py",
        "not np.any(verdict.losing_lines)",
        "not np.any(verdict.losing_lines[0])",
        "tests/core/test_certificate.py",
    ),
    # Gumbel.
    Mutation(
        "gumbel: halving ignores Q",
        "azjax/search/gumbel.py",
        "gumbel + logits - jnp.max(logits) + qtransform(tree, node)",
        "gumbel + logits - jnp.max(logits)",
        "tests/core/test_gumbel.py",
    ),
    Mutation(
        "gumbel: halving takes Q unscaled",
        "azjax/search/gumbel.py",
        "jnp.max(logits) + qtransform(tree, node)",
        "jnp.max(logits) + jnp.where(visits > 0, tree.qvalues(node), tree.raw_values[node])",
        "tests/core/test_gumbel.py",
    ),
    Mutation(
        "gumbel: halving ignores the noise",
        "azjax/search/gumbel.py",
        "jnp.maximum(-1e9, gumbel + logits",
        "jnp.maximum(-1e9, logits",
        "tests/core/test_gumbel.py",
    ),
    Mutation(
        "gumbel: the action is chosen without the noise",
        "azjax/search/gumbel.py",
        "jnp.where(finalist, gumbel + improved, -jnp.inf)",
        "jnp.where(finalist, improved, -jnp.inf)",
        "tests/core/test_gumbel.py",
    ),
    Mutation(
        "gumbel: the interior follows the prior alone",
        "azjax/search/gumbel.py",
        "None, tree, node, None, qtransform=qtransform",
        "None, tree, node, None, qtransform=lambda tree, node: 0.0",
        "tests/core/test_gumbel.py",
    ),
    Mutation(
        "gumbel: gumbel_scale without effect",
        "azjax/search/gumbel.py",
        "scale = jnp.where(roots.add_noise, jnp.float32(self.gumbel_scale), 0.0)",
        "scale = jnp.where(roots.add_noise, jnp.float32(1), 0.0)",
        "tests/core/test_gumbel.py",
    ),
    Mutation(
        "puct: noise asked for in one position is put into all",
        "azjax/search/puct.py",
        "jnp.where(roots.add_noise[:, None], noisy, logits)",
        "jnp.where(roots.add_noise[0], noisy, logits)",
        "tests/core/test_search.py::test_noise_may_be_asked_for_in_some_positions",
    ),
    Mutation(
        "gumbel: value_scale without effect",
        "azjax/search/gumbel.py",
        "value_scale=self.value_scale / 2",
        "value_scale=0.05",
        "tests/core/test_gumbel.py",
    ),
    Mutation(
        "gumbel: maxvisit_init without effect",
        "azjax/search/gumbel.py",
        "maxvisit_init=self.maxvisit_init",
        "maxvisit_init=50.0",
        "tests/core/test_gumbel.py",
    ),
    Mutation(
        "gumbel: max_considered_actions without effect",
        "azjax/search/gumbel.py",
        "            self.max_considered_actions, jnp.sum(",
        "            16, jnp.sum(",
        "tests/core/test_gumbel.py",
    ),
    # PUCT.
    Mutation(
        "puct: dirichlet_alpha without effect",
        "azjax/search/puct.py",
        "alpha, fraction = settings.dirichlet_alpha, settings.dirichlet_fraction",
        "alpha, fraction = 0.3, settings.dirichlet_fraction",
        "tests/core/test_search.py::test_noise_acts_in_full_on_two_legal_actions",
    ),
    Mutation(
        "puct: dirichlet_fraction without effect",
        "azjax/search/puct.py",
        "alpha, fraction = settings.dirichlet_alpha, settings.dirichlet_fraction",
        "alpha, fraction = settings.dirichlet_alpha, 0.25",
        "tests/core/test_search.py::test_noise_acts_in_full_on_two_legal_actions",
    ),
    Mutation(
        "puct: noise and move share a key",
        "azjax/search/puct.py",
        "key_noise, key_action = keys[:, 0], keys[:, 1]",
        "key_noise, key_action = keys[:, 0], keys[:, 0]",
        "tests/core/test_keys.py",
    ),
    # Training.
    Mutation(
        "training: never augments by symmetry",
        "azjax/train.py",
        "samples = jax.vmap(parts.targets.augment)(keys[:, 1], samples)",
        "samples = samples",
        "tests/core/test_iteration.py",
    ),
    Mutation(
        "training: ignores the targets' settings",
        "azjax/targets.py",
        "make=functools.partial(make_samples, config)",
        "make=functools.partial(make_samples, TargetConfig())",
        "tests/core/test_iteration.py",
    ),
    Mutation(
        "training: reports the losses of the last step",
        "azjax/train.py",
        "losses=jax.tree.map(jnp.mean, losses),",
        "losses=jax.tree.map(lambda loss: loss[-1], losses),",
        "tests/core/test_iteration.py",
    ),
    Mutation(
        "training: contradictions are found by programs alone",
        "azjax/train.py",
        "check_parts(parts, 1 if axis_name is None else jax.lax.axis_size(axis_name))",
        "pass",
        "tests/core/test_train.py::test_contradictions_are_refused_without_a_program",
    ),
    Mutation(
        "training: counts every move as a finished game",
        "azjax/train.py",
        "jnp.sum(transitions.discount == 0, dtype=jnp.float32)",
        "jnp.sum(transitions.discount <= 0, dtype=jnp.float32)",
        "tests/core/test_iteration.py",
    ),
    # Self-play and matches.
    Mutation(
        "self-play: records the value of the best action",
        "azjax/selfplay.py",
        "root_value=result.policy_value,",
        "root_value=jnp.take_along_axis(result.q_values, result.action[:, None], 1)[:, 0],",
        "tests/core/test_selfplay.py::test_what_is_recorded_is_what_the_search_found",
    ),
    Mutation(
        "self-play: records the mean of all visits",
        "azjax/selfplay.py",
        "root_value=result.policy_value,",
        "root_value=result.value,",
        "tests/core/test_selfplay.py::test_what_is_recorded_is_what_the_search_found",
    ),
    Mutation(
        "search: actions without a visit count as drawn",
        "azjax/search/algorithm.py",
        "weights = jnp.where(self.visit_counts > 0, self.action_weights, 0.0)",
        "weights = self.action_weights",
        "tests/core/test_search.py",
    ),
    Mutation(
        "archive: a position is drawn as often as it was met",
        "azjax/archive.py",
        "begins = stays & ~archive.full[place]",
        "begins = stays",
        "tests/core/test_archive.py",
    ),
    Mutation(
        "archive: entries that share a place are mixed",
        "azjax/archive.py",
        'lambda old, new: old.at[to].set(new, mode="drop"), archive.entries',
        "lambda old, new: old.at[place].set(new) if new.ndim > 1 else "
        "old.at[place[::-1]].set(new[::-1]), archive.entries",
        "tests/core/test_archive.py",
    ),
    Mutation(
        "self-play: nothing but what was played is met",
        "azjax/selfplay.py",
        "moved = where(game.is_over(state), one, Games(state, one.ply + 1))",
        "moved = one",
        "tests/core/test_archive.py",
    ),
    Mutation(
        "training: games go on that should begin anew",
        "azjax/train.py",
        "if not parts.selfplay.carry_over:",
        "if False:",
        "tests/core/test_archive.py",
    ),
    Mutation(
        "verify: games lost of necessity count",
        "azjax/verify.py",
        "later = jnp.where(in_vain[rows],",
        "later = jnp.where(in_vain[rows] & False,",
        "tests/core/test_verify.py",
    ),
    Mutation(
        "self-play: one game too many starts anew",
        "azjax/selfplay.py",
        "jnp.arange(together) < total",
        "jnp.arange(together) <= total",
        "tests/core/test_selfplay.py",
    ),
    Mutation(
        "arena: both seats play with one key",
        "azjax/arena.py",
        "key_seat = jax.random.fold_in(key, seat)",
        "key_seat = key",
        "tests/core/test_keys.py",
    ),
    Mutation(
        "arena: all batches are the same games",
        "azjax/arena.py",
        "key_batch = jax.random.fold_in(key, batch)",
        "key_batch = key",
        "tests/core/test_keys.py tests/core/test_arena.py",
    ),
    # Keys.
    Mutation(
        "keys: restarts reuse the search's",
        "azjax/selfplay.py",
        "_restart(config, game, archive, key[:, 1], over, moved)",
        "_restart(config, game, archive, key[:, 0], over, moved)",
        "tests/core/test_keys.py",
    ),
    Mutation(
        "keys: learning reuses the play key",
        "azjax/train.py",
        "_learn(parts, key_learn, state.learner, replay, axis_name)",
        "_learn(parts, key_play, state.learner, replay, axis_name)",
        "tests/core/test_keys.py",
    ),
    Mutation(
        "keys: the symmetry is drawn with the sampling key",
        "azjax/train.py",
        "(keys[:, 1], samples)",
        "(keys[:, 0], samples)",
        "tests/core/test_keys.py",
    ),
    Mutation(
        "keys: games start with the network's",
        "azjax/train.py",
        "game_keys = jax.random.split(key_games, parts.selfplay.games)",
        "game_keys = jax.random.split(key_network, parts.selfplay.games)",
        "tests/core/test_keys.py",
    ),
    # Everything else.
    Mutation(
        "keys: every iteration draws the same",
        "azjax/train.py",
        "    key = jax.random.fold_in(state.key, state.iteration)\n    key_play",
        "    key = state.key\n    key_play",
        "tests/core/test_keys.py",
    ),
    Mutation(
        "verify: a value of 0 has the right sign",
        "azjax/verify.py",
        "~(values * truth > 0)",
        "(values * truth < 0)",
        "tests/core/test_verify.py",
    ),
    Mutation(
        "verify: the opponent follows the policy, too",
        "azjax/verify.py",
        "jnp.where(seats[:, None, :], chosen[..., None], allowed[..., None])",
        "jnp.broadcast_to(chosen[..., None], (*chosen.shape, 2))",
        "tests/core/test_verify.py",
    ),
    Mutation(
        "judge: a win that becomes a draw is no error",
        "azjax/judge.py",
        "is_error = chosen < best",
        "is_error = (chosen < best) & (chosen < 0)",
        "tests/core/test_judge.py",
    ),
    Mutation(
        "judge: decisive positions count in the mean of the classes",
        "azjax/judge.py",
        " and row[0] not in positions.apart",
        "",
        "tests/core/test_judge.py",
    ),
    Mutation(
        "judge: the parameters are judged in training, not their average",
        "experiments/judging.py",
        "train.one_copy(state.learner.ema_params)",
        "train.one_copy(state.learner.variables)",
        "tests/programs/test_judging.py",
    ),
    Mutation(
        "viz: finished games are the last mover's loss",
        "azjax/viz/positions.py",
        "np.where(same, 1, -1)",
        "np.where(same, -1, 1)",
        "tests/viz/test_atlas.py",
    ),
    Mutation(
        "targets: a game that is cut off counts as drawn",
        "azjax/targets.py",
        "jnp.where(last.discount == 0, last.reward, last.root_value)",
        "last.reward",
        "tests/core/test_targets.py",
    ),
    Mutation(
        "targets: td_lambda forgets the last position",
        "azjax/targets.py",
        "carry = (1 - td_lambda) * last.root_value + td_lambda * cut",
        "carry = cut",
        "tests/core/test_targets.py",
    ),
    Mutation(
        "learner: value_weight without effect",
        "azjax/learner.py",
        "return minimised + value_weight * squared + penalty,",
        "return minimised + squared + penalty,",
        "tests/core/test_learner.py",
    ),
    Mutation(
        "learner: what is known already teaches as much",
        "azjax/learner.py",
        "1 - policy_surprise + policy_surprise * kl / jnp.maximum(mean, 1e-9)",
        "1 - policy_surprise + policy_surprise",
        "tests/core/test_learner.py",
    ),
    Mutation(
        "learner: what surprises is weighed on each device by itself",
        "azjax/learner.py",
        "mean = jnp.mean(kl) if axis_name is None else jax.lax.pmean(jnp.mean(kl), axis_name)",
        "mean = jnp.mean(kl)",
        "tests/core/test_learner.py",
    ),
    Mutation(
        "learner: scales of normalization decay",
        "azjax/learner.py",
        'name in ("bias", "scale")',
        'name in ("bias",)',
        "tests/core/test_learner.py::test_weight_decay_leaves_biases_and_scales_alone",
    ),
    Mutation(
        "modes: types are mixed in a search",
        "azjax/search/puct.py",
        "(1 + visits).astype(jnp.float32)",
        "(1 + visits)",
        "tests/core/test_modes.py::test_searches",
    ),
    Mutation(
        "learner: final_learning_rate without effect",
        "azjax/learner.py",
        "floor = config.final_learning_rate / config.learning_rate",
        "floor = 0.1",
        "tests/core/test_learner.py",
    ),
    Mutation(
        "learner: the average starts as slowly as it goes on",
        "azjax/learner.py",
        "jnp.minimum(ema_decay, (1 + state.step) / (10 + state.step))",
        "ema_decay * jnp.ones(())",
        "tests/core/test_learner.py",
    ),
    Mutation(
        "learner: devices keep their own gradients",
        "azjax/learner.py",
        "vector, losses = jax.lax.pmean((vector, losses), axis_name)",
        "losses = jax.lax.pmean(losses, axis_name)",
        "tests/core/test_learner.py",
    ),
    Mutation(
        "replay: all shards draw the same places",
        "azjax/replay.py",
        "jax.vmap(mixing(ring().sample))(state, keys)",
        "jax.vmap(mixing(ring().sample), (0, None))(state, keys[0])",
        "tests/core/test_replay.py",
    ),
    Mutation(
        "network: evaluation_dtype without effect",
        "azjax/networks/make.py",
        "dtype = choose_dtype(config.evaluation_dtype, convolves)",
        'dtype = jnp.dtype("float32")',
        "tests/core/test_network.py",
    ),
    Mutation(
        "network: learning_dtype without effect",
        "azjax/networks/make.py",
        "dtype=choose_dtype(config.learning_dtype)",
        'dtype=jnp.dtype("float32")',
        "tests/core/test_network.py",
    ),
    Mutation(
        "network: symmetries are taken the wrong way round",
        "azjax/networks/equivariant.py",
        "actions=np.argsort(symmetries.actions[order], axis=1)",
        "actions=symmetries.actions[order]",
        "tests/core/test_network.py",
    ),
    Mutation(
        "network: the proof plays with other statistics than training",
        "azjax/networks/resnet.py",
        'norm["bias"] - stats["mean"] * scale',
        'norm["bias"]',
        "tests/core/test_network.py",
    ),
    Mutation(
        "network: statistics of one device",
        "azjax/networks/resnet.py",
        "axis = self.axis_name if train else None",
        "axis = None",
        "tests/core/test_network.py tests/core/test_train.py",
    ),
    Mutation(
        "network: statistics of one's own differ between devices",
        "azjax/networks/modules.py",
        "jax.lax.pmean(updated, axis_name)",
        "updated",
        "tests/core/test_network.py",
    ),
    Mutation(
        "programs: the preset's own kind loses the preset's values",
        "experiments/options.py",
        "return value if chosen == current else kinds.classes[chosen]()",
        "return kinds.classes[chosen]()",
        "tests/programs/test_options.py",
    ),
    Mutation(
        "programs: a small custom game has the preset of tic-tac-toe",
        "azjax/presets.py",
        "is_tiny = made.is_small if measured else (made.most_positions or 0) <= _FEW",
        "is_tiny = made.is_small",
        "tests/programs/test_options.py",
    ),
    Mutation(
        "programs: a custom game starts JAX before its devices are chosen",
        "experiments/options.py",
        'if not {"-h", "--help"} & set(arguments):',
        "if False:",
        "tests/programs/test_options.py",
    ),
    Mutation(
        "rules: a player is loaded with any rules",
        "azjax/player.py",
        "        rules.check_rules(run_dir, game)",
        "        pass",
        "tests/core/test_rules.py",
    ),
    Mutation(
        "rules: training goes on with other arrays",
        "azjax/rules.py",
        "if resume and not same_states(",
        "if not resume and not same_states(",
        "tests/core/test_rules.py",
    ),
    Mutation(
        "rules: the first position alone is compared",
        "azjax/rules.py",
        "        states = after",
        "        break",
        "tests/core/test_rules.py",
    ),
    Mutation(
        "rules: a network may compute anything",
        "azjax/rules.py",
        "return same_arrays and np.allclose(",
        "return same_arrays or np.allclose(",
        "tests/programs/test_own.py",
    ),
    Mutation(
        "rules: training goes on with any rules",
        "experiments/session.py",
        "        own.check_edited(run_dir, options.config, options.typed, resume=True)",
        "        pass",
        "tests/programs/test_own.py",
    ),
    Mutation(
        "mistakes: a network of another game is taken",
        "azjax/networks/base.py",
        "if network.made_for not in (None, wanted):",
        "if False:",
        "tests/core/test_mistakes.py",
    ),
    Mutation(
        "mistakes: a loss may return anything",
        "azjax/learner.py",
        "_check_losses(loss(outputs, params, samples, axis_name))",
        "loss(outputs, params, samples, axis_name)",
        "tests/core/test_mistakes.py",
    ),
    Mutation(
        "mistakes: an evaluator may return anything",
        "azjax/evaluators.py",
        '        check_heads(outputs, check_batch(game, states), game, "the evaluator")\n',
        "",
        "tests/core/test_mistakes.py",
    ),
    Mutation(
        "mistakes: parts are not looked at",
        "azjax/train.py",
        "    _check_members(parts)\n",
        "",
        "tests/core/test_mistakes.py",
    ),
    Mutation(
        "settings: names that are nearly right are not recognized",
        "azjax/settings.py",
        "names, n=1)",
        "names, n=1, cutoff=1)",
        "tests/core/test_settings.py",
    ),
    Mutation(
        "programs: functions are listed that cannot be called",
        "experiments/functions.py",
        "if least <= arguments and",
        "if",
        "tests/programs/test_own.py",
    ),
    Mutation(
        "evaluators: rollouts forget whose reward it is",
        "azjax/evaluators.py",
        "step.state, total + weight * step.reward, weight * step.discount",
        "step.state, total + weight * step.reward, weight * jnp.abs(step.discount)",
        "tests/core/test_evaluators.py",
    ),
    Mutation(
        "evaluators: all rollouts of a batch are alike",
        "azjax/evaluators.py",
        "batch_keys(keys, batch)",
        "jnp.broadcast_to(batch_keys(keys)[:1], (batch,))",
        "tests/core/test_evaluators.py",
    ),
    Mutation(
        "agents: sampling and acting share a key",
        "azjax/agents/agent.py",
        "return draw(key_draw, agent.act(params, key_act, states))",
        "return draw(key_act, agent.act(params, key_act, states))",
        "tests/core/test_keys.py",
    ),
    Mutation(
        "agents: alpha-beta cuts at what the mover has",
        "azjax/agents/negamax.py",
        "((node.best < node.beta) | (not prune))",
        "((node.best < node.alpha) | (node.best < node.beta - 1) | (not prune))",
        "tests/core/test_agents.py",
    ),
    Mutation(
        "agents: a persistent player's exploration without effect",
        "azjax/agents/persistent.py",
        "score = value + config.exploration * bound",
        "score = value + jnp.sqrt(2.0) * bound",
        "tests/core/test_agents.py::test_visits_are_distributed_as_those_of_the_twin",
    ),
    Mutation(
        "agents: a persistent player sees outcomes for player 0",
        "azjax/agents/persistent.py",
        "q_values=sign * mean,",
        "q_values=mean,",
        "tests/core/test_agents.py::test_visits_are_distributed_as_those_of_the_twin",
    ),
    Mutation(
        "uct: exploration without effect",
        "azjax/search/uct.py",
        "bound = settings.exploration * jnp",
        "bound = 1.4142135 * jnp",
        "tests/core/test_uct.py",
    ),
    Mutation(
        "tree: finished games are searched below",
        "azjax/search/expand.py",
        "jnp.where(over, 0.0, value)",
        "value",
        "tests/core/test_search.py",
    ),
    Mutation(
        "ratings: the advantage of moving first is ignored",
        "azjax/ratings.py",
        "win = (eye[first] - eye[second] + eye[-2]) / 2",
        "win = (eye[first] - eye[second]) / 2",
        "tests/core/test_ratings.py",
    ),
    Mutation(
        "checkpoint: the worst is kept as the best",
        "azjax/checkpoint.py",
        "best = max(steps",
        "best = min(steps",
        "tests/core/test_checkpoint.py",
    ),
    Mutation(
        "checkpoint: types that NumPy does not know are forgotten",
        "azjax/arrays.py",
        "array = array.view(leaf.dtype)",
        "pass",
        "tests/core/test_checkpoint.py",
    ),
    Mutation(
        "checkpoint: keys come back as the default implementation",
        "azjax/checkpoint.py",
        "written[part] = with_impls(tree, described)",
        "written[part], described = tree, describe(tree)",
        "tests/core/test_checkpoint.py",
    ),
    Mutation(
        "player: plays the parameters, not their average",
        "azjax/checkpoint.py",
        "return {_PLAYER: plain.learner.ema_params, _REST: rest}",
        "return {_PLAYER: plain.learner.variables, _REST: rest}",
        "tests/core/test_api.py",
    ),
    Mutation(
        "metrics: earlier sittings cost no time",
        "azjax/metrics.py",
        'return next((r["seconds"] for r in records if r["iteration"] == iteration), 0.0)',
        "return 0.0",
        "tests/core/test_metrics.py",
    ),
    Mutation(
        "display: an iteration that was not examined is shown as if it was",
        "azjax/metrics.py",
        "    if record.blunders is None:\n        return {}",
        "    if False:\n        return {}",
        "tests/core/test_metrics.py",
    ),
    Mutation(
        "runs: a link that leads nowhere is taken for a free place",
        "azjax/runs.py",
        "    if os.path.islink(path) and not os.path.exists(path):",
        "    if False:",
        "tests/programs/test_programs.py"
        "::test_a_place_where_no_run_can_be_is_refused_before_compiling",
    ),
    Mutation(
        "runs: folders above a refused run stay behind",
        "azjax/runs.py",
        "        for folder in absent:",
        "        for folder in absent[:1]:",
        "tests/core/test_checkpoint.py::test_looking_for_room_leaves_no_folders_above",
    ),
    Mutation(
        "commands: words are not quoted",
        "azjax/commands.py",
        'return shlex.join([_interpreter(), "-m", module, *map(str, arguments)])',
        'return " ".join([_interpreter(), "-m", module, *map(str, arguments)])',
        "tests/core/test_commands.py",
    ),
    Mutation(
        "report: matches go on when their time is over",
        "azjax/viz/matches.py",
        "        if pieces and time.monotonic() >= end:",
        "        if False:",
        "tests/viz/test_report.py::test_matches_end_when_their_time_is_over",
    ),
    Mutation(
        "memory: nothing is refused",
        "azjax/footprint.py",
        "if needs.total <= needs.limit:",
        "if needs.total <= needs.limit or True:",
        "tests/core/test_footprint.py",
    ),
    Mutation(
        "processes: all must ask before one is heard",
        "azjax/processes.py",
        "raised = np.any(",
        "raised = np.all(",
        "tests/programs/test_distributed.py",
    ),
    Mutation(
        "viz: the picture judges the average member once",
        "azjax/viz/atlas.py",
        'add(error, mode="drop") / np.maximum(atlas.members, 1)',
        'add(error, mode="drop")',
        "tests/viz/test_atlas.py",
    ),
    Mutation(
        "viz: a trace backs up without the turn's sign",
        "azjax/viz/trace.py",
        "discount * value)",
        "abs(discount) * value)",
        "tests/viz/test_trace.py",
    ),
    Mutation(
        "viz: the page backs up without the turn's sign",
        "azjax/viz/js/search.js",
        "value = f32(child.reward + child.discount * value);",
        "value = f32(child.reward + Math.abs(child.discount) * value);",
        "tests/viz/test_live.py",
    ),
    Mutation(
        "viz: the page halves down to one action",
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
        "viz: words of a search ask for a setting that there is not",
        "azjax/viz/js/words.js",
        "node.parent === null && settings.add_noise",
        "node.parent === null && settings.noise > 0",
        "tests/viz/test_legible.py::test_words_read_only_what_a_search_has_and_tell_of_its_noise",
    ),
    Mutation(
        "viz: a style of a part loses to that of all tables",
        "azjax/viz/js/training.css",
        ".azjax .az-training { border-collapse",
        ".az-training { border-collapse",
        "tests/viz/test_explain.py",
    ),
    Mutation(
        "viz: a chart has no names where its lines do not fit",
        "azjax/viz/chart.py",
        'node("div", scrolls, chart, _names(chart))',
        'node("div", scrolls, chart)',
        "tests/viz/test_report.py::test_lines_of_a_report_have_their_names_on_a_phone",
    ),
    Mutation(
        "guide: opened from a folder it cannot be searched",
        "mkdocs.yml",
        "  - offline #",
        "  #",
        "tests/programs/test_guide.py",
    ),
    Mutation(
        "viz: games of self-play are shown without noise",
        "azjax/viz/games.py",
        "search(jax.random.fold_in(key, ply), states, temperatures, True)",
        "search(jax.random.fold_in(key, ply), states, temperatures, False)",
        "tests/viz/test_report.py",
    ),
    Mutation(
        "programs: losing lines of both seats exchanged",
        "experiments/records.py",
        '"losing_lines_first": int(verdict.losing_lines[0]),',
        '"losing_lines_first": int(verdict.losing_lines[1]),',
        "tests/programs/test_records.py",
    ),
    Mutation(
        "programs: the best checkpoint is the one with most blunders",
        "experiments/records.py",
        "return -record.blunders - loss / 1e3",
        "return record.blunders - loss / 1e3",
        "tests/programs/test_records.py",
    ),
    Mutation(
        "programs: the parameters are judged, not their average",
        "experiments/proof.py",
        "proof.judge(train.one_copy(state.learner.ema_params))",
        "proof.judge(train.one_copy(state.learner.variables))",
        "tests/programs/test_programs.py::test_the_certificate_is_what_verification_finds",
    ),
    Mutation(
        "players: a number of simulations is ignored",
        "experiments/players.py",
        "number = spec.number or search.num_simulations",
        "number = search.num_simulations",
        "tests/programs/test_players.py",
    ),
    Mutation(
        "lecture: who moves first is forgotten",
        "experiments/lecture/matches.py",
        "return games._replace(outcomes=-games.outcomes)",
        "return games",
        "tests/programs/test_lecture.py",
    ),
    Mutation(
        "games: a diagonal of Connect Four does not win",
        "azjax/games/in_a_row.py",
        "((0, 1), (1, 0), (1, 1), (1, -1))",
        "((0, 1), (1, 0), (1, 1))",
        "tests/core/test_games.py",
    ),
    Mutation(
        "game: the turn's sign after a second move",
        "azjax/game.py",
        "discount = jnp.where(same_player, jnp.float32(1), jnp.float32(-1))",
        "discount = -jnp.ones_like(reward)",
        "tests/core/test_search.py",
    ),
    # Games, networks and the files around them.
    Mutation(
        "games: a swap leaves the stone where it lies",
        "azjax/games/hex.py",
        "jnp.where(action == cells, state.board, board)",
        "jnp.where(action == cells, -board, board)",
        "tests/core/test_games.py::test_swapping_takes_the_stone_over_mirrored_once",
    ),
    Mutation(
        "games: a swap can be swapped back",
        "azjax/games/hex.py",
        "is_first = _joins(board, n), jnp.all(state.board == 0)",
        "is_first = _joins(board, n), jnp.sum(state.board != 0) <= 1",
        "tests/core/test_games.py::test_swapping_takes_the_stone_over_mirrored_once",
    ),
    Mutation(
        "games: a swap makes no new positions",
        "azjax/games/hex.py",
        "\n        * (1 + swap),",
        ",",
        "tests/core/test_games.py::test_games_end_as_others_have_proved",
    ),
    Mutation(
        "games: columns of Hex share a bit beyond 16",
        "azjax/games/hex.py",
        "bits = jnp.uint32(1) << jnp.arange(n, dtype=jnp.uint32)",
        "bits = jnp.uint32(1) << (jnp.arange(n, dtype=jnp.uint32) % 16)",
        "tests/core/test_games.py::test_the_longest_way_joins_the_sides_of_the_largest_board",
    ),
    Mutation(
        "games: all sides of Hex are X's",
        "azjax/games/hexagons.py",
        "_side(rows[::-1], 2, COLOR_O), _side(columns, 5, COLOR_O)",
        "_side(rows[::-1], 2, COLOR_X), _side(columns, 5, COLOR_X)",
        "tests/viz/test_drawing.py::test_hexagons_lean_to_the_right_between_sides_of_two_colours",
    ),
    Mutation(
        "games: a side of Hex is drawn from cell to cell and back",
        "azjax/games/hexagons.py",
        "_side(centers[: -n - 1 : -1], 1, COLOR_X)",
        "_side(centers[-n:], 1, COLOR_X)",
        "tests/viz/test_drawing.py::test_hexagons_lean_to_the_right_between_sides_of_two_colours",
    ),
    Mutation(
        "games: long rows of discs are not turned",
        "azjax/games/othello.py",
        "for _ in range(n - 3):",
        "for _ in range(min(n - 3, 4)):",
        "tests/core/test_games.py::test_discs_are_turned_from_side_to_side_of_the_largest_board",
    ),
    Mutation(
        "games: discs are counted in eight bits",
        "azjax/games/othello.py",
        "jnp.sum(board * mark, dtype=jnp.int32)",
        "jnp.sum(board * mark, dtype=jnp.int8)",
        "tests/core/test_games.py::test_discs_are_turned_from_side_to_side_of_the_largest_board",
    ),
    Mutation(
        "games: who captures every piece plays on",
        "azjax/games/breakthrough.py",
        "won = jnp.any(board[:columns] == 1) | ~jnp.any(board == -1)",
        "won = jnp.any(board[:columns] == 1)",
        "tests/core/test_games.py::test_who_captures_every_piece_wins",
    ),
    Mutation(
        "games: Breakthrough lasts as long as one player's moves",
        "azjax/games/breakthrough.py",
        "max_plies=2 * columns * (2 * rows - 3)",
        "max_plies=columns * (2 * rows - 3)",
        "tests/core/test_games.py::test_there_are_no_more_positions_and_plies_than_said",
    ),
    Mutation(
        "games: of moves to one cell the picture shows one",
        "azjax/games/breakthrough.py",
        "np.bincount(to, np.asarray(values), cells)",
        "np.asarray(values)[np.searchsorted(np.sort(to), np.arange(cells)) % len(to)]",
        "tests/viz/test_drawing.py::test_breakthrough_shows_what_belongs_to_a_move_where_it_leads",
    ),
    Mutation(
        "games: O's moves are shown where X's would lead",
        "azjax/games/breakthrough.py",
        "to = target if mover == 0 else cells - 1 - target",
        "to = target",
        "tests/viz/test_drawing.py::test_breakthrough_shows_what_belongs_to_a_move_where_it_leads",
    ),
    Mutation(
        "games: lines of five have the labels of four",
        "azjax/games/connect_four.py",
        "positions=positions if size == _SIZE else None",
        "positions=positions if size[:2] == _SIZE[:2] else None",
        "tests/core/test_games.py::test_records_can_be_hashed",
    ),
    Mutation(
        "games: labelled positions are all X's",
        "azjax/games/connect_four.py",
        "(np.count_nonzero(boards, axis=1) % 2).astype(np.int8)",
        "np.zeros(len(boards), np.int8)",
        "tests/core/test_judge.py",
    ),
    Mutation(
        "games: a bound of positions gives O too few stones",
        "azjax/games/square.py",
        "math.comb(n, n // 2) for n",
        "math.comb(n, n // 3) for n",
        "tests/core/test_games.py::test_there_are_no_more_positions_and_plies_than_said",
    ),
    Mutation(
        "games: pieces of chess change their colour with the turn",
        "azjax/games/from_pgx.py",
        "-np.flip(grid, axis=0) if player else grid",
        "np.flip(grid, axis=0) if player else grid",
        "tests/core/test_pgx.py::test_chess_is_written_and_its_moves_are_called_alike_for_both_players",
    ),
    Mutation(
        "games: moves of chess are called as White would",
        "azjax/games/from_pgx.py",
        "range(1, size + 1) if int(player(state)) == 0 else range(size, 0, -1)",
        "range(1, size + 1)",
        "tests/core/test_pgx.py::test_chess_is_written_and_its_moves_are_called_alike_for_both_players",
    ),
    Mutation(
        "archive: places are taken by the lowest bits",
        "azjax/hashing.py",
        "return (mixed ^ (mixed >> 13)) % np.uint32(count)",
        "return weigh(numbers, 2 * weights + 1) % np.uint32(count)",
        "tests/core/test_archive.py::test_places_are_spread_evenly",
    ),
    Mutation(
        "hashing: what stands twice moves all behind it",
        "azjax/hashing.py",
        "rows = different[order].astype(np.int32)",
        "rows = order.astype(np.int32)",
        "tests/core/test_hashing.py",
    ),
    Mutation(
        "hashing: at most two positions share half a hash",
        "azjax/hashing.py",
        "most, same = most + 1, same[1:] & same[:-1]",
        "most, same = 2, same[:0]",
        "tests/core/test_hashing.py",
    ),
    Mutation(
        "archive: what is new overwrites the list from its start",
        "azjax/archive.py",
        "archive.used + jnp.cumsum(begins, dtype=jnp.int32) - 1, size",
        "jnp.cumsum(begins, dtype=jnp.int32) - 1, size",
        "tests/core/test_archive.py::test_each_position_is_drawn_alike_however_often_it_was_met",
    ),
    Mutation(
        "archive: short openings are those that it replaces",
        "azjax/selfplay.py",
        "found &= uniform[1] < config.opening_share * config.archive_share",
        "found &= uniform[0] < config.opening_share * config.archive_share",
        "tests/core/test_archive.py::test_the_archive_is_chosen_whatever_the_length_of_an_opening",
    ),
    Mutation(
        "keys: an opening shares its key with the archive",
        "azjax/selfplay.py",
        "        key, key_archive = jax.random.split(key)\n",
        "        key_archive = key\n",
        "tests/core/test_keys.py::test_games_from_an_archive_use_every_key_once",
    ),
    Mutation(
        "keys: what goes into the archive shares its key with restarts",
        "azjax/selfplay.py",
        "_meet(game, key[:, 2], games)",
        "_meet(game, key[:, 1], games)",
        "tests/core/test_keys.py::test_games_from_an_archive_use_every_key_once",
    ),
    Mutation(
        "keys: all moves of an opening share one",
        "azjax/openings.py",
        "jax.random.split(key, plies))[0]",
        "jax.numpy.broadcast_to(key, (plies,)))[0]",
        "tests/core/test_arena.py::test_random_openings",
    ),
    Mutation(
        "targets: a sample is turned without its legal actions",
        "azjax/targets.py",
        "Sample(planes, sample.legal[actions], sample.policy[actions]",
        "Sample(planes, sample.legal, sample.policy[actions]",
        "tests/core/test_targets.py",
    ),
    Mutation(
        "lock: several hold it at a time",
        "azjax/lock.py",
        "fcntl.LOCK_EX | fcntl.LOCK_NB",
        "fcntl.LOCK_SH | fcntl.LOCK_NB",
        "tests/core/test_lock.py",
    ),
    Mutation(
        "lock: what a killed program left is in the way",
        "azjax/lock.py",
        "        if not _leads_to(path, file):",
        "        if not _leads_to(path, file) or path.stat().st_size:",
        "tests/core/test_lock.py",
    ),
    Mutation(
        "lock: a moved run takes the lock of its successor away",
        "azjax/lock.py",
        "return os.path.samestat(os.fstat(file.fileno()), path.stat())",
        "return path.exists() and os.fstat(file.fileno()).st_nlink > 0",
        "tests/core/test_lock.py",
    ),
    Mutation(
        "processes: all do what the first one should",
        "azjax/processes.py",
        "in_all(action if jax.process_index() == 0 else lambda: None)",
        "in_all(action)",
        "tests/programs/test_distributed.py::test_what_one_process_asks_for_or_fails_in_all_hear_of",
    ),
    Mutation(
        "processes: errors without words are not heard",
        "azjax/processes.py",
        "_tell(str(error) or type(error).__name__)",
        "_tell(str(error))",
        "tests/programs/test_distributed.py::test_what_one_process_asks_for_or_fails_in_all_hear_of",
    ),
    Mutation(
        "processes: long errors have no end",
        "azjax/processes.py",
        "said = error.encode()[:_ERROR_BYTES]",
        "said = error.encode()",
        "tests/programs/test_distributed.py::test_what_one_process_asks_for_or_fails_in_all_hear_of",
    ),
    Mutation(
        "processes: any number of devices will do",
        "azjax/processes.py",
        "if len(set(found.values())) > 1:",
        "if len(found.values()) < 1:",
        "tests/programs/test_distributed.py::test_processes_with_unequal_numbers_of_devices_are_refused",
    ),
    Mutation(
        "presets: a large game learns as fast as Connect Four",
        "azjax/presets.py",
        "learning_rate=1e-3, decay_steps=30_000",
        "learning_rate=2e-3, decay_steps=30_000",
        "tests/core/test_presets.py",
    ),
    Mutation(
        "presets: games of enumerable ones are carried over",
        "azjax/presets.py",
        "            carry_over=False,\n",
        "",
        "tests/core/test_presets.py",
    ),
    Mutation(
        "presets: the paper's has no weight penalty",
        "azjax/presets.py",
        "            l2=1e-4,\n",
        "",
        "tests/core/test_presets.py",
    ),
    Mutation(
        "presets: smoke keeps a large archive",
        "azjax/presets.py",
        "archive=min(config.selfplay.archive, 1024)",
        "archive=config.selfplay.archive",
        "tests/core/test_presets.py",
    ),
    Mutation(
        "memory: each device holds all games",
        "azjax/footprint.py",
        "_bytes_of((state.replay, state.games)) // mesh.size +",
        "_bytes_of((state.replay, state.games)) +",
        "tests/core/test_footprint.py::test_each_device_holds_its_share",
    ),
    Mutation(
        "memory: the archive takes none",
        "azjax/footprint.py",
        "// mesh.size + _bytes_of(state.archive)",
        "// mesh.size",
        "tests/core/test_footprint.py::test_each_device_holds_its_share",
    ),
    Mutation(
        "memory: what is overwritten counts twice",
        "azjax/footprint.py",
        " - said.alias_size_in_bytes",
        "",
        "tests/core/test_footprint.py::test_work_is_what_the_largest_program_needs_beside_what_lasts",
    ),
    Mutation(
        "memory: a container has all of the machine's",
        "azjax/footprint.py",
        "min(memory, int(limit))) // len(devices)",
        "memory) // len(devices)",
        "tests/core/test_footprint.py::test_a_container_has_no_more_than_its_limit",
    ),
    Mutation(
        "ratings: a mean of rates is as uncertain as the rates",
        "azjax/ratings.py",
        "np.hypot.reduce(rates[:, :1] - rates[:, 1:]) / len(rates)",
        "np.abs(rates[:, :1] - rates[:, 1:]).sum(axis=0) / len(rates)",
        "tests/core/test_ratings.py",
    ),
    Mutation(
        "network: shared heads begin too large",
        "azjax/networks/equivariant.py",
        "lecun_normal()(key, (inputs, outputs), jnp.float32)",
        "lecun_normal()(key, (inputs // copies, outputs), jnp.float32)",
        "tests/core/test_network.py::test_heads_that_symmetries_share_begin_as_small_as_whole_ones",
    ),
    Mutation(
        "network: learning_dtype without effect on shared layers",
        "azjax/networks/equivariant.py",
        "lambda x: x.astype(self.dtype), weights",
        "lambda x: x, weights",
        "tests/core/test_config.py::test_the_arithmetic_is_a_setting_of_layers_that_symmetries_share",
    ),
    Mutation(
        "network: shared heads answer in bfloat16",
        "azjax/networks/equivariant.py",
        "return dense(name, hidden).astype(jnp.float32)",
        "return dense(name, hidden)",
        "tests/core/test_network.py::test_outputs_are_in_float32_whatever_the_arithmetic",
    ),
    Mutation(
        "network: kernels are given back with rows for columns",
        "azjax/networks/convolution.py",
        '"ar,bc,rcio->abio"',
        '"br,ac,rcio->abio"',
        "tests/core/test_network.py::test_tiles_of_every_size_convolve_and_give_their_kernel_back",
    ),
    Mutation(
        "viz: weights are cut off, not rounded",
        "azjax/viz/networks.py",
        "np.uint32(2 ** (8 * dropped) // 2)",
        "np.uint32(0)",
        "tests/viz/test_networks.py",
    ),
    Mutation(
        "viz: the page gets kernels as they were arranged",
        "azjax/viz/networks.py",
        'restored(layer["kernel"], board_shape)',
        'layer["kernel"]',
        "tests/viz/test_networks.py",
    ),
    Mutation(
        "viz: layers go by the order of their names",
        "azjax/viz/networks.py",
        'return [f"Dense_{i}" for i in range(sum(name.startswith("Dense_") for name in params))]',
        'return sorted(name for name in params if name.startswith("Dense_"))',
        "tests/viz/test_networks.py",
    ),
    Mutation(
        "viz: every network reads what the mover sees",
        "azjax/viz/networks.py",
        '"encoding": network.encoding}',
        '"encoding": "relative"}',
        "tests/viz/test_networks.py",
    ),
    Mutation(
        "learner: policy_surprise without effect",
        "azjax/learner.py",
        "policy_surprise=config.policy_surprise",
        "policy_surprise=0.0",
        "tests/core/test_config.py::test_every_setting_changes_the_program",
    ),
    Mutation(
        "self-play: temperature_plies without effect",
        "azjax/selfplay.py",
        "games.ply < config.temperature_plies",
        "games.ply < 30",
        "tests/core/test_config.py::test_every_setting_changes_the_program",
    ),
    Mutation(
        "self-play: games_at_once without effect",
        "azjax/selfplay.py",
        "limit = config.games_at_once or (",
        "limit = (",
        "tests/core/test_config.py::test_every_setting_changes_the_program",
    ),
    Mutation(
        "programs: every run draws the same",
        "experiments/session.py",
        "jax.random.key(options.config.seed)",
        "jax.random.key(0)",
        "tests/programs/test_session.py",
    ),
]


def run_tests(folder: pathlib.Path, tests: str) -> subprocess.CompletedProcess:
    """Runs some tests in a copy of the tree, of those that `make test` runs, until one fails."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow"]
    command += ["-p", "no:cacheprovider", *tests.split()]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1200)


def copy_tree(folder: pathlib.Path) -> None:
    """Copies what tests need; compilations are kept in the original's cache."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "runs", "build", "dist"))
    cache = ROOT / ".pytest_cache"
    cache.mkdir(exist_ok=True)
    (folder / ".pytest_cache").symlink_to(cache)


def _survives(mutation: Mutation) -> str:
    """Returns why a mistake was not noticed, or nothing if it was."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "azjax"
        copy_tree(folder)
        path = folder / mutation.file
        text = path.read_text()
        if text.count(mutation.old) != 1:
            return f"its text is in {mutation.file} {text.count(mutation.old)} times"
        path.write_text(text.replace(mutation.old, mutation.new))
        result = run_tests(folder, mutation.tests)
    lines = result.stdout.splitlines()
    if result.returncode == 1 and not any(line.startswith("ERROR ") for line in lines):
        return ""  # A test failed; what breaks before any test can ask is not noticed.
    last = (result.stdout + result.stderr).strip().splitlines()[-1:]
    return f"pytest ended with {result.returncode}: {' '.join(last)}"


def main() -> int:
    """Makes the mistakes one by one; the exit status says whether all were noticed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="only mistakes whose name holds one of these")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    options = parser.parse_args()
    chosen = [m for m in MUTATIONS if not options.words or any(w in m.name for w in options.words)]
    unnoticed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for mutation, why in zip(chosen, pool.map(_survives, chosen), strict=True):
            unnoticed += bool(why)
            print(f"{'NOT NOTICED' if why else 'noticed':<12} {mutation.name}  {why}", flush=True)
    print(f"{len(chosen) - unnoticed} of {len(chosen)} mistakes were noticed")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
