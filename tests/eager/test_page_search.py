"""Searches and rules in JavaScript equal the reference implementations in plain Python."""

import dataclasses

import numpy as np
import pytest

from azjax.search import PUCT, Gumbel
from javascript import evaluate
from reference import connect_four, gumbel, hex, puct
from reference import tic_tac_toe as rules_of_tic_tac_toe


def play_randomly(rules, games, seed=0):
    """The different positions of random games."""
    rng, found = np.random.default_rng(seed), {}
    for _ in range(games):
        position = rules.start()
        while not position.over:
            found[position] = None
            position, _ = rules.play(position, rng.choice(rules.legal(position)))
        found[position] = None
    return list(found)


def text_of(position):
    return "".join(".XO"[cell] for cell in position.board)


# Searches, with a table of random logits and values as the evaluator.

SEARCH = """({ name, texts, settings, logits, values }) => {
  const game = azjax.gameNamed(name);
  const evaluator = ({ board, player }) => {
    const row = board.reduce((sum, stone, i) => sum + (stone + 1) * (7 * i + 1), player) % 97;
    return { logits: logits[row], value: values[row] };
  };
  return texts.map((text) => {
    const search = new azjax.Search(game, game.read(text), evaluator, settings);
    const { N } = search.stats(0, search.length);
    const { actions } = search.nodes[0];
    return [Object.fromEntries(actions.map((action, i) => [action, N[i]])), search.value,
      search.action];
  });
}"""


@pytest.mark.parametrize(
    "config",
    [
        PUCT(num_simulations=60, c_puct=1.3),
        PUCT(num_simulations=60, first_play_urgency="parent"),
        Gumbel(num_simulations=40, max_considered_actions=5, maxvisit_init=20.0),
    ],
    ids=["puct", "urgency", "gumbel"],
)
def test_searches_equal_those_of_the_reference(config):
    """Also from late positions, in which games end within the tree."""
    rng, rules = np.random.default_rng(1), rules_of_tic_tac_toe
    logits, values = rng.normal(size=(97, 9)).tolist(), rng.uniform(-1, 1, 97).tolist()
    positions = [position for position in play_randomly(rules, 12) if not position.over]

    def evaluator(position):
        cells = sum((stone + 1) * (7 * i + 1) for i, stone in enumerate(position.board))
        row = (cells + position.player) % 97
        return logits[row], values[row]

    def search(position):
        if isinstance(config, PUCT):
            urgency = config.c_puct, config.first_play_urgency
            return puct.search(rules, evaluator, position, config.num_simulations, *urgency)
        fields = {name: getattr(config, name) for name in gumbel.Settings._fields}
        return gumbel.search(rules, evaluator, position, [0.0] * 9, gumbel.Settings(**fields))

    no_noise = {"dirichlet_fraction": 0.0, "gumbel_scale": 0.0}
    settings = dataclasses.asdict(config) | no_noise | {"seed": 0}
    texts = [text_of(position) for position in positions]
    argument = {"name": "tic_tac_toe", "texts": texts, "settings": settings}
    found = evaluate(SEARCH, argument | {"logits": logits, "values": values})
    compared = 0
    for position, (visits, value, action) in zip(positions, found, strict=True):
        expected = search(position)
        if expected.margin < 1e-5:  # Rounding may decide.
            continue
        compared += 1
        assert {int(move): n for move, n in visits.items()} == expected.visit_counts
        assert value == pytest.approx(expected.value, abs=1e-5)
        if isinstance(config, Gumbel):
            assert action == expected.action
        else:
            assert visits[str(action)] == max(visits.values())
    assert compared > 30


STEP = """([name, texts]) => {
  const game = azjax.gameNamed(name);
  return texts.map((text) => {
    const before = game.read(text);
    const legal = game.legal(before);
    const after = legal.map((action) => game.step(before, action));
    return [legal, after.map((next) => [next.text, next.player, next.over, game.reward(next)])];
  });
}"""


@pytest.mark.parametrize(
    ("name", "rules"),
    [("tic_tac_toe", rules_of_tic_tac_toe), ("connect_four:4x5", connect_four), ("hex:3", hex)],
    ids=["tic_tac_toe", "connect_four", "hex"],
)
def test_the_rules_are_those_of_the_reference(name, rules):
    positions = play_randomly(rules, 20)
    found = evaluate(STEP, [name, [text_of(position) for position in positions]])
    for position, (legal, after) in zip(positions, found, strict=True):
        assert legal == rules.legal(position)
        for action, shown in zip(legal, after, strict=True):
            later, reward = rules.play(position, action)
            assert shown == [text_of(later), later.player, later.over, reward]
