import assert from "node:assert/strict";
import test from "node:test";
import { boardText, readCells } from "../../azjax/viz/js/cells.js";
import { gameNamed, openGame } from "../../azjax/viz/js/games.js";

const NAMES = ["tic_tac_toe", "mnk:4x5x3", "connect_four", "connect_four:4x4x3", "hex:4"];

/** All positions of some random games, the last one included. */
export function randomGames(game, count, seed = 1) {
  let state = seed;
  const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
  return Array.from({ length: count }, () => {
    const positions = [game.init()];
    while (!positions.at(-1).over) {
      const legal = game.legal(positions.at(-1));
      positions.push(game.step(positions.at(-1), legal[Math.floor(random() * legal.length)]));
    }
    return positions;
  });
}

/** Whether a stone has `length` in a row from some cell, step by step. */
function hasRow({ board }, { rows, columns }, length, stone) {
  const at = (r, c) => r >= 0 && r < rows && c >= 0 && c < columns && board[r * columns + c] === stone;
  const steps = [[0, 1], [1, 0], [1, 1], [1, -1]];
  return board.some((_, i) => steps.some(([dr, dc]) =>
    Array.from({ length }, (_, k) => at(Math.floor(i / columns) + k * dr, (i % columns) + k * dc)).every(Boolean)));
}

test("games of stones end with the first row, or when the board is full", () => {
  for (const [name, length] of [["tic_tac_toe", 3], ["mnk:4x5x3", 3], ["connect_four", 4], ["connect_four:4x4x3", 3]]) {
    const game = gameNamed(name);
    for (const positions of randomGames(game, 20)) {
      positions.forEach((position, i) => {
        const rows = [1, -1].map((stone) => hasRow(position, game, length, stone));
        assert.equal(position.over, rows.includes(true) || !position.board.includes(0), position.text);
        assert.equal(game.winner(position), rows.includes(true) ? rows.indexOf(true) : null);
        assert.equal(game.reward(position), Number(rows.includes(true)));
        assert.equal(position.player, i % 2);
        const free = position.over ? 0 : name.startsWith("c") ? position.board.slice(0, game.columns).filter((cell) => !cell).length : position.board.filter((cell) => !cell).length;
        assert.equal(game.legal(position).length, free);
      });
    }
  }
});

test("in Hex, X connects top and bottom, and O left and right by mirrored moves", () => {
  const game = gameNamed("hex:4");
  const join = (text) => game.at(readCells(text, 16));
  assert.equal(game.winner(join("X..O" + "X..O" + "X..O" + "X...")), 0);
  assert.equal(game.winner(join("X.XX" + "OOOO" + "X..." + "....")), 1);
  assert.equal(game.winner(join(".X.." + "XO.." + "X..." + "XOOO")), 0); // Upper right to lower left touch.
  assert.equal(game.winner(join("X..." + ".X.." + "..XO" + "OO.X")), null); // Upper left to lower right do not.
  const first = game.step(game.init(), 1);
  assert.equal(game.step(first, 2).text, ".X......O.......");
  assert.deepEqual(game.seen(game.step(first, 2)).filter(Boolean), [1, -1]);
  assert.equal(boardText(game.seen(first)), "....O...........");
});

test("a position is read as it is written, and rejected if it cannot occur", () => {
  for (const name of NAMES) {
    const game = openGame({ game: name });
    for (const position of randomGames(game, 5).flat()) {
      assert.deepEqual(game.read(position.text), position);
    }
    assert.equal(game.read("X"), null);
    assert.equal(game.read(undefined), null);
    assert.equal(game.read("X".repeat(game.rows * game.columns)), null);
  }
  const why = (name, text) => gameNamed(name).whyImpossible(readCells(text, text.length));
  assert.equal(why("connect_four:4x4x3", "X..............."), "a stone has nothing below it");
  assert.match(why("tic_tac_toe", "XXXOOO..."), /^both X and O have three in a row/);
  assert.match(why("tic_tac_toe", "XXXOO.O.."), /^X has three in a row but O moved after that/);
  assert.match(why("tic_tac_toe", "OO......."), /^0 X and 2 O cannot occur/);
  assert.equal(openGame({ game: "hex:2" }).read("XOXO"), null); // O moved after the end.
});
