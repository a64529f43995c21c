"""Self-play, learning, and one training iteration as a pure function."""

from azjax.training.learner import LearnerConfig, make_learner
from azjax.training.parts import Parts, SelfPlayConfig, check_parts
from azjax.training.replay import ReplayConfig, make_replay
from azjax.training.step import (
    AXIS,
    Metrics,
    TrainState,
    abstract_state,
    compiled,
    compiler_options,
    example,
    init,
    iteration,
    make_iteration,
    make_mesh,
    make_state,
    one_copy,
)
from azjax.training.targets import TargetConfig, make_targets

__all__ = ["AXIS", "LearnerConfig", "Metrics", "Parts", "ReplayConfig"]
__all__ += ["SelfPlayConfig", "TargetConfig", "TrainState", "abstract_state", "check_parts"]
__all__ += ["compiled", "compiler_options", "example", "init", "iteration", "make_iteration"]
__all__ += ["make_learner", "make_mesh", "make_replay", "make_state"]
__all__ += ["make_targets", "one_copy"]
