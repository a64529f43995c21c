"""Trains a network by self-play until it is proved perfect: `python -m experiments.train`."""

import time

_STARTED = time.time()  # Before the heavy imports: figures count the whole process.

import argparse  # noqa: E402
import dataclasses  # noqa: E402
import pathlib  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
from concurrent.futures import ThreadPoolExecutor  # noqa: E402
from typing import Annotated, Any, Literal, NamedTuple  # noqa: E402

import jax  # noqa: E402
import tyro  # noqa: E402
from rich.console import Console  # noqa: E402

from azjax import certificate as certificates  # noqa: E402
from azjax import checkpoint, metrics, oracle, presets, train  # noqa: E402
from azjax.verify import Verdict, verify  # noqa: E402
from experiments import console  # noqa: E402


@dataclasses.dataclass(frozen=True)
class Options:
    """Trains AlphaZero by self-play, proving at every iteration how good the network is."""

    config: Annotated[train.Config, tyro.conf.arg(name="")]
    preset: Literal["default", "paper", "mlp"] = "default"
    """Settings to start from. default: the fastest route to perfect; paper: AlphaZero's
    tower, PUCT and noise; mlp: a small perceptron with deep searches."""
    until: Literal["perfect", "unbeatable", "never"] | None = None
    """When to stop. perfect: no blunder in any position, alone and with search; unbeatable:
    no losing line from either seat; never: at --max-iterations. Left out: perfect where the
    game can be enumerated, never elsewhere."""
    max_iterations: int = 500
    """Stop after this many iterations at the latest, earlier sittings included."""
    run_dir: pathlib.Path | None = None
    """Folder for checkpoints, metrics and the certificate. Left out: a new one in runs/."""
    resume: bool = False
    """Go on with the run in --run-dir exactly where its newest checkpoint stopped."""
    checkpoint_every: int = 10
    """Iterations between checkpoints; there is always one at the end."""
    smoke: bool = False
    """Shrink everything, to see the whole program work in seconds."""

    def __post_init__(self):
        for name in ("max_iterations", "checkpoint_every"):
            if getattr(self, name) < 1:
                flag = "--" + name.replace("_", "-")
                raise ValueError(f"{flag} is {getattr(self, name)}: use 1 or more")
        if self.resume and self.run_dir is None:
            raise ValueError("--resume needs the run to go on with: add --run-dir runs/NAME")


class Session(NamedTuple):
    """A run made ready: everything compiled, the state on its devices."""

    options: Options
    goal: certificates.Goal
    run_dir: pathlib.Path
    parts: train.Parts
    state: train.TrainState
    iterate: Any
    judge: Any
    solution: oracle.Solution | None
    seconds_before: float


def parse(arguments: list[str]) -> Options:
    """Reads the command line; presets and resumed runs give the defaults of the rest."""
    first = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    first.add_argument("--preset", default="default")
    first.add_argument("--run-dir")
    first.add_argument("--resume", action="store_true")
    first.add_argument("--smoke", action="store_true")
    known, _ = first.parse_known_args(arguments)
    config, until, limit = presets.get(known.preset), None, 500
    if known.smoke:
        config, until, limit = presets.smoke(config), "never", 3
    if known.resume and known.run_dir:
        config = checkpoint.read_config(known.run_dir)
    default = Options(config=config, until=until, max_iterations=limit)
    options = tyro.cli(Options, args=arguments, default=default, prog="experiments.train")
    if known.resume and options.config != config:
        raise ValueError(_describe_change(config, options.config))
    return options


def _describe_change(saved: train.Config, given: train.Config) -> str:
    """Says which setting of a resumed run was to be changed."""
    pairs = zip(_flatten(saved), _flatten(given), strict=True)
    name, old, new = next((a[0], a[1], b[1]) for a, b in pairs if a != b)
    return (
        f"a resumed run keeps its settings, and --{name.replace('_', '-')} was {old!r}, not "
        f"{new!r}: leave it out, or start a new run in another --run-dir"
    )


def _flatten(config: Any, prefix: str = "") -> list[tuple[str, Any]]:
    """Lists the settings of a nested dataclass with their dotted names."""
    found = []
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        nested = dataclasses.is_dataclass(value)
        name = prefix + field.name
        found += _flatten(value, f"{name}.") if nested else [(name, value)]
    return found


def prepare(options: Options) -> Session:
    """Checks everything, then makes the run directory, and compiles.

    Raises:
      ValueError: if settings contradict each other or the machine.
      checkpoint.CheckpointError: if the run directory cannot be used.
    """
    config = options.config
    mesh = train.make_mesh()
    train.check(config, mesh.size)
    parts = train.make_parts(config)
    goal = _choose_goal(options, parts)
    run_dir = options.run_dir or _new_run_dir(options)
    seconds_before = 0.0
    if not options.resume:
        checkpoint.create_run(run_dir, config)
    with ThreadPoolExecutor() as pool:  # XLA compiles outside Python's lock.
        iterate = pool.submit(_compile_iteration, config, mesh)
        if options.resume:
            state, skipped = checkpoint.restore(run_dir, config, mesh, set_aside=True)
            for sentence in skipped:
                console.note(f"{sentence}; going on from an older one")
            seconds_before = metrics.last_seconds(run_dir / "metrics.jsonl", int(state.iteration))
        else:
            state = train.make_state(config, mesh)
        solution = oracle.solve(parts.game) if parts.game.enumerable else None
        judge = _compile_judge(parts, solution, state) if solution else None
    return Session(
        options, goal, run_dir, parts, state, iterate.result(), judge, solution, seconds_before
    )


def _choose_goal(options: Options, parts: train.Parts) -> certificates.Goal:
    if parts.game.enumerable:
        return options.until or "perfect"
    if options.until in ("perfect", "unbeatable"):
        raise ValueError(
            f"{parts.game.name} has too many positions to enumerate, so --until "
            f"{options.until} cannot be proved: use --until never with --max-iterations"
        )
    return "never"


def _new_run_dir(options: Options) -> pathlib.Path:
    """Returns the first free `runs/GAME-PRESET-NUMBER`."""
    number = 1
    while (path := pathlib.Path(f"runs/{options.config.game}-{options.preset}-{number}")).exists():
        number += 1
    return path


def _compile_iteration(config: train.Config, mesh):
    abstract = train.abstract_state(config, mesh)
    return train.make_iteration(config, mesh).lower(abstract).compile()


def _compile_judge(parts: train.Parts, solution: oracle.Solution, state: train.TrainState):
    """Compiles the verification of the averaged network: `variables -> Verdict`."""

    def judge(variables) -> Verdict:
        params = parts.network.fold(variables)
        return verify(solution, certificates.network_policy(parts, params))

    return jax.jit(judge).lower(state.learner.average).compile()


def run(session: Session) -> int:
    """Trains until the goal is reached, and returns the exit status."""
    state, options, certificate = session.state, session.options, None
    sinks = _open_sinks(session)
    with checkpoint.Checkpointer(session.run_dir) as checkpointer, _Interrupt() as interrupt:
        record = None
        while int(state.iteration) < options.max_iterations and certificate is None:
            before = time.time()
            state, measured = session.iterate(state)
            verdict = session.judge(state.learner.average) if session.judge else None
            record = _make_record(session, state, measured, verdict, before)
            if name := record.non_finite():
                _close(sinks)
                return _report_non_finite(session, record, name)
            for sink in sinks:
                sink(record)
            if record.iteration % options.checkpoint_every == 0 or interrupt.requested:
                checkpointer.save(state, _score(record))
            if interrupt.requested:
                _close(sinks)
                console.note(f"interrupted: go on with --resume --run-dir {session.run_dir}")
                return 130
            if verdict is not None and certificates.reached(session.goal, verdict):
                certificate = _certify_goal(session, state)
        _close(sinks)
        if record is not None:
            checkpointer.save(state, _score(record))
    return _finish(session, state, certificate)


class _Interrupt:
    """Turns the first Ctrl-C into a request to stop after the current iteration."""

    requested = False

    def __enter__(self):
        self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def _handle(self, number, frame):
        self.requested = True
        signal.signal(signal.SIGINT, self._previous)

    def __exit__(self, *exception):
        signal.signal(signal.SIGINT, self._previous)


def _open_sinks(session: Session) -> list:
    """The JSON-lines file, and a live table on a terminal or plain lines elsewhere."""
    path = session.run_dir / "metrics.jsonl"
    file = metrics.JsonLines(path, after=int(session.state.iteration))
    terminal = Console()
    if not terminal.is_terminal:
        return [file, metrics.Plain(sys.stdout)]
    return [file, metrics.Display(terminal, session.options.max_iterations, session.goal)]


def _close(sinks: list) -> None:
    for sink in sinks:
        sink.close()


def _make_record(session: Session, state, measured, verdict, before: float) -> metrics.Record:
    """Waits for an iteration's numbers and puts them together."""
    measured, verdict = jax.device_get((measured, verdict))
    now, losses = time.time(), measured.losses
    proof = {}
    if verdict is not None:
        proof = {
            "blunders": int(verdict.blunders),
            "losing_lines_first": int(verdict.losing_lines[0]),
            "losing_lines_second": int(verdict.losing_lines[1]),
            "value_sign_errors": int(verdict.value_sign_errors),
            "value_error": float(verdict.value_error),
        }
    return metrics.Record(
        iteration=int(state.iteration),
        seconds=now - _STARTED + session.seconds_before,
        games=int(measured.games),
        games_per_second=float(measured.games) / (now - before),
        loss=float(losses.total),
        value_loss=float(losses.value),
        policy_loss=float(losses.policy),
        policy_kl=float(losses.policy_kl),
        l2=float(losses.l2),
        grad_norm=float(losses.grad_norm),
        **proof,
    )


def _score(record: metrics.Record) -> float:
    """Higher is better: fewest blunders, then lowest loss."""
    return -record.loss if record.blunders is None else -record.blunders - record.loss / 1e3


def _report_non_finite(session: Session, record: metrics.Record, name: str) -> int:
    return console.fail(
        f"{name} became {getattr(record, name)} in iteration {record.iteration}, so training "
        f"stopped; the newest checkpoint in {session.run_dir} is from before it: start a new "
        "run with a lower --learner.learning-rate or with --learner.clip-norm 1"
    )


def _certify_goal(session: Session, state: train.TrainState):
    """Returns the certificate if it holds up to the goal, search included, or None."""
    found = _certify(session, state)
    return found if session.goal == "unbeatable" or found.perfect else None


def _certify(session: Session, state: train.TrainState) -> certificates.Certificate:
    return certificates.certify(
        session.options.config,
        session.parts,
        session.solution,
        session.parts.network.fold(state.learner.average),
        iterations=int(state.iteration),
        seconds=time.time() - _STARTED + session.seconds_before,
    )


def _finish(session: Session, state: train.TrainState, certificate) -> int:
    """Prints and writes the certificate; the exit status says whether the goal was reached."""
    reached = session.goal == "never" or certificate is not None
    if session.solution is not None:
        certificate = certificate or _certify(session, state)
        checkpoint.write_json(session.run_dir / "certificate.json", console.as_json(certificate))
        console.show_certificate(certificate)
    print(f"run directory: {session.run_dir}")
    if not reached:
        console.note(
            f"not {session.goal} after {int(state.iteration)} iterations: go on with --resume "
            f"--run-dir {session.run_dir} --max-iterations {2 * int(state.iteration)}"
        )
    return 0 if reached else 1


def main(arguments: list[str] | None = None) -> int:
    """Runs the program; returns its exit status."""
    try:
        options = parse(sys.argv[1:] if arguments is None else arguments)
        session = prepare(options)
    except (ValueError, checkpoint.CheckpointError) as error:
        return console.fail(error)
    return run(session)


if __name__ == "__main__":
    sys.exit(main())
