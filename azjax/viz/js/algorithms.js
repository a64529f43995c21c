// Selection by PUCT, Gumbel and UCT.
//
// An algorithm is a record. `start(settings, root, random)` may change the root's logits and returns
// the context of selection. `score(context, node, stats)` returns Q, U and S of the node's actions,
// and the index of the `best`. `finish(context, root, stats)` returns the search's `{action, value}`.
// `stats` is `{visits, value, N, Q}`; N, Q, U and S have one number for each of `node.actions`.

/** Probabilities of logits. */
export function softmax(logits) {
  const highest = Math.max(...logits);
  const powers = logits.map((x) => Math.exp(x - highest));
  const total = sum(powers);
  return powers.map((x) => x / total);
}

/** The index of the highest number; the first of equals. */
export function argmax(numbers) {
  let best = 0;
  for (let i = 1; i < numbers.length; i++) if (numbers[i] > numbers[best]) best = i;
  return best;
}

export function sum(numbers) {
  return numbers.reduce((a, b) => a + b, 0);
}

/** AlphaZero's search: `Q + c_puct P sqrt(N) / (1 + n)`. */
const puct = {
  start(settings, root, random) {
    if (settings.dirichlet_fraction > 0) addDirichlet(settings, root, random);
    return settings;
  },

  score(settings, node, { visits, value, N, Q }) {
    const unvisited = { zero: 0, parent: value, loss: -1 }[settings.first_play_urgency];
    const q = Q.map((x, i) => (N[i] ? x : unvisited));
    const U = node.priors.map((p, i) => (settings.c_puct * p * Math.sqrt(visits)) / (1 + N[i]));
    const S = q.map((x, i) => x + U[i]);
    return { Q: q, U, S, best: argmax(S) };
  },

  finish: (settings, root, { value, N }) => ({ action: root.actions[argmax(N)], value }),
};

/** Mixes Dirichlet noise over the legal actions into the root's prior. */
function addDirichlet({ dirichlet_alpha, dirichlet_fraction }, root, random) {
  const noise = softmax(root.actions.map(() => logGamma(random, dirichlet_alpha)));
  const mixed = softmax(root.logits).map((p, i) => (1 - dirichlet_fraction) * p + dirichlet_fraction * noise[i]);
  root.logits = mixed.map((p) => Math.log(Math.max(p, 1e-30)));
}

/** Gumbel AlphaZero: sequential halving at the root, the improved policy below it. */
const gumbel = {
  start(settings, root, random) {
    const most = Math.min(settings.max_considered_actions, root.numActions);
    const considered = Math.min(settings.max_considered_actions, root.actions.length);
    return {
      settings,
      noise: root.actions.map(() => settings.gumbel_scale * gumbelNumber(random)),
      wanted: consideredVisits(considered, settings.num_simulations, most),
    };
  },

  score(context, node, { N, Q }) {
    const { q, weight } = completed(context.settings, node, N, Q);
    if (node.parent === null) return halving(context, node, N, q, weight);
    const U = N.map((n) => -n / (1 + sum(N)));
    const S = softmax(node.logits.map((x, i) => x + weight * q[i])).map((p, i) => p + U[i]);
    return { Q: q, U, S, best: argmax(S) };
  },

  finish({ settings, noise }, root, { value, N, Q }) {
    const { q, weight } = completed(settings, root, N, Q);
    const most = Math.max(...N);
    const scores = root.logits.map((x, i) => (N[i] === most ? noise[i] + x + weight * q[i] : -Infinity));
    return { action: root.actions[argmax(scores)], value };
  },
};

/** The best of the root's actions that are in turn in sequential halving. */
function halving({ noise, wanted }, node, N, q, weight) {
  const highest = Math.max(...node.logits);
  const U = node.logits.map((x, i) => noise[i] + x - highest);
  const S = q.map((x, i) => U[i] + weight * x);
  const turn = wanted[Math.min(sum(N), wanted.length - 1)];
  const stand = N.map((n) => (n < turn ? "out" : n > turn ? "waits" : "in turn"));
  return { Q: q, U, S, best: argmax(S.map((s, i) => (stand[i] === "in turn" ? s : -Infinity))), stand };
}

/** Q with the mixed value for unvisited actions (Danihelka et al. 2022), and its weight. */
function completed({ maxvisit_init, value_scale }, node, N, Q) {
  const total = sum(N);
  const P = node.priors.map((p, i) => (N[i] ? Math.max(2 ** -126, p) : 0));
  const weighted = total ? sum(P.map((p, i) => p * Q[i])) / sum(P) : 0;
  const mixed = (node.value + total * weighted) / (total + 1);
  return { q: Q.map((x, i) => (N[i] ? x : mixed)), weight: ((maxvisit_init + Math.max(...N)) * value_scale) / 2 };
}

/** For each simulation, the number of earlier visits of the action that it visits. */
function consideredVisits(considered, budget, most) {
  let left = Math.max(considered, 1);
  let phases = 1;
  for (let k = 1; k < bitLength(Math.max(most, 2)); k++) phases += left > 2 ** k ? 1 : 0;
  const wanted = Array(budget).fill(0);
  let [start, visits] = [0, 0];
  for (let phase = 0; phase < bitLength(Math.max(most - 1, 1)); phase++) {
    const more = Math.max(1, Math.floor(budget / (phases * left)));
    for (let i = start; i < budget; i++) wanted[i] = visits + Math.floor((i - start) / left);
    start += left * more;
    visits += more;
    left = left > 1 ? Math.max(2, Math.floor(left / 2)) : 1;
  }
  return wanted;
}

function bitLength(x) {
  return 32 - Math.clz32(x);
}

/** Classic search: `Q + C sqrt(ln(N + 1) / n)`, every action once before that. */
const uct = {
  start: (settings) => settings,

  score({ exploration }, node, { visits, N, Q }) {
    const log = Math.log1p(visits - (node.parent === null ? 1 : 0));
    const U = N.map((n) => (n ? exploration * Math.sqrt(log / n) : Infinity));
    const S = Q.map((q, i) => q + U[i]);
    const order = N.map((n, i) => (n ? -Infinity : node.order[i]));
    return { Q, U, S, best: N.includes(0) ? argmax(order) : earliest(S, node, N) };
  },

  finish: (settings, root, { N, Q }) => ({
    action: root.actions[earliest(N, root, N)],
    value: sum(Q.map((q, i) => q * N[i])) / sum(N),
  }),
};

/** The index of the highest score; in a tie, of the action that was expanded first. */
function earliest(scores, { children }, N) {
  const highest = Math.max(...scores);
  const turn = scores.map((score, i) => {
    if (score < highest) return Infinity;
    return N[i] ? children[i] : -1; // It may be expanded later.
  });
  return turn.indexOf(Math.min(...turn));
}

/** The algorithms by their names. */
export const ALGORITHMS = { puct, gumbel, uct };

// Random numbers of a search: noise, rollouts, and the order of untried moves. A seed always gives
// the same ones, but not those of JAX.

/** Returns a function that returns uniform numbers between 0 and 1 (Mulberry32, by T. Ettinger). */
export function generator(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let x = Math.imul(state ^ (state >>> 15), 1 | state);
    x ^= x + Math.imul(x ^ (x >>> 7), 61 | x);
    return (((x ^ (x >>> 14)) >>> 0) + 0.5) / 2 ** 32;
  };
}

/** A Gumbel-distributed number. */
export function gumbelNumber(random) {
  return -Math.log(-Math.log(random()));
}

/**
 * The logarithm of a Gamma-distributed number (Marsaglia and Tsang 2000); the number itself is too
 * small for a float where alpha is small.
 */
export function logGamma(random, alpha) {
  const d = alpha + 1 - 1 / 3; // For alpha + 1; the last term below makes up for it.
  for (;;) {
    const normal = Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());
    const v = (1 + normal / Math.sqrt(9 * d)) ** 3;
    if (v > 0 && Math.log(random()) < normal ** 2 / 2 + d * (1 - v + Math.log(v))) {
      return Math.log(d * v) + Math.log(random()) / alpha;
    }
  }
}
