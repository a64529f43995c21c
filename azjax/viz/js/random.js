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
