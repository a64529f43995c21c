import { ALGORITHMS, generator, softmax } from "./algorithms.js";

/** The three phases of a simulation, in order. */
const PHASES = ["selection", "expansion", "backup"];

const SLICE = 80; // Milliseconds of searching between events, so that clicks are handled soon.

/**
 * A search with its history; without random numbers it equals the search of Python's `make_search`.
 *
 * `nodes` are in order of creation, the root first: `{id, parent, action, depth, position, player,
 * over, value, reward, actions, logits, priors, children, order, born}`. `actions` are the legal ones;
 * `priors`, `children` and `order` (in which UCT tries
 * them, the highest first) have one entry for each of them. `value` is the evaluator's, and `born`
 * the simulation that created the node. `simulations` are `{path, actions, leaf, new, value,
 * backup}`. Time t = 0 is the start; then each simulation has three phases.
 */
export class Search {
  #rule;
  #context;
  #random;
  #evaluate;

  /**
   * Searches from `position`; `evaluate(position, random)` is one of the evaluators.
   *
   * `settings` are those of the algorithm by their names in Python, with `algorithm`,
   * `num_simulations`, `seed`, and `evaluator`, its name. With `waits` only the root is evaluated, and
   * `advance` runs the simulations.
   */
  constructor(game, position, evaluate, settings, { waits = false } = {}) {
    Object.assign(this, { game, settings, nodes: [], simulations: [] });
    this.algorithm = settings.algorithm;
    this.#evaluate = evaluate;
    this.#rule = ALGORITHMS[this.algorithm];
    this.#random = generator(settings.seed ?? 0);
    const root = this.#add(position, { parent: null, action: null, depth: 0, reward: 0 });
    this.#context = this.#rule.start(settings, root, this.#random);
    root.priors = softmax(root.logits);
    if (!waits) this.advance();
  }

  /** Simulates until the search is done or the time is `until`; returns whether it is done. */
  advance(until = Infinity) {
    const { num_simulations } = this.settings;
    while (this.length < num_simulations) {
      this.#simulate();
      if (this.length < num_simulations && performance.now() >= until) return false;
    }
    const [root] = this.nodes;
    Object.assign(this, this.#rule.finish(this.#context, root, root.history.at(-1)));
    return true;
  }

  /** The number of simulations so far. */
  get length() {
    return this.simulations.length;
  }

  /** The time at which the search ends. */
  get last() {
    return 3 * this.length;
  }

  /**
   * The moment at time `t`.
   *
   * `known` is the number of simulations that the statistics include; the current one counts from
   * its backup on. `step` is the simulation's record, null at the start.
   */
  moment(t) {
    if (t === 0) return { t, simulation: 0, phase: "start", known: 0, step: null };
    const simulation = Math.floor((t - 1) / 3) + 1;
    const phase = PHASES[(t - 1) % 3];
    const known = phase === "backup" ? simulation : simulation - 1;
    return { t, simulation, phase, known, step: this.simulations[simulation - 1] };
  }

  /**
   * A node's statistics after `known` simulations, or its first ones if it was created later.
   *
   * `{visits, value, N, P, Q, U, S, best}`: lists with one number for each of its actions, and
   * the index of the action that is selected next, -1 in a finished game. Gumbel's root also has
   * the list `stand`, the state of each action in sequential halving: "in turn", "waits" for the
   * others in this round, or "out".
   */
  stats(id, known) {
    const node = this.nodes[id];
    const at = entryAt(node.history, known);
    const { visits, value, N } = at;
    if (node.over) return { visits, value, N, P: [], Q: [], U: [], S: [], best: -1 };
    return { visits, value, N, P: node.priors, ...this.#rule.score(this.#context, node, at) };
  }

  /** N, Q and P of the move that leads to a node, for the player who made it. */
  arrival(id, known) {
    const { parent, action } = this.nodes[id];
    if (parent === null) return null;
    const { actions, priors, history } = this.nodes[parent];
    const index = actions.indexOf(action);
    const { N, Q } = entryAt(history, known);
    return { N: N[index], Q: Q[index], P: priors[index] };
  }

  /** The node that an action leads to, or null if it is not visited yet. */
  child(id, action, moment) {
    const { actions, children } = this.nodes[id];
    const child = children[actions.indexOf(action)];
    return child >= 0 && this.exists(child, moment) ? child : null;
  }

  /** Whether a node is in the tree; a new node is from its expansion on. */
  exists(id, { simulation, phase }) {
    const { born } = this.nodes[id];
    return born < simulation || (born === simulation && phase !== "selection");
  }

  /** The node that the explorer shows while it follows the search. */
  focus({ phase, step }) {
    if (phase === "selection") return step.path[step.path.length - 1];
    return phase === "expansion" ? step.leaf : 0;
  }

  #simulate() {
    const { path, indices, leaf, isNew } = this.#descend();
    const k = this.length + 1;
    const visit = leaf.history.at(-1);
    if (!isNew) leaf.history.push({ ...visit, k, visits: visit.visits + 1 });
    const backup = [];
    let [value, mean] = [leaf.value, leaf.value]; // Of this simulation, and of all so far.
    for (let i = path.length - 1; i >= 0; i--) {
      const [child, index, old] = [path[i + 1] ?? leaf, indices[i], path[i].history.at(-1)];
      const Q = old.Q.with(index, child.reward + child.discount * mean);
      value = child.reward + child.discount * value;
      mean = (old.value * old.visits + value) / (old.visits + 1);
      path[i].history.push({ k, visits: old.visits + 1, value: mean, N: old.N.with(index, old.N[index] + 1), Q });
      backup[i] = value;
    }
    const actions = indices.map((index, i) => path[i].actions[index]);
    const ids = path.map(({ id }) => id);
    this.simulations.push({ path: ids, actions, leaf: leaf.id, new: isNew, value: leaf.value, backup });
  }

  /** Selects actions down to a new node, which it creates, or to a finished game. */
  #descend() {
    const path = [];
    const indices = [];
    let node = this.nodes[0];
    for (;;) {
      const { best } = this.#rule.score(this.#context, node, node.history.at(-1));
      path.push(node);
      indices.push(best);
      const child = node.children[best];
      if (child < 0) return { path, indices, leaf: this.#expand(node, best), isNew: true };
      node = this.nodes[child];
      if (node.over) return { path, indices, leaf: node, isNew: false };
    }
  }

  #expand(node, index) {
    const { game } = this;
    const action = node.actions[index];
    const position = game.step(node.position, action);
    const reward = game.reward(position);
    const leaf = this.#add(position, { parent: node.id, action, depth: node.depth + 1, reward });
    node.children[index] = leaf.id;
    return leaf;
  }

  #add(position, about) {
    const { game, nodes } = this;
    const { over, player } = position;
    const actions = game.legal(position);
    const { logits, value, moves } = this.#evaluate(position, this.#random);
    const node = {
      ...{ id: nodes.length, ...about, position, player, over, actions, numActions: game.numActions },
      discount: over ? 0 : -1, // Turns alternate in all games of pages.
      value: over ? 0 : value,
      moves: over ? null : moves, // Of a rollout.
      logits: actions.map((action) => logits?.[action] ?? 0),
      children: actions.map(() => -1),
      order: actions.map(() => this.#random()),
      born: about.parent === null ? 0 : this.length + 1,
    };
    node.priors = softmax(node.logits);
    const none = actions.map(() => 0);
    node.history = [{ k: node.born, visits: 1, value: node.value, N: none, Q: none }];
    nodes.push(node);
    return node;
  }
}

/**
 * Runs a search in slices of time, and then calls `done`.
 *
 * Returns a function that stops it, or null if the first slice was enough.
 */
export function advanceInSlices(search, done, slice = SLICE) {
  let timer = null;
  const go = () => {
    if (search.advance(performance.now() + slice)) return done();
    timer = setTimeout(go);
  };
  go();
  return timer === null ? null : () => clearTimeout(timer);
}

/** The last entry of a node's history within `known` simulations, or the first one. */
function entryAt(history, known) {
  return history.findLast(({ k }) => k <= known) ?? history[0];
}
