"""Evaluates a quantized network with Python's rules for integers, position by position."""

import numpy as np

from azjax.networks.quantized import VALUES, symmetry_group


def evaluate(game, symmetric, variables, planes):
    """Returns the logits `[N, A]` and values `[N]`."""
    params = {k: {p: np.asarray(a) for p, a in v.items()} for k, v in variables["params"].items()}
    symmetries = game.symmetries
    cells = symmetries.cells if symmetric else np.arange(np.prod(planes[0].shape[:2]))[None]
    moves = symmetries.actions if symmetric else np.arange(game.num_actions)[None]
    group = symmetry_group(game, symmetric)

    def product(x, kernel):
        return (x.astype(float) @ kernel.astype(float)).astype(int)  # Exact below 2 ** 53.

    def hidden(name, x, orders):
        """The copies of a layer: copy 0, for the inputs as every symmetry turns them."""
        layer = params[name]
        outputs = []
        for order in orders:
            parts = x.reshape(len(x), len(order), -1)[:, order].reshape(len(x), -1)
            total = product(parts, layer["kernel"]) + layer["bias"]
            outputs.append(np.clip(total >> layer["shift"].astype(int), 0, 127))
        return np.concatenate(outputs, axis=1)

    x = hidden("Dense_0", planes.reshape(len(planes), -1).astype(int), group.cells)
    for name in sorted(name for name in params if name.startswith("Dense_"))[1:]:
        x = hidden(name, x, group.copies)
    policy, value = (hidden(name, x, group.copies) for name in ("policy_hidden", "value_hidden"))
    copies = len(group.copies)
    kernel = params["policy"]["kernel"]
    total = params["policy"]["bias"].astype(int) + sum(
        product(part, kernel[:, order])
        for part, order in zip(np.split(policy, copies, axis=1), group.actions, strict=True)
    )
    total >>= int(params["policy"]["shift"])
    ranks = 1 << (game.num_actions - 1).bit_length()
    logits = np.zeros(total.shape, np.float32)
    for row, board in enumerate(planes.reshape(len(planes), cells.shape[1], -1).astype(int)):
        turned = [tuple(board[order].ravel()) for order in cells]
        best = [moved for copy, moved in zip(turned, moves, strict=True) if copy == min(turned)]
        rank = np.min([np.argsort(moved) for moved in best], axis=0)
        logits[row] = (total[row] * ranks - rank) * params["policy"]["scale"]
    found = value @ np.tile(params["value"]["kernel"].astype(int), (copies, 1))
    index = (found[:, 0] + int(params["value"]["bias"][0])) >> int(params["value"]["shift"])
    index = np.clip(index, -VALUES, VALUES)
    return logits, params["value"]["table"][index + VALUES]
