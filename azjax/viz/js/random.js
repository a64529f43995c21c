// JAX's random numbers, bit for bit: Threefry-2x32 keys as `jax.random.key` makes them, with
// the default `jax_threefry_partitionable`. A key is a pair of unsigned numbers, and
// every result is rounded to float32.

/** Rounds to float32. */
export const f32 = Math.fround;

const ROTATIONS = [
  [13, 15, 26, 6],
  [17, 29, 16, 24],
];
const TINY = 2 ** -126;
const BELOW_ONE = f32(-1 + 2 ** -24); // The smallest float32 above -1.
const THIRD = f32(1 / 3);
const SQUEEZE = f32(0.0331);

// Coefficients of the inverse error function (Giles 2012), near the middle and in the tails.
const MIDDLE = [
  2.81022636e-8, 3.43273939e-7, -3.5233877e-6, -4.39150654e-6, 0.00021858087, -0.00125372503,
  -0.00417768164, 0.246640727, 1.50140941,
].map(f32);
const TAILS = [
  -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
  0.00943887047, 1.00167406, 2.83297682,
].map(f32);

/** The key of a seed from 0 to 2**31 - 1; `jax.random.key`. */
export function randomKey(seed) {
  return [0, seed >>> 0];
}

/** Splits a key into `count` keys; `jax.random.split`. */
export function splitKey(key, count = 2) {
  return Array.from({ length: count }, (_, i) => threefry(key, i));
}

/** Folds a number into a key; `jax.random.fold_in`. */
export function foldIn(key, number) {
  return threefry(key, number >>> 0);
}

/** The `i`-th uniform number in [0, 1) of a key; `jax.random.uniform`. */
export function uniformAt(key, i = 0) {
  const [a, b] = threefry(key, i);
  return ((a ^ b) >>> 9) * 2 ** -23;
}

/** `count` Gumbel-distributed numbers; `jax.random.gumbel`. */
export function gumbels(key, count) {
  return Float32Array.from({ length: count }, (_, i) => {
    const u = Math.max(TINY, uniformAt(key, i));
    return -f32(Math.log(-f32(Math.log(u))));
  });
}

/** `count` logarithms of Gamma-distributed numbers; `jax.random.loggamma`. */
export function logGammas(key, alpha, count) {
  return Float32Array.from(splitKey(key, count), (one) => logGamma(one, f32(alpha)));
}

/** Marsaglia and Tsang 2000, for `alpha + 1` where `alpha` is below 1. */
function logGamma(start, alpha) {
  const d = f32((alpha >= 1 ? alpha : f32(alpha + 1)) - THIRD);
  const c = f32(THIRD / f32(Math.sqrt(d)));
  let [key, last] = splitKey(start);
  let [square, cube, u] = [0, 1, 2];
  const refused = () => {
    const bound = f32(f32(square * f32(0.5)) + f32(d * f32(f32(1 - cube) + f32(Math.log(cube)))));
    return u >= f32(1 - f32(SQUEEZE * f32(square * square))) && f32(Math.log(u)) >= bound;
  };
  while (refused()) {
    const [next, keyNormal, keyUniform] = splitKey(key, 3);
    const { x, v } = positive(keyNormal, c);
    [key, square, cube, u] = [next, f32(x * x), f32(f32(v * v) * v), uniformAt(keyUniform)];
  }
  const sample = f32(Math.log1p(-uniformAt(last)));
  const boost = alpha >= 1 || sample === 0 ? 0 : f32(sample * f32(1 / alpha));
  return f32(f32(f32(Math.log(d)) + f32(Math.log(cube))) + boost);
}

/** A normal number `x` for which `v = 1 + c x` is positive. */
function positive(start, c) {
  let key = start;
  let sub;
  for (;;) {
    [key, sub] = splitKey(key);
    const x = normalOf(uniformAt(sub));
    const v = f32(1 + f32(x * c));
    if (v > 0) return { x, v };
  }
}

/** Maps a uniform number to a normal one. */
function normalOf(uniform) {
  const u = Math.max(BELOW_ONE, f32(f32(2 * uniform) + BELOW_ONE));
  return f32(f32(Math.SQRT2) * inverseErf(u));
}

function inverseErf(x) {
  const w = -f32(Math.log1p(-f32(x * x)));
  const near = w < 5;
  const t = near ? f32(w - 2.5) : f32(f32(Math.sqrt(w)) - 3);
  return f32((near ? MIDDLE : TAILS).reduce((p, c) => f32(c + f32(p * t))) * x);
}

/** Threefry-2x32 with 20 rounds (Salmon et al. 2011), of the counter `(0, count)`. */
function threefry([k0, k1], count) {
  const keys = [k0, k1, k0 ^ k1 ^ 0x1bd11bda];
  let a = k0 | 0;
  let b = (count + k1) | 0;
  for (let i = 0; i < 5; i++) {
    for (const r of ROTATIONS[i & 1]) {
      a = (a + b) | 0;
      b = a ^ ((b << r) | (b >>> (32 - r)));
    }
    a = (a + keys[(i + 1) % 3]) | 0;
    b = (b + keys[(i + 2) % 3] + i + 1) | 0;
  }
  return [a >>> 0, b >>> 0];
}
