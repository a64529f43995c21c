"""A trace of what the devices do, moment by moment."""

import jax

from azjax import train
from experiments.benchmark import textbook
from experiments.benchmark.options import Options
from experiments.benchmark.runs import PLIES, run_config
from experiments.benchmark.setup import set_up


def write_profile(options: Options) -> str:
    """Traces one training iteration and one self-play of the baseline, both warm.

    Returns:
      The folder of the trace.
    """
    setup, key = set_up(options), jax.random.key(3)
    config = run_config(options, setup.mesh.size)
    state = train.make_state(config, setup.mesh)
    jitted = train.make_iteration(config, setup.mesh)
    iterate = jitted.lower(state).compile(train.compiler_options())  # pyright: ignore
    search = textbook.make_search("gumbel", setup.evaluate, options.simulations)
    play = jax.jit(textbook.make_selfplay(search, PLIES))
    states = textbook.init_games(key, options.games)
    state, _ = jax.block_until_ready(iterate(state))
    jax.block_until_ready(play(setup.theirs, key, states))
    with jax.profiler.trace(str(options.profile), create_perfetto_trace=True):
        with jax.profiler.TraceAnnotation("azjax: one training iteration"):
            jax.block_until_ready(iterate(state))
        with jax.profiler.TraceAnnotation("textbook: one self-play"):
            jax.block_until_ready(play(setup.theirs, key, states))
    print(
        f"trace: {options.profile}; open the perfetto_trace.json.gz below it at "
        f"https://ui.perfetto.dev, or: pip install xprof, then xprof {options.profile}"
    )
    return str(options.profile)
