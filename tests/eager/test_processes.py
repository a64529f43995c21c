"""Devices and processes of a training, without starting any."""

import dataclasses
import types

import jax
import numpy as np
import pytest
from jax._src.distributed import global_state  # See `is_first`.

from azjax import _processes as processes
from azjax import program
from azjax.runs import presets
from azjax.runs.config import Config, make_parts
from azjax.training import LearnerConfig, SelfPlayConfig


def use_devices(number, monkeypatch):
    devices = jax.local_devices()[:number]
    monkeypatch.setattr(jax, "devices", lambda: devices)


def test_jax_has_the_index_of_a_process_in_its_private_state():
    """No public function returns it before JAX starts."""
    assert global_state.process_id == 0


def test_processes_with_unequal_numbers_of_devices_are_rejected(monkeypatch):
    devices = [types.SimpleNamespace(process_index=index) for index in (0, 0, 1)]
    monkeypatch.setattr(jax, "devices", lambda: devices)
    with pytest.raises(ValueError, match="2, 1 devices: .*cpu_devices 1"):
        processes.check_devices()


class Others:
    """The other processes of this one: two, of which the second has its own texts and flags."""

    def __init__(self, monkeypatch, index=0):
        self.texts, self.flag, self.sent = "", False, None
        monkeypatch.setattr(jax, "process_count", lambda: 2)
        monkeypatch.setattr(jax, "process_index", lambda: index)
        monkeypatch.setattr(processes.multihost_utils, "process_allgather", self.gather)

    def gather(self, values):
        self.sent = values
        if values.dtype == bool:
            return np.stack([values, self.flag])
        text = self.texts.encode().ljust(values.size, b"\0")
        return np.stack([values, np.frombuffer(text, np.uint8)])


@pytest.fixture
def others(monkeypatch):
    return Others(monkeypatch)


def test_requests_and_errors_reach_all_processes(others):
    assert not processes.any_of(False)
    others.flag = True
    assert processes.any_of(False)
    assert processes.in_all(lambda: 3) == 3
    others.texts = "no room"
    with pytest.raises(processes.OtherProcessError, match="^no room$"):
        processes.in_all(lambda: 3)
    others.texts = ""
    for error, sent in [(ValueError(), "ValueError"), (KeyError("name"), "'name'")]:
        with pytest.raises(type(error)):
            processes.in_all(lambda error=error: (_ for _ in ()).throw(error))
        assert bytes(others.sent).rstrip(b"\0").decode() == sent
    assert processes.gather("i" + "ä" * 2000)[0] == "i" + "ä" * 511


def test_only_the_first_process_acts(monkeypatch):
    for index, count in ((0, 1), (1, 0)):
        Others(monkeypatch, index)
        acted = []
        processes.in_first(lambda: acted.append(1))
        assert len(acted) == count


def test_options_that_differ_are_named(others, monkeypatch):
    texts = []
    monkeypatch.setattr(processes, "gather", lambda text: texts.append(text) or texts[-2:])
    processes.check_same({"seed": 3, "selfplay": "the same"})
    processes.check_same({"seed": 3, "selfplay": "the same"})
    with pytest.raises(ValueError, match="^selfplay of process 1 is not that of process 0: start"):
        processes.check_same({"seed": 3, "selfplay": "other"})


def test_a_lost_connection_ends_a_process_among_several(others):
    refused = pytest.raises(processes.OtherProcessEnded, match="process 1 ended")
    with refused as ended, processes.connected():
        raise RuntimeError("Gloo all-reduce failed")
    assert not isinstance(ended.value, Exception)
    with pytest.raises(KeyError), processes.connected():
        raise KeyError("a defect")


def test_the_others_wait_less_for_a_process_that_failed(monkeypatch, capfd):
    def fail():
        raise KeyError("a defect")

    waits = []
    thread = types.SimpleNamespace(start=str, join=waits.append, is_alive=bool)
    threading = types.SimpleNamespace(Thread=lambda **given: thread)
    monkeypatch.setattr(processes, "threading", threading)
    monkeypatch.setattr(jax.distributed, "is_initialized", lambda: True)
    programs = (lambda: 0), (lambda: 1), (lambda: 2), fail
    assert [*map(processes.run, programs)] == [0, 1, 2, 1]
    assert waits == [processes._LEAVES] * 2 + [processes._FAILS] * 2
    assert "a defect" in capfd.readouterr().err


# CPU devices.


def test_a_flag_or_variable_of_the_user_sets_the_number_of_cpu_devices(monkeypatch):
    numbers = []
    config = types.SimpleNamespace(update=lambda name, number: numbers.append(number))
    monkeypatch.setattr(processes, "jax", types.SimpleNamespace(config=config))
    flag = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
    for number, variables in enumerate(({}, flag, {"JAX_NUM_CPU_DEVICES": "4"})):
        monkeypatch.setattr(processes.os, "environ", variables)
        processes.set_cpu_devices(number)
    assert numbers == [0]


def test_shards_fit_the_devices_unless_they_are_fixed(monkeypatch, capfd):
    """The preset `mlp` has two shards, 50 games and batches of 64."""
    config = presets.get("mlp")
    parts = make_parts(config)
    use_devices(3, monkeypatch)
    fitted, _, mesh = program.fit_devices(config, parts, fixed=True)
    assert mesh.size == 2 and fitted == config
    assert capfd.readouterr().err.startswith("2 of 3 devices are used: no larger number")
    config = dataclasses.replace(config, selfplay=SelfPlayConfig(games=48, unroll_length=4))
    config = dataclasses.replace(config, learner=LearnerConfig(batch_size=32))
    _, _, mesh = program.fit_devices(config, make_parts(config), fixed=False)
    assert mesh.size == 2  # 3 divides 48 only.
    capfd.readouterr()
    config = dataclasses.replace(config, learner=LearnerConfig(batch_size=96))
    fitted, parts, mesh = program.fit_devices(config, make_parts(config), fixed=False)
    assert mesh.size == 3 and fitted.replay.shards == 3 == parts.replay.shards
    assert capfd.readouterr().err == "3 devices: replay.shards 3 instead of 2\n"
    # Several processes use all devices, also for a resumed run, whose settings they must divide.
    monkeypatch.setattr(jax, "process_count", lambda: 3)
    with pytest.raises(ValueError, match="replay.shards is 2"):
        program.fit_devices(config, make_parts(config), fixed=True)


# Opening a run.


def test_a_run_uses_its_seed(monkeypatch):
    keys = []
    compiled = types.SimpleNamespace(compile=lambda options: "compiled")
    step = types.SimpleNamespace(lower=lambda state: compiled)
    monkeypatch.setattr(program.training, "make_iteration", lambda parts, mesh: step)
    monkeypatch.setattr(program.training, "abstract_state", lambda parts, mesh: "abstract")
    monkeypatch.setattr(program.training, "make_state", lambda parts, key, *_: keys.append(key))
    parts = types.SimpleNamespace(game=types.SimpleNamespace(enumerable=False))
    for seed, state in ((7, None), (8, None), (9, "restored")):
        config = dataclasses.replace(Config(), seed=seed)
        assert program._compile(config, parts, None, 0, state) == (state, "compiled", None)
    assert keys == [jax.random.key(7), jax.random.key(8)]
