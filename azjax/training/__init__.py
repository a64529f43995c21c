"""Self-play, learning, and one training iteration as a pure function."""

from azjax.training.learner import (
    Learner,
    LearnerConfig,
    LearnerState,
    alphazero_loss,
    make_learner,
    make_optimizer,
    policy_loss,
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
from azjax.training.selfplay import Games, self_play, start_games
from azjax.training.step import Metrics, TrainState, example, init, iteration, local_keys
from azjax.training.targets import (
    Sample,
    TargetConfig,
    Targets,
    Transition,
    make_targets,
    transform,
)

__all__ = ["AXIS", "Games", "Learner", "LearnerConfig", "LearnerState", "Metrics", "Parts"]
__all__ += ["ReplayConfig", "Sample", "SelfPlayConfig", "TargetConfig", "Targets", "TrainState"]
__all__ += ["Transition", "abstract_state", "alphazero_loss", "check_parts", "compiled"]
__all__ += ["compiler_options", "example", "init", "iteration", "local_keys", "make_iteration"]
__all__ += ["make_learner", "make_mesh", "make_optimizer", "make_replay", "make_state"]
__all__ += ["make_targets", "one_copy", "policy_loss", "self_play", "start_games", "state_specs"]
__all__ += ["transform"]
