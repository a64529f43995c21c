"""A value head with the probabilities of a win, a draw and a loss, in place of one number.

Their expectation is the value. The loss is their cross-entropy; a target between two outcomes is
split between them (two-hot). The program compares it with the squared error, by exact errors:

    python examples/win_draw_loss.py wdl.json othello:4 8 10    # 8 seeds, 10 iterations
"""

import sys

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

import azjax
from azjax.networks import from_module
from azjax.training import Parts, alphazero_loss, make_learner, make_optimizer, policy_loss

OUTCOMES = jnp.array([1.0, 0.0, -1.0])


class MLP(nn.Module):
    """An MLP whose value is the expectation over three outcomes, or a single output."""

    num_actions: int
    num_outcomes: int = 3

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B], outcome logits [B, num_outcomes])`."""
        x = nn.relu(nn.Dense(256)(planes.reshape(len(planes), -1) * 1.0))
        x = nn.relu(nn.Dense(256)(x))
        logits, outcome = nn.Dense(self.num_actions)(x), nn.Dense(self.num_outcomes)(x)
        expected = jax.nn.softmax(outcome) @ OUTCOMES[: self.num_outcomes]
        return logits, expected if self.num_outcomes > 1 else jnp.tanh(outcome[:, 0]), outcome


def loss(outputs, params, samples, axis_name):
    """Returns the cross-entropies of the outcome and of the policy."""
    logits, _, outcome = outputs
    shares = jnp.maximum(1 - jnp.abs(samples.value[:, None] - OUTCOMES), 0.0)  # [B, 3]
    value = jnp.mean(optax.softmax_cross_entropy(outcome, shares))
    policy = jnp.mean(policy_loss(logits, samples.policy, samples.legal))
    return policy + value, {"policy_loss": policy, "value_loss": value}


def make_parts(game: str = "tic_tac_toe", num_outcomes: int = 3, loss=loss) -> Parts:
    """Returns the parts of the game's preset, with another network and loss."""
    config = azjax.presets.choose(game)[0]
    parts, learner = azjax.make_parts(config), config.learner
    network = from_module(parts.game, MLP(parts.game.num_actions, num_outcomes))
    settings = make_optimizer(learner), loss, learner.steps, learner.ema_decay
    return parts._replace(network=network, learner=make_learner(network, *settings))


def main(path="win_draw_loss.json", game="tic_tac_toe", seeds="8", iterations="10") -> None:
    """Compares the two losses."""
    settings = {
        "squared error": make_parts(game, 1, alphazero_loss),
        "cross-entropy": make_parts(game),
    }
    count = {"seeds": int(seeds), "iterations": int(iterations)}
    result = azjax.compare(settings, path, **count, tell=print)
    print(result.effects(), result.effects(search=True), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
