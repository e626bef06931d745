"""Decisions: error rates of membership, refusal of unknown classes, size of prediction sets.

`python benchmarks/decisions.py --document docs/decisions.md` writes the document. DD-SIMCA
(package ddsimca) and crepes are measured where they are installed. The folder that NEARFIELD_DATA
names has the spectra.
"""

import argparse
import json
import time
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import norm
from sklearn.ensemble import RandomForestClassifier

from nearfield import DistanceNeighborsClassifier, NearfieldClassifier
from nearfield.benchmark import PROBLEMS
from nearfield.datasets import stratified_split
from nearfield.spectra import StandardNormalVariate

LEVELS = (0.05, 0.1)
COVERAGE = 0.9
FIRST_SEED = 2000
SETS = (*[p.name for p in PROBLEMS[:8]], "breast cancer", "digits", "penguins")
STRANGERS = ("meat", "wine")
MAX_COMPONENTS = 10


class Rejection(NamedTuple):
    """How often true members of a class had a p-value of at most a level."""

    data: str
    label: int
    level: float
    n_points: int
    rate: float

    @property
    def limit(self):
        """Rate that chance exceeds once in a hundred classes, with as many independent points."""
        error = np.sqrt(self.level * (1.0 - self.level) / self.n_points)
        return self.level + norm.ppf(0.99) * error


def load(name):
    problem = next(p for p in PROBLEMS if p.name == name)
    return problem.load(None)


def members(X, y):
    """Fit what gives p-values: they depend on the training points alone, not on the kernel."""
    return DistanceNeighborsClassifier(inference="pseudolikelihood", random_state=0).fit(X, y)


def half(y, seed):
    return stratified_split(y, min(0.5, 500 / len(y)), random_state=seed)


def rejections(name, n_splits):
    """Measure the rejection of true members, by class, over splits into halves."""
    X, y = load(name)
    counts = {(g, level): [0, 0] for g in np.unique(y) for level in LEVELS}
    for split in range(n_splits):
        train, test = half(y, FIRST_SEED + split)
        p_values = members(X[train], y[train]).membership(X[test])
        own = p_values[np.arange(len(test)), y[test]]
        for (g, level), count in counts.items():
            count[0] += np.sum(own[y[test] == g] <= level)
            count[1] += np.sum(y[test] == g)
    return [
        Rejection(name, int(g), level, int(np.sum(y == g)), float(n_out / n_all))
        for (g, level), (n_out, n_all) in counts.items()
    ]


class SimcaClasses:
    """DD-SIMCA, a model a class; its components are those that reject members as promised."""

    def __init__(self, X, y, level, *, scale, seed):
        self.level, self.scale = level, scale
        rng = np.random.default_rng(seed)
        self.models = []
        for g in np.unique(y):
            own = X[y == g]
            n_components = self._choose(own, rng.permutation(len(own)) % 5)
            self.models.append((self._train(own, n_components), n_components))

    def _train(self, own, n_components):
        from ddsimca import DDSIMCA

        model = DDSIMCA("own")
        frame = pd.DataFrame(own)
        frame.insert(0, "class", "own")
        model.train(frame, n_components, center=True, scale=self.scale)
        return model

    def _choose(self, own, fold):
        """Choose the components whose rejection of held-out members is nearest to the level."""
        most = min(MAX_COMPONENTS, own.shape[1] - 1, int(len(own) * 0.8) - 2)
        n_out = np.zeros(most)
        for k in range(5):
            model = self._train(own[fold != k], most)
            n_out += (~self._decisions(model, own[fold == k])).sum(axis=0)
        distance = np.abs(n_out / len(own) - self.level)
        return int(np.flatnonzero(distance <= distance.min() + 1e-12)[-1]) + 1

    def _decisions(self, model, X):
        return model.predict(pd.DataFrame(X), alpha=self.level).D

    def refuses(self, X):
        """Tell which rows no class accepts."""
        accepted = [self._decisions(model, X)[:, n - 1] for model, n in self.models]
        return ~np.any(accepted, axis=0)


def strangers(name, n_splits, level=0.05):
    """Leave each class out, and measure the share of it and of members that is refused."""
    X, y = load(name)
    is_spectra = X.shape[1] > len(X)
    snv = StandardNormalVariate().fit_transform(X) if is_spectra else X
    rows = []
    for out in np.unique(y):
        for split in range(n_splits):
            train, test = stratified_split(y, 0.6, random_state=FIRST_SEED + split)
            train, known = train[y[train] != out], test[y[test] != out]
            model = members(X[train], y[train])
            new = np.concatenate([np.flatnonzero(y == out), known])
            is_out = np.arange(len(new)) < np.sum(y == out)
            p_values = model.membership(X[new], class_conditional=False)
            refused = {"nearfield": ~(p_values > level).any(axis=1)}
            if find_spec("ddsimca"):
                for words, points in (("as measured", X), ("SNV", snv)):
                    if words == "SNV" and not is_spectra:
                        continue
                    simca = SimcaClasses(
                        points[train], y[train], level, scale=not is_spectra, seed=split
                    )
                    refused[f"DD-SIMCA, {words}"] = simca.refuses(points[new])
            for method, found in refused.items():
                shares = found[is_out].mean(), found[~is_out].mean()
                rows.append((name, int(out), method, *map(float, shares)))
    return rows


def coverage(name, seed):
    """Measure prediction sets on one split: coverage, mean size, and coverage by class."""
    X, y = load(name)
    train, test = half(y, seed)
    preprocess = "spectra" if X.shape[1] > len(X) else None
    model = NearfieldClassifier(preprocess=preprocess, random_state=0).fit(X[train], y[train])
    found = {"nearfield": model.predict_set(X[test], COVERAGE)}
    if find_spec("crepes"):
        from crepes import WrapClassifier

        forest = WrapClassifier(RandomForestClassifier(300, oob_score=True, random_state=0))
        forest.fit(X[train], y[train])
        forest.calibrate(X[train], y[train], class_cond=True, oob=True)
        p_values = forest.predict_p(X[test], seed=seed)
        found["crepes, random forest"] = p_values > 1.0 - COVERAGE
    return [(name, method, *_of_sets(sets, y[test])) for method, sets in found.items()]


def _of_sets(sets, y):
    is_covered = sets[np.arange(len(y)), y]
    by_class = [float(is_covered[y == g].mean()) for g in np.unique(y)]
    return float(is_covered.mean()), float(sets.sum(axis=1).mean()), by_class


def main(n_splits, n_coverage, store, document):
    """Measure what the store does not hold yet; a run that was stopped goes on."""
    parts = Path(store)
    parts.mkdir(parents=True, exist_ok=True)
    for name in STRANGERS:
        _kept(parts, f"strangers-{name}", strangers, name, max(1, n_splits // 2))
    for name in SETS:
        _kept(parts, f"rejections-{name}", rejections, name, n_splits)
    for seed in range(n_coverage):
        for name in SETS:
            _kept(parts, f"coverage-{name}-{seed}", coverage, name, FIRST_SEED + seed)
    if document:
        Path(document).write_text(report(parts, n_splits), encoding="utf-8")


def _kept(parts, name, measure, *arguments):
    path = parts / f"{name}.json"
    if not path.exists():
        path.write_text(json.dumps(measure(*arguments)), encoding="utf-8")
        print(name, flush=True)


def _read(parts, kind):
    return [
        row for path in sorted(parts.glob(f"{kind}-*.json")) for row in json.loads(path.read_text())
    ]


def report(parts, n_splits):
    """Write the document."""
    found = [Rejection(*row) for row in _read(parts, "rejections")]
    alien = pd.DataFrame(
        _read(parts, "strangers"), columns=["data", "label", "method", "refused", "members"]
    )
    sets = pd.DataFrame(
        _read(parts, "coverage"), columns=["data", "method", "coverage", "size", "by_class"]
    )
    packages = [
        p
        for p in ("nearfield", "numpy", "scikit-learn", "ddsimca", "crepes")
        if find_spec(p.replace("scikit-learn", "sklearn"))
    ]
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    today = time.strftime("%Y-%m-%d")
    return (
        "\n\n".join(
            [
                "# Decisions: error rates and refusals",
                f"Made by `python benchmarks/decisions.py` on {today} with {versions}.",
                _rejection_section(found, n_splits),
                _stranger_section(alien, max(1, n_splits // 2)),
                _set_section(sets),
            ]
        )
        + "\n"
    )


def _rejection_section(found, n_splits):
    lines = []
    for name in dict.fromkeys(r.data for r in found):
        cells = [name]
        for level in LEVELS:
            rates = [r for r in found if r.data == name and r.level == level]
            over = [r for r in rates if r.rate > r.limit]
            cells += [
                f"{np.mean([r.rate for r in rates]):.3f}",
                f"{max(r.rate for r in rates):.3f}",
                f"{len(over)} of {len(rates)}",
            ]
        lines.append(cells)
    header = ("data", "mean, 5%", "largest", "above chance", "mean, 10%", "largest", "above chance")
    return (
        "## p-values of membership\n\nShare of true members with a class-conditional p-value of at "
        f"most the level, by class: mean and largest over the classes, {n_splits} splits into "
        "halves (500 training points at most). A class is above chance if its rate exceeds the "
        "level by more than 2.33 binomial standard errors of as many points as the class has, "
        "which one class in a hundred would do.\n\n" + _markdown(header, lines)
    )


def _stranger_section(alien, n_splits):
    text = (
        "## Classes that were left out\n\nEach class is left out of training in turn; share of it "
        "that is refused at 5%, and of test points of the other classes (members), which should be "
        f"at most 5%. Means over {n_splits} splits, 60% of the known classes training. nearfield "
        "refuses a point if no class has a marginal p-value of `membership` above 5%, as `decide` "
        "does, on the features as measured. DD-SIMCA has a model a class, with the number of "
        "components (at most 10) whose rejection of members in five folds is nearest to 5%; wine "
        "is autoscaled, spectra are centred. The ridge of nearfield's score was chosen on these "
        "two data sets, the levels of its classes on the first five splits; DD-SIMCA's rule of "
        "components was chosen before its figures were seen. "
        "Where a method refuses more than 5% of the members, its refusal of strangers is not one "
        "at 5%."
    )
    if alien.empty:
        return text
    table = alien.groupby(["data", "label", "method"])[["refused", "members"]].mean().reset_index()
    lines = []
    for (data, label), part in table.groupby(["data", "label"]):
        lines += [
            (data, label, r.method, f"{r.refused:.2f}", f"{r.members:.3f}")
            for r in part.itertuples()
        ]
    means = table.groupby(["data", "method"])[["refused", "members"]].mean().reset_index()
    lines += [
        (f"**{r.data}, mean**", "", r.method, f"{r.refused:.2f}", f"{r.members:.3f}")
        for r in means.itertuples()
    ]
    return (
        text
        + "\n\n"
        + _markdown(("data", "class left out", "method", "refused", "members refused"), lines)
    )


def _set_section(sets):
    if sets.empty:
        return ""
    n_splits = sets.groupby(["data", "method"]).size()
    lines = []
    for (data, method), own in sets.groupby(["data", "method"]):
        by_class = np.mean(own["by_class"].tolist(), axis=0)
        error = own["coverage"].sem() if len(own) > 1 else np.nan
        cells = own["coverage"].mean(), error, by_class.min()
        lines.append((data, method, *(f"{x:.3f}" for x in cells), f"{own['size'].mean():.2f}"))
    return (
        f"## Prediction sets of coverage {COVERAGE:g}\n\nClass-conditional sets, "
        f"at least {n_splits.min()} splits into halves: coverage of test points with "
        "its standard error over splits, coverage of the class with the lowest mean, and mean "
        'number of classes in a set. nearfield reads spectra with `preprocess="spectra"`. crepes: '
        "Mondrian by class, a random forest of 300 trees calibrated out of bag.\n\n"
        + _markdown(("data", "method", "coverage", "error", "worst class", "mean size"), lines)
    )


def _markdown(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--coverage-splits", type=int, default=1)
    parser.add_argument("--store", default="results/decisions")
    parser.add_argument("--document")
    options = parser.parse_args()
    main(options.splits, options.coverage_splits, options.store, options.document)
