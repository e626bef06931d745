"""The paragraph on methods, to be pasted into a paper."""

import platform
from importlib.metadata import version

from nearfield.report.results import Report

_PACKAGES = ("nearfield", "numpy", "scipy", "scikit-learn", "numba")
_PEERS = {
    "k-nn": "k-nearest neighbours (k by leave-one-out)",
    "logistic regression": "logistic regression (ridge penalty by cross-validated log loss)",
    "PLS-DA": "PLS-DA (linear discriminant on partial least squares scores, their number by "
    "cross-validated log loss)",
}
_MODELS = {
    "NearfieldClassifier": "a stacked mixture of distance nearest neighbour models (label fields "
    "over the training samples; Friel and Pettitt, 2011) with several kernels and metrics, "
    "averaged over the posterior of their parameters",
    "DistanceNeighborsClassifier": "a distance nearest neighbour model (Friel and Pettitt, 2011), "
    "averaged over the posterior of its parameters",
    "ProbabilisticKNeighborsClassifier": "the probabilistic k-nearest-neighbour model (Cucala et "
    "al., 2009), averaged over the posterior of its parameters",
    "KNeighborsClassifierCV": "k-nearest neighbours with k chosen by leave-one-out",
}


def methods_paragraph(report: Report) -> str:
    """Say what was done, with versions and the seed."""
    name = report.settings["model"]
    sentences = [
        f"{len(report.ids):,} samples with {report.data.n_features:,} features were classified "
        f"into {len(report.classes)} classes by {_MODELS.get(name, name)}."
    ]
    settings = [f"{key}={value}" for key, value in report.settings.items() if key != "model"]
    if settings:
        sentences.append(f"Settings other than the defaults: {', '.join(settings)}.")
    sentences.append(_validation(report))
    peers = [_PEERS.get(method.name, method.name) for method in report.methods[1:]]
    if peers:
        sentences.append(f"The same folds were used for {_joined(peers)}.")
    if report.p_values is not None:
        sentences.append(
            "Membership in each class was tested by conformal p-values from held-out training "
            "samples."
        )
    if report.labels is not None:
        sentences.append("Intervals of rates are 95% Wilson score intervals.")
    versions = [f"{package} {version(package)}" for package in _PACKAGES]
    seed = "" if report.seed is None else f" The random seed was {report.seed}."
    sentences.append(f"Software: {', '.join(versions)}, Python {platform.python_version()}.{seed}")
    return " ".join(sentences)


def _validation(report: Report) -> str:
    if report.folds is None:
        what = "evaluated on" if report.labels is not None else "applied to"
        return f"The model had been fitted to other data and was {what} these samples."
    n_folds = int(report.folds.max()) + 1
    return (
        f"Class probabilities are out-of-sample, from stratified {n_folds}-fold cross-validation; "
        "every choice, such as metrics and weights, was made without the held-out fold."
    )


def _joined(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
