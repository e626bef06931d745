"""Six labels and two moons: new points predicted together, and one by one.

Predicted by itself, a new point sees the six training points alone, and takes the class of those
that are nearest. Predicted together, the new points pass on along each moon what the few labels
say. The priors are informative, as they have to be with six labels: neighbours agree (beta
about 6), and near means within about 0.1.

    python examples/joint_prediction.py
"""

import numpy as np
from scipy import stats
from sklearn.datasets import make_moons

from nearfield import DistanceNeighborsClassifier

N_SPLITS = 5


def errors(seed):
    """Return the share of wrong labels, predicted one by one and together."""
    X, y = make_moons(120, noise=0.08, random_state=seed)
    rng = np.random.default_rng(seed)
    train = np.concatenate([rng.choice(np.flatnonzero(y == g), 3, replace=False) for g in (0, 1)])
    test = np.setdiff1d(np.arange(len(y)), train)
    classifier = DistanceNeighborsClassifier(
        standardize=False,
        inference="pseudolikelihood",
        prior_beta=stats.norm(6.0, 1.0),
        prior_sigma=stats.lognorm(0.3, scale=0.1),
        random_state=seed,
    ).fit(X[train], y[train])
    one_by_one = classifier.predict(X[test])
    draws = classifier.predict_joint(X[test], n_draws=200)
    together = (draws.mean(axis=0) > 0.5).astype(int)
    return np.mean(one_by_one != y[test]), np.mean(together != y[test])


def main():
    """Print the errors of a few random choices of the six labels, and their means."""
    print("labels wrong: one by one, together")
    results = np.array([errors(seed) for seed in range(N_SPLITS)])
    for one_by_one, together in results:
        print(f"  {one_by_one:6.1%}  {together:6.1%}")
    one_by_one, together = results.mean(axis=0)
    print(f"mean\n  {one_by_one:6.1%}  {together:6.1%}")
    return one_by_one, together


if __name__ == "__main__":
    main()
