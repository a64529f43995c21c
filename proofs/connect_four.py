"""Checks that a Connect Four player of azjax never loses, with NumPy and without azjax.

It plays the player's move in every position that an opponent can lead it to, and counts the ends:
moves that end a game. The player chooses its move in the canonical orientation: of a position and
its mirror image, the one whose planes come first in lexicographic order. The move is that of the
override table, or else the legal column with the highest output, the leftmost of equal ones.

Symmetry: mirroring commutes with the rules (`make_moves` checks this for every move), and the
player decides in the canonical orientation. Games from mirrored positions are thus mirrored, with
the same ends, and one of the two positions suffices. In a position that equals its mirror image,
the player makes one of two mirrored moves. Their games are mirrored as well, so either suffices.

Arithmetic: all sums are integers below 2 ** 24 (`Player.layer` checks it), so float32 is exact.
"""

import argparse
import hashlib
import io
import json
import os
import pathlib
import time
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # This program has one thread for each core.
import numpy as np
from numpy import ndarray as Array


class Board:
    """The rules. A position that is not over is one number `uint64`, its key.

    The lowest bit is the cell on the lower right; the next one is its left neighbor. A key has the
    stones of the player to move, and in each column the cell above the highest stone.
    """

    def __init__(self, rows: int = 6, columns: int = 7, length: int = 4):
        if min(rows, columns) < 1 or length < 2 or (rows + 1) * columns > 64:
            raise ValueError(f"{length} in a row on {rows} by {columns} do not fit in 64 bits")
        self.rows, self.columns, self.length = rows, columns, length
        self.cells = np.uint64(1) << np.arange(rows * columns, dtype=np.uint64)[::-1]
        grid = self.cells.reshape(rows, columns)  # From the upper left cell, row by row.
        self.column, self.bottom, self.full = grid.sum(axis=0), grid[-1].sum(), grid.sum()
        self.right = self.column[-1] | np.uint64(1 << rows * columns)
        left, right = grid[:, length - 1 :].sum(), grid[:, : 1 - length].sum()  # Starts of lines.
        self.lines = (1, left), (columns, self.full), (columns + 1, left), (columns - 1, right)

    def split(self, keys: Array) -> tuple[Array, Array]:
        """Returns the stones of the player to move and those of the opponent."""
        stones = np.bitwise_or.reduce([keys >> y * self.columns for y in range(1, self.rows + 1)])
        return keys & stones, ~keys & stones

    def join(self, mover: Array, other: Array) -> Array:
        """Returns the keys of positions: the inverse of `split`."""
        return mover | ((mover | other) << self.columns | self.bottom) & ~(mover | other)

    def planes(self, keys: Array) -> Array:
        """Returns `float32 [N, cells * 2]`: for each cell, the mover's stone and the opponent's."""
        stones = [x[:, None] & self.cells != 0 for x in self.split(keys)]
        return np.stack(stones, axis=-1, dtype=np.float32).reshape(len(keys), 2 * len(self.cells))

    def mirror(self, keys: Array) -> Array:
        """Returns the keys of the mirror images."""
        columns = [keys >> x & self.right for x in range(self.columns)]
        return np.bitwise_or.reduce([column << x for x, column in enumerate(columns[::-1])])

    def orient(self, keys: Array) -> Array:
        """Returns the keys of the canonical orientations."""
        images = self.mirror(keys)
        (mover, other), (mover_image, other_image) = self.split(keys), self.split(images)
        a, b = mover ^ mover_image, other ^ other_image
        differs_later = (a < b) & (a < a ^ b)  # The highest bit of `a` is lower than that of `b`.
        is_larger = np.where(differs_later, other > other_image, mover > mover_image)
        return np.where(is_larger, images, keys)

    def landings(self, keys: Array) -> Array:
        """Returns the cell where a stone lands in each column, `[N, columns]`; 0 in a full one."""
        return (keys ^ self.split(keys)[0])[:, None] & self.column

    def drop(self, keys: Array, moves: Array) -> tuple[Array, Array, Array]:
        """Drops a stone in each position; returns the next keys, the wins and the draws."""
        mover, other = self.split(keys)
        mover = mover | self.landings(keys)[np.arange(len(keys)), moves]
        won = self.has_line(mover)
        return self.join(other, mover), won, (mover | other == self.full) & ~won

    def has_line(self, stones: Array) -> Array:
        """Returns whether `length` stones are in a row."""
        line = stones & 0
        for step, starts in self.lines:
            line |= np.bitwise_and.reduce([stones >> i * step for i in range(self.length)]) & starts
        return line != 0


class Player:
    """A player, from the content of its file."""

    def __init__(self, content: bytes):
        self.sha256 = hashlib.sha256(content).hexdigest()
        arrays = dict(np.load(io.BytesIO(content)))
        about = json.loads(arrays["about"].tobytes())
        game, _, size = about["game"].partition(":")
        if game != "connect_four" or about["encoding"] != "relative":
            raise ValueError(f"it plays {about['game']} with the encoding {about['encoding']}")
        self.board = board = Board(*map(int, size.split("x"))) if size else Board()
        self.copies = 1 + bool(about["symmetric"] and board.columns > 1)  # 1: nothing is mirrored.
        trunk = {name.split(".")[0] for name in arrays if name.startswith("Dense_")}
        trunk = sorted(trunk, key=lambda name: int(name.removeprefix("Dense_")))
        self.layers = [self.layer(arrays, name) for name in (*trunk, "policy_hidden", "policy")]
        planes = arrays.get("overrides.planes", np.zeros((0, 1), np.uint8))
        planes = np.unpackbits(planes, axis=1, count=2 * len(board.cells))
        stones = board.cells @ planes.reshape(-1, len(board.cells), 2).astype(np.uint64)
        keys, moves = board.join(*stones.T), arrays.get("overrides.actions", np.zeros(0, int))
        is_right = np.all(board.planes(keys) == planes, axis=1) & (board.orient(keys) == keys)
        if not np.all(is_right & (board.landings(keys)[np.arange(len(keys)), moves] != 0)):
            raise ValueError("an override is for an impossible position or an illegal move")
        self.keys, rows = np.unique([*keys, *board.mirror(keys), ~np.uint64(0)], return_index=True)
        self.moves = np.array([*moves, *(board.columns - 1 - moves), 0])[rows]  # 0: not a position.
        self.choose(board.bottom[None])  # Raises ValueError if the layers do not fit together.

    def layer(self, arrays: dict[str, Array], name: str) -> tuple[list[Array], Array]:
        """Returns the kernels (see `mix`) and the bias of a layer, divided by powers of 2."""
        parts = "kernel", "bias", "shift"
        kernel, bias, shift = (arrays[f"{name}.{x}"].astype(int) for x in parts)
        halves = {"Dense_0": [kernel, 0 * kernel], "policy": [kernel, kernel[:, ::-1]]}.get(name)
        halves = halves[: self.copies] if halves else np.split(kernel, self.copies)
        total = sum(abs(x).sum(axis=0) for x in halves) * (127 if name != "Dense_0" else 1)
        if self.copies * (total + abs(bias)).max() >= 2**24 or shift.max() > 64:
            raise ValueError(f"a sum in the layer {name} may be too large for float32")
        kernels = [(x / self.copies / 2.0**shift).astype(np.float32) for x in mix(halves)]
        return kernels, (bias / 2.0**shift).astype(np.float32)

    def choose(self, keys: Array) -> Array:
        """Returns the moves in canonical positions."""
        blocks = [self.board.planes(x) for x in (keys, self.board.mirror(keys))[: self.copies]]
        for kernels, bias in self.layers:
            inputs = mix([np.clip(x, 0, 127) for x in blocks])
            products = [x @ kernel for x, kernel in zip(inputs, kernels, strict=True)]
            blocks = [np.floor(np.add(x, bias, out=x), out=x) for x in mix(products)]
        moves = np.where(self.board.landings(keys), blocks[0], -np.inf).argmax(axis=1)
        rows = np.searchsorted(self.keys, keys)
        return np.where(self.keys[rows] == keys, self.moves[rows], moves)


def mix(blocks: list[Array]) -> list[Array]:
    """Returns the sum and the difference of two blocks, or the only block."""
    # Copies compute `xA + yB` and `xB + yA`: half the mix of `(x + y)(A + B)` and `(x - y)(A - B)`.
    return blocks if len(blocks) == 1 else [blocks[0] + blocks[1], blocks[0] - blocks[1]]


def make_moves(player: Player, is_player: bool, keys: Array) -> tuple[Array, Array, Array]:
    """Makes the player's move or every reply; returns the moves, the next keys and the ends."""
    board, rows = player.board, np.arange(len(keys))
    rows, moves = (rows, player.choose(keys)) if is_player else np.nonzero(board.landings(keys))
    after, won, drawn = board.drop(keys[rows], moves)
    images = board.drop(board.mirror(keys[rows]), board.columns - 1 - moves)
    np.testing.assert_array_equal(images, (board.mirror(after), won, drawn))
    after, ends = after[~won & ~drawn], np.array([won.sum(), drawn.sum(), 0])
    after = np.unique(board.orient(after) if player.copies == 2 else after)
    return moves.astype(np.uint8), after, ends if is_player else ends[::-1]


def explore(player: Player, seat: int, batch_size: int) -> tuple[int, Array, str]:
    """Returns the number of decisions, the ends won, drawn and lost, and the digest."""
    keys, decisions, ends, begin = player.board.bottom[None], 0, np.zeros(3, int), time.time()
    digest = hashlib.sha256(f"{player.sha256} {seat}".encode())
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for ply in range(len(player.board.cells)):
            is_player = ply % 2 == seat
            batches = np.split(keys, range(batch_size, len(keys), batch_size))
            results = pool.map(lambda batch: make_moves(player, is_player, batch), batches)
            moves, after, counts = zip(*results, strict=True)
            digest.update(keys.astype("<u8").tobytes() + np.concatenate(moves).tobytes())
            ends, decisions = ends + sum(counts), decisions + len(keys) * is_player
            print(f"ply {ply}: {len(keys):,} positions, {time.time() - begin:,.0f} s", flush=True)
            keys = np.unique(np.concatenate(after))
    return decisions, ends, digest.hexdigest()


def main() -> int:
    """Runs the program; returns 0 if no game is lost, and 1 otherwise."""
    path = pathlib.Path(__file__).parents[1] / "azjax" / "pretrained" / "connect_four.npz"
    parser = argparse.ArgumentParser(description="Checks that a Connect Four player never loses.")
    parser.add_argument("--file", type=pathlib.Path, default=path, help="the file of the player")
    parser.add_argument("--seat", choices=("first", "second"), default="first")
    parser.add_argument("--batch-size", type=int, default=1024, help="positions per matrix product")
    options = parser.parse_args()
    try:
        player = Player(options.file.read_bytes())
    except Exception as error:
        parser.error(f"{options.file} is not the file of a Connect Four player: {error}")
    decisions, ends, digest = explore(player, options.seat == "second", options.batch_size)
    print(f"SHA-256 of the file: {player.sha256}\ndigest of the moves: {digest}")
    print("{:,} decisions; ends: {:,} won, {:,} drawn, {:,} lost".format(decisions, *ends))
    return int(ends[2] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
