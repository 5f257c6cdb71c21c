"""DLRM without its embedding tables: the part of the model that stays on the GPU.

Source: Naumov et al., "Deep Learning Recommendation Model for Personalization and Recommendation
Systems", arXiv 1906.00091: a bottom MLP over the numerical features, dot products of all pairs of
feature vectors, a top MLP over them. Initial values as in the code of that paper.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from hotline.host.deferred_linear import pad_rows

__all__ = [
    "Dlrm",
    "DlrmShape",
    "dense_inputs",
    "initial_table",
    "parse_layers",
    "sample_losses",
]


@dataclass(frozen=True)
class DlrmShape:
    """Sizes of a model.

    Parameters
    ----------
    dense : int
        Numerical features; with 0 there is no bottom MLP, and the pairs are those of the bags.
    tables : int
        Embedding tables.
    dim : int
        Numbers in an embedding vector.
    bottom, top : tuple of int
        Widths of the hidden layers. The bottom MLP ends in `dim` numbers, the top one in 1.
    """

    dense: int
    tables: int
    dim: int
    bottom: tuple[int, ...] = (512, 256, 64)
    top: tuple[int, ...] = (512, 256)

    @property
    def interactions(self) -> int:
        """Inputs of the top MLP."""
        vectors = self.tables + (self.dense > 0)
        return vectors * (vectors - 1) // 2 + self.dim * (self.dense > 0)


class Dlrm(nn.Module):
    """MLPs and interaction.

    Parameters
    ----------
    shape : DlrmShape
        Sizes.
    rng : np.random.Generator
        Of the initial values, so that they do not depend on the version of PyTorch.
    dtype : torch.dtype
        Of all parameters.
    linear : type
        Of the layers: `nn.Linear` or one like it.

    Members
    -------
    bottom, top : nn.Sequential
        The MLPs; `bottom` is empty without numerical features.
    """

    def __init__(
        self,
        shape: DlrmShape,
        rng: np.random.Generator,
        dtype: torch.dtype,
        linear: type[nn.Linear] = nn.Linear,
    ) -> None:
        super().__init__()
        self.shape = shape
        bottom = (shape.dense, *shape.bottom, shape.dim) if shape.dense else ()
        self.bottom = _mlp(linear, bottom, rng, dtype, relu_last=True)
        top = (max(1, shape.interactions), *shape.top, 1)
        self.top = _mlp(linear, top, rng, dtype, relu_last=False)
        vectors = shape.tables + (shape.dense > 0)
        first, second = np.tril_indices(vectors, -1)
        self._pairs = torch.from_numpy(first), torch.from_numpy(second)

    def forward(self, dense: torch.Tensor, bags: torch.Tensor) -> torch.Tensor:
        """Logits [n] of numerical features [n, D] and pooled embedding vectors [n, T, dim]."""
        count = len(bags)
        dense, bags = pad_rows(dense), pad_rows(bags)
        if self.shape.dense:
            x = self.bottom(dense)
            bags = torch.cat([x.unsqueeze(1), bags], dim=1)
        products = torch.bmm(bags, bags.transpose(1, 2))[:, self._pairs[0], self._pairs[1]]
        if self.shape.dense:
            products = torch.cat([x, products], dim=1)
        if products.shape[1] == 0:
            # A single table without numerical features has no pair: the mean of its vector.
            products = bags.mean(dim=(1, 2)).unsqueeze(1)
        return self.top(products).squeeze(1)[:count]


def _mlp(
    linear: type[nn.Linear],
    sizes: tuple[int, ...],
    rng: np.random.Generator,
    dtype: torch.dtype,
    *,
    relu_last: bool,
) -> nn.Sequential:
    layers: list[nn.Module] = []
    for position, (inputs, outputs) in enumerate(pairwise(sizes)):
        layer = linear(inputs, outputs, dtype=dtype)
        weight = rng.normal(0.0, np.sqrt(2.0 / (inputs + outputs)), (outputs, inputs))
        bias = rng.normal(0.0, np.sqrt(1.0 / outputs), outputs)
        with torch.no_grad():
            layer.weight.copy_(torch.from_numpy(weight))
            layer.bias.copy_(torch.from_numpy(bias))
        layers.append(layer)
        if relu_last or position < len(sizes) - 2:
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


def sample_losses(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Binary cross-entropy of each sample, [n], for logits [n] and targets of 0 and 1 [n].

    Padded, as the model pads: vector units round the last few numbers of an array differently.
    """
    losses = functional.binary_cross_entropy_with_logits(
        pad_rows(logits), pad_rows(targets), reduction="none"
    )
    return losses[: len(logits)]


def initial_table(seed: int, table: int, rows: int, dim: int) -> np.ndarray:
    """Initial embedding vectors of a table: float32 [rows, dim], uniform on +-sqrt(1 / rows).

    Every table has its own stream of numbers, so that its values do not depend on the others.
    """
    rng = np.random.default_rng((seed, table))
    bound = np.float32(np.sqrt(1.0 / rows))
    return (2 * rng.random((rows, dim), np.float32) - 1) * bound


def dense_inputs(features: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Numerical features [n, D] as the model takes them: log(1 + x), 0 where x < 0 or missing.

    Source: the preprocessing of the DLRM code.
    """
    values = np.nan_to_num(features.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    return np.log1p(np.maximum(values, 0.0)).astype(dtype)


def parse_layers(name: str, text: str) -> tuple[int, ...]:
    """Widths of hidden layers from a text such as ``512-256-64``; empty: no hidden layer.

    Raises
    ------
    ValueError
        It is something else. The sentence names the option `name`.
    """
    if text == "":
        return ()
    widths = [int(part) for part in text.split("-") if re.fullmatch(r"[0-9]{1,6}", part)]
    if len(widths) != text.count("-") + 1 or min(widths) < 1:
        raise ValueError(
            f"{name} must be positive numbers with - between them, such as 512-256, not {text!r}"
        )
    return tuple(widths)
