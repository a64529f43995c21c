"""How a training run ends: its certificate, its report, and what is said of it."""

from azjax import _files as files
from azjax import _processes as processes
from azjax import training
from azjax._commands import command
from azjax.cli import console
from azjax.cli.session import Session
from azjax.proof import certificate as certificates
from azjax.proof.verify import Verdict
from azjax.runs.player import Player
from azjax.viz import report

_SMOKE = {"match_games": 2, "match_seconds": 0.0}  # One game from each seat.


def certify_goal(
    session: Session, state: training.TrainState, verdict: Verdict | None
) -> certificates.Certificate | None:
    """Returns the certificate if the goal is reached, search included, or None."""
    if verdict is None or not certificates.reached(session.goal, verdict):
        return None
    found = certify(session, state, verdict)
    return found if found and (session.goal == "unbeatable" or found.perfect) else None


def certify(
    session: Session, state: training.TrainState, verdict: Verdict | None
) -> certificates.Certificate | None:
    """Returns the certificate of a state's averaged network, where the game can be enumerated."""
    if session.proof is None or verdict is None:
        return None
    player = _make_player(session, state)
    seed = session.config.seed
    return session.proof.certify(player.params, verdict, player.iteration, session.started, seed)


def _make_player(session: Session, state: training.TrainState) -> Player:
    params = session.parts.network.fold(training.one_copy(state.learner.ema_params))
    return Player(session.parts, params, int(state.iteration))


def conclude(
    session: Session,
    state: training.TrainState,
    verdict: Verdict | None,
    certificate: certificates.Certificate | None,
    trained: bool,
) -> int:
    """Lets process 0 write certificate and report, and say where they are.

    Args:
      session: the run.
      state: at its end.
      verdict: on its network, where the game can be enumerated.
      certificate: that the goal was reached, or None.
      trained: whether this sitting made any iteration.

    Returns:
      The exit status: whether the goal was reached.
    """
    reached = session.goal == "never" or certificate is not None

    def write():
        _write_certificate(session, state, verdict, certificate, trained)
        if session.plan.report and (trained or not (session.run_dir / "report.html").exists()):
            _write_report(session, state)
        print(f"run directory: {session.run_dir}")
        print(f"play against it: {command('azjax', 'play')} {session.named}")
        print(f"see how it searches: {command('azjax', 'explain')} {session.named}")
        if session.judge:
            print(f"see how often it errs: {command('azjax', 'verify')} {session.named}")
        _advise(session, int(state.iteration), trained, reached)

    processes.in_first(write)
    return 0 if reached else 1


def _write_certificate(session: Session, state, verdict, certificate, trained: bool) -> None:
    path = session.run_dir / "certificate.json"
    if not trained and path.exists():
        return
    if found := certificate or certify(session, state, verdict):
        files.write_json(path, found.as_json())
        console.show_certificate(found)


def _write_report(session: Session, state: training.TrainState) -> None:
    """Writes `report.html`; the run is complete without it, so a failure is only a note."""
    solution = session.proof and session.proof.solution
    try:
        with console.busy_with_report() as notify:
            path = report.write_report(
                session.run_dir,
                _make_player(session, state),
                solution,
                notify=notify,
                **(_SMOKE if session.plan.smoke else {}),
            )
    except (OSError, ValueError) as error:
        console.note(f"the report was not written: {error}")
    else:
        print(f"report: {path}")


def _advise(session: Session, iterations: int, trained: bool, reached: bool) -> None:
    """Says how to go on, if the goal was not reached or nothing was left to do."""
    if not reached:
        console.note(
            f"not {session.goal} after {iterations} iterations: go on with --resume "
            f"{session.named} --max-iterations {2 * iterations}"
        )
    elif not trained:
        console.note(
            f"{session.run_dir} was finished already, after {iterations} iterations: to train "
            f"on, add --until never --max-iterations {2 * iterations}"
        )
