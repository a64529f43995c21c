import assert from "node:assert/strict";
import test from "node:test";
import { newRoot } from "./dom.js";
import { COMPONENTS } from "../../azjax/viz/js/main.js";
import { Place } from "../../azjax/viz/js/place.js";

const STEPS = ["position", "search", "pi", "move", "z", "loss", "step", "after"];
const LEARNER = { l2: 0.01, value_weight: 0.5, clip_norm: 1, steps: 6, batch_size: 8, optimizer: "adam", ema_decay: 0, warmup_steps: 0 };
const number = (text) => Number(text.replaceAll("\u2212", "-"));

/** Game and numbers of a lesson: the last two moves of a game that X wins. */
function lessonData({ search = { algorithm: "gumbel", num_simulations: 9, gumbel_scale: 1 }, learner = {}, game = "tic_tac_toe" } = {}) {
  const move = (board, player, actions, action, z) => {
    const pi = actions.length > 1 ? [0.75, 0.25] : [1];
    const frames = [0, 1, 2].map((i) => ({ p: actions.length > 1 ? [0.4 + i / 10, 0.6 - i / 10] : [1], v: 0 + z * i * 0.3, policy_loss: 0.8 - i / 10, policy_kl: 0.3, value_loss: (1 - i * 0.3) ** 2, l2: 0.02, loss: 1.2 - i / 10 }));
    return { board, player, actions, action, names: actions.map(String), prior: pi.map((_, i) => (i + 1) / 3), value: -0.25, visits: pi.map((p) => 8 * p), found: 0.5, pi, target: z, z, frames };
  };
  const moves = [move(".XOOXXX.O", 1, [0, 7], 0, -1), move("OXOOXXX.O", 0, [7], 7, 1)];
  const lesson = (iteration) => ({ iteration, moves, counts: [0, 1, 4], loss: [0.9, 0.7, 0.5], grad_norm: [2, 1], rate: 0.02, made: 12 });
  const settings = { search, selfplay: { temperature: 1, temperature_plies: 1 }, targets: { outcome_weight: 1, td_lambda: 1 }, learner: { ...LEARNER, ...learner } };
  return { game, settings, lessons: [lesson(0), lesson(3)] };
}

function mount(data) {
  const [root, place] = [newRoot(), new Place()];
  COMPONENTS.loop(root, data, place);
  return { root, place, status: () => root.querySelector(".az-loop-status").textContent };
}

/** The numbers of each column, and those below them. */
function columnsOf(root) {
  const columns = {};
  for (const cell of root.all("td[data-column]")) (columns[cell.dataset.column] ??= []).push(number(cell.textContent));
  const below = root.querySelector("tfoot").all("td").map((cell) => cell.textContent.replace(/.*= /, ""));
  return Object.entries(columns).map(([name, shares], i) => [name, shares, below[i] === "" ? null : number(below[i])]);
}

test("every step shows its numbers", () => {
  const data = lessonData();
  const { root } = mount(data);
  const [{ prior, value, visits, found, pi, target, frames }] = data.lessons[1].moves;
  const round = (numbers) => numbers.map((x) => Number(x.toFixed(3)));
  const [network, search, now] = [["p", round(prior), value], ["N", visits, found], ["p now", frames[0].p, frames[0].v]];
  const [goal, last] = [["\u03c0", pi, null], ["\u03c0", pi, target]];
  const after = (i) => ["p after", round(frames[i].p), frames[i].v];
  const expected = [[network], [network, search], [network, search, goal], [network, search, goal], [network, last], [now, last], [now, last, after(1)], [now, last, after(2)]];
  STEPS.forEach((step, i) => {
    root.press(`step-${step}`);
    assert.deepEqual([root.dataset.step, columnsOf(root)], [step, expected[i]]);
  });
  root.querySelector("input").fire("input", {}, "0");
  assert.deepEqual(columnsOf(root)[2], after(0));
  assert.match(root.textContent, /After 0 steps on this game alone its mean loss is 0\.900\..*0 of 4 steps/);
  root.press("lesson-0");
  assert.equal(root.dataset.iteration, "0");
});

test("the loss is the sum of its terms, and the step that of the learner", () => {
  const { root, status } = mount(lessonData());
  root.press("step-loss");
  const terms = Object.fromEntries(root.all("[data-term]").map((row) => [row.dataset.term, row.all("td").map((cell) => cell.textContent)]));
  assert.deepEqual(terms, {
    policy: ["\u2212(0.750\u00a0log\u00a00.400 + 0.250\u00a0log\u00a00.600)", "0.800"],
    value: ["(\u22121.00 \u2212 0.000)\u00b2", "1.000"],
    l2: ["0.01 \u00b7 2.0", "0.020"],
    total: ["0.800 + 0.5 \u00b7 1.000 + 0.020", "1.200"],
  });
  assert.match(root.textContent, /entropy of \u03c0, 0\.500; the rest, 0\.300, is the KL divergence/);
  root.press("step-step");
  assert.match(status(), /on all 2 positions of this game, changes their mean loss from 0\.900 to 0\.700\./);
  assert.match(root.textContent, /Step 13 of this learner.*clipped to 1: multiplied by 0\.5002\.000.*0\.0200/);
});

test("words mention noise if there is some, and how the move was chosen", () => {
  for (const [search, noise, rule] of [
    [{ algorithm: "puct", dirichlet_fraction: 0.25 }, " 25% of the root\u2019s p is noise.", "drawn at random in proportion to N"],
    [{ algorithm: "puct", dirichlet_fraction: 0 }, "", "drawn at random"],
    [{ algorithm: "gumbel", gumbel_scale: 1 }, " Noise helps to choose the moves to visit.", "the highest noise + log p"],
    [{ algorithm: "gumbel", gumbel_scale: 0 }, "", "the highest log p"],
    [{ algorithm: "uct" }, "", "drawn at random"],
  ]) {
    const { root, status } = mount(lessonData({ search: { num_simulations: 9, ...search } }));
    root.press("step-search");
    assert.ok(status().includes(`began with each move.${noise} The value`), status());
    root.press("step-move");
    assert.ok(status().includes(`O plays a1 (\u03c0 75%)`) && status().includes(rule), status());
    root.press("move-1");
    assert.ok(status().includes("X plays b3") && (search.algorithm === "gumbel" || status().includes("the move with the most visits. Only the first 1")));
  }
});

test("the game ends as z says, and a move is chosen for the whole page", () => {
  const { root, place, status } = mount(lessonData());
  root.press("step-z");
  root.press("move-1");
  assert.match(status(), /^The game ends after 2 moves: X wins. For X, who moved here, z = \+1\./);
  assert.equal(root.querySelector("figure").querySelector("[data-board]").dataset.board, "OXOOXXXXO");
  assert.equal(place.get("board"), "OXOOXXX.O");
  place.set({ board: "X........" });
  assert.equal(root.dataset.move, "1");
  const text = mount(lessonData({ game: null })); // A game without rules in the page.
  text.root.press("move-1");
  assert.equal(text.root.querySelector("pre").textContent, "OXOOXXX.O");
  assert.equal(text.place.text(), "");
});

test("arrow keys go through steps and moves, and stop at the ends", () => {
  const { root } = mount(lessonData());
  const key = (query, name) => root.querySelector(query).fire("keydown", { key: name });
  key(".az-loop-steps", "ArrowLeft");
  assert.equal(root.dataset.step, "position");
  STEPS.slice(1).forEach((step) => {
    key(".az-loop-steps", "ArrowRight");
    assert.equal(root.dataset.step, step);
  });
  key(".az-loop-steps", "ArrowRight");
  assert.equal(root.dataset.step, "after");
  for (const move of ["1", "1"]) {
    key(".az-loop-game", "ArrowRight");
    assert.equal(root.dataset.move, move);
  }
});
