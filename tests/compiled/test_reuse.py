"""Reused subtrees: a search that continues equals one that never stopped."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small import noisy_evaluator

import azjax as az
from azjax.games.base import init_batch, play
from azjax.search import PUCT, Gumbel, make_search, reroot
