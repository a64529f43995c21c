import assert from "node:assert/strict";
import test from "node:test";
import { base64 } from "./data.js";
import { newRoot } from "./dom.js";
import { COMPONENTS } from "../../azjax/viz/js/main.js";
import { Place } from "../../azjax/viz/js/place.js";

// Three classes of positions: the start, one with a stone in a corner, and a finished game.
const BOARDS = [".........", "X........", "XXXOO...."];

function mount() {
  const byDot = (Type, ...numbers) => base64(Type.from(numbers));
  const moves = BOARDS.flatMap((text, i) => [...text].map((mark, cell) => (i === 2 || mark !== "." ? 0 : i === 0 || cell === 4 ? 2 : 1)));
  const frame = (iteration, action, wrong, blunders, error) => ({
    ...{ iteration, blunders, action: base64(Int16Array.from([4, action, 0])), wrong: base64(Uint16Array.from([0, wrong, 0])) },
    policy: base64(Uint8Array.from(moves, (kind, i) => (kind ? 20 + (i % 9) : 0))),
    value: base64(Int8Array.from([12, -50, 0])),
    error: base64(Uint8Array.from([12, error, 0])),
  });
  const data = {
    ...{ game: "tic_tac_toe", boards: BOARDS.join(""), decisions: 5, total: 3 },
    symmetries: [[0, 1, 2, 3, 4, 5, 6, 7, 8], [2, 1, 0, 5, 4, 3, 8, 7, 6]],
    members: byDot(Uint16Array, 1, 4, 0),
    moves: base64(Uint8Array.from(moves)),
    ...{ x2: byDot(Uint16Array, 20, 20, 26), y: byDot(Uint16Array, 0, 2, 4), ply: byDot(Uint8Array, 0, 1, 5) },
    ...{ player: byDot(Uint8Array, 0, 1, 1), truth: byDot(Int8Array, 0, 0, -1) },
    frames: [frame(1, 8, 3, 3, 50), frame(9, 4, 0, 0, 25)],
  };
  const [root, place] = [newRoot(), new Place()];
  COMPONENTS.atlas(root, data, place);
  const dot = (i) => root.querySelector(`[data-index='${i}']`);
  const looks = () => [0, 1, 2].map((i) => dot(i).getAttribute("class").replace("az-atlas-dot az-atlas-", ""));
  const facts = () => root.querySelector("dl").textContent;
  const key = (name) => root.querySelector(".az-atlas-picture").fire("keydown", { key: name });
  return { root, place, dot, looks, facts, key };
}

test("every dot has the color of the network's move, iteration by iteration", () => {
  const { root, place, looks } = mount();
  assert.deepEqual(looks(), ["ok", "ok", "over"]);
  assert.match(root.textContent, /Iteration 9: no blunders in 5 positions \(0 of 3 dots\)/);
  root.querySelector("input").fire("input", {}, 0);
  assert.deepEqual(looks(), ["ok", "half", "over"]);
  assert.match(root.textContent, /Iteration 1: 3 blunders in 5 positions \(1 of 3 dots\)/);
  assert.equal(place.get("iteration"), "1");
  place.set({ iteration: "9" });
});

test("a dot shows its position, the network's output and perfect play", () => {
  const { root, place, dot, facts } = mount();
  root.querySelector("input").fire("input", {}, 0);
  dot(1).click();
  assert.equal(place.get("board"), BOARDS[1]);
  assert.equal(facts(), "after1 move, O to movenetwork playsc3 (11%): a blundernetwork's value\u22120.50perfect playa draw (0)same up to symmetry4 positions, blunders in 3mean value error0.50");
  root.querySelector("input").fire("input", {}, 1);
  assert.match(facts(), /network playsb2 \(9%\): optimal/);
  assert.equal(root.all(".az-mark").length, 1);
  dot(2).click();
  assert.equal(facts(), "after5 movesgame overX has won");
});

test("arrow keys select neighbors, and a symmetric position has the same dot", () => {
  const { root, place, dot, key } = mount();
  const ring = () => root.querySelector(".az-atlas-ring").getAttribute("cy");
  key("ArrowDown");
  assert.equal(place.get("board"), BOARDS[1]);
  key("ArrowDown");
  key("ArrowDown"); // There is nothing below.
  assert.equal(place.get("board"), BOARDS[2]);
  key("ArrowUp");
  key("ArrowUp");
  assert.equal(place.get("board"), BOARDS[0]);
  place.set({ board: "..X......" });
  assert.equal(ring(), dot(1).getAttribute("cy"));
  place.set({ board: "....X...." }); // It has no dot.
  assert.equal(ring(), dot(1).getAttribute("cy"));
});

test("the animation ends at the last iteration", async (context) => {
  context.mock.timers.enable({ apis: ["setInterval"] });
  const { root } = mount();
  root.isConnected = true;
  const button = root.querySelector(".az-atlas-play");
  root.querySelector(".az-atlas").isConnected = true;
  button.click();
  assert.match(root.textContent, /^Pause.*Iteration 1:/);
  context.mock.timers.tick(700);
  assert.match(root.textContent, /Iteration 9:/);
  context.mock.timers.tick(700);
  assert.equal(button.textContent, "Play");
});
