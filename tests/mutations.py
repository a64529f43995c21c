"""Mistakes put into the code one at a time, to see that the tests notice: by hand, not by pytest.

    python tests/mutations.py               # all of them, two at a time: about eight minutes
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
        "proof: symmetric copies of a start are the start itself",
        "azjax/lines.py",
        "played = [[tuple(image[list(line)]) for line in starts] for image in images]",
        "played = [[tuple(line) for line in starts] for image in images]",
        "tests/core/test_exhaustive.py::test_games_are_counted",
    ),
    Mutation(
        "proof: broken symmetry is looked for in the first part alone",
        "azjax/lines.py",
        'unlike = unlike or bool(len(file["unlike"]))',
        'unlike = unlike or (not number and bool(len(file["unlike"])))',
        "tests/core/test_exhaustive.py::test_every_part_is_searched_for_broken_symmetry",
    ),
    Mutation(
        "proof: lost games are looked for among the first ends alone",
        "azjax/lines.py",
        "[columns == 2][:_LOST]",
        "[:_LOST][columns[:_LOST] == 2]",
        "tests/core/test_exhaustive.py::test_lost_games_are_found_among_all_ends",
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
        "scale = jnp.where(roots.add_noise, self.gumbel_scale, 0.0)",
        "scale = jnp.where(roots.add_noise, 1.0, 0.0)",
        "tests/core/test_gumbel.py",
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
        "jnp.where(seats[:, None, :], chosen[..., None], solution.legal[..., None])",
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
        "jax.vmap(ring().sample)(state, keys)",
        "jax.vmap(ring().sample, (0, None))(state, keys[0])",
        "tests/core/test_replay.py",
    ),
    Mutation(
        "network: evaluation_dtype without effect",
        "azjax/network.py",
        "dtype = _choose_dtype(config.evaluation_dtype, convolves)",
        'dtype = jnp.dtype("float32")',
        "tests/core/test_network.py",
    ),
    Mutation(
        "network: learning_dtype without effect",
        "azjax/network.py",
        "dtype=_choose_dtype(config.learning_dtype)",
        'dtype=jnp.dtype("float32")',
        "tests/core/test_network.py",
    ),
    Mutation(
        "network: symmetries are taken the wrong way round",
        "azjax/equivariant.py",
        "actions=np.argsort(symmetries.actions[order], axis=1)",
        "actions=symmetries.actions[order]",
        "tests/core/test_network.py",
    ),
    Mutation(
        "network: the proof plays with other statistics than training",
        "azjax/modules.py",
        'norm["bias"] - stats["mean"] * scale',
        'norm["bias"]',
        "tests/core/test_network.py",
    ),
    Mutation(
        "network: statistics of one device",
        "azjax/modules.py",
        "axis = self.axis_name if train else None",
        "axis = None",
        "tests/core/test_network.py tests/core/test_train.py",
    ),
    Mutation(
        "network: statistics of one's own differ between devices",
        "azjax/network.py",
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
        "evaluators: rollouts forget whose reward it is",
        "azjax/evaluators.py",
        "step.state, total + weight * step.reward, weight * step.discount",
        "step.state, total + weight * step.reward, weight * jnp.abs(step.discount)",
        "tests/core/test_evaluators.py",
    ),
    Mutation(
        "evaluators: all rollouts of a batch are alike",
        "azjax/evaluators.py",
        "keys = jax.random.split(key, batch)",
        "keys = jnp.broadcast_to(key, (batch,))",
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
        "azjax/search/make.py",
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
        "keystr(path)].view(leaf.dtype)",
        "keystr(path)]",
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
        "azjax/viz/js/evaluators.js",
        "splitKey(key, 1)[0]",
        "key",
        "tests/viz/test_live.py",
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
        "discount = jnp.where(same_player, 1.0, -1.0)",
        "discount = -jnp.ones_like(reward)",
        "tests/core/test_search.py",
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
