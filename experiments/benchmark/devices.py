"""How many JAX devices the measurements run on."""

import math

import jax

from experiments import launch
from experiments.benchmark.options import Options


def split_cpu(options: Options) -> None:
    """Splits the CPU into devices, before JAX's first computation.

    With `--cpu-devices 0` there is one a core, or the largest number below that divides what
    is dealt out, unless JAX was told a number already, by a flag or a variable.

    Raises:
      ValueError: if both were.
    """
    told = launch.told()
    if told and options.cpu_devices:
        raise ValueError(
            f"--cpu-devices is {options.cpu_devices}, and {told} sets a number of devices, too: "
            "leave one of them out"
        )
    if not told:
        jax.config.update("jax_num_cpu_devices", options.cpu_devices or _fitting(options))


def _fitting(options: Options) -> int:
    """The largest number of devices up to the cores that divides all that is dealt out."""
    common = math.gcd(*options.shared().values())  # 0 if there is nothing.
    return launch.share(common, launch.cores())


def check_devices(options: Options, devices: int) -> None:
    """Refuses what cannot be dealt out to all devices alike.

    Raises:
      ValueError: naming the option, its value and what would work.
    """
    for name, value in options.shared().items():
        if value % devices:
            raise ValueError(
                f"{name} is {value:,}, which {devices} devices do not divide: use a multiple of "
                f"{devices}, or --cpu-devices {math.gcd(value, devices)}"
            )
