"""The games of pgx satisfy the contract and have the rules of the same games in azjax."""

import functools
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games
from azjax.games import from_pgx
from azjax.games.check import check_game

TESTED = ["tic_tac_toe"]
SLOW = ["go_3x3", "connect_four", "othello", "hex"]
LARGE = ["animal_shogi", "gardner_chess", "go_9x9", "chess", "shogi"]
OPTIMISED = {"xla_backend_optimization_level": 2, "xla_llvm_disable_expensive_passes": False}


@pytest.mark.parametrize(
    "name", [*TESTED, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_every_game_satisfies_the_contract(name):
    check_game(games.make(f"pgx:{name}"), num_games=16)


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_games_of_many_moves_satisfy_the_contract(name):
    """`check_game` would take hours for all actions; here every eighth ply has an illegal one."""
    game, num_games = games.make(f"pgx:{name}"), 32
    start = jax.tree.map(lambda leaf: jnp.stack([leaf] * num_games), game.init())

    @jax.vmap
    def observer(key, state):
        legal, over = game.legal_actions(state), game.is_over(state)
        action = jnp.argmax(jnp.where(legal, jax.random.uniform(key, legal.shape), -1))
        after, reward = game.step(state, action)
        holds = {
            "a legal action until the end": jnp.any(legal) ^ over,
            "rewarded": jnp.isin(reward, jnp.array([-1.0, 0.0, 1.0])),
            "only at the end": game.is_over(after) | (reward == 0),
            "in turn": over | (game.player(after) == 1 - game.player(state)),
        }
        return after, over, reward, holds

    @jax.vmap
    def refuses(key, state):
        legal = game.legal_actions(state)
        action = jnp.argmax(jnp.where(legal, -1, jax.random.uniform(key, legal.shape)))
        after, reward = game.step(state, action)
        same = jax.tree.map(lambda new, old: jnp.all(new == old), after, state)
        unchanged = jnp.all(jnp.stack(jax.tree.leaves(same))) & (reward == 0)
        return unchanged | jnp.all(legal)

    @functools.partial(jax.jit, compiler_options=OPTIMISED)  # Compilation is faster than the games.
    def play(key):
        def go_on(carry):
            return (carry[0] <= game.max_plies) & ~jnp.all(carry[2])

        def move(carry):
            ply, states, _, rewards, held = carry
            keys = jax.random.split(jax.random.fold_in(key, ply), num_games)
            tried = jax.lax.cond(
                ply % 8 == 0,
                lambda: jnp.all(refuses(keys, states)),
                lambda: jnp.bool_(True),
            )
            states, over, reward, holds = observer(keys, states)
            holds["illegal"] = tried
            held = jax.tree.map(lambda before, now: before & jnp.all(now), held, holds)
            return ply + 1, states, over, rewards + abs(reward), held

        rules = jax.eval_shape(observer, keys, start)[3] | {"illegal": True}
        held = jax.tree.map(lambda _: jnp.bool_(True), rules)
        zeros = jnp.zeros(num_games)
        return jax.lax.while_loop(go_on, move, (0, start, zeros.astype(bool), zeros, held))

    keys = jax.random.split(jax.random.key(0), num_games)
    ply, _, over, rewards, held = play(jax.random.key(1))
    assert all(held.values()), held
    assert over.all() and ply > 10 and rewards.sum() > 0 and rewards.max() == 1


def test_every_game_of_pgx_is_tested():
    tested = {name for name in (*TESTED, *SLOW, *LARGE) if not name.startswith("go_")}
    assert tested | {"go_SIZExSIZE"} == {*from_pgx.NAMES}


def play_both(mine, theirs, num_games, seed=0, mirror=None):
    """Plays the same random moves in two games; yields the results of both for each ply.

    With a mirror `[A]`, the second player of the first game sees its actions in it.
    """

    def observer(game):
        def see(state):
            planes = game.observe(state, "relative")
            return game.legal_actions(state), game.is_over(state), game.player(state), planes

        step = jax.jit(jax.vmap(game.step))
        return jax.jit(jax.vmap(see)), step, [game.init()] * num_games

    rng, sides, rewards = np.random.default_rng(seed), [observer(mine), observer(theirs)], [0, 0]
    states = [jax.tree.map(lambda *leaves: np.stack(leaves), *start) for _, _, start in sides]
    while True:
        message = [see(state) for (see, _, _), state in zip(sides, states, strict=True)]
        yield [jax.tree.map(lambda leaf: leaf[0], state) for state in states], *message, *rewards
        legal = np.asarray(message[0][0])
        if not legal.any():
            return
        actions = np.where(legal, rng.random(legal.shape), -1).argmax(axis=1).astype(np.int32)
        lying = actions
        if mirror is not None:
            lying = np.where(message[0][2] == 1, mirror[actions], actions).astype(np.int32)
        made = zip(sides, states, (actions, lying), strict=True)
        moved = [step(state, actions) for (_, step, _), state, actions in made]
        states, rewards = zip(*moved, strict=True)


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("tic_tac_toe", "tic_tac_toe"),
        pytest.param("connect_four", "connect_four", marks=pytest.mark.slow),
        pytest.param("othello", "othello", marks=pytest.mark.slow),
        pytest.param("hex", "hex_swap", marks=pytest.mark.slow),
    ],
)
def test_games_of_both_libraries_have_the_same_rules(name, ours):
    plies, both = 0, (games.make(ours), games.make(f"pgx:{name}"))
    mirror = np.append(np.arange(121).reshape(11, 11).T, 121) if name == "hex" else None
    played = play_both(*both, num_games=64, mirror=mirror)
    for firsts, mine, theirs, my_reward, their_reward in played:
        legal = np.asarray(mine[0])
        if mirror is None:
            np.testing.assert_array_equal(mine[3], theirs[3])
        else:  # The actions of pgx are cells of the board, and its planes are turned differently.
            legal = np.where((mine[2] == 1)[:, None], legal[:, mirror], legal)
        for field, expected in zip((legal, *mine[1:3]), theirs, strict=False):
            np.testing.assert_array_equal(field, expected)
        np.testing.assert_array_equal(my_reward, their_reward)
        pictures = [
            str(game.display.draw(state, size=90)) for game, state in zip(both, firsts, strict=True)
        ]
        assert pictures[0] == pictures[1]
        plies += 1
    assert plies > 8


@pytest.mark.parametrize("name", ["tic_tac_toe", "connect_four"])
def test_positions_and_moves_are_written_as_in_our_game(name):
    theirs, ours = games.make(f"pgx:{name}"), games.make(name)
    one, other = theirs.init(), ours.init()
    for action in (4, 0):
        one, other = theirs.step(one, action)[0], ours.step(other, action)[0]
    assert theirs.display.render(one) == ours.display.render(other)
    names = [game.display.name_actions(state) for game, state in ((theirs, one), (ours, other))]
    assert [*names[0]] == [*names[1]]


def test_chess_has_the_same_names_of_moves_for_both_players():
    """The board is from the perspective of the second player, whose pieces are lowercase."""
    game = games.make("pgx:gardner_chess")
    first = game.init()
    second = first.replace(current_player=1 - first.current_player)
    assert [int(game.player(state)) for state in (first, second)] == [0, 1]
    board = "5 r n b q k\n4 p p p p p\n3 . . . . .\n2 P P P P P\n1 R N B Q K\n  a b c d e"
    assert game.display.render(first) == game.display.render(second) == board
    names, seen = game.display.name_actions(first), game.display.name_actions(second)
    legal = np.flatnonzero(game.legal_actions(first))
    white = "a2a3", "b1a3", "b1c3", "b2b3", "c2c3", "d2d3", "e2e3"
    black = "a4a3", "b5a3", "b5c3", "b4b3", "c4c3", "d4d3", "e4e3"
    assert {names[a] for a in legal} == set(white)
    assert {seen[a] for a in legal} == set(black)
    for called, way in ((names, "a4a5"), (seen, "a2a1")):
        promotions = [name for name in called if name.startswith(way)]
        assert sorted(promotions) == [way, f"{way}b", f"{way}n", f"{way}r"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), [("chess", 8), ("gardner_chess", 5)])
def test_moves_of_chess_are_named_by_their_squares(name, size):
    """The name of a move is its origin and its target."""
    game, rng = games.make(f"pgx:{name}"), np.random.default_rng(0)
    step, state, seen = jax.jit(game.step), game.init(), 0

    def squares(state):
        lines = [line.split()[1:] for line in game.display.render(state).splitlines()[:-1]]
        return {f"{'abcdefgh'[f]}{size - r}": lines[r][f] for r in range(size) for f in range(size)}

    for ply in range(40):
        if game.is_over(state):
            break
        action = int(rng.choice(np.flatnonzero(game.legal_actions(state))))
        name, before = game.display.name_actions(state)[action], squares(state)
        state, _ = step(state, action)
        after = squares(state)
        assert before[name[:2]].isupper() == (ply % 2 == 0)
        assert after[name[:2]] == "." and after[name[2:4]].isupper() == (ply % 2 == 0)
        if len(name) == 4:
            seen += after[name[2:4]] == before[name[:2]]
    assert seen > 5


def test_unknown_games_of_pgx_are_refused():
    with pytest.raises(ValueError, match="pgx:backgammon is not a two-player game of perfect"):
        games.make("pgx:backgammon")
    with pytest.raises(ValueError, match="pgx:go_5x6"):
        games.make("pgx:go_5x6")


def test_pgx_is_imported_only_when_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pgx", None)
    with pytest.raises(ValueError, match=r"needs the package pgx \(.*pip install pgx"):
        from_pgx.make.__wrapped__("tic_tac_toe")
