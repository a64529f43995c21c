"""Self-play, learning, and one training iteration as a pure function."""

from azjax.training.learner import (
    Learner,
    LearnerConfig,
    LearnerState,
    alphazero_loss,
    make_learner,
    make_optimizer,
)
from azjax.training.mesh import (
    AXIS,
    abstract_state,
    compiled,
    compiler_options,
    make_iteration,
    make_mesh,
    make_state,
    one_copy,
    state_specs,
)
from azjax.training.parts import Parts, SelfPlayConfig, check_parts
from azjax.training.replay import ReplayConfig, make_replay
from azjax.training.step import Metrics, TrainState, example, init, iteration
from azjax.training.targets import Sample, TargetConfig, Targets, Transition, make_targets

__all__ = ["AXIS", "Learner", "LearnerConfig", "LearnerState", "Metrics", "Parts", "ReplayConfig"]
__all__ += ["Sample", "SelfPlayConfig", "TargetConfig", "Targets", "TrainState", "Transition"]
__all__ += ["abstract_state", "alphazero_loss", "check_parts", "compiled", "compiler_options"]
__all__ += ["example", "init", "iteration", "make_iteration", "make_learner", "make_mesh"]
__all__ += ["make_optimizer", "make_replay", "make_state", "make_targets", "one_copy"]
__all__ += ["state_specs"]
