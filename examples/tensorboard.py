"""A callback: the numbers of every iteration for TensorBoard, by `pip install tensorboardX`.

The viewer of the curves is another package, `tensorboard`.
"""

from tensorboardX import SummaryWriter

import azjax as az
from azjax._commands import command


class TensorBoard(az.Callback):
    """Writes every number of a record as a scalar, those that other callbacks added as well."""

    def __init__(self, folder: str):
        """Writes into a folder."""
        self._writer = SummaryWriter(folder)

    def on_iteration(self, loop):
        """Writes the numbers of one iteration."""
        for name, value in loop.record.as_dict().items():
            if value is not None and name != "iteration":
                self._writer.add_scalar(name, value, loop.iteration)
        self._writer.flush()

    def close(self):
        """Closes the files."""
        self._writer.close()


if __name__ == "__main__":
    settings = az.presets.smoke(az.presets.get("default"))
    az.train(settings, callbacks=[TensorBoard("runs/tensorboard")], max_iterations=5)
    print(f"install the viewer: {command('pip', 'install', 'tensorboard')}")
    print(f"look at the curves: {command('tensorboard.main', '--logdir', 'runs/tensorboard')}")
