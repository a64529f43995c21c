"""Networks in plain NumPy, with 64 bits: every layer by its formula."""

import numpy as np


def outputs(config, variables, planes):
    """Returns `(logits [B, A], value [B])`."""
    layers, old = variables["params"], variables.get("batch_stats", {})
    is_mlp, norm = config.kind == "mlp", getattr(config, "norm", "none")
    is_conv = getattr(config, "layers", "dense") == "conv"

    def linear(name, x):
        kernel = np.float64(layers[name]["kernel"])
        y = convolve(x, kernel) if kernel.ndim == 4 else x @ kernel
        y = y + layers[name].get("bias", 0)
        if f"{name}_norm" not in old:
            return y
        scale, used = layers[f"{name}_norm"], old[f"{name}_norm"]
        return (y - used["mean"]) / np.sqrt(used["var"] + 1e-5) * scale["scale"] + scale["bias"]

    def standardize(x):
        if norm != "layer":
            return x
        return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)

    def head(name):
        hidden = relu(linear(name, x))
        return hidden.reshape(len(hidden), -1)

    x = np.float64(planes)
    x = x if is_conv else x.reshape(len(x), -1)
    if is_mlp:
        for i in range(len(config.hidden)):
            x = relu(linear(f"Dense_{i}", x))
    else:
        x = relu(linear("stem", x))
        for i in range(config.blocks):
            inner = relu(linear(f"block{i}_a", standardize(x)))
            x = relu(x + linear(f"block{i}_b", inner))
        x = standardize(x)
    policy = head("policy_conv" if is_conv else "policy_hidden")
    value = relu(linear("value_hidden", head("value_conv"))) if is_conv else head("value_hidden")
    return linear("policy", policy), np.tanh(linear("value", value)[:, 0])


def convolve(x, kernel):
    """A convolution `[B, H, W, I]` with `[k, k, I, O]` and zero padding."""
    size, margin = len(kernel), len(kernel) // 2
    padded = np.pad(x, ((0, 0), (margin, margin), (margin, margin), (0, 0)))
    patches = np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(1, 2))
    return np.einsum("bhwirc,rcio->bhwo", patches, kernel)


def relu(x):
    return np.maximum(x, 0)
