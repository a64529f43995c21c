"""An MLP in Flax."""

import flax.linen as nn

from azjax.networks.config import MLPConfig
from azjax.networks.resnet import TwoHeads, relu


class MLP(TwoHeads):
    """Shared layers with ReLU, then one hidden layer in each head."""

    config: MLPConfig = MLPConfig()

    @nn.compact
    def __call__(self, planes, train: bool = False):
        """Returns `(logits [B, A], value [B])` for `planes [B, H, W, C]`."""
        del train
        x = planes.reshape(planes.shape[0], -1)
        for i, width in enumerate(self.config.hidden):
            x = relu(self.dense(f"Dense_{i}", x, width))
        policy = relu(self.dense("policy_hidden", x, self.config.head_hidden))
        value = relu(self.dense("value_hidden", x, self.config.head_hidden))
        return self.outputs(policy, value)
