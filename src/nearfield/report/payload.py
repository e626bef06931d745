"""The data that the script of the page works on, embedded once as JSON."""

import json
from typing import Any, NamedTuple

import numpy as np

from nearfield.report.results import Floats, Integers, Report

_N_SPREAD = 1_500  # samples on the map, evenly over the table
_N_DOUBTFUL = 500  # the least certain ones, which are there whatever happens
_MAX_SPECTRA = 250_000  # values


class Shown(NamedTuple):
    """What the page shows of many samples.

    Attributes
    ----------
    samples : ndarray of int
        Predicted samples, rows of the report.
    points : ndarray of int
        Points of the map: these samples, then training points.
    """

    samples: Integers
    points: Integers


def choose_shown(report: Report) -> Shown:
    """Choose the samples and training points to show: all, or of many a part."""
    n_samples, offset = len(report.ids), _n_training(report)
    order = least_certain_first(report)
    doubtful = order[:_N_DOUBTFUL]
    samples = np.unique(np.concatenate([_evenly(n_samples, _N_SPREAD), doubtful]))
    points = samples + offset
    further = [_evenly(offset, _N_SPREAD)]
    if report.neighbors is not None:
        behind = report.neighbors.rows[doubtful]
        further.append(behind[behind >= 0])
    training = np.setdiff1d(np.concatenate(further), points)
    return Shown(samples, np.concatenate([points, training]).astype(np.int64))


def least_certain_first(report: Report) -> Integers:
    """Order the samples by the probability of their predicted class."""
    return np.argsort(report.probabilities.max(axis=1), kind="stable")


def make_payload(report: Report, shown: Shown) -> dict[str, Any]:
    """Gather what the script needs, points in the order of `shown`."""
    samples, points = shown.samples, shown.points
    place = {int(point): i for i, point in enumerate(points)}
    ids, labels = _names_and_labels(report)
    payload: dict[str, Any] = {
        "classes": list(report.classes),
        "ids": [ids[point] for point in points],
        "labels": [int(labels[point]) for point in points],
        "nSamples": len(samples),
        "probabilities": _rounded(report.probabilities[samples]),
    }
    if report.p_values is not None:
        payload["pValues"] = _rounded(report.p_values[samples])
    if report.neighbors is not None:
        payload["neighbors"] = [
            [
                [place[int(row)], float(f"{value:.3g}")]
                for row, value in zip(rows, values, strict=True)
                if int(row) in place
            ]
            for rows, values in zip(
                report.neighbors.rows[samples], report.neighbors.influence[samples], strict=True
            )
        ]
    spectra = report.spectra
    if spectra is not None and len(samples) * len(spectra.axis) <= _MAX_SPECTRA:
        payload["axis"] = [float(f"{x:.6g}") for x in spectra.axis]
        payload["spectra"] = [[float(f"{v:.4g}") for v in row] for row in spectra.values[samples]]
    return payload


def to_script_json(payload: dict[str, Any]) -> str:
    """Write JSON that can stand inside a script element, whatever the names contain."""
    text = json.dumps(payload, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _names_and_labels(report: Report) -> tuple[tuple[str, ...], Integers]:
    if report.sample_map is not None:
        return report.sample_map.ids, report.sample_map.labels
    unknown = np.full(len(report.ids), -1)
    return report.ids, unknown if report.labels is None else report.labels


def _n_training(report: Report) -> int:
    return 0 if report.sample_map is None else report.sample_map.n_training


def _evenly(n: int, n_most: int) -> Integers:
    if n <= n_most:
        return np.arange(n)
    return np.linspace(0, n - 1, n_most).astype(np.int64)


def _rounded(values: Floats) -> list[list[float]]:
    return [[float(f"{value:.4f}") for value in row] for row in values]
