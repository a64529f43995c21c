import assert from "node:assert/strict";
import test from "node:test";
import { press, textsOf } from "./document.js";
import { argmax } from "../../azjax/viz/js/algorithms.js";
import { signed } from "../../azjax/viz/js/dom.js";
import { explorer } from "../../azjax/viz/js/explorer.js";
import { gameNamed, openGame } from "../../azjax/viz/js/games.js";
import { Place } from "../../azjax/viz/js/main.js";
import { Lines, proof } from "../../azjax/viz/js/proof.js";

const PUCT = { algorithm: "puct", c_puct: 2.5, first_play_urgency: "zero", dirichlet_fraction: 0, dirichlet_alpha: 0.3 };
const GUMBEL = { algorithm: "gumbel", gumbel_scale: 0, max_considered_actions: 8, value_scale: 0.1, maxvisit_init: 50 };
const UCT = { algorithm: "uct", exploration: 1.4 };

const numberIn = (text) => Number(text.replace("\u2212", "-").replace("\u221e", "Infinity"));

function explore(settings, address = "") {
  const [root, place] = [document.createElement("div"), new Place()];
  place.read(address);
  const data = { game: "tic_tac_toe", networks: [], start: "X...O....", settings: { num_simulations: 30, seed: 1, evaluator: "rollout", ...settings } };
  return { root, place, view: explorer(root, data, place) };
}

test("at every moment the tree, the table and the formula have the numbers of the search", () => {
  for (const settings of [PUCT, GUMBEL, UCT]) {
    const { root, view } = explore(settings);
    for (let t = 0; t <= view.search.last; t++) {
      view.go(t);
      const { search } = view;
      const moment = search.moment(t);
      const shown = root.querySelectorAll("[data-node]");
      const folded = textsOf(root, ".az-count").map(Number);
      const size = search.nodes.filter(({ id }) => search.exists(id, moment)).length;
      const later = moment.phase === "selection" && moment.step.new ? 1 : 0; // Folds have the new node already.
      const total = shown.length + folded.reduce((sum, n) => sum + n, 0);
      assert.ok(total === size || total === size + later, `${t}: ${total} of ${size}`);
      for (const card of shown) {
        const id = Number(card.dataset.node);
        const { visits, value } = search.stats(id, moment.known);
        const { N, Q } = search.arrival(id, moment.known) ?? { N: visits, Q: value };
        assert.deepEqual([card.dataset.n, card.dataset.q].map(Number), [N, Q]);
        const { over, player, parent } = search.nodes[id];
        const winner = over ? search.game.winner(search.nodes[id].position) : null;
        if (winner !== null) assert.ok(card.textContent.includes(`${"XO"[search.nodes[parent].player]} wins`));
        const i = moment.phase === "backup" ? moment.step.path.indexOf(id) : -1;
        if (i >= 0 && t < view.search.last) assert.ok(card.textContent.includes(`${signed(moment.step.backup[i])} ${"XO"[player]}`));
      }
      const id = Number(root.dataset.selected);
      const { over, player, actions } = search.nodes[id];
      const stats = search.stats(id, moment.known);
      if (stats.N.some(Boolean)) assert.equal(root.querySelector(".az-figure").querySelectorAll(".az-heat").length, stats.N.filter(Boolean).length);
      if (moment.phase === "selection") {
        moment.step.path.slice(0, 3).forEach((each, k) => {
          const { position } = search.nodes[each];
          assert.ok(root.textContent.includes(`${"XO"[position.player]} chose ${search.game.moveName(position, moment.step.actions[k])}`));
        });
        const index = actions.indexOf(moment.step.actions[moment.step.path.indexOf(id)]);
        assert.equal(root.querySelector(".az-best").dataset.row, String(index));
      }
      const whose = /the value is \S+ for (.):/.exec(textsOf(root, ".az-formula")[0]);
      if (whose) assert.equal(whose[1], "OX"[player]);
      for (const name of ["N", "Q", "U", "S"]) {
        const cells = textsOf(root, `[data-k=${name}]`).map(numberIn);
        if (!over) cells.forEach((x, i) => assert.ok(x === stats[name][i] || Math.abs(x - stats[name][i]) < 6e-5));
      }
      for (const line of textsOf(root, "[data-formula=S]")) {
        const [, a, sign, b, sum] = /^= (\S+) ([+\u2212]) ([\d.]+) = (\S+)$/.exec(line) ?? [];
        if (a) assert.ok(Math.abs(numberIn(a) + numberIn(sign + b) - numberIn(sum)) < 0.003, line);
      }
    }
  }
});

test("buttons and addresses move through a search", () => {
  const { root, place, view } = explore(PUCT, "t=7&num_simulations=30&c_puct=1");
  assert.deepEqual([view.t, view.search.length, view.search.settings.c_puct], [7, 30, 1]);
  for (const [name, t] of [["next", 8], ["previous", 7], ["run-1", 9], ["run-5", 24], ["reset", 0]]) {
    press(root, name);
    assert.deepEqual([view.t, place.get("t")], [t, t ? String(t) : undefined]);
  }
  place.read("board=XO.......&t=3&c_puct=x");
  assert.deepEqual([view.search.nodes[0].position.text, view.t, view.search.settings.c_puct], ["XO.......", 3, 1]);
  for (const board of ["XXX......", "XO", "X.......Z"]) place.read(`board=${board}`);
  assert.equal(view.search.nodes[0].position.text, "XO.......");
  const other = new Place();
  other.read("board=X<b>&t=-1&seed=%22");
  assert.equal(other.text(), "");
});

test("all replies to a network are counted, and its claim has the counts", () => {
  const game = gameNamed("tic_tac_toe");
  const texts = new Map();
  const visit = (position) => { // Returns its value.
    if (position.over) return -game.reward(position);
    if (!texts.has(position.text)) {
      texts.set(position.text, null); // In the order in which positions are reached.
      texts.set(position.text, game.legal(position).map((action) => -visit(game.step(position, action))));
    }
    return Math.max(...texts.get(position.text));
  };
  visit(game.init());
  const base64 = (array) => Buffer.from(array.buffer).toString("base64");
  const every = [...texts.values()];
  // The first network prefers the first legal move, and the newest plays perfectly.
  const network = (iteration, sign) => {
    const logits = Float32Array.from(every.flatMap((values) => values.map((value) => sign * value)));
    return { iteration, kind: "answers", logits: base64(logits), values: base64(new Float32Array(texts.size)) };
  };
  const data = {
    game: "tic_tac_toe",
    networks: [network(1, 0), network(2, 1)],
    positions: {
      boards: [...texts.keys()].join(""),
      values: base64(new Int8Array(texts.size)),
      counts: base64(Uint16Array.from(every, ({ length }) => length)),
      optimal: base64(new Uint8Array(every.flat().length)),
    },
  };
  const [root, place] = [document.createElement("div"), new Place()];
  proof(root, data, place);
  const check = (iteration, choose, seat) => {
    const { won, drawn, lost } = new Lines(game, choose, seat).below(game.init());
    const [claim] = textsOf(root, "[data-claim]");
    assert.ok(claim.includes(`there are ${(won + drawn + lost).toLocaleString("en")} games. The network of iteration ${iteration} wins ${won.toLocaleString("en")}, draws ${drawn.toLocaleString("en")} and loses ${lost.toLocaleString("en")} of them.`), claim);
    assert.equal(claim.includes("never loses"), lost === 0);
  };
  const first = (position) => game.legal(position)[0];
  const perfect = (position) => game.legal(position)[argmax(texts.get(position.text))];
  check(2, perfect, 0);
  place.set({ iteration: 1 });
  check(1, first, 0);
  press(root, "seat-1");
  check(1, first, 1);
  assert.equal(root.dataset.board, ".........");
  press(root, "reply-4");
  assert.deepEqual([root.dataset.board, place.get("board")], ["O...X....", "O...X...."]);
  press(root, "line-0");
  assert.equal(root.dataset.board, ".........");
});
