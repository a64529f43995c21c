// Selection by PUCT, Gumbel and UCT, in float32 as XLA computes it: every result is rounded once,
// and so is a product followed by a sum (a fused multiply-add).
//
// An algorithm is a record. `start(settings, root, random)` may change the root's logits and returns
// the context of selection.
// `score(context, node, stats)` returns Q, U and S of the node's actions, and the index of the
// `best`. `finish(context, root, stats)` returns the search's `{action, value}`. `stats` is
// `{visits, value, N, Q}`; N, Q, U and S have one number for each of `node.actions`.

/** Rounds to float32. */
export const f32 = Math.fround;

/** Probabilities of logits, in float32. */
export function softmax(logits) {
  const highest = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const powers = logits.map((x) => f32(Math.exp(f32(x - highest))));
  const sum = powers.reduce((a, b) => f32(a + b), 0);
  return powers.map((x) => f32(x / sum));
}

/** The index of the highest number; the first of equals. */
export function argmax(numbers) {
  let best = 0;
  for (let i = 1; i < numbers.length; i++) if (numbers[i] > numbers[best]) best = i;
  return best;
}

const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

/** AlphaZero's search: `Q + c_puct P sqrt(N) / (1 + n)`. */
const puct = {
  start(settings, root, random) {
    if (settings.add_noise) addDirichlet(settings, root, random);
    return { settings: { ...settings, c_puct: f32(settings.c_puct) } };
  },

  score({ settings }, node, { visits, value, N, Q }) {
    const unvisited = { zero: 0, parent: value, loss: -1 }[settings.first_play_urgency];
    const root = f32(Math.sqrt(visits));
    const q = Q.map((x, i) => (N[i] ? x : unvisited));
    const U = node.priors.map((p, i) => f32(f32(settings.c_puct * f32(p * root)) / (1 + N[i])));
    const S = q.map((x, i) => f32(x + U[i]));
    return { Q: q, U, S, best: argmax(S) };
  },

  finish: (context, root, { value, N }) => ({ action: root.actions[argmax(N)], value }),
};

/** Mixes Dirichlet noise over the legal actions into the root's prior. */
function addDirichlet({ dirichlet_alpha, dirichlet_fraction }, root, random) {
  const noise = softmax(root.actions.map(() => logGamma(random, dirichlet_alpha)));
  const share = f32(dirichlet_fraction);
  root.logits = softmax(root.logits).map((p, i) => {
    const mixed = f32(f32(f32(1 - share) * p) + f32(share * noise[i]));
    return f32(Math.log(Math.max(mixed, f32(1e-30))));
  });
}

/** Gumbel AlphaZero: sequential halving at the root, the improved policy below it. */
const gumbel = {
  start(settings, root, random) {
    const scale = f32(settings.add_noise ? settings.gumbel_scale : 0);
    const most = Math.min(settings.max_considered_actions, root.numActions);
    const considered = Math.min(settings.max_considered_actions, root.actions.length);
    return {
      settings,
      noise: root.actions.map(() => f32(scale * gumbelNumber(random))),
      wanted: consideredVisits(considered, settings.num_simulations, most),
    };
  },

  score(context, node, { N, Q }) {
    const { q, weight } = completed(context.settings, node, N, Q);
    if (node.parent === null) return halving(context, node, N, q, weight);
    const improved = softmax(node.logits.map((x, i) => f32(x + weight * q[i])));
    const total = sum(N);
    const U = N.map((n) => -f32(n / (1 + total)));
    const S = improved.map((p, i) => f32(p + U[i]));
    return { Q: q, U, S, best: argmax(S), improved };
  },

  finish({ settings, noise }, root, { value, N, Q }) {
    const { q, weight } = completed(settings, root, N, Q);
    const most = Math.max(...N);
    const improved = root.logits.map((x, i) => f32(x + weight * q[i]));
    const scores = improved.map((x, i) => (N[i] === most ? f32(noise[i] + x) : -Infinity));
    return { action: root.actions[argmax(scores)], value, policy: softmax(improved) };
  },
};

/** The best of the root's actions that are in turn in sequential halving. */
function halving({ noise, wanted }, node, N, q, weight) {
  const highest = Math.max(...node.logits);
  const U = node.logits.map((x, i) => f32(f32(noise[i] + x) - highest));
  const S = q.map((x, i) => Math.max(-1e9, f32(U[i] + weight * x)));
  const turn = wanted[Math.min(sum(N), wanted.length - 1)];
  const stand = N.map((n) => (n < turn ? "out" : n > turn ? "waits" : "in turn"));
  // All unvisited actions have the same Q, which would only add a rounding error.
  const scores = turn > 0 ? S : node.logits.map((x, i) => f32(noise[i] + x));
  return { Q: q, U, S, best: argmax(scores.map((s, i) => (stand[i] === "in turn" ? s : -Infinity))), stand };
}

/** Q with the mixed value for unvisited actions (Danihelka et al. 2022), and its weight. */
function completed({ maxvisit_init, value_scale }, node, N, Q) {
  const total = sum(N);
  const P = node.priors.map((p) => Math.max(2 ** -126, p));
  const share = P.reduce((a, p, i) => (N[i] ? f32(a + p) : a), 0);
  const weighted = P.reduce((a, p, i) => (N[i] ? f32(a + f32(f32(p * Q[i]) / share)) : a), 0);
  const mixed = f32(f32(node.value + total * weighted) / (total + 1));
  const weight = f32(f32(f32(maxvisit_init) + Math.max(...N)) * f32(value_scale / 2));
  return { q: Q.map((x, i) => (N[i] ? x : mixed)), weight };
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
  start: (settings) => ({ settings }),

  score({ settings }, node, { visits, N, Q }) {
    const log = f32(Math.log1p(visits - (node.parent === null ? 1 : 0)));
    const C = f32(settings.exploration);
    const widths = N.map((n) => f32(Math.sqrt(f32(log / Math.max(n, 1)))));
    const U = N.map((n, i) => (n ? f32(C * widths[i]) : Infinity));
    const S = Q.map((q, i) => (N[i] ? f32(q + C * widths[i]) : Infinity));
    const order = N.map((n, i) => (n ? -Infinity : node.order[i]));
    return { Q, U, S, best: N.includes(0) ? argmax(order) : earliest(S, node, N) };
  },

  finish(context, root, { N, Q }) {
    const total = sum(N);
    const value = N.reduce((a, n, i) => f32(a + f32(f32(n / total) * Q[i])), 0);
    return { action: root.actions[earliest(N, root, N)], value };
  },
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
