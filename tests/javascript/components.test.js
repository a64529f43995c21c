import assert from "node:assert/strict";
import test from "node:test";
import { newRoot } from "./dom.js";
import { dataOf, solve } from "./data.js";
import { COMPONENTS } from "../../azjax/viz/js/main.js";
import { openGame } from "../../azjax/viz/js/games.js";
import { openNetworks, opinionOf } from "../../azjax/viz/js/network.js";
import { Place } from "../../azjax/viz/js/place.js";

const SOLVED = solve("tic_tac_toe");
const DATA = dataOf("tic_tac_toe", SOLVED);
const GAME = openGame(DATA);
const NETWORKS = openNetworks(DATA, GAME);

/** Draws a component; returns its root and the place of the page. */
function mount(kind, data = DATA, change = {}) {
  const [root, place] = [newRoot(), new Place()];
  COMPONENTS[kind](root, { ...data, ...change }, place);
  return { root, place };
}

const at = (text) => GAME.read(text);
const texts = (root, query) => root.all(query).map((part) => part.textContent);
const later = () => new Promise((done) => setTimeout(done, 1));

test("all games against the network are counted as if they were played one by one", () => {
  const count = (network, position, seat) => {
    if (position.over) return { null: [0, 1, 0], [seat]: [1, 0, 0], [1 - seat]: [0, 0, 1] }[GAME.winner(position)];
    const moves = position.player === seat ? [opinionOf(network, GAME, position).move] : GAME.legal(position);
    const below = moves.map((action) => count(network, GAME.step(position, action), seat));
    return [0, 1, 2].map((i) => below.reduce((sum, each) => sum + each[i], 0));
  };
  for (const seat of [0, 1]) {
    const { root, place } = mount("proof");
    root.press(`seat-${seat}`);
    place.set({ iteration: 3 });
    const [won, drawn, lost] = count(NETWORKS[0], GAME.init(), seat);
    const [claim] = texts(root, "[data-claim]");
    assert.match(claim, new RegExp(`there are ${won + drawn + lost} games. The network of iteration 3 wins ${won}, draws ${drawn} and loses ${lost} of them.${lost ? "$" : " It never loses."}`));
    while (!root.querySelector(".az-proof-end")) {
      const here = at(root.dataset.board);
      for (const action of GAME.legal(here)) {
        const row = root.querySelector(`[data-button='reply-${action}']`).parentNode.parentNode;
        assert.deepEqual(texts(row, "[data-kind]").map(Number), count(NETWORKS[0], GAME.step(here, action), seat));
      }
      root.press(`reply-${GAME.legal(here).at(-1)}`);
      assert.equal(place.get("board"), root.dataset.board);
    }
    root.press("step-0");
    assert.equal(root.dataset.board.replaceAll(".", "").length, 1 - seat);
  }
});

test("a game is played against the network, and counted", async () => {
  const { root } = mount("play");
  root.press("play-O");
  assert.equal(root.dataset.you, "O");
  while (root.dataset.result === undefined) {
    await later();
    const here = at(root.dataset.board);
    if (here.over) break;
    if (here.player === 0) continue;
    const before = root.dataset.board;
    root.querySelector(`[data-cell='${before.search(/[XO]/)}']`).click(); // Taken.
    assert.equal(root.dataset.board, before);
    root.querySelector(`[data-cell='${SOLVED.get(before).best[0]}']`).click();
  }
  const winner = GAME.winner(at(root.dataset.board));
  const [result, tally] = { null: ["draw", "drawn"], 0: ["loss", "lost"], 1: ["win", "won"] }[winner];
  assert.equal(root.dataset.result, result);
  assert.deepEqual(texts(root, `[data-tally='${tally}']`), ["1"]);
  root.press("undo");
  assert.equal(root.dataset.result, undefined);
  assert.equal(at(root.dataset.board).player, 1);
  while (root.dataset.result === undefined) {
    if (at(root.dataset.board).player === 1) root.querySelector(`[data-cell='${SOLVED.get(root.dataset.board).best[0]}']`).click();
    await later();
  }
  assert.equal(root.all("[data-tally]").reduce((sum, cell) => sum + Number(cell.textContent), 0), 1); // The same game ends again.
  root.press("new");
  await later();
  assert.equal(root.dataset.board.replaceAll(".", ""), "X");
});

test("each network's output is shown, and a blunder that a search corrects", () => {
  const { root, place } = mount("training");
  place.set({ board: "....X...." });
  for (const action of [0, 8]) {
    const shares = root.all("[data-share]").filter((_, i) => Math.floor(i / 2) === GAME.legal(at("....X....")).indexOf(action));
    assert.deepEqual(shares.map((cell) => Number(cell.dataset.share)), NETWORKS.map((network) => opinionOf(network, GAME, at("....X....")).policy[action]));
  }
  assert.deepEqual(root.all("[data-value]").map((cell) => Number(cell.dataset.value)), NETWORKS.map((network) => network.evaluate(at("....X....")).value));
  const isBlunder = ({ position, best }) => !position.over && !best.includes(opinionOf(NETWORKS[1], GAME, position).move);
  const blunders = [...SOLVED.values()].filter(isBlunder);
  assert.match(root.textContent, new RegExp(`is a blunder in ${blunders.length.toLocaleString("en")} positions`));
  for (let i = 0; i < 6; i++) {
    root.press("blunder");
    assert.ok(isBlunder(SOLVED.get(place.get("board"))));
    const explored = mount("explorer", DATA, { start: place.get("board"), settings: { ...DATA.settings, iteration: 7 } });
    explored.place.set({ t: place.get("t") });
    const played = explored.root.querySelector(".az-played");
    assert.ok(SOLVED.get(place.get("board")).best.includes(Number(played.querySelector("[data-action]").dataset.action)));
  }
});

test("the editor shows the planes of a position and the network's output, or why there is none", () => {
  const { root, place } = mount("encoding");
  const click = (cell) => root.querySelector(`[data-cell='${cell}']`).click();
  const planes = () => Object.fromEntries(root.all("[data-plane]").map((part) => [part.dataset.plane, part.dataset.values]));
  click(0);
  click(4);
  click(8);
  assert.equal(place.get("board"), "X...O...X");
  const stones = { X: "100000001", O: "000010000" };
  assert.deepEqual(planes(), { "absolute-0": stones.X, "absolute-1": stones.O, "absolute-2": "000000000", "relative-0": stones.O, "relative-1": stones.X });
  const { value, move } = opinionOf(NETWORKS[1], GAME, at("X...O...X"));
  assert.equal(Number(root.querySelector("div[data-value]").dataset.value), value);
  assert.equal(root.querySelector("[data-move]").dataset.move, String(move));
  click(4);
  assert.match(root.querySelector("[data-reason]").textContent, /^2 X and 0 O cannot occur/);
  assert.equal(place.get("board"), "X...O...X");
  root.press("clear");
  assert.equal(root.dataset.board, ".........");
  place.set({ board: "XXX......" }); // Not a position.
  assert.equal(root.dataset.board, ".........");
});
