"""The appendix of the lecture: an integral estimated by random sampling."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from azjax.viz.chart import line_chart
from experiments.lecture.setup import Setup

# The lecture's estimates of the integral of sin over [0, pi], by number of samples.
LECTURE = {100: 2.080957, 1_000: 1.992136, 10_000: 2.007041, 100_000: 1.996149}
LECTURE_PATH = 2.022106  # The last estimate in its picture, from 500 samples.
EXACT = 2.0
_DEVIATION = math.sqrt(math.pi * math.pi / 2 - EXACT**2)  # For estimates from one sample.


def integrate(function, low: float, high: float, samples: jax.Array) -> jax.Array:
    """Returns the estimate `(high - low) * mean(f)` from `samples [n]`, uniform in [0, 1]."""
    return (high - low) * jnp.mean(function(low + (high - low) * samples))


def converge(function, low: float, high: float, samples: jax.Array) -> jax.Array:
    """Returns the estimates `[n]` from the first sample, the first two samples, and so on."""
    values = function(low + (high - low) * samples)
    return (high - low) * jnp.cumsum(values) / jnp.arange(1, len(samples) + 1)


def compute(setup: Setup) -> dict:
    """Estimates the integral many times for each number of samples."""
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
            "lecture in deviations": (lecture - EXACT) / spread,
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
    """Shows the table, the samples and the convergence."""
    page.text(
        "The integral of sin over [0, π] is 2. An estimate is (b − a) times the mean of n random "
        f"heights. The lecture makes one estimate for each n; we make {results['repeats']:,} and "
        "compare their standard deviation with theory, σ/√n."
    )
    page.table([
        {
            "samples n": f"{row['samples']:,}",
            "lecture's estimate": f"{row['lecture']:.6f}",
            "our mean": f"{row['mean']:.6f}",
            "our standard deviation": f"{row['deviation']:.6f}",
            "theory σ/√n": f"{row['expected deviation']:.6f}",
            "lecture − 2, in σ/√n": f"{row['lecture in deviations']:+.2f}",
        }
        for row in results["table"]
    ])  # fmt: skip
    n, (low, middle, high) = list(range(1, 501)), results["quantiles"]
    x = np.repeat(
        math.pi * np.sort(results["samples"][:100]), 3
    )  # From 0 up to the curve, and back.
    heights = {"sin x": (np.sin(x) * np.tile([0, 1, 0], 100)).tolist()}
    lines = {
        "median": middle,
        "one estimate": results["path"],
        f"lecture's end {LECTURE_PATH:.3f}": [*[None] * 499, LECTURE_PATH],
    }
    page.charts(
        "The heights of the first 100 samples of one estimate, and its convergence with the number "
        "of samples, within the range of 95% of all estimates.",
        line_chart("Samples", x.tolist(), heights, x_label="x"),
        line_chart("Convergence", n[9:], {k: v[9:] for k, v in lines.items()},
                   x_label="samples", bands={"median": (low[9:], high[9:])}),
    )  # fmt: skip
