"""Posteriors of eight data sets under four models, for other implementations to be checked against.

Training points are `stratified_split(target, 0.25, random_state=0)` of nearfield.datasets, a
quarter of each set, standardized to mean zero and standard deviation one; distances are Euclidean.
Priors: beta ~ N(0, 50^2) given beta >= 0; sigma ~ U(0, 100); k uniform on 1..n-1.

    python benchmarks/reference_posteriors.py            # writes docs/reference_posteriors.json
    python benchmarks/reference_posteriors.py iris wine  # only these, the others stay

The spectra (meat, greek_olive_oil) are read from the folder NEARFIELD_DATA; only the summary
numbers are stored.
"""

import json
import sys
from pathlib import Path

import numpy as np
from scipy import stats

from nearfield import datasets
from nearfield.distances import distance_matrix
from nearfield.field import DistanceFamily, NeighborFamily
from nearfield.inference import PathSampling, Priors

DOCUMENT = Path(__file__).parents[1] / "docs" / "reference_posteriors.json"
SETS = ("crabs", "glass", "iris", "olive", "pima", "wine", "meat", "greek_olive_oil")
MODELS = ("gaussian", "exponential", "radius", "k")
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
ENGINE = PathSampling(n_draws=8, tolerance=0.007)
BETA = stats.halfnorm(scale=50.0)


def problem(name, model):
    """Return the family, the labels and the priors."""
    features, target = getattr(datasets, f"load_{name}")(return_X_y=True)
    train, _ = datasets.stratified_split(target, 0.25, random_state=0)
    points = (features[train] - features[train].mean(axis=0)) / features[train].std(axis=0)
    distances, labels, n_classes = distance_matrix(points), target[train], int(target.max()) + 1
    if model == "k":
        family = NeighborFamily.from_distances(distances, n_classes)
        return family, labels, Priors(BETA, stats.randint(1, len(labels)))
    return DistanceFamily(distances, model, n_classes), labels, Priors(BETA, stats.uniform(0, 100))


def summarize(name, model, engine=ENGINE, seed=0):
    """Infer a posterior and describe it."""
    family, labels, priors = problem(name, model)
    posterior = engine.infer(np.random.default_rng(seed), family, labels, priors)
    mean, sd = posterior.mean(), posterior.sd()
    quantiles = posterior.quantile(list(LEVELS))
    return {
        "n_points": len(labels),
        "class_counts": np.bincount(labels).tolist(),
        "log_evidence": rounded(posterior.log_evidence),
        "log_evidence_error": rounded(posterior.log_evidence_error),
        "parameters": {
            parameter: {
                "mean": rounded(mean[parameter]),
                "mean_error": rounded(error),
                "sd": rounded(sd[parameter]),
                "quantiles": [rounded(value) for value in quantiles[parameter]],
            }
            for parameter, error in zip(mean.index, posterior.mean_error, strict=True)
        },
    }


def rounded(value):
    return float(f"{value:.6g}")


def main(names):
    known = json.loads(DOCUMENT.read_text()) if DOCUMENT.exists() else {"posteriors": {}}
    for name in names or SETS:
        known["posteriors"][name] = {model: summarize(name, model) for model in MODELS}
        print(name, flush=True)
        content = {
            "description": __doc__.split("\n\n    python")[0],
            "quantile_levels": LEVELS,
            "posteriors": {key: known["posteriors"][key] for key in sorted(known["posteriors"])},
        }
        DOCUMENT.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
