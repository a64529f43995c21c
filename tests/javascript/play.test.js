import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { clickCell, press, textsOf, until } from "./document.js";
import { playground } from "../../docs/playground/playground.js";
import { Replies } from "../../docs/playground/unbeaten.js";
import { openShipped } from "../../docs/playground/shipped.js";
import { gameNamed } from "../../azjax/viz/js/games.js";
import { Place } from "../../azjax/viz/js/main.js";
import { opinionOf } from "../../azjax/viz/js/network.js";
import { Match } from "../../azjax/viz/js/play.js";
import { Search } from "../../azjax/viz/js/search.js";

const page = readFileSync(new URL("../../docs/playground/index.html", import.meta.url), "utf8");
const [{ players }] = JSON.parse(page.split('id="azjax-data">')[1].split("</script>")[0]);
const game = gameNamed("tic_tac_toe");

/** Plays the first legal move. */
const choose = (position) => ({ action: game.legal(position)[0], isOverride: false });

function startMatch(address = "", parts = {}) {
  const [root, place] = [document.createElement("div"), new Place()];
  place.read(address);
  return { root, place, match: new Match(root, { game, network: null, place, settings: {}, choose, simulations: 0, you: 0, ...parts }) };
}

/** Plays these cells, and waits for the answers. */
async function playCells(root, cells) {
  for (const cell of cells) {
    const stones = root.dataset.board.replaceAll(".", "").length;
    clickCell(root, cell);
    await until(() => root.dataset.result || root.dataset.board.replaceAll(".", "").length === stones + 2);
  }
}

const tally = (root) => ["won", "drawn", "lost"].map((name) => Number(textsOf(root, `[data-tally=${name}]`)[0]));

test("moves are made on empty cells in turn, and each finished game is counted once, for its winner", async () => {
  const { root } = startMatch();
  clickCell(root, 4);
  clickCell(root, 5); // Before the answer.
  await until(() => root.dataset.board === "O...X....");
  clickCell(root, 0);
  await playCells(root, [2, 6]);
  assert.deepEqual([root.dataset.result, tally(root)], ["win", [1, 0, 0]]);
  for (const board of ["OOX.X....", "O...X...."]) {
    press(root, "undo");
    assert.equal(root.dataset.board, board);
  }
  await playCells(root, [2, 6]);
  assert.deepEqual(tally(root), [1, 0, 0]);
  press(root, "new");
  await playCells(root, [8, 7, 4]);
  assert.deepEqual([root.dataset.result, tally(root)], ["loss", [1, 0, 1]]);
  press(root, "play-O");
  await until(() => root.dataset.board === "X........");
  await playCells(root, [8, 7, 4]);
  assert.deepEqual([root.dataset.result, tally(root)], ["loss", [1, 0, 2]]);
});

test("a search that was left plays no move in the next game", async () => {
  let count = 0;
  const evaluate = () => {
    count += 1;
    if (count === 2) {
      const end = performance.now() + 100; // More than a slice of the search.
      while (performance.now() < end);
      queueMicrotask(() => press(root, "new"));
    }
    return { logits: Array(9).fill(0), value: 0 };
  };
  const settings = { algorithm: "puct", c_puct: 1, first_play_urgency: "zero" };
  const { root, match } = startMatch("", { network: { evaluate }, settings });
  match.simulations = 32;
  clickCell(root, 4);
  await until(() => count);
  for (let slice = 0; slice < 9; slice++) await new Promise((done) => setTimeout(done));
  assert.equal(root.dataset.board, ".........");
});

test("only a position of the address is shared, and the buttons stay in their places", async () => {
  const buttons = (root) => root.querySelectorAll("[data-button]").map((button) => button.dataset.button);
  const { root, place } = startMatch();
  const before = buttons(root);
  place.set({ board: "X...O...." }); // A search is shown.
  await playCells(root, [4, 2, 6]);
  assert.deepEqual(buttons(root), before);
  assert.ok(root.querySelector("[data-button=new]").classList.contains("az-primary"));
  for (const address of ["board=XXXOO....", "board=.........", "board=OO......."]) {
    assert.deepEqual(buttons(startMatch(address).root), before);
  }
  const shared = startMatch("board=X...O....");
  assert.ok(shared.match.isUsual);
  press(shared.root, "there");
  assert.equal(shared.root.dataset.board, "X...O....");
  assert.ok(!shared.match.isUsual);
  assert.deepEqual(buttons(shared.root).filter((name) => !before.includes(name)), ["there"]);
});

test("the board has the policy, the last move and the stones in their cells", async () => {
  const network = { evaluate: () => ({ logits: [0, 1, 2, 3, 4, 5, 6, 7, 8], value: 0.5 }) };
  const { root } = startMatch("", { network });
  await playCells(root, [4]);
  press(root, "thoughts");
  const places = (selector) => root.querySelectorAll(selector).map((element) => ["x", "y"].map((name) => Math.floor(element.getAttribute(name) / 30)));
  assert.deepEqual(places(".az-heat"), [[1, 0], [2, 0], [0, 1], [2, 1], [0, 2], [1, 2], [2, 2]]);
  const heat = root.querySelectorAll(".az-heat").map((element) => Number(element.getAttribute("fill-opacity")));
  assert.deepEqual(heat, heat.toSorted((a, b) => a - b));
  assert.equal(textsOf(root, ".az-label").at(-1), "64%");
  assert.match(root.textContent, /value for X, to move: +\+0\.50/);
  assert.deepEqual(places(".az-last"), [[0, 0]]);
  const names = root.querySelectorAll("[data-cell]").map((cell) => cell.getAttribute("aria-label"));
  assert.deepEqual([names[0], names[4], names[5]], ["a1, O", "b2, X", "c2, empty"]);
  const four = gameNamed("connect_four");
  const dropped = startMatch("", { game: four, choose: () => ({ action: 0 }) }).root;
  await playCells(dropped, [3, 0]);
  assert.deepEqual(dropped.querySelectorAll(".az-last").map((element) => element.getAttribute("y")), [String(3 * 30 + 2)]);
});

const TITLES = players.map(({ game }) => gameNamed(game).title);

/** Opens the playground with one of its players; returns its root. */
async function open(number) {
  const root = document.createElement("div");
  playground(root, { players });
  await until(() => root.dataset.player);
  press(root, `game-${number}`);
  await until(() => root.dataset.player === players[number].about.name);
  await until(() => textsOf(root, ".az-move-list").length);
  return root;
}

test("all sentences are about the player that is shown", async () => {
  for (const [number, { about }] of players.entries()) {
    const root = await open(number);
    const text = root.childNodes[1].textContent; // Below the buttons that choose a player.
    TITLES.forEach((title, i) => assert.equal(text.includes(title), i === number, title));
    assert.equal(/never to lose|No opponent/.test(text), about.proof !== null);
    assert.equal(/not proved unbeatable/.test(text), about.proof === null);
    for (const { about: { proof } } of players.filter(({ about }) => about.proof)) {
      assert.equal(text.includes(`${proof.decisions.toLocaleString("en")} decisions`), proof === about.proof);
    }
  }
});

test("the proof is said to cover only the games that it covers", async () => {
  const root = await open(players.findIndex(({ about }) => about.name === "tic_tac_toe"));
  const about = () => textsOf(root, "[data-about]")[0];
  const match = root.querySelector(".az-match");
  const setStrength = (value) => root.querySelector("[data-setting=strength]").fire("change", { target: { value } });
  const [covered, first, other] = [/when it moves first\.$/, /in this game, you do\.$/, /does not cover this game/];
  assert.match(about(), covered);
  press(root, "play-X");
  assert.match(about(), first);
  setStrength("32");
  assert.match(about(), other);
  press(root, "play-O");
  await until(() => match.dataset.board !== ".".repeat(9)); // A move by a search.
  setStrength("0");
  assert.match(about(), other);
  press(root, "new");
  assert.match(about(), covered);
});

test("a player that searches plays the moves of its search", async () => {
  const shipped = await openShipped(players.find(({ about }) => !about.alone));
  const { game: hex, network, data } = shipped;
  let [position, differ] = [hex.init(), 0];
  for (let ply = 0; ply < 4; ply++) {
    const { action } = new Search(hex, position, network.evaluate, data.settings);
    assert.equal(shipped.choose(position).action, action);
    differ += action !== opinionOf(network, hex, position).move;
    position = hex.step(position, hex.legal(position)[ply]);
  }
  assert.ok(differ);
});

test("a line against a proved player is counted once", () => {
  const root = document.createElement("div");
  new Replies(root, { game, choose, about: { proof: { decisions: 1, won: 1, drawn: 0, lost: 0 } } });
  const counted = () => textsOf(root, "[data-tally]")[0];
  const finish = (...cells) => cells.forEach((cell) => press(root, `reply-${cell}`));
  finish(8);
  assert.equal(root.dataset.result, undefined);
  finish(7);
  assert.equal(root.dataset.result, "won");
  assert.match(counted(), /finished: 1\..* 1 won, 0 drawn and none lost/);
  press(root, "line-3");
  assert.equal(root.dataset.board, "XX......O");
  finish(7);
  assert.match(counted(), /finished: 1\..* 1 won/);
  press(root, "line-1");
  finish(4, 2, 6);
  assert.equal(root.dataset.result, "lost");
  assert.match(counted(), /finished: 2\..* 1 won, 0 drawn and 1 lost/);
});

test("a stored move is marked where it lands, and random replies are never the player's", () => {
  const [root, four, players] = [document.createElement("div"), gameNamed("connect_four"), new Set()];
  const stored = (position) => {
    players.add(position.player);
    return { action: four.legal(position)[0], isOverride: true };
  };
  const about = { proof: { decisions: 1, won: 1, drawn: 0, lost: 0 } };
  new Replies(root, { game: four, choose: stored, about });
  press(root, "reply-0");
  assert.deepEqual(root.querySelectorAll(".az-mark").map((dot) => Math.floor(dot.getAttribute("cy") / 30)).sort(), [3, 5]);
  press(root, "random-lines");
  assert.deepEqual([...players], [0]);
});
