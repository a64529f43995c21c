"""A metrics sink of your own: TensorBoard, by `pip install tensorboardX`.

A sink is a function of a `metrics.Record`; a training calls every sink after every iteration.
The viewer of the curves is another package, `tensorboard`.
"""

import functools
import time
from collections.abc import Callable

import jax
from tensorboardX import SummaryWriter

from azjax._commands import command
from azjax.runs import presets
from azjax.runs.config import make_parts
from azjax.training.metrics import Record
from azjax.training.step import init, iteration


def make_sink(folder: str) -> Callable[[Record], None]:
    """Returns a sink that writes every number of a record as a scalar."""
    writer = SummaryWriter(folder)

    def sink(record: Record) -> None:
        for name, value in record.as_dict().items():
            if value is not None and name != "iteration":
                writer.add_scalar(name, value, record.iteration)
        writer.flush()

    return sink


def train(folder: str, iterations: int = 5) -> None:
    """Trains a little, and tells TensorBoard."""
    parts, sink = make_parts(presets.smoke(presets.get("default"))), make_sink(folder)
    step = jax.jit(functools.partial(iteration, parts), donate_argnums=0)
    state, started = init(parts, jax.random.key(0)), time.time()
    for number in range(1, iterations + 1):
        before = time.time()
        state, metrics = jax.block_until_ready(step(state))
        games, losses = int(metrics.games), {n: float(x) for n, x in metrics.losses.items()}
        now = time.time()
        sink(Record(number, now - started, games, games / (now - before), losses))


if __name__ == "__main__":
    train("runs/tensorboard")
    print(f"install the viewer: {command('pip', 'install', 'tensorboard')}")
    print(f"look at the curves: {command('tensorboard.main', '--logdir', 'runs/tensorboard')}")
