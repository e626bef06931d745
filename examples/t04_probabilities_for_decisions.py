"""
Honest probabilities and prediction sets
========================================

Accuracy asks which class is first. A decision with costs asks how probable it is. We compare the
probabilities of three methods on the same test points, the cost of acting on them, and sets of
classes that contain the true one at a stated rate.
"""

# %%
# Diabetes among 532 women, seven measurements; a quarter of the women for training, five splits.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearfield import NearfieldClassifier
from nearfield.datasets import load_pima, stratified_split
from nearfield.plotting import ReliabilityDisplay, expected_calibration_error

X, y = load_pima(return_X_y=True)
methods = {
    "nearfield": NearfieldClassifier(random_state=0),
    "k-nn, k = 5": make_pipeline(StandardScaler(), KNeighborsClassifier(5)),
    "k-nn, k = 25": make_pipeline(StandardScaler(), KNeighborsClassifier(25)),
}
probabilities = {name: [] for name in methods}
truth = []
for seed in range(5):
    train, test = stratified_split(y, 0.25, random_state=seed)
    truth.append(y[test])
    for name, method in methods.items():
        probabilities[name].append(method.fit(X[train], y[train]).predict_proba(X[test]))
truth = np.concatenate(truth)
probabilities = {name: np.concatenate(parts) for name, parts in probabilities.items()}

# %%
# A reliability diagram compares what was said with what happened. The intervals show which gaps a
# bin of that size can have by chance.

figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.9), layout="constrained", sharey=True)
for ax, (name, predicted) in zip(axes, probabilities.items(), strict=True):
    ReliabilityDisplay.from_predictions(truth, predicted, name=name, ax=ax)
    error = expected_calibration_error(truth, predicted)
    ax.set(title=f"{name}: calibration error {error:.3f}", xlim=(0.45, 1.0), ylim=(0.45, 1.0))
    ax.get_legend().remove()

# %%
# Suppose that a missed case costs ten times as much as a needless examination. The best rule
# examines everybody above a probability of 1/11, if the probabilities are right.

for name, predicted in probabilities.items():
    is_examined = predicted[:, 1] > 1 / 11
    missed, needless = np.sum(truth[~is_examined] == 1), np.sum(truth[is_examined] == 0)
    cost = (10 * missed + needless) / len(truth)
    print(f"{name}: {missed} cases missed, {needless} needless examinations, cost {cost:.2f}")

# %%
# k-nn does as well once k is large enough, and badly if it is not; nearfield needs no k.
#
# How sure is a probability itself? A credible interval shows how much it varies with the fitted
# parameters. It narrows with more training points, while the class may stay uncertain.

model = methods["nearfield"].fit(X[train], y[train])
lower, upper = model.predict_proba_interval(X[test][:3])
for p, low, high in zip(model.predict_proba(X[test][:3]), lower, upper, strict=True):
    print(f"probability of diabetes {p[1]:.2f} (95% interval {low[1]:.2f} to {high[1]:.2f})")

# %%
# A prediction set has a guarantee that does not rest on the model: it contains the true class with
# at least the stated probability, for points like the training points. Where classes overlap, sets
# have two classes; a point unlike all training points gets the empty set.

for coverage in (0.8, 0.9, 0.95):
    sets = model.predict_set(X[test], coverage=coverage)
    covered = sets[np.arange(len(test)), y[test]].mean()
    sizes = ", ".join(
        f"{np.mean(sets.sum(axis=1) == size):.0%} of size {size}" for size in (0, 1, 2)
    )
    print(f"coverage asked {coverage:.0%}, found {covered:.0%}; {sizes}")
