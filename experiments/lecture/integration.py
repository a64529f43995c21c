"""The appendix: an integral by random sampling."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from experiments.lecture.setup import Setup

# The lecture's estimates of the integral of sin over [0, pi], by the number of samples.
LECTURE = {100: 2.080957, 1_000: 1.992136, 10_000: 2.007041, 100_000: 1.996149}
LECTURE_PATH = 2.022106  # Its picture's last estimate, from 500 samples.
TRUTH = 2.0
_DEVIATION = math.sqrt(math.pi * math.pi / 2 - TRUTH**2)  # Of one sample's estimate.


def integrate(function, low: float, high: float, samples: jax.Array) -> jax.Array:
    """Returns the estimate `(high - low) * mean(f)` of an integral.

    Args:
      function: elementwise.
      low: the lower bound.
      high: the upper bound.
      samples: `[n]`, uniform in [0, 1].
    """
    return (high - low) * jnp.mean(function(low + (high - low) * samples))


def converge(function, low: float, high: float, samples: jax.Array) -> jax.Array:
    """Returns the estimates `[n]` from the first sample, the first two, and so on."""
    values = function(low + (high - low) * samples)
    return (high - low) * jnp.cumsum(values) / jnp.arange(1, len(samples) + 1)


def compute(setup: Setup) -> dict:
    """Estimates the integral thousands of times for each number of samples."""
    key = setup.key("integration")
    repeats = setup.choose(1_000, 200)

    def estimate(key, count):
        return integrate(jnp.sin, 0.0, math.pi, jax.random.uniform(key, (count,)))

    table = []
    for count, lecture in LECTURE.items():
        keys = jax.random.split(jax.random.fold_in(key, count), repeats)
        final = jax.lax.map(lambda k: estimate(k, count), keys, batch_size=50)
        spread = _DEVIATION / math.sqrt(count)
        table.append({
            "samples": count, "lecture": lecture, "mean": float(final.mean()),
            "deviation": float(final.std()), "expected deviation": spread,
            "lecture in deviations": (lecture - TRUTH) / spread,
        })  # fmt: skip
    samples = jax.random.uniform(key, (repeats, 500))
    paths = jax.vmap(lambda row: converge(jnp.sin, 0.0, math.pi, row))(samples)
    return {
        "table": table,
        "samples": np.asarray(samples[0]).tolist(),
        "path": np.asarray(paths[0]).tolist(),
        "quantiles": np.quantile(np.asarray(paths), [0.025, 0.5, 0.975], axis=0).tolist(),
        "repeats": repeats,
    }


def show(results: dict, page) -> None:
    """The samples, the convergence, and the table."""
    page.text(
        "The integral of sin over [0, π] is 2. One estimate is (b − a) times the mean of n random "
        f"heights; the lecture makes one for each n, we make {results['repeats']:,}, vmapped, and "
        "compare their spread with theory, σ/√n."
    )
    rows = [
        (f"{row['samples']:,}", f"{row['lecture']:.6f}", f"{row['mean']:.6f}",
         f"{row['deviation']:.6f}", f"{row['expected deviation']:.6f}",
         f"{row['lecture in deviations']:+.2f}")
        for row in results["table"]
    ]  # fmt: skip
    page.table(
        ("samples n", "lecture's estimate", "our mean", "our deviation", "theory σ/√n",
         "lecture − 2, in σ/√n"),
        rows,
    )  # fmt: skip
    left, right = page.axes(
        "integration",
        "Left: 500 samples of one estimate. Right: how that estimate converges, and between "
        "which values 95% of all estimates lie.",
        columns=2,
    )
    x = math.pi * np.array(results["samples"])
    curve = np.linspace(0, math.pi, 200)
    left.vlines(x, 0, np.sin(x), color="#bdbdbd", linewidth=0.5)
    left.plot(x, np.sin(x), ".", markersize=3, color="#2166ac")
    left.plot(curve, np.sin(curve), color="black", linewidth=1)
    left.set(title="samples", xlabel="x", ylabel="sin x")
    low, middle, high = results["quantiles"]
    n = np.arange(1, len(low) + 1)
    right.fill_between(n, low, high, color="#2166ac", alpha=0.15, label="95% of all")
    right.plot(n, middle, color="#2166ac", linewidth=1, label="median")
    right.plot(n, results["path"], color="#d6604d", linewidth=1, label="the one on the left")
    right.plot(500, LECTURE_PATH, "k*", label=f"the lecture's end, {LECTURE_PATH:.3f}")
    right.axhline(TRUTH, color="black", linestyle="--", linewidth=1)
    right.set(title="convergence", xlabel="samples", ylabel="estimate", ylim=(1.4, 2.6))
    right.legend(fontsize=8)
