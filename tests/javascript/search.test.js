import assert from "node:assert/strict";
import test from "node:test";
import { Bench, evaluatorsOf } from "../../azjax/viz/js/bench.js";
import { gameNamed } from "../../azjax/viz/js/games.js";
import { generator, gumbelNumber, logGamma } from "../../azjax/viz/js/algorithms.js";
import { Search } from "../../azjax/viz/js/search.js";
import { readSetting, whyNotSet } from "../../azjax/viz/js/settings.js";
import { describe, nodeWords } from "../../azjax/viz/js/words.js";

const PUCT = { algorithm: "puct", c_puct: 2.5, first_play_urgency: "zero", dirichlet_fraction: 0, dirichlet_alpha: 0.3 };
const GUMBEL = { algorithm: "gumbel", gumbel_scale: 0, max_considered_actions: 8, value_scale: 0.1, maxvisit_init: 50 };
const UCT = { algorithm: "uct", exploration: 1.4 };
const NOISE = { dirichlet_fraction: 0.25, gumbel_scale: 1 };
const four = gameNamed("connect_four");

/** Search Connect Four with random games as the evaluator. */
export function searched(change, game = four) {
  const settings = { ...PUCT, num_simulations: 40, seed: 3, evaluator: "rollout", ...change };
  return new Search(game, game.init(), evaluatorsOf(game).rollout, settings);
}

const visits = (search) => search.stats(0, search.length).N;
const mean = (numbers) => numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
const draw = (f, count = 20_000) => Array.from({ length: count }, f);

test("random numbers repeat for a seed and have the moments of their distributions", () => {
  assert.deepEqual(draw(generator(7), 9), draw(generator(7), 9));
  assert.notDeepEqual(draw(generator(7), 9), draw(generator(8), 9));
  const random = generator(2 ** 31 - 1);
  const uniform = draw(random);
  assert.ok(uniform.every((x) => x > 0 && x < 1));
  const near = (numbers, expected, error) => assert.ok(Math.abs(mean(numbers) - expected) < error, `${mean(numbers)} ${expected}`);
  near(uniform, 1 / 2, 0.01);
  near(uniform.map((x, i) => x * uniform[i - 1] || 0), 1 / 4, 0.01); // Neighbors are independent.
  near(draw(() => gumbelNumber(random)), 0.5772, 0.04);
  for (const alpha of [0.3, 1, 2.5]) {
    const gammas = draw(() => Math.exp(logGamma(random, alpha)));
    near(gammas, alpha, 0.04 * (1 + alpha));
    near(gammas.map((x) => (x - alpha) ** 2), alpha, 0.1 * (1 + alpha));
  }
});

test("noise changes a search if it is on, and the seed changes what is random", () => {
  for (const given of [PUCT, GUMBEL]) {
    const noisy = { ...given, ...NOISE };
    assert.notDeepEqual(searched(noisy).nodes[0].logits.concat(visits(searched(noisy))), searched(given).nodes[0].logits.concat(visits(searched(given))));
  }
  const [alone, mixed] = [0, 1].map((dirichlet_fraction) => searched({ dirichlet_fraction }).nodes[0].priors);
  assert.ok(Math.max(...alone) < 0.15 && Math.max(...mixed) > 0.3);
  assert.ok(Math.abs(mean(mixed) - 1 / 7) < 1e-6);
  assert.notDeepEqual(visits(searched({ ...UCT, seed: 1 })), visits(searched({ ...UCT, seed: 2 })));
});

test("the classic search has the bonus of UCB1, and tries every action once before", () => {
  const search = searched({ ...UCT, num_simulations: 300 });
  for (const { id, parent, over, order } of search.nodes) {
    if (over) continue;
    const { N, U, best } = search.stats(id, 300);
    const n = N.reduce((sum, x) => sum + x, parent === null ? 1 : 2); // The evaluations of others count.
    N.forEach((k, i) => assert.ok(k ? Math.abs(U[i] - 1.4 * Math.sqrt(Math.log(n) / k)) < 1e-5 : U[i] === Infinity));
    const untried = order.filter((_, i) => !N[i]);
    if (untried.length) assert.equal(order[best], Math.max(...untried));
  }
});

test("what is shown explains each choice, and the history ends in the finished tree", () => {
  for (const given of [PUCT, { ...PUCT, first_play_urgency: "parent" }, { ...PUCT, first_play_urgency: "loss" }, GUMBEL, UCT]) {
    const search = searched({ ...given, num_simulations: 120, ...NOISE });
    search.simulations.forEach(({ path, actions, leaf, value, backup }, k) => {
      path.forEach((id, i) => assert.equal(search.nodes[id].actions[search.stats(id, k).best], actions[i]));
      const { over, reward } = search.nodes[leaf];
      const gain = over ? reward : -value;
      assert.deepEqual(backup.map((x) => x + 0), path.map((_, i) => ((path.length - 1 - i) % 2 ? -gain : gain) + 0));
    });
    const late = searched({ ...given, num_simulations: 300 }, gameNamed("tic_tac_toe")); // To the ends of games.
    for (const { id, parent } of late.nodes.slice(1)) {
      assert.equal(late.stats(id, 300).visits, late.arrival(id, 300).N, `${parent}`);
    }
    search.nodes.forEach(({ over, children }, id) => {
      const { visits: n, N, Q, value } = search.stats(id, search.length);
      if (over) return;
      const urgency = { zero: 0, parent: value, loss: -1 }[given.algorithm === "puct" ? given.first_play_urgency : ""];
      if (urgency !== undefined) Q.forEach((q, i) => assert.ok(N[i] || q === urgency));
      assert.equal(n, 1 + N.reduce((sum, x) => sum + x, 0));
      assert.deepEqual(N, children.map((child) => (child < 0 ? 0 : search.stats(child, search.length).visits)));
    });
  }
});

test("the previous search is shown until a long one is done, and only the last callback is called", async (context) => {
  let clock = 0;
  context.mock.method(performance, "now", () => (clock += 1000));
  const bench = new Bench({ game: "connect_four", networks: [], start: ".".repeat(42), settings: { ...PUCT, num_simulations: 20, evaluator: "uniform", seed: 0 } });
  const before = bench.search;
  bench.set({ c_puct: 2 });
  bench.whenMade(assert.fail);
  assert.equal(bench.search, before);
  bench.set({ c_puct: 3 });
  await new Promise((done) => bench.whenMade(done));
  assert.deepEqual([bench.search.settings.c_puct, bench.search.length], [3, 20]);
  assert.ok(bench.play(3) && !bench.play(9));
  bench.undo();
  assert.equal(bench.position.text, ".".repeat(42));
  bench.goTo(four.read(`${".".repeat(35)}XXXXOOO`)); // Settings change the search of the position before.
  bench.set({ c_puct: 4 });
  await new Promise((done) => bench.whenMade(done));
  assert.deepEqual([bench.search.settings.c_puct, bench.search.nodes[0].position.text], [4, ".".repeat(42)]);
});

test("words mention what a search has", () => {
  assert.equal(gameNamed("mnk:3x30x3").moveName(null, 27), "ab1");
  for (const [change, mentionsNoise] of [[NOISE, true], [PUCT, false], [{ ...GUMBEL, ...NOISE }, false], [{ ...UCT, ...NOISE }, false]]) {
    const search = searched(change, gameNamed("tic_tac_toe"));
    const words = Array.from({ length: search.last + 1 }, (_, t) => search.moment(t)).flatMap((moment) => [
      describe(search, moment),
      ...search.nodes.filter(({ id }) => search.exists(id, moment)).map(({ id }) => nodeWords(search, id, moment.known)),
    ]).join();
    assert.doesNotMatch(words, /undefined|NaN|null/);
    assert.equal(/noise/.test(words), mentionsNoise);
  }
});

test("invalid settings are refused with a sentence, or ignored in an address", () => {
  for (const [name, value, sentence] of [
    ["c_puct", -1, "c_puct is -1: use 0 to 100"],
    ["num_simulations", 1001, "simulations is 1001: use a whole number from 1 to 1000"],
    ["seed", 0.5, "seed is 0.5: use a whole number from 0 to 2147483647"],
    ["dirichlet_fraction", NaN, "root noise is not a number: use 0 to 1"],
    ["seed", 7, null],
  ]) {
    assert.equal(whyNotSet(name, value), sentence);
  }
  const lists = { evaluators: ["network"], iterations: [3] };
  for (const [name, text, value] of [["algorithm", "uct", "uct"], ["algorithm", "alphabeta"], ["constructor", "x"], ["iteration", "3", 3], ["seed", "-1"], ["c_puct", "x"], ["c_puct", "2.5", 2.5]]) {
    assert.equal(readSetting(name, text, lists), value);
  }
});
