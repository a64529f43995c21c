"""A custom head and loss: the network also predicts the opponent's reply.

This auxiliary target speeds up learning in KataGo (Wu 2019, "Accelerating self-play learning in
Go"). The targets store the policy of the reply in `Sample.extra`, the network returns a third
output, and the loss adds its cross-entropy.
"""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

import azjax
from azjax.games import Game
from azjax.networks import from_module
from azjax.search import Gumbel
from azjax.training import (
    Parts,
    ReplayConfig,
    Sample,
    SelfPlayConfig,
    TargetConfig,
    Targets,
    Transition,
    alphazero_loss,
    make_learner,
    make_replay,
    make_targets,
    transform,
)


class ThreeHeads(nn.Module):
    """A network with heads for the policy, the value and the policy of the reply."""

    num_actions: int

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B], reply logits [B, A])`."""
        x = nn.relu(nn.Dense(128)(planes.reshape(len(planes), -1) * 1.0))
        x = nn.relu(nn.Dense(128)(x))
        policy, reply = nn.Dense(self.num_actions)(x), nn.Dense(self.num_actions)(x)
        return policy, jnp.tanh(nn.Dense(1)(x)[:, 0]), reply


def make(game: Game) -> Targets:
    """Returns AlphaZero's targets, with the next ply's policy, or zeros, as `extra`."""
    usual, symmetries = make_targets(TargetConfig(), game), game.symmetries
    assert symmetries is not None

    def samples(transitions: Transition) -> Sample:
        later = jnp.roll(transitions.action_weights, -1, axis=0).at[-1].set(0.0)
        reply = jnp.where(transitions.discount[..., None] == 0, 0.0, later)
        return usual.make(transitions)._replace(extra=reply)

    def augment(key, samples: Sample) -> Sample:
        chosen = jax.random.randint(key, samples.value.shape, 0, game.num_symmetries)
        turned = jax.vmap(lambda s, g: transform(game, s, g))(samples, chosen)
        actions = jnp.asarray(symmetries.actions)[chosen]
        return turned._replace(extra=jnp.take_along_axis(samples.extra, actions, axis=1))

    return usual._replace(make=samples, augment=augment)


def loss(outputs, params, samples: Sample, axis_name):
    """Returns AlphaZero's loss plus 0.15 times the cross-entropy of the reply."""
    total, terms = alphazero_loss(outputs, params, samples, axis_name)
    log_p = jax.nn.log_softmax(outputs[2])
    reply = -jnp.mean(jnp.sum(samples.extra * log_p, axis=-1))
    return total + 0.15 * reply, terms | {"reply_loss": reply}


def make_parts() -> Parts:
    """Returns the parts; also usable as `azjax train --parts FILE.py:make_parts`."""
    game = azjax.make("tic_tac_toe")
    network = from_module(game, ThreeHeads(game.num_actions))
    return Parts(game, network, Gumbel(num_simulations=8), SelfPlayConfig(games=128), make(game),
                 make_replay(ReplayConfig(capacity=8192), batch_size=256),
                 make_learner(network, optax.adam(2e-3), loss, steps=32))  # fmt: skip


if __name__ == "__main__":
    run = azjax.train(make_parts(), max_iterations=5, report=False, display=False)
    for record in run.metrics:
        print(f"iteration {record['iteration']}: reply loss {record['reply_loss']:.3f}")
