import assert from "node:assert/strict";
import test from "node:test";
import { newRoot } from "./dom.js";
import { dataOf, solve } from "./data.js";
import { Bench } from "../../azjax/viz/js/bench.js";
import { columns, formula } from "../../azjax/viz/js/formula.js";
import { COMPONENTS } from "../../azjax/viz/js/main.js";
import { keepInAddress, Place } from "../../azjax/viz/js/place.js";
import { describe, nodeWords } from "../../azjax/viz/js/words.js";

const DATA = dataOf("tic_tac_toe", solve("tic_tac_toe"));
const CELLS = ["a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3"];

function mount(settings = {}, more = {}) {
  const [root, place] = [newRoot(), new Place()];
  const view = COMPONENTS.explorer(root, { ...DATA, ...more, settings: { ...DATA.settings, num_simulations: 12, ...settings } }, place);
  const at = () => [Number(root.dataset.t), Number(root.dataset.simulation), root.dataset.phase];
  const key = (name) => root.fire("keydown", { key: name });
  return { root, place, view, at, key, search: () => view.search };
}

const number = (text) => Number(text.replace("\u2212", "-").replace("\u221e", "Infinity"));
const settingsOf = (root) => root.all("[data-setting]").map((field) => [field.dataset.setting, field.getAttribute("value") ?? field.all("option").find((option) => option.hasAttribute("selected")).getAttribute("value")]);

/** `{action: {N, Q, ...}}` of the table of moves. */
function tableOf(root) {
  const table = {};
  for (const cell of root.all("[data-k]")) (table[cell.dataset.action] ??= {})[cell.dataset.k] = number(cell.textContent);
  return table;
}

test("steps forward and back show the numbers of the search, and the same ones at the same time", () => {
  const { root, at, search } = mount();
  const seen = [];
  for (let t = 0; t <= 36; t++) {
    const [, k, phase] = at();
    const moment = search().moment(t);
    const selected = Number(root.dataset.selected);
    assert.equal(at()[0], t);
    assert.equal(selected, search().focus(moment));
    const node = search().nodes[selected];
    if (!node.over) {
      const { N, Q, U, S, P } = search().stats(selected, phase === "backup" ? k : Math.max(0, k - 1));
      const table = tableOf(root);
      assert.deepEqual(Object.keys(table).map(Number), node.actions);
      node.actions.forEach((action, i) => {
        for (const [name, shown] of Object.entries({ P: P[i], N: N[i], Q: Q[i], U: U[i], S: S[i] })) assert.ok(Math.abs(table[action][name] - shown) < 6e-4);
      });
    }
    if (phase === "backup") {
      const shown = root.all(".az-node").filter(({ dataset }) => moment.step.path.includes(Number(dataset.node)));
      for (const card of shown) {
        const gain = moment.step.backup[moment.step.path.indexOf(Number(card.dataset.node))];
        const label = card.querySelector(".az-edge-label").textContent;
        if (!label.endsWith("played")) assert.ok(Math.abs(number(label.split(" ")[0]) - gain) < 6e-3, label);
      }
    }
    const chosen = root.all(".az-best").map((row) => row.querySelector(".az-mark-next").textContent);
    if (phase === "selection") assert.deepEqual(chosen, ["\u2190 chosen"]);
    if (t === 36) assert.deepEqual(chosen, ["\u2190 played"]);
    for (const { dataset } of root.all("[data-node]")) {
      const arrival = search().arrival(Number(dataset.node), moment.known);
      assert.equal(Number(dataset.n), arrival ? arrival.N : search().stats(0, moment.known).visits);
    }
    const shown = root.all("[data-node]").length + root.all(".az-count").reduce((sum, fold) => sum + Number(fold.textContent), 0);
    assert.equal(shown, search().nodes.filter(({ id }) => search().exists(id, moment)).length);
    assert.ok(!root.textContent.includes("The search ends"));
    seen.push([root.textContent, shown]);
    root.press("next");
  }
  for (let t = 35; t >= 0; t--) {
    root.press("previous");
    assert.equal(root.textContent.replace(/The search ends[^.]*\./, ""), seen[t][0]);
  }
  assert.equal(root.querySelector("[data-button='previous']").getAttribute("aria-disabled"), "true");
});

test("keys and buttons run simulations, and a search ends where its setting says", () => {
  const { root, at, key } = mount();
  for (const [name, t] of [["ArrowRight", 1], ["n", 2], ["ArrowLeft", 1], ["p", 0], ["1", 3], ["5", 18], ["r", 0]]) {
    key(name);
    assert.equal(at()[0], t, name);
  }
  key("n");
  key("1"); // It finishes the current one.
  assert.deepEqual(at(), [3, 1, "backup"]);
  for (let i = 0; i < 3; i++) key("5");
  assert.deepEqual(at(), [36, 12, "backup"]);
  assert.match(root.textContent, /The search ends after 12 simulations; the setting .simulations. allows up to 1000\./);
  root.press("reset");
  assert.deepEqual(at(), [0, 0, "start"]);
});

test("an invalid number is rejected with a sentence", () => {
  const { root } = mount();
  const given = settingsOf(root);
  for (const [setting, value, sentence] of [
    ["c_puct", "-1", "c_puct is -1: use 0 to 100."],
    ["num_simulations", "1001", "simulations is 1001: use a whole number from 1 to 1000."],
    ["seed", "0.5", "seed is 0.5: use a whole number from 0 to 2147483647."],
    ["dirichlet_fraction", "", "root noise is not a number: use 0 to 1."],
  ]) {
    root.enter(setting, value);
    assert.equal(root.querySelector(".az-alert").textContent, sentence);
    assert.deepEqual(settingsOf(root), given);
  }
});

test("the page's place gives position, settings and time, and ignores what is invalid", () => {
  const { root, place, at, search } = mount();
  place.read("board=....X....&algorithm=uct&num_simulations=9&iteration=3&t=8");
  assert.deepEqual(at(), [8, 3, "expansion"]);
  assert.deepEqual([search().algorithm, search().length, search().settings.iteration], ["uct", 9, 3]);
  place.read("board=XXX......&algorithm=alphabeta&seed=-1&c_puct=x&t=1e9&%zz&=");
  assert.deepEqual([at()[0], search().algorithm, search().settings.seed, place.get("board")], [8, "uct", 0, "XXX......"]);
  const heard = [];
  const shared = new Place();
  shared.follow((names) => heard.push(names));
  for (const t of [8, 8, undefined]) shared.set({ t, board: "X........" });
  assert.deepEqual(heard, [[], ["t", "board"], ["t"]]);
  const copy = new Place();
  copy.read(place.text());
  assert.equal(copy.text(), place.text());
  const window = { location: { hash: "#board=X........&board2=<b>" }, addEventListener: () => {}, history: { replaceState: () => {} } };
  const addressed = new Place();
  keepInAddress(addressed, window);
  assert.deepEqual([addressed.get("board"), addressed.get("board2")], ["X........", undefined]);
});

/** Both sides of the last "=" of a formula. */
function sides(text) {
  const code = text.slice(2).replaceAll("\u2212", "-").replaceAll("\u00d7", "*").replace(/\u221a(\d+)/, "Math.sqrt($1)").replace(/ln (\d+)/, "Math.log($1)").replace("\u221a", "Math.sqrt");
  const middle = code.lastIndexOf(" = ");
  return [Function(`return ${code.slice(0, middle)}`)(), Number(code.slice(middle + 3))];
}

test("formulas give the numbers of the table, and words mention what a search has", () => {
  const NOISE = /noise/;
  for (const [change, expected] of [
    [{ dirichlet_fraction: 0.25 }, /after mixing in noise \(0\.25\)/],
    [{ first_play_urgency: "parent" }, null],
    [{ algorithm: "gumbel", gumbel_scale: 1 }, /with the noise drawn for this search/],
    [{ algorithm: "gumbel", evaluator: "exact" }, null],
    [{ algorithm: "uct", evaluator: "rollout" }, null],
  ]) {
    const { search } = new Bench({ ...DATA, settings: { ...DATA.settings, num_simulations: 30, ...change } });
    const words = [];
    for (let t = 0; t <= search.last; t += 1) {
      const moment = search.moment(t);
      words.push(describe(search, moment));
      for (const { id, over, actions } of search.nodes.filter((node) => search.exists(node.id, moment)).slice(0, 3)) {
        words.push(nodeWords(search, id, moment.known), ...(over ? [] : columns(search, id).flat()));
        const { N, U, S, visits } = search.stats(id, moment.known);
        actions.slice(0, over ? 0 : 3).forEach((action, i) => {
          const parts = formula(search, moment, id, i).flat();
          for (const line of parts.flatMap((part) => part.all("[data-formula]"))) {
            const name = line.dataset.formula;
            if (line.textContent.includes("\u221e")) continue;
            const [left, right] = name === "\u03c0\u2032" ? [0, 0] : sides(line.textContent);
            const rounded = (5e-4 * 2.5 * Math.sqrt(visits)) / (1 + N[i]) + 2e-3; // By its numbers.
            assert.ok(Math.abs(left - right) < rounded, line.textContent);
            if (name === "U" || name === "S") assert.ok(Math.abs(right - (name === "U" ? U : S)[i]) < 6e-4, `${search.algorithm} ${name}`);
          }
          const text = parts.map((part) => part.textContent).join(" ");
          assert.ok(text.includes(`${CELLS[action]} for ${"XO"[search.nodes[id].player]}`));
          assert.equal(/[Uu]ntried/.test(text), !N[i]);
          words.push(text);
        });
      }
    }
    const all = words.join("\n");
    assert.doesNotMatch(all, /undefined|NaN|null/);
    assert.match(all, expected ?? /the/);
    assert.equal(NOISE.test(all), Boolean(expected));
    const status = words.filter((text) => text.startsWith("The value") || / chose /.test(text)).join();
    assert.doesNotMatch(status, /(?:Q|value|counts as|,) [+\u2212]?\d\.\d\d(?! for [XO])/);
  }
});
