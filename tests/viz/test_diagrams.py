"""The diagrams of a run agree with its settings, parameters and planes."""

import dataclasses
import json
from typing import NamedTuple
from xml.etree import ElementTree

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax
from azjax import games, runs
from azjax.networks import MLPConfig, ResNetConfig, from_module
from azjax.runs import presets
from azjax.runs.config import CustomNetworkConfig, make_parts
from azjax.viz import about
from azjax.viz.architecture import count_parameters, layers
from azjax.viz.diagrams import encoding_picture, loop_picture, network_picture, sample_state
from nim import NIM
from run_directories import make_run
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


@pytest.mark.parametrize(
    ("network", "game", "text"),
    [
        (MLPConfig(hidden=(7, 5), head_hidden=3), TIC_TAC_TOE, "dense, ReLU → 5"),
        (MLPConfig(hidden=(4,) * 20, head_hidden=3), TIC_TAC_TOE, "13 more"),
        (
            conv(width=6, blocks=0),
            CONNECT_FOUR,
            "dense → 7 logits",
        ),
        (
            conv(width=6, blocks=2),
            CONNECT_FOUR,
            "residual block 2",
        ),
        (
            conv(width=6, blocks=12),
            TIC_TAC_TOE,
            "12 residual blocks",
        ),
        (Custom(), TIC_TAC_TOE, "kernel [18, 5]"),
        (Custom(depth=20), TIC_TAC_TOE, "15 more zig15 to zig1"),
    ],
)
def test_the_layers_have_all_parameters(network, game, text):
    parts, config = parts_of(network, game)
    trunk, heads = layers(parts, config)
    params = jax.eval_shape(parts.network.init, jax.random.key(0))["params"]
    whole = sum(leaf.size for leaf in jax.tree.leaves(params))
    assert sum(layer.size or 0 for layer in trunk + heads) == whole
    assert count_parameters(parts.network) == whole
    drawn = words(network_picture(parts, config)).replace("\N{NO-BREAK SPACE}", " ")
    shape = " × ".join(map(str, game.observe(game.init(), parts.network.encoding).shape))
    assert f"planes {parts.network.encoding}: {shape}" in drawn
    assert text in drawn


def test_custom_layers_are_in_the_order_of_their_creation():
    trunk, _ = layers(*parts_of(Custom(depth=3)))
    assert [layer.title for layer in trunk] == ["planes", "zig3", "zig2", "zig1", "answer", "score"]


def test_parameters_of_other_libraries_are_named_by_their_paths():
    parts, config = parts_of(Custom())
    variables = {"params": Attributes({"kernel": jnp.zeros((3, 2))}, None, jnp.zeros(9))}
    network = parts.network._replace(init=lambda key: variables)
    trunk, _ = layers(parts._replace(network=network), config)
    assert [(layer.title, layer.size) for layer in trunk[1:]] == [("zig", 6), ("answer", 9)]
    assert "kernel [3, 2]" in trunk[1].lines
    assert count_parameters(network) == 15


class Attributes(NamedTuple):
    """Parameters that are not a dictionary; one attribute has no arrays."""

    zig: dict
    activation: None
    answer: jax.Array


@pytest.mark.parametrize(
    ("section", "changed", "text"),
    [
        (
            "selfplay",
            {"games": 24, "unroll_length": 3},
            "24 games in parallel, 3 moves each: 72 per",
        ),
        ("search", {"num_simulations": 77}, "Gumbel, 77 simulations"),
        ("replay", {"capacity": 4096}, "the newest 4,096 positions"),
        ("learner", {"steps": 1234}, "1,234 steps"),
        ("learner", {"batch_size": 1600}, "1,600 positions each"),
        ("learner", {"optimizer": "sgd"}, "sgd, rate up to 0.002"),
        ("learner", {"ema_decay": 0.75}, "decay 0.75 per step"),
        ("learner", {"ema_decay": 0.0}, "none: θ itself plays"),
    ],
)
def test_the_loop_has_the_runs_settings(section, changed, text):
    settings = dataclasses.replace(getattr(CONFIG, section), **changed)
    drawn = words(loop_picture(dataclasses.replace(CONFIG, **{section: settings})))
    assert text in drawn
    assert text not in words(loop_picture(CONFIG))


@pytest.mark.parametrize(
    ("game", "encoding", "captions"),
    [
        (TIC_TAC_TOE, "relative", ["stones of {mover}, who is to move", "stones of {other}"]),
        (CONNECT_FOUR, "absolute", ["stones of X", "stones of O", "1: X to move, 0: O to move"]),
        (NIM, "unary", ["plane 0"]),
        (NIM, "binary", ["plane 0", "plane 1", "plane 2"]),
    ],
)
@pytest.mark.parametrize("plies", [1, 2])
def test_the_planes_are_the_networks_input(game, encoding, captions, plies):
    state = sample_state(game, plies)
    planes = np.asarray(game.observe(state, encoding))
    picture = encoding_picture(game, encoding, state)
    mover, other = "XO" if plies % 2 == 0 else "OX"
    text = words(picture)
    for caption in captions:
        assert caption.format(mover=mover, other=other) in text
    shown = [digit for _, digit in texts(picture) if digit in ("0", "1")]
    expected = [str(int(x)) for x in np.moveaxis(planes, -1, 0).ravel()]
    assert shown == expected


@pytest.mark.parametrize("network", [CONFIG.network, ResNetConfig(), Custom(depth=9)])
def test_text_stays_inside_the_picture(network):
    parts, settings = parts_of(network)
    pictures = [
        network_picture(parts, settings),
        loop_picture(presets.get("paper")),
        encoding_picture(TIC_TAC_TOE, "absolute", sample_state(TIC_TAC_TOE)),
    ]
    for picture in pictures:
        width = float(picture.element.get("width"))
        assert width <= 350  # A phone shows it unscaled.
        for element, text in texts(picture):
            if element.get("text-anchor") is None:
                assert float(element.get("x")) + 6 * len(text) <= width, text


# The description of the run.


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("about") / "run", CONFIG, iterations=(2,))


def sentence(run_dir):
    return about.about(run_dir, azjax.load(run_dir)).element.findtext("p")


def test_a_page_describes_its_run(run_dir):
    lines = [{"iteration": i, "seconds": 1.0, "games": 500} for i in (1, 2, 3)]
    path = run_dir / "metrics.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    text = sentence(run_dir)
    path.unlink()
    config, player = runs.read_config(run_dir), azjax.load(run_dir)
    count = count_parameters(player.parts.network)
    for part in (
        "learned tic-tac-toe",
        "2 iterations with 1,000 games and 128 moves in total",  # Not those after the checkpoint.
        f"by Gumbel search with {config.search.num_simulations} simulations",
        f"a residual network of 1 block and 16 units ({count:,} parameters), whose input has",
        "Nothing was proved about this player.",
    ):
        assert part in text, part


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({}, "Unbeatable: no losing line as first or second player."),
        ({"perfect": True}, "Perfect: every move keeps the outcome, in every reachable position."),
        ({"unbeatable": False}, "Not proved: this player can be beaten."),
        ({"iterations": 1}, "Nothing was proved about this iteration."),
        ({"seed": 1}, "Nothing was proved about this iteration."),
        ({"game": "connect_four"}, "Nothing was proved about this iteration."),
    ],
)
def test_a_page_gives_the_verdict_of_the_certificate(run_dir, changed, text):
    numbers = ["decision_states", "blunders", "losing_lines_first", "losing_lines_second"]
    content = dict.fromkeys([*numbers, "value_sign_errors", "moves", "seconds"], 0)
    content |= {"game": "tic_tac_toe", "iterations": 2, "seed": 0, "device": "cpu"}
    content |= {"searches": [], "versions": {}, "perfect": False, "unbeatable": True}
    path = run_dir / "certificate.json"
    path.write_text(json.dumps(content | changed))
    assert sentence(run_dir).endswith(f"encoding. {text} The run directory is run.")
    path.unlink()


def test_a_damaged_certificate_raises(run_dir):
    path = run_dir / "certificate.json"
    path.write_text('{"game": "tic_tac_toe"}')
    with pytest.raises(
        ValueError, match="certificate.json is damaged: delete it, or make it again"
    ):
        sentence(run_dir)
    path.unlink()


def test_the_three_diagrams_have_titles_and_labels(run_dir):
    element = about.pictures(run_dir, azjax.load(run_dir)).element
    titles = [e.text for e in element.iter("figcaption")]
    assert titles == ["The loop", "The network", "The encoding"]
    labels = [figure[1].get("aria-label") for figure in element]
    assert "Self-play: 16 games" in labels[0] and "policy head" in labels[1]
    assert "relative planes: stones of" in labels[2]
