"""Linear layers whose weight gradients are formed once a step, over all samples in their order.

The gradient of a weight is a sum over samples. If each micro-batch summed its own samples, the sum
would be rounded in an order that depends on what happens to be hot. Here the backward pass of a
micro-batch goes on to the layer's input, which is what the others wait for, and the sum waits for
the end of the step. So the result does not depend on the split at all, and has the bits of plain
training. Pipeline-parallel training separates the two for another reason (Qi et al., "Zero Bubble
Pipeline Parallelism", ICLR 2024).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

__all__ = ["ROWS", "DeferredLinear", "discard_parts", "pad_rows", "sum_weight_gradients"]

# Read by MKL at its first product: its kernels then add in the same order for every number of rows.
os.environ.setdefault("MKL_CBWR", "AUTO,STRICT")

#: The model computes on a multiple of this number of samples. With others, element-wise loops
#: do what is left over of two vectors of 16 numbers one by one, with another exponential function,
#: and some matrix libraries choose kernels that add in another order: a sample's result would
#: depend on how many others there are.
ROWS = 32


def pad_rows(x: torch.Tensor) -> torch.Tensor:
    """`x` [n, ...] with zeros behind it, up to a multiple of :data:`ROWS`."""
    extra = -len(x) % ROWS
    return functional.pad(x, (*(0,) * (2 * x.dim() - 1), extra)) if extra else x


class _InputGradient(torch.autograd.Function):
    """A linear layer that keeps what the gradients of its weights need."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        parts: list[tuple[torch.Tensor, torch.Tensor]],
    ) -> torch.Tensor:
        ctx.save_for_backward(x, weight)
        ctx.parts = parts
        return functional.linear(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, None, None, None]:
        x, weight = ctx.saved_tensors
        ctx.parts.append((x.detach(), gradient))
        return (gradient @ weight if ctx.needs_input_grad[0] else None), None, None, None


class DeferredLinear(nn.Linear):
    """`nn.Linear`, but for when :meth:`sum_gradients` fills in the gradients of its parameters.

    Members
    -------
    parts : list of (torch.Tensor, torch.Tensor)
        Input [n, in] and gradient of the output [n, out] of each backward pass of this step.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.parts: list[tuple[torch.Tensor, torch.Tensor]] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _InputGradient.apply(x, self.weight, self.bias, self.parts)

    def sum_gradients(
        self,
        samples: Sequence[torch.Tensor],
        count: int,
        collect: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        """Set the gradients of weight and bias, and forget the parts.

        Parameters
        ----------
        samples : sequence of torch.Tensor
            The samples of each part, int64: their places among the `count` of the step.
        count : int
            Samples of the step.
        collect : callable, optional
            Makes one [N, ...] of what all ranks have, [n, ...] each, in the order of the samples.
        """
        inputs = self.weight.new_zeros((count, self.in_features))
        outputs = self.weight.new_zeros((count, self.out_features))
        for places, (x, gradient) in zip(samples, self.parts, strict=True):
            inputs[places] = x[: len(places)]
            outputs[places] = gradient[: len(places)]
        self.parts.clear()
        if collect is not None:
            inputs, outputs = collect(inputs), collect(outputs)
        inputs, outputs = pad_rows(inputs), pad_rows(outputs)
        self.weight.grad = (inputs.t() @ outputs).t()
        self.bias.grad = outputs.sum(0)


def discard_parts(model: nn.Module) -> None:
    """Forget what a step has left behind that did not come to its end."""
    for layer in model.modules():
        if isinstance(layer, DeferredLinear):
            layer.parts.clear()


def sum_weight_gradients(
    model: nn.Module,
    samples: Sequence[torch.Tensor],
    count: int,
    collect: Callable[[torch.Tensor], torch.Tensor] | None = None,
) -> None:
    """:meth:`DeferredLinear.sum_gradients` of all such layers of `model`."""
    for layer in model.modules():
        if isinstance(layer, DeferredLinear):
            layer.sum_gradients(samples, count, collect)
