"""What is measured of predictions: losses, rates of each class, calibration, ROC."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics

from nearfield.plotting.calibration import top_label_bins
from nearfield.report.results import Floats, Integers
from nearfield.reproduction.metrics import point_losses, sample_losses

_Z = 1.959963984540054  # 95%


class Rate(NamedTuple):
    """A share of a count, with its 95% interval."""

    n: int
    total: int
    lower: float
    upper: float

    @property
    def share(self) -> float:
        """The share; NaN of nothing."""
        return self.n / self.total if self.total else float("nan")


class ClassRates(NamedTuple):
    """How one class is predicted."""

    sensitivity: Rate
    specificity: Rate
    precision: Rate


class Bin(NamedTuple):
    """Samples with a top probability in one range."""

    mean_probability: float
    correct: Rate


def wilson(count: int, total: int) -> Rate:
    r"""Give a share with Wilson's score interval.

    .. math:: \frac{\hat p + z^2/2n \pm z\sqrt{\hat p(1-\hat p)/n + z^2/4n^2}}{1 + z^2/n}
    """
    if total == 0:
        return Rate(0, 0, 0.0, 1.0)
    share, spread = count / total, _Z**2 / total
    centre = (share + spread / 2.0) / (1.0 + spread)
    half = np.sqrt(share * (1.0 - share) * spread + spread**2 / 4.0) / (1.0 + spread)
    return Rate(count, total, max(0.0, float(centre - half)), min(1.0, float(centre + half)))


def summarize_losses(
    probabilities: Floats, labels: Integers, folds: Integers | None
) -> dict[str, float]:
    """Average the losses over the samples, with standard errors over the folds.

    Without folds the standard errors are those of a mean over the samples.
    """
    losses = point_losses(probabilities, labels)
    of_samples = sample_losses(probabilities, labels)
    for name in ("error", "log_loss"):
        parts = of_samples[name]
        if folds is not None:
            parts = np.array([parts[folds == fold].mean() for fold in np.unique(folds)])
        if len(parts) > 1:
            losses[f"{name}_se"] = float(np.std(parts, ddof=1) / np.sqrt(len(parts)))
    return losses


def confusion_matrix(predicted: Integers, labels: Integers, n_classes: int) -> Integers:
    """Count the samples of each class, in rows, that each class is predicted for, in columns."""
    confusion = np.zeros((n_classes, n_classes), dtype=np.int64)
    np.add.at(confusion, (labels, predicted), 1)
    return confusion


def class_rates(confusion: Integers) -> list[ClassRates]:
    """Give sensitivity, specificity and precision of each class against the others."""
    rates = []
    for g in range(len(confusion)):
        hits, actual = int(confusion[g, g]), int(confusion[g].sum())
        called, total = int(confusion[:, g].sum()), int(confusion.sum())
        rates.append(
            ClassRates(
                wilson(hits, actual),
                wilson(total - actual - called + hits, total - actual),
                wilson(hits, called),
            )
        )
    return rates


def reliability(probabilities: Floats, labels: Integers) -> list[Bin]:
    """Bin samples by the probability of their predicted class, in ten bins of equal width."""
    bins = top_label_bins(labels, probabilities)
    rates = map(wilson, bins.n_true.tolist(), bins.n_points.tolist())
    return [Bin(*pair) for pair in zip(bins.confidence.tolist(), rates, strict=True)]


def roc_curve(scores: Floats, is_positive: NDArray[np.bool_]) -> tuple[Floats, Floats, float]:
    """Give false and true positive rates from the highest score down, and the area below."""
    false_rate, true_rate, _ = metrics.roc_curve(is_positive, scores, drop_intermediate=False)
    return false_rate, true_rate, float(metrics.auc(false_rate, true_rate))
