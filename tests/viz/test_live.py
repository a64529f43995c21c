"""The page's search in Chromium, compared with the package's search on random positions."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dots
from azjax import games
from azjax.games.base import random_action
from azjax.networks import MLPConfig, ResNetConfig, from_module
from azjax.networks.mlp import MLP
from azjax.players.openings import random_openings
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.runs.player import Player
from azjax.search import PUCT, UCT, Gumbel, make_search
from azjax.search.evaluators import Evaluator, rollout_evaluator, uniform_evaluator
from azjax.viz import networks
from azjax.viz.live import live_data, pack_player, solve
from azjax.viz.positions import has_rules, position_table, true_values
from javascript import import_sources
from tables import AS_IN_TRAINING

ITERATIONS = 3
EVALUATORS = ("network", "uniform", "rollout")

# Ranges of the settings drawn for each search; other settings would need another compilation.
DRAWN = {
    "puct": {"c_puct": (0.1, 5), "dirichlet_alpha": (0.1, 2), "dirichlet_fraction": (0, 1)},
    "gumbel": {"gumbel_scale": (0, 2), "value_scale": (0.02, 0.5), "maxvisit_init": (0, 99)},
    "uct": {"exploration": (0.1, 3)},
}
QUICK = [PUCT(num_simulations=40), Gumbel(num_simulations=24), UCT(num_simulations=40)]
SLOW = [
    *(PUCT(num_simulations=k) for k in (1, 200)),
    PUCT(num_simulations=30, first_play_urgency="parent"),
    PUCT(num_simulations=100, first_play_urgency="loss"),
    *(Gumbel(num_simulations=k) for k in (1, 200)),
    Gumbel(num_simulations=30, max_considered_actions=4),
    Gumbel(num_simulations=100, max_considered_actions=9),
    *(UCT(num_simulations=k) for k in (1, 30, 100, 200)),
]


class Bench(NamedTuple):
    """A game, untrained networks, and their data for a page."""

    game: Any
    parts: Any
    params: Any  # Of the networks, stacked.
    states: Any  # To search from.
    texts: list[str]  # The same, as pages write them.
    data: dict[str, Any]
    kind: str = ""  # Of the networks.


def make_players(parts):
    init = jax.jit(lambda key: parts.network.fold(parts.network.init(key)))
    return [Player(parts, init(jax.random.key(i)), i) for i in range(ITERATIONS)]


def texts_of(states):
    return ["".join(".XO"[cell] for cell in board) for board in np.asarray(states.board)]


def stack(trees):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


@pytest.fixture(scope="module")
def small(tic_tac_toe, solution):
    """Tic-tac-toe, in all positions with a decision."""
    parts = make_parts(presets.smoke(presets.get("default")))
    players = make_players(parts)
    data = {
        "game": "tic_tac_toe",
        "positions": position_table(tic_tac_toe, solution),
        "networks": [pack_player(player) for player in players],
    }
    params = stack([player.params for player in players])
    texts = texts_of(solution.decision_states)
    return Bench(tic_tac_toe, parts, params, solution.decision_states, texts, data)


LARGE = {
    "mlp": MLPConfig(hidden=(32,), head_hidden=16),
    "dense": ResNetConfig(width=16, blocks=2, head_hidden=16),
    "conv": ResNetConfig(encoding="absolute", layers="conv", width=6, blocks=1, norm="batch"),
}


def large_parts(kind, dtype):
    config = dataclasses.replace(presets.smoke(presets.get("default")), game="connect_four")
    network = dataclasses.replace(LARGE[kind], evaluation_dtype=dtype)
    return make_parts(dataclasses.replace(config, network=network))


@pytest.fixture(scope="module", params=LARGE)
def large(request):
    """Connect Four, in positions early and late in the game."""
    parts = large_parts(request.param, "float32")
    players = make_players(parts)
    openings = [random_openings(parts.game, jax.random.key(n), 20, n) for n in (1, 7, 15, 24)]
    states = jax.tree.map(lambda *leaves: np.concatenate(leaves), *openings)
    data = {
        "game": "connect_four",
        "networks": [networks.pack_weights(player) for player in players],
    }
    params = stack([player.params for player in players])
    return Bench(parts.game, parts, params, states, texts_of(states), data, request.param)


def draw(rng, bench, algorithm, count):
    """Draws positions and settings; `settings` is a list for the page."""
    rows = rng.integers(0, len(bench.texts), count)
    numbers = {
        name: rng.uniform(*bounds, count).astype(np.float32)
        for name, bounds in DRAWN[algorithm.algorithm].items()
    }
    others = {
        "seed": rng.integers(0, 2**31, count),
        "add_noise": rng.random(count) < 0.5,
        "evaluator": rng.integers(0, len(EVALUATORS), count),
        "iteration": rng.integers(0, ITERATIONS, count),
    }
    fixed = dataclasses.asdict(algorithm)
    every = numbers | others
    settings = [fixed | {k: v[i].item() for k, v in every.items()} for i in range(count)]
    for one in settings:
        one["evaluator"] = EVALUATORS[one["evaluator"]]
    states = jax.tree.map(lambda leaf: leaf[rows], bench.states)
    return states, [bench.texts[row] for row in rows], numbers, others, settings


def search_in_python(bench, algorithm, states, numbers, others):
    """Runs each search with its own keys; rows of one batch would share the evaluators' keys."""
    game, network = bench.game, bench.parts.evaluate
    uniform, rollout = uniform_evaluator(game), rollout_evaluator(game)

    def evaluate(params, key, states):
        chosen, folded = params
        branches = [functools.partial(f, folded, key, states) for f in (network, uniform, rollout)]
        return jax.lax.switch(chosen, branches)

    def search(state, numbers, others):
        params = jax.tree.map(lambda leaf: leaf[others["iteration"]], bench.params)
        result = make_search(dataclasses.replace(algorithm, **numbers), game, Evaluator(evaluate))(
            (others["evaluator"], params),
            jax.random.split(jax.random.key(others["seed"]), 1),
            jax.tree.map(lambda leaf: leaf[None], state),
            add_noise=others["add_noise"],
        )
        found = result.visit_counts, result.q_values, result.value, result.action
        return jax.tree.map(lambda leaf: leaf[0], found)

    compiled = jax.jit(jax.vmap(search), compiler_options=AS_IN_TRAINING)
    return jax.device_get(compiled(states, numbers, others))


def search_in_page(tab, bench, texts, settings):
    """Runs the searches in the page; returns the same four arrays."""
    found = tab.evaluate(
        """([data, texts, settings]) => {
          const game = azjax.openGame(data);
          const networks = azjax.openNetworks(data, game);
          return texts.map((text, i) => {
            const { evaluator, iteration } = settings[i];
            const evaluate = evaluator === "network"
              ? networks[iteration].evaluate : azjax.EVALUATORS[evaluator](game);
            const search = new azjax.Search(game, game.read(text), evaluate, settings[i]);
            const { actions } = search.nodes[0];
            const { N, Q } = search.nodes[0].history.at(-1);
            const spread = (numbers) => Array.from({ length: game.numActions },
              (_, action) => numbers[actions.indexOf(action)] ?? 0);
            return [spread(N), spread(Q), search.value, search.action];
          });
        }""",
        [bench.data, texts, settings],
    )
    return [np.array(column) for column in zip(*found, strict=True)]


def check_equal(tab, bench, algorithm, count, seed=0):
    rng = np.random.default_rng(seed)
    states, texts, numbers, others, settings = draw(rng, bench, algorithm, count)
    expected = search_in_python(bench, algorithm, states, numbers, others)
    visits, q_values, value, action = search_in_page(tab, bench, texts, settings)
    other = np.flatnonzero((visits != expected[0]).any(axis=1))
    assert not len(other), f"{len(other)} of {count} differ, the first by {settings[other[0]]}"
    np.testing.assert_allclose(q_values, expected[1], atol=1e-5)
    np.testing.assert_allclose(value, expected[2], atol=1e-5)
    np.testing.assert_array_equal(action, expected[3])


PUCT_LATER = [pytest.param(QUICK[0], marks=pytest.mark.slow), *QUICK[1:]]  # PUCT compiles longest.


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("algorithm", PUCT_LATER, ids=lambda a: a.algorithm)
def test_the_page_searches_like_the_package(module, small, algorithm):
    check_equal(module, small, algorithm, 20)


def test_all_parts_of_a_page_share_its_networks(module, small):
    shared = """(data) => {
      const open = (data) => azjax.openNetworks(data, azjax.openGame(data));
      const { game } = data;
      return [open(data) === open({ ...data }), open(data).length, open({ game }).length];
    }"""
    assert module.evaluate(shared, small.data) == [True, ITERATIONS, 0]


@pytest.mark.slow
def test_firefox_searches_like_the_package(firefox, small):
    firefox.goto("about:blank")
    import_sources(firefox)
    for algorithm in QUICK:
        check_equal(firefox, small, algorithm, 20)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", SLOW, ids=lambda a: f"{a.algorithm}-{a.num_simulations}")
def test_500_searches_by_each_algorithm_equal_those_of_the_package(module, small, algorithm):
    check_equal(module, small, algorithm, 125, seed=algorithm.num_simulations)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", QUICK, ids=lambda a: a.algorithm)
def test_searches_of_a_large_game_equal_those_of_the_package(module, large, algorithm):
    check_equal(module, large, algorithm, 40)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "width", "error"),
    [("float32", None, 1e-5), ("float32", 3, 1e-3), ("bfloat16", None, 1e-5)],
)
def test_the_page_computes_the_outputs_of_large_networks(module, large, dtype, width, error):
    player = make_players(large_parts(large.kind, dtype))[0]
    packed = networks.pack_weights(player, width)
    assert packed["width"] == (width or {"float32": 4, "bfloat16": 2}[dtype])
    exact = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), player.params)
    infer = large.parts.network.infer
    encoding = large.parts.network.encoding
    legal = np.asarray(jax.vmap(large.game.legal_actions)(large.states))
    observed = jax.vmap(lambda state: large.game.observe(state, encoding))(large.states)
    logits, values = jax.jit(infer)(exact, observed)
    found = module.evaluate(
        """([data, texts]) => {
          const game = azjax.openGame(data);
          const [network] = azjax.openNetworks(data, game);
          return texts.map((text) => azjax.opinionOf(network, game, game.read(text)));
        }""",
        [{"game": large.game.name, "networks": [packed]}, large.texts],
    )
    policy = jax.nn.softmax(jnp.where(legal, logits, -jnp.inf))
    np.testing.assert_allclose([one["policy"] for one in found], policy, atol=error)
    np.testing.assert_allclose([one["value"] for one in found], values, atol=error)
    assert [one["move"] for one in found] == np.argmax(policy, axis=1).tolist()


@pytest.fixture(scope="module", params=["dots", "hex"])
def looked_up(request):
    """Small games without rules in JavaScript; in Dots and Boxes a player can move twice."""
    game = dots.make() if request.param == "dots" else games.make("hex:2")
    network = MLPConfig(encoding=game.encodings[0], hidden=(16,), head_hidden=8)
    config = dataclasses.replace(presets.smoke(presets.get("default")), network=network)
    parts = make_parts(config, game)
    solution = solve(game)
    players = make_players(parts)
    data = live_data(game, PUCT(), [pack_player(player) for player in players])
    assert not has_rules(game)
    params = stack([player.params for player in players])
    texts = [str(row) for row in solution.decisions]
    return Bench(game, parts, params, solution.decision_states, texts, data)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("algorithm", PUCT_LATER, ids=lambda a: a.algorithm)
def test_searches_of_a_game_from_a_table_equal_those_of_the_package(module, looked_up, algorithm):
    check_equal(module, looked_up, algorithm, 20)


def test_a_table_holds_the_rules_of_a_game(module, looked_up):
    """Moves, turns, ends, rewards, winners and values of every position."""
    solution = solve(looked_up.game)
    found = module.evaluate(
        """(data) => {
          const game = azjax.openGame(data);
          return Array.from({ length: game.table.size }, (_, row) => {
            const position = game.read(String(row));
            const after = game.legal(position).map((action) => game.step(position, action));
            return [game.player(position), game.over(position), game.legal(position),
              after.map((next) => [next.row, game.reward(next)]), game.table.optimal(row),
              game.table.truth(row), game.winner(position)];
          });
        }""",
        looked_up.data,
    )
    truth = true_values(solution)
    for row, (player, over, actions, after, optimal, value, winner) in enumerate(found):
        legal = np.flatnonzero(solution.legal[row])
        assert (player, over) == (solution.player[row], solution.over[row])
        assert actions == legal.tolist()
        children, rewards = solution.children[row, legal], solution.rewards[row, legal]
        assert after == [list(pair) for pair in zip(children, rewards, strict=True)]
        assert optimal == np.flatnonzero(solution.optimal[row]).tolist()
        assert value == truth[row]
        sign = 1 if player == 0 else -1
        assert winner == ({1: 0, 0: None, -1: 1}[value * sign] if over else None)


def test_a_network_that_the_page_cannot_compute_is_rejected():
    config = dataclasses.replace(presets.smoke(presets.get("default")), game="connect_four")
    parts = make_parts(config)
    own = from_module(parts.game, MLP((4,), 4, 7))
    with pytest.raises(ValueError, match="a page cannot compute this network: use an MLP"):
        networks.pack_weights(make_players(parts._replace(network=own))[0])


def test_random_numbers_are_those_of_jax(module):
    """Keys and uniform numbers are equal bit for bit, the other distributions almost."""
    seeds = [0, 1, 7, 2**31 - 1]
    found = module.evaluate(
        """(seeds) => seeds.map((seed) => {
          const key = azjax.randomKey(seed);
          return [azjax.splitKey(key, 3), azjax.foldIn(key, 2 ** 32 - 5),
            Array.from({length: 50}, (_, i) => azjax.uniformAt(key, i)),
            [...azjax.gumbels(key, 50)], [...azjax.logGammas(key, 0.3, 50)],
            [...azjax.logGammas(key, 2.5, 50)]];
        })""",
        seeds,
    )
    for seed, (keys, folded, uniform, gumbel, small, large) in zip(seeds, found, strict=True):
        key = jax.random.key(seed)
        assert keys == jax.random.key_data(jax.random.split(key, 3)).tolist()
        assert folded == jax.random.key_data(jax.random.fold_in(key, 2**32 - 5)).tolist()
        assert uniform == jax.random.uniform(key, 50).tolist()
        np.testing.assert_allclose(gumbel, jax.random.gumbel(key, 50), rtol=2e-6, atol=2e-6)
        for alpha, numbers in ((0.3, small), (2.5, large)):
            expected = jax.random.loggamma(key, alpha, (50,))
            np.testing.assert_allclose(numbers, expected, rtol=2e-5, atol=2e-6)


def random_games(game):
    """All positions of some random games, `[B, ...]`, including finished ones."""

    def move(state, key):
        state = game.step(state, random_action(game, key, state))[0]
        return state, state

    def play(key):
        return jax.lax.scan(move, game.init(), jax.random.split(key, game.max_plies))[1]

    games = jax.jit(jax.vmap(play))(jax.random.split(jax.random.key(0), 8))
    return jax.device_get(jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), games))


def test_the_games_of_the_page_are_those_of_the_package(module, tic_tac_toe, solution):
    """Moves, ends and rewards: some positions of tic-tac-toe, random games of Connect Four."""
    walk = """([name, boards]) => boards.map((board) => {
      const game = azjax.gameNamed(name);
      const position = game.at(board);
      const after = game.legal(position).map((action) => game.step(position, action));
      return [game.player(position), game.over(position), game.legal(position),
        after.map((next) => [next.board, game.over(next), game.reward(next)])];
    })"""
    four = games.make("connect_four")
    some = jax.tree.map(lambda leaf: leaf[::9], solution.states)
    for game, positions in ((tic_tac_toe, some), (four, random_games(four))):
        found = module.evaluate(walk, [game.name, np.asarray(positions.board).tolist()])
        player, over, actions, after = zip(*found, strict=True)
        legal = np.asarray(jax.vmap(game.legal_actions)(positions))
        np.testing.assert_array_equal(player, positions.player)
        np.testing.assert_array_equal(over, positions.over)
        assert [list(row) for row in actions] == [np.flatnonzero(row).tolist() for row in legal]
        rows, moves = np.nonzero(legal)
        before = jax.tree.map(lambda leaf: leaf[rows], positions)
        states, rewards = jax.jit(jax.vmap(game.step))(before, moves)
        boards, ends, gains = zip(*(one for row in after for one in row), strict=True)
        np.testing.assert_array_equal(boards, states.board)
        np.testing.assert_array_equal(ends, states.over)
        np.testing.assert_array_equal(gains, rewards)


def test_what_is_shown_explains_each_choice(module, small):
    """At every node of every path, the action has the best score of that moment."""
    wrong = module.evaluate(
        """([data, settings]) => {
          const game = azjax.openGame(data);
          const [{ evaluate }] = azjax.openNetworks(data, game);
          const wrong = [];
          for (const one of settings) {
            const search = new azjax.Search(game, game.init(), evaluate, one);
            search.simulations.forEach(({ path, actions }, k) => path.forEach((id, i) => {
              const stats = search.stats(id, k);
              const best = search.nodes[id].actions[stats.best];
              const highest = one.algorithm !== "puct" || stats.S.indexOf(Math.max(...stats.S));
              if (best !== actions[i]) wrong.push([one.algorithm, k, id]);
              if (highest !== true && highest !== stats.best) wrong.push(["as displayed", k, id]);
            }));
          }
          return wrong;
        }""",
        [
            small.data,
            [dataclasses.asdict(a) | {"seed": 1, "add_noise": True} for a in QUICK],
        ],
    )
    assert wrong == []


def test_a_search_in_slices_is_the_same_search(module):
    """A slice of no time makes one simulation."""
    whole, sliced, stopped = module.evaluate(
        """async (settings) => {
          const game = azjax.gameNamed("connect_four");
          const evaluate = azjax.EVALUATORS.rollout(game);
          const [whole, sliced, stopped] = [false, true, true].map((waits) =>
            new azjax.Search(game, game.init(), evaluate, settings, { waits }));
          const stop = azjax.advanceInSlices(stopped, () => {}, 0);
          stop();
          await new Promise((done) => azjax.advanceInSlices(sliced, done, 0));
          return [whole, sliced, stopped].map(({ simulations, action }) => [simulations, action]);
        }""",
        dataclasses.asdict(PUCT(num_simulations=30)) | {"seed": 4},
    )
    assert whole == sliced and len(whole[0]) == 30
    assert len(stopped[0]) == 1


def test_the_previous_search_is_shown_until_a_long_one_is_done(module):
    """Only the last callback is called. Here the clock advances by a second at each reading."""
    meanwhile, called, settings, length = module.evaluate(
        """async (data) => {
          const called = [];
          const { now } = performance;
          let clock = 0;
          performance.now = () => (clock += 1000);
          const bench = new azjax.Bench(data);
          const before = bench.search;
          bench.set({ c_puct: 2 });
          bench.whenMade(() => called.push(2));
          const meanwhile = bench.search === before;
          bench.set({ c_puct: 3 });
          await new Promise((done) => bench.whenMade(() => done(called.push(3))));
          performance.now = now;
          return [meanwhile, called, bench.search.settings, bench.search.length];
        }""",
        live_data(games.make("connect_four"), PUCT(num_simulations=20)),
    )
    assert meanwhile and called == [3] and settings["c_puct"] == 3 and length == 20


def test_the_history_ends_in_the_finished_tree(module, small):
    """A node's N counts its children's visits, and a backup has the sign of each node's player."""
    nodes, simulations, stats = module.evaluate(
        """([name, settings]) => {
          const game = azjax.gameNamed(name);
          const evaluate = azjax.EVALUATORS.rollout(game);
          const search = new azjax.Search(game, game.init(), evaluate, settings);
          const stats = search.nodes.map((_, id) => search.stats(id, search.length));
          const nodes = search.nodes.map(({ parent, player, over, reward, actions, children }) =>
            ({ parent, player, over, reward, actions, children }));
          return [nodes, search.simulations, stats];
        }""",
        [small.game.name, dataclasses.asdict(PUCT(num_simulations=120)) | {"seed": 0}],
    )
    for node, at in zip(nodes, stats, strict=True):
        if not node["over"]:
            assert at["visits"] == 1 + sum(at["N"])
            for child, visits in zip(node["children"], at["N"], strict=True):
                assert visits == (stats[child]["visits"] if child >= 0 else 0)
    for simulation in simulations:
        leaf, last = nodes[simulation["leaf"]], nodes[simulation["path"][-1]]
        gain = leaf["reward"] if leaf["over"] else -simulation["value"]
        players = [nodes[i]["player"] for i in simulation["path"]]
        turned = [gain if player == last["player"] else -gain for player in players]
        assert simulation["backup"] == turned
