"""Samples of exhaustive play against exact counts of all games."""

import functools

import numpy as np
import pytest

from azjax.exact import ply_files, sampling
from bad_players import explore_all, lowest, make_act, pair
from reference import exhaustive_play

STARTS, SEAT = ((4, 0), (0, 8), (1, 5)), 1
ACT = make_act(pair("tic_tac_toe"), lowest)


@functools.cache
def expected():
    rules = pair("tic_tac_toe").rules
    return exhaustive_play.explore(rules, lambda p: lowest(rules, p), SEAT, STARTS)


def sample(folder, most, **settings):
    game = pair("tic_tac_toe").game
    return explore_all(game, ACT, SEAT, folder, most=most, starts=STARTS, **settings)


@pytest.mark.parametrize("part_size", [1, 2**18])
def test_no_ply_has_more_positions_than_are_allowed(part_size, tmp_path, monkeypatch):
    most, positions = 18, expected().positions
    assert max(positions) > 2 * most
    seeds, sampler = [], sampling.make_sampler
    monkeypatch.setattr(
        ply_files, "make_sampler", lambda *given: seeds.append(given[2]) or sampler(*given)
    )
    found = sample(tmp_path, most, part_size=part_size)
    assert len({*seeds}) == len(seeds) > 2  # Plies have their own samples.
    counts = [
        sum(len(np.load(part)) for part in sorted(ply.glob("part-*.npy")))
        for ply in sorted(tmp_path.glob("0*"))
    ]
    first = next(ply for ply, count in enumerate(positions) if count > most)
    assert counts[:first] == positions[:first] and max(counts) <= most
    assert min(counts[first:-1]) > 0
    assert found.sampled and found.ends.games[1:].any(axis=1).all()
    assert all(len(np.load(path)) for path in tmp_path.glob("*/part-*.npy"))


def test_exactly_the_allowed_number_of_positions_is_not_sampled(tmp_path):
    largest = max(expected().positions)
    whole = sample(tmp_path / "whole", largest)
    assert not whole.sampled and whole.ends.games[0].tolist() == expected().games
    assert whole.ends.decisions == expected().decisions
    games = np.array(expected().games)
    assert whole.ends.share(2) == (games[2] / games.sum(),) * 3
    assert sample(tmp_path / "sample", largest - 1).sampled
