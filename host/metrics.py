"""How good predictions of clicks are."""

from __future__ import annotations

import numpy as np

__all__ = ["accuracy", "auc", "log_loss", "quality"]

#: Predictions are kept this far from 0 and 1, so that the log-loss is finite.
_CLIP = 1e-15


def accuracy(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Share of samples on the right side of 0.5."""
    return float(((predictions >= 0.5) == (labels > 0.5)).mean())


def log_loss(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Mean negative log-likelihood, in nats."""
    p = np.clip(predictions.astype(np.float64), _CLIP, 1 - _CLIP)
    return float(-np.where(labels > 0.5, np.log(p), np.log1p(-p)).mean())


def auc(labels: np.ndarray, predictions: np.ndarray) -> float | None:
    """Area under the ROC curve, ties counted half; None if all labels are equal.

    Source: it is the statistic of Mann and Whitney over the product of the class sizes.
    """
    clicked = labels > 0.5
    positive = int(clicked.sum())
    negative = len(labels) - positive
    if positive == 0 or negative == 0:
        return None
    _, group, sizes = np.unique(predictions, return_inverse=True, return_counts=True)
    # Equal predictions share the mean of their ranks, which begin at 1.
    ranks = (np.cumsum(sizes) - (sizes - 1) / 2)[group]
    rank_sum = float(ranks[clicked].sum())
    return (rank_sum - positive * (positive + 1) / 2) / (positive * negative)


def quality(labels: np.ndarray, predictions: np.ndarray) -> dict[str, float | None]:
    """Accuracy, AUC and log-loss of predicted probabilities [n] for labels of 0 and 1 [n]."""
    return {
        "accuracy": accuracy(labels, predictions),
        "auc": auc(labels, predictions),
        "log_loss": log_loss(labels, predictions),
    }
