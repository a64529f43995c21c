"""Every game that a player can be led into: its own moves against all replies, ply by ply.

Nothing is asked but the rules: a game that is lost is a proof that the player can be beaten, and
where none is lost it cannot be. Positions reached in several ways are followed once, and so are
images of each other, if the player treats them alike. The positions of one ply are spread over
files of a folder, so that memory is bounded and an interrupted walk goes on where it was:

| file                 | content                                                           |
| -------------------- | ----------------------------------------------------------------- |
| `PLY/part-N.npy`     | positions; once the next ply stands, only how each was reached    |
| `PLY/children-N.npy` | positions after them, until the next ply stands                   |
| `PLY/ends-N.npz`     | games that ended there, and moves not made in all images          |
| `starts.json`        | what was played before ply 0, for each of its positions           |
| `settings.json`      | what else determines the positions, so that no other walk goes on |
"""

import collections
import concurrent.futures
import functools
import itertools
import json
import os
import pathlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from numpy.lib.recfunctions import repack_fields
from scipy import stats

from azjax._files import replacing, write_json
from azjax.games import rows as packing
from azjax.games.base import Game, State, where
from azjax.players.ratings import Interval

Act = Callable[[State], np.ndarray]
Line = tuple[int, ...]  # The actions of a game, from its start.

GROUPS = 16  # Independent samples, whose spread tells how far off their mean may be.
_PART = 2**16  # Positions of one file.
_BATCH = 2**13  # Moves made per compiled call.
_LOST = 1000  # Lost games that each part keeps.
_WORKERS = min(os.cpu_count() or 1, 8)  # Parts that are in memory at a time.
_REPLAYED = 2**10  # Games replayed per compiled call.
_STARTS, _SETTINGS = "starts.json", "settings.json"


class Ends(NamedTuple):
    """How games end for the player: won, drawn and lost, in this order.

    Attributes:
      decisions: positions in which the player chose a move.
      moves: `int64 [3]`, different moves, of either side, that end a game.
      games: `float64 [1 + GROUPS, 3]`, complete games. Those of row 0 were all followed; each of
        the others is an estimate of all the rest, by another sample.
    """

    decisions: int
    moves: np.ndarray
    games: np.ndarray

    def __add__(self, other: tuple) -> "Ends":
        """Adds the ends of other positions."""
        return Ends(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def share(self, column: int, confidence: float = 0.95) -> Interval:
        """Estimates the share of the games that end so.

        Its interval is Student's over the samples, and a point where every game was followed.
        """
        games = self.games[:1] + self.games[1:]
        shares = games[:, column] / np.maximum(games.sum(axis=1), 1)
        estimate = games[:, column].mean() / max(games.sum(axis=1).mean(), 1)
        spread = shares.std(ddof=1) / np.sqrt(GROUPS)
        reach = stats.t.ppf((1 + confidence) / 2, GROUPS - 1) * spread
        return Interval(estimate, max(estimate - reach, 0.0), min(estimate + reach, 1.0))


NOTHING = Ends(0, np.zeros(3, np.int64), np.zeros((1 + GROUPS, 3)))


class Found(NamedTuple):
    """What was found so far.

    Attributes:
      ply: of the positions followed last.
      positions: how many of that ply were followed.
      of: how many there are.
      ends: of all games so far.
      lost: actions of the first lost game from the start, None as long as there is none.
      sampled: whether some positions were left out, so that games are estimates.
      unlike: whether the player was seen to treat images of each other otherwise.
    """

    ply: int
    positions: int
    of: int
    ends: Ends
    lost: tuple[int, ...] | None
    sampled: bool
    unlike: bool


def follow(
    game: Game,
    act: Act,
    seat: int,
    folder: pathlib.Path,
    most: int | None = None,
    part_size: int = _PART,
    symmetric: bool = False,
    compare: bool = False,
    starts: Sequence[Line] = ((),),
) -> Iterator[Found]:
    """Follows a player through all games; goes on where an earlier call was interrupted.

    Args:
      game: the rules.
      act: `states [N, ...] -> actions [N]`, the player; a position determines its move.
      seat: 0 or 1, the player's.
      folder: for this player, seat and settings alone; it is made.
      most: positions of one ply after the starts that are followed, `GROUPS` or more. Where there
        are more, games are drawn at random in proportion to their number, and what they lead to is
        an unbiased estimate.
      part_size: positions that stand in one file; so many are in memory for each core.
      symmetric: follow one of the positions that are images of each other, and take the player
        to make the image of its move in the others, as one that respects the symmetries does.
        Decisions and moves are counted up to symmetry then, and games all the same.
      compare: ask the player about all of them, see `unlike_games`: where it always makes the
        image of its move, what is found holds of every game.
      starts: what was played before, once for each position that games are followed from.

    Yields:
      What was found, after every part; at the end that of all games.

    Raises:
      ValueError: if a setting is out of range, a start cannot be played or is over, or the folder
        is of another walk; if the player's move is illegal or missing; or if the game goes on
        after its `max_plies`, or where no move is legal.
    """
    _check_settings(seat, most, part_size, starts)
    images = images_of(game, symmetric)
    settings = {
        "seat": int(seat),
        "most": None if most is None else int(most),
        "symmetric": bool(symmetric),
        "compare": bool(compare),
    }
    _begin(game, folder, images, starts, part_size, settings)
    shortest = min(map(len, starts))
    ends, lost, sampled, unlike = NOTHING, None, False, False
    choose = functools.partial(_choose, game, act, seat, images, compare)
    for ply in itertools.count():
        layer = _layer(folder, ply)
        parts, bounds = _parts(layer)
        if not parts:
            return
        if ply + shortest >= game.max_plies:
            line = trace(folder, ply, np.zeros(1, np.int64))[0]
            raise ValueError(
                f"{game.name} is not over after {len(line)} moves, {list(line)}, and its max_plies "
                f"is {game.max_plies}: set max_plies to the length of its longest game"
            )
        for number, here in enumerate(_follow_ply(game, choose, images, layer, parts, bounds)):
            with np.load(here) as file:
                ends += (int(file["decisions"]), file["moves"], file["games"])
                if lost is None and len(file["lost"]):
                    parents, last = file["lost"][:1].T
                    lost = (*trace(folder, ply, parents)[0], int(last[0]))
                unlike = unlike or bool(len(file["unlike"]))
            sampled = sampled or bool(ends.games[1:].any())
            yield Found(ply, int(bounds[number + 1]), int(bounds[-1]), ends, lost, sampled, unlike)
        if not _layer(folder, ply + 1).exists():
            _gather(folder, ply, most, part_size)
        for path in layer.glob("children-*.npy"):
            path.unlink()


def _check_settings(seat: int, most: int | None, part_size: int, starts: Sequence[Line]) -> None:
    if seat not in (0, 1):
        raise ValueError(f"seat is {seat}: use 0 for the first player or 1 for the second")
    if most is not None and most < GROUPS:
        raise ValueError(
            f"most is {most}: use {GROUPS} or more, one position for each sample, or None for all"
        )
    if part_size < 1:
        raise ValueError(f"part_size is {part_size}: use 1 or more")
    if not len(starts):
        raise ValueError("starts is empty: give one line or more, such as () for the whole game")


def trace(folder: pathlib.Path, ply: int, indices: np.ndarray) -> list[Line]:
    """Returns the actions that led from the start of the game to positions `[N]` of a ply."""
    actions = np.zeros((len(indices), ply), np.int32)
    for earlier in range(ply, 0, -1):
        parts, bounds = _parts(_layer(folder, earlier))
        numbers = np.searchsorted(bounds, indices, side="right") - 1
        parents = np.zeros_like(indices)
        for number in np.unique(numbers):
            here = numbers == number
            rows = parts[number][indices[here] - bounds[number]]
            actions[here, earlier - 1], parents[here] = rows["action"], rows["parent"]
        indices = parents
    starts = json.loads((folder / _STARTS).read_text())
    return [
        (*starts[index], *after) for index, after in zip(indices, actions.tolist(), strict=True)
    ]


def lost_games(folder: pathlib.Path) -> Iterator[Line]:
    """Yields the actions of lost games, the shortest first; of each part 1,000 at most."""
    return _games(folder, "lost")


def unlike_games(folder: pathlib.Path) -> Iterator[Line]:
    """Yields games up to a move of the player that it does not make in all images.

    There are none, unless `follow` compared images.
    """
    return _games(folder, "unlike")


def _games(folder: pathlib.Path, kind: str) -> Iterator[Line]:
    for ply in itertools.count():
        layer = _layer(folder, ply)
        if not layer.exists():
            return
        found = [np.zeros((0, 2), np.int64)]
        for path in sorted(layer.glob("ends-*.npz")):
            with np.load(path) as file:
                found.append(file[kind])
        parents, last = np.concatenate(found).T
        before = trace(folder, ply, parents) if len(parents) else []
        yield from ((*line, action) for line, action in zip(before, last.tolist(), strict=True))


def images_of(game: Game, symmetric: bool) -> np.ndarray:
    """Returns `int [G, A]`, what the symmetries make of the actions; the identity, if not."""
    if symmetric and game.symmetries is not None:
        return game.symmetries.actions
    return np.arange(game.num_actions)[None]


def replay(game: Game, games: Sequence[Line]) -> State:
    """Returns the positions that some games have come to, leaves `[N, ...]`, on the host.

    Raises:
      ValueError: if a move is illegal, or a game has more moves than the game's `max_plies`.
    """
    counts = np.array([len(line) for line in games], np.int32)
    actions = np.zeros((len(games), game.max_plies), np.int32)
    for row, line in enumerate(games):
        if len(line) > game.max_plies:
            raise ValueError(
                f"a line of {game.name} has {len(line)} moves: use {game.max_plies} at most"
            )
        actions[row, : len(line)] = line
    states, is_legal = packing.in_batches(_play(game), (actions, counts), _REPLAYED)
    if not is_legal.all():
        row, ply = np.argwhere(~is_legal)[0]
        raise ValueError(
            f"the action {actions[row, ply]} is illegal in {game.name} after the moves "
            f"{actions[row, :ply].tolist()}: use lines of legal moves"
        )
    return states


@functools.lru_cache(maxsize=8)
def _play(game: Game) -> Callable:
    """Builds `(actions [N, T], counts [N]) -> (states [N, ...], is_legal [N, T])`.

    It plays that many of the actions, and tells which of those are legal; the others count as such.
    """

    def play(actions, count):
        def move(state, step):
            ply, action = step
            is_legal = (game.legal_actions(state) & (np.arange(game.num_actions) == action)).any()
            after = where(ply < count, game.step(state, action)[0], state)
            return after, (ply >= count) | is_legal

        return jax.lax.scan(move, game.init(), (np.arange(game.max_plies), actions))

    return jax.jit(jax.vmap(play))


# --- Files -------------------------------------------------------------------------------


def _layer(folder: pathlib.Path, ply: int) -> pathlib.Path:
    return folder / f"{ply:03d}"


def _parts(layer: pathlib.Path) -> tuple[list[np.ndarray], np.ndarray]:
    """The positions of a ply, mapped into memory, and the numbers at which its parts begin."""
    parts = [np.load(path, mmap_mode="r") for path in sorted(layer.glob("part-*.npy"))]
    return parts, np.cumsum([0, *map(len, parts)])


def _save(path: pathlib.Path, array: np.ndarray | None = None, **arrays: Any) -> None:
    """Writes one array, or several, whole or not at all."""
    with replacing(path) as beside, beside.open("wb") as file:
        np.savez(file, **arrays) if array is None else np.save(file, array)


def _begin(
    game: Game,
    folder: pathlib.Path,
    images: np.ndarray,
    starts: Sequence[Line],
    part_size: int,
    settings: dict[str, Any],
) -> None:
    """Writes settings and starts, once; each position with all its images, itself first."""
    lines = [tuple(map(int, line)) for line in starts]
    listed = [list(line) for line in lines]
    for path, given in ((folder / _SETTINGS, settings), (folder / _STARTS, listed)):
        if path.exists() and (there := json.loads(path.read_text())) != given:
            raise ValueError(
                f"{path} is of another walk, {there}, and not {given}: use another folder"
            )
    if _layer(folder, 0).exists():
        return
    _, legal = packing.in_batches(_look(game), (replay(game, lines),), _BATCH)
    if not legal.any(axis=1).all():
        over = listed[legal.any(axis=1).argmin()]
        raise ValueError(f"{game.name} is over after the moves {over}: leave this start out")
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / _SETTINGS, settings)
    write_json(folder / _STARTS, listed)
    played = [[tuple(image[list(line)]) for line in starts] for image in images]
    states = [packing.pack(replay(game, lines)) for lines in played]
    fields: list[Any] = [("hash", np.uint64)]
    fields += [("images", np.uint8, (len(images), states[0].shape[1]))]
    fields += [("group", np.uint8), ("games", np.float64), ("parent", np.int64)]
    rows = np.zeros(len(starts), [*fields, ("action", np.int32)])
    rows["images"] = np.stack(states, axis=1)
    rows["games"] = 1
    _write_ply(_layer(folder, 0), np.split(rows, range(part_size, len(rows), part_size)))


def _write_ply(layer: pathlib.Path, parts: Iterable[np.ndarray], most: int | None = None) -> None:
    """Writes the positions of a ply, or a sample of them, all or none."""
    beside = layer.with_suffix(".tmp")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    for number, part in enumerate(part for part in parts if len(part)):
        np.save(beside / f"part-{number:06d}.npy", part)
    whole, bounds = _parts(beside)
    if most is not None and bounds[-1] > most:
        draw, paths = _sampler(whole, most, int(layer.name)), sorted(beside.iterdir())
        drawn = (draw(np.load(path)) for path in paths)  # Each is read before it is replaced.
        kept = 0
        for kept, part in enumerate((part for part in drawn if len(part)), start=1):
            np.save(paths[kept - 1], part)
        for path in paths[kept:]:
            path.unlink()
    beside.rename(layer)


# --- One ply -----------------------------------------------------------------------------


def _follow_ply(
    game: Game,
    choose: Callable[[np.ndarray, Callable[[int], Line]], "_Moves"],
    images: np.ndarray,
    layer: pathlib.Path,
    parts: Sequence[np.ndarray],
    bounds: np.ndarray,
) -> Iterator[pathlib.Path]:
    """Yields where the ends of each part of a ply stand, as soon as they do.

    Moves are chosen in this thread, so that it can be interrupted, and made in others.
    """
    paths = [layer / f"ends-{number:06d}.npz" for number in range(len(parts))]

    def choose_moves():
        for number, (part, path) in enumerate(zip(parts, paths, strict=True)):
            if path.exists():
                yield number, None
            else:
                rows = np.array(part)
                yield number, (rows, choose(rows, functools.partial(line_to, number)))

    def line_to(number, row):
        return trace(layer.parent, int(layer.name), bounds[number : number + 1] + row)[0]

    def make_moves(task):
        number, chosen = task
        if chosen is not None:
            rows, moves = chosen
            children, found = _expand(game, images, rows, moves, int(bounds[number]))
            _save(layer / f"children-{number:06d}.npy", children)
            _save(paths[number], **found)
        return paths[number]

    return _side_by_side(make_moves, choose_moves())


class _Moves(NamedTuple):
    """What is played in `N` positions.

    Attributes:
      own: `bool [N]`, where the player moves.
      played: `bool [N, A]`, the player's move, or every reply.
      unlike: `int [U, 2]`, numbers of positions, and the player's moves there that it does not
        make in all images.
    """

    own: np.ndarray
    played: np.ndarray
    unlike: np.ndarray


def _choose(
    game: Game,
    act: Act,
    seat: int,
    images: np.ndarray,
    compare: bool,
    rows: np.ndarray,
    line_to: Callable[[int], Line],
) -> _Moves:
    """Asks the player in its own positions, and finds every reply in the others.

    `line_to` returns the moves that led to one of the rows, for a message.
    """
    states = packing.unpack(game, rows["images"][:, 0])
    player, played = packing.in_batches(_look(game), (states,), _BATCH)
    goes_on = played.any(axis=1)
    if not goes_on.all():
        raise ValueError(
            f"{game.name} has no legal move after the moves {list(line_to(goes_on.argmin()))}, and "
            "is not over there: correct its legal_actions or is_over"
        )
    own = player == seat
    if not own.any():
        return _Moves(own, played, np.zeros((0, 2), np.int64))
    asked = rows["images"][own, : None if compare else 1]
    chosen = np.asarray(act(packing.unpack(game, asked.reshape(-1, asked.shape[2]))))
    if chosen.shape != (asked.shape[0] * asked.shape[1],):
        raise ValueError(
            f"the player answers {asked.shape[0] * asked.shape[1]} positions with actions of shape "
            f"{chosen.shape}: give one action for each"
        )
    chosen = chosen.reshape(asked.shape[:2])
    _check_legal(played[own], chosen, images, lambda row: line_to(np.flatnonzero(own)[row]))
    played[own] = np.arange(game.num_actions) == chosen[:, :1]
    numbered = np.stack([np.flatnonzero(own), chosen[:, 0]], axis=1)
    return _Moves(own, played, numbered[~_alike(asked, chosen, images)])


def _check_legal(
    legal: np.ndarray, chosen: np.ndarray, images: np.ndarray, line_to: Callable[[int], Line]
) -> None:
    """Raises a `ValueError` if one of the actions `[N, E]` is illegal in its image of a position.

    `legal [N, A]` are the actions that are legal in the positions themselves.
    """
    for image, actions in zip(images[: chosen.shape[1]], chosen.T, strict=True):
        there = legal[:, np.argsort(image)]
        is_legal = (there & (np.arange(len(image)) == actions[:, None])).any(axis=1)
        if not is_legal.all():
            row = is_legal.argmin()
            raise ValueError(
                f"the player's action {actions[row]} is illegal after the moves "
                f"{image[list(line_to(row))].tolist()}: {np.flatnonzero(there[row]).tolist()} are "
                "legal there"
            )


def _expand(
    game: Game, images: np.ndarray, rows: np.ndarray, moves: _Moves, offset: int
) -> tuple[np.ndarray, dict[str, Any]]:
    """Makes moves in some positions, and their images in the images of these.

    Returns:
      The positions after them, and what is known of the games that end, and of the moves.
    """
    parents, actions = np.nonzero(moves.played)
    before = rows["images"][parents]
    transformed = images[:, actions].T.ravel().astype(np.int32)
    made = packing.unpack(game, before.reshape(len(transformed), -1)), transformed
    after, rewards, over = packing.in_batches(_step(game), made, _BATCH)
    rewards, over = rewards[:: len(images)], over[:: len(images)]
    signs = np.where(moves.own[parents], 1, -1)
    columns = (1 - rewards * signs).astype(int)[over]  # Of `Ends`.
    ended, last = parents[over], actions[over]
    games = np.zeros_like(NOTHING.games)
    np.add.at(games, (rows["group"][ended], columns), rows["games"][ended])
    lost = np.stack([ended + offset, last], axis=1)[columns == 2][:_LOST]
    counts = np.bincount(columns, minlength=3)
    children = rows[parents[~over]]
    children["images"] = packing.pack(after).reshape(before.shape)[~over]
    children["parent"], children["action"] = parents[~over] + offset, actions[~over]
    found = {"decisions": moves.own.sum(), "moves": counts, "games": games, "lost": lost}
    return _merge(children), {**found, "unlike": moves.unlike + (offset, 0)}


def _alike(states: np.ndarray, actions: np.ndarray, images: np.ndarray) -> np.ndarray:
    """Tells where an action is made in all images of a position, as far as they differ.

    Args:
      states: `uint8 [N, E, R]`, the first `E` images of each.
      actions: `int [N, E]`, what is done in each.
      images: `int [G, A]`, what the symmetries make of the actions.

    Returns:
      `bool [N]`.
    """
    expected, alike = images[:, actions[:, 0]].T, np.zeros(actions.shape, bool)
    for one, other in itertools.product(range(actions.shape[1]), repeat=2):
        is_same = (states[:, one] == states[:, other]).all(axis=1)
        alike[:, one] |= is_same & (actions[:, one] == expected[:, other])
    return np.all(alike, axis=1)


@functools.lru_cache(maxsize=8)
def _look(game: Game) -> Callable:
    return jax.jit(jax.vmap(lambda state: (game.player(state), game.legal_actions(state))))


@functools.lru_cache(maxsize=8)
def _step(game: Game) -> Callable:
    def step(state, action):
        after, reward = game.step(state, action)
        return after, reward, game.is_over(after)

    return jax.jit(jax.vmap(step))


def _merge(rows: np.ndarray) -> np.ndarray:
    """Makes equal positions of a sample one, with the games of all, sorted by their hashes.

    Of images of each other, the one that stands for all has the smallest hash.
    """
    images = rows["images"]
    hashed = packing.hashes(images.reshape(-1, images.shape[2])).reshape(images.shape[:2])
    keys = images[np.arange(len(images)), hashed.argmin(axis=1)]
    keys = np.concatenate([keys, rows["group"][:, None]], axis=1)
    order, first, hashes = packing.group_equal(keys)
    merged = rows[order[first]]
    merged["hash"] = hashes
    if len(rows):
        merged["games"] = np.add.reduceat(rows["games"][order], first)
    return merged


def _gather(folder: pathlib.Path, ply: int, most: int | None, part_size: int) -> None:
    """Makes the next ply of what this one leads to; keeps only how this one was reached."""
    layer = _layer(folder, ply)
    found = sorted(layer.glob("children-*.npy"))
    children = [np.load(path, mmap_mode="r") for path in found]
    count = -(-sum(map(len, children)) // part_size)
    bounds = [part * 2**64 // max(count, 1) for part in range(1, count)]  # Hashes are even.

    cuts = [np.searchsorted(c["hash"], np.array(bounds, np.uint64)) for c in children]
    pieces = [np.split(c, cut) for c, cut in zip(children, cuts, strict=True)]
    buckets = [*zip(*pieces, strict=True)]
    merged = _side_by_side(lambda bucket: _merge(np.concatenate(bucket)), buckets)
    for path in sorted(layer.glob("part-*.npy")):
        _save(path, repack_fields(np.load(path)[["parent", "action"]]))
    _write_ply(_layer(folder, ply + 1), merged, most)


def _side_by_side(function: Callable, items: Iterable) -> Iterator[Any]:
    """Yields a function's results in their order, computed in as many threads as there are cores.

    What is large, numpy and XLA compute outside Python's lock.
    """
    with concurrent.futures.ThreadPoolExecutor(_WORKERS) as pool:
        waiting = collections.deque()
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) == _WORKERS:
                yield waiting.popleft().result()
        yield from (future.result() for future in waiting)


def _sampler(
    parts: Sequence[np.ndarray], most: int, seed: int
) -> Callable[[np.ndarray], np.ndarray]:
    """Builds `draw(part) -> positions`, to be called with one part after the other.

    Each sample draws systematically, with a probability in proportion to the games that lead to a
    position; what it draws stands for as many games as there are between two draws.
    """
    totals = np.sum([np.bincount(p["group"], p["games"], 1 + GROUPS) for p in parts], axis=0)
    is_first, count = totals[0] > 0, most // GROUPS
    start, passed = np.random.default_rng(seed).random(GROUPS), np.zeros(GROUPS)

    def draw_one(rows: np.ndarray, group: int) -> np.ndarray:
        mine = rows if is_first else rows[rows["group"] == group]
        between = totals[0 if is_first else group] / count
        if not len(mine):
            return mine
        reached = passed[group - 1] + np.cumsum(mine["games"])
        first, last = np.ceil(
            np.array([passed[group - 1], reached[-1]]) / between - start[group - 1]
        )
        points = (start[group - 1] + np.arange(first, last)) * between
        passed[group - 1] = reached[-1]
        drawn = mine[np.searchsorted(reached, points).clip(max=len(mine) - 1)]
        drawn["group"], drawn["games"] = group, between
        return drawn

    return lambda rows: _merge(
        np.concatenate([draw_one(rows, group) for group in range(1, 1 + GROUPS)])
    )
