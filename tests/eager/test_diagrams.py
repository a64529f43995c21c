"""The diagrams and the description of a run agree with its settings, parameters and planes."""

import dataclasses
import json
from typing import NamedTuple
from xml.etree import ElementTree

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from azjax import games, runs
from azjax.networks import MLPConfig, ResNetConfig, from_module
from azjax.runs import presets
from azjax.runs.config import CustomNetworkConfig, make_parts
from azjax.runs.player import Player
from azjax.viz import summary
from azjax.viz.architecture import count_parameters, layers
from azjax.viz.diagrams import encoding_picture, loop_picture, network_picture, sample_state
from nim import NIM
from refusals import assert_refused
from small import conv

CONFIG = presets.smoke(presets.get("default"))
TIC_TAC_TOE, CONNECT_FOUR = games.make("tic_tac_toe"), games.make("connect_four")


def texts(picture):
    """Returns the text elements of a picture and their text."""
    root = ElementTree.fromstring(str(picture))
    return [(e, e.text or "") for e in root.iter("{http://www.w3.org/2000/svg}text")]


def words(picture):
    return " ".join(text for _, text in texts(picture))


class Custom(nn.Module):
    """A custom network with `depth` hidden layers."""

    depth: int = 1

    @nn.compact
    def __call__(self, planes, train=False):
        x = planes.reshape(len(planes), -1)
        for i in range(self.depth):
            x = nn.relu(nn.Dense(5, name=f"zig{self.depth - i}")(x))
        return nn.Dense(9, name="answer")(x), nn.tanh(nn.Dense(1, name="score")(x)[:, 0])


def parts_of(network, game=TIC_TAC_TOE):
    """Returns parts with a network, and the settings of the network."""
    if isinstance(network, nn.Module):
        config = dataclasses.replace(CONFIG, network=CustomNetworkConfig())
        return make_parts(config, game, from_module(game, network)), config.network
    return make_parts(dataclasses.replace(CONFIG, network=network), game), network


def test_the_layers_have_all_parameters_and_their_text_fits():
    for network, game, *text in [
        (MLPConfig(hidden=(4,) * 14, head_hidden=3), TIC_TAC_TOE, "7 more", "dense, ReLU → 4"),
        (conv(width=6, blocks=2), CONNECT_FOUR, "residual block 2", "dense → 7 logits"),
        (conv(width=6, blocks=4), TIC_TAC_TOE, "4 residual blocks"),
        (ResNetConfig(symmetric=True), TIC_TAC_TOE, "weights shared among 8 symmetries"),
        (Custom(depth=12), TIC_TAC_TOE, "7 more zig7 to zig1", "kernel [18, 5]"),
    ]:
        parts, config = parts_of(network, game)
        trunk, heads = layers(parts, config)
        params = jax.eval_shape(parts.network.init, jax.random.key(0))["params"]
        whole = sum(leaf.size for leaf in jax.tree.leaves(params))
        assert sum(layer.size or 0 for layer in trunk + heads) == whole
        assert count_parameters(parts.network) == whole
        picture = network_picture(parts, config)
        drawn = words(picture).replace("\N{NO-BREAK SPACE}", " ")
        shape = " × ".join(map(str, game.observe(game.init(), parts.network.encoding).shape))
        for part in (f"planes {parts.network.encoding}: {shape}", *text):
            assert part in drawn, part
        assert_text_fits(picture)
    trunk, _ = layers(*parts_of(Custom(depth=3)))  # In the order of their creation.
    assert [layer.title for layer in trunk] == ["planes", "zig3", "zig2", "zig1", "answer", "score"]


def assert_text_fits(picture):
    width = float(picture.element.get("width"))
    assert width <= 350  # A phone shows it unscaled.
    for element, text in texts(picture):
        if element.get("text-anchor") is None:
            assert float(element.get("x")) + 6 * len(text) <= width, text


class Attributes(NamedTuple):
    """Parameters that are not a dictionary; one attribute has no arrays."""

    zig: dict
    activation: None
    answer: jax.Array


def test_parameters_of_other_libraries_are_named_by_their_paths():
    parts, config = parts_of(Custom())
    variables = {"params": Attributes({"kernel": jnp.zeros((3, 2))}, None, jnp.zeros(9))}
    network = parts.network._replace(init=lambda key: variables)
    trunk, _ = layers(parts._replace(network=network), config)
    assert [(layer.title, layer.size) for layer in trunk[1:]] == [("zig", 6), ("answer", 9)]
    assert "kernel [3, 2]" in trunk[1].lines
    assert count_parameters(network) == 15


def test_the_loop_has_the_runs_settings():
    before = words(loop_picture(CONFIG))
    for section, changed, text in [
        ("selfplay", {"games": 24, "unroll_length": 3}, "24 games in parallel, 3 moves each: 72"),
        ("search", {"num_simulations": 77}, "Gumbel, 77 simulations"),
        ("replay", {"capacity": 4096}, "the newest 4,096 positions"),
        ("learner", {"steps": 1234}, "1,234 steps"),
        ("learner", {"batch_size": 1600}, "1,600 positions each"),
        ("learner", {"optimizer": "sgd"}, "sgd, rate up to 0.002"),
        ("learner", {"ema_decay": 0.75}, "decay 0.75 per step"),
        ("learner", {"ema_decay": 0.0}, "none: θ itself plays"),
    ]:
        settings = dataclasses.replace(getattr(CONFIG, section), **changed)
        picture = loop_picture(dataclasses.replace(CONFIG, **{section: settings}))
        assert text in words(picture) and text not in before
    assert_text_fits(loop_picture(presets.get("paper")))


def test_the_planes_are_the_networks_input():
    for game, encoding, captions in [
        (TIC_TAC_TOE, "relative", ["stones of {mover}, who is to move", "stones of {other}"]),
        (CONNECT_FOUR, "absolute", ["stones of X", "stones of O", "1: X to move, 0: O to move"]),
        (NIM, "unary", ["plane 0"]),
        (NIM, "binary", ["plane 0", "plane 1", "plane 2"]),
    ]:
        for plies in (1, 2)[: 1 + (game is not CONNECT_FOUR)]:
            state = sample_state(game, plies)
            picture = encoding_picture(game, encoding, state)
            mover, other = "XO" if plies % 2 == 0 else "OX"
            for caption in captions:
                assert caption.format(mover=mover, other=other) in words(picture)
            shown = [digit for _, digit in texts(picture) if digit in ("0", "1")]
            planes = np.moveaxis(np.asarray(game.observe(state, encoding)), -1, 0)
            assert shown == [str(int(x)) for x in planes.ravel()]
            assert_text_fits(picture)


# The description of a run.


@pytest.fixture
def run(tmp_path):
    """The directory of a run and its player, without a checkpoint."""
    runs.create_run(tmp_path / "run", CONFIG)
    return tmp_path / "run", Player(make_parts(CONFIG), None, iteration=2)


def sentence(run):
    return summary.summarize_run(*run).element.findtext("p")


def test_a_page_describes_its_run(run):
    lines = [{"iteration": i, "seconds": 1.0, "games": 500} for i in (1, 2, 3)]
    (run[0] / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    count = count_parameters(run[1].parts.network)
    text = sentence(run)
    for part in (
        "learned tic-tac-toe",
        "2 iterations with 1,000 games and 128 moves in total",  # Not those after the checkpoint.
        f"by Gumbel search with {CONFIG.search.num_simulations} simulations",
        f"a residual network of 1 block and 16 units ({count:,} parameters), whose input has",
        "Nothing was proved about this player.",
    ):
        assert part in text, part


def test_a_page_gives_the_verdict_of_the_certificate(run):
    numbers = ["decision_states", "blunders", "losing_lines_first", "losing_lines_second"]
    content = dict.fromkeys([*numbers, "value_sign_errors", "moves", "seconds"], 0)
    content |= {"game": "tic_tac_toe", "iterations": 2, "seed": 0, "device": "cpu"}
    content |= {"searches": [], "versions": {}, "perfect": False, "unbeatable": True}
    path, unproved = run[0] / "certificate.json", "Nothing was proved about this iteration."
    for changed, text in [
        ({}, "Unbeatable: no losing line as first or second player."),
        ({"perfect": True}, "Perfect: every move keeps the outcome, in every reachable position."),
        ({"unbeatable": False}, "Not proved: this player can be beaten."),
        ({"iterations": 1}, unproved),
        ({"seed": 1}, unproved),
        ({"game": "connect_four"}, unproved),
    ]:
        path.write_text(json.dumps(content | changed))
        assert sentence(run).endswith(f"encoding. {text} The run directory is run.")
    path.write_text('{"game": "tic_tac_toe"}')
    damaged = "certificate.json is damaged: delete it, or make it again"
    assert_refused((lambda: sentence(run), damaged))


def test_the_three_diagrams_have_titles_and_labels(run):
    element = summary.draw_parts(*run).element
    titles = [e.text for e in element.iter("figcaption")]
    assert titles == ["The loop", "The network", "The encoding"]
    labels = [figure[1].get("aria-label") for figure in element]
    assert "Self-play: 16 games" in labels[0] and "policy head" in labels[1]
    assert "relative planes: stones of" in labels[2]
