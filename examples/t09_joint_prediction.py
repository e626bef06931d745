"""
Few labels: predict new points together
=======================================

Six labels and two moons. Predicted one by one, a new point has the six training points alone as
neighbours. Predicted together, new points inform each other, and labels spread along the moons.
"""

# %%
# With six labels the priors have to say something: neighbours agree (beta about 6), and near
# means within about 0.1.

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from sklearn.datasets import make_moons

from nearfield import DistanceNeighborsClassifier

X, y = make_moons(120, noise=0.08, random_state=0)
rng = np.random.default_rng(0)
train = np.concatenate([rng.choice(np.flatnonzero(y == g), 3, replace=False) for g in (0, 1)])
test = np.setdiff1d(np.arange(len(y)), train)
model = DistanceNeighborsClassifier(
    standardize=False,
    inference="pseudolikelihood",
    prior_beta=stats.norm(6.0, 1.0),
    prior_sigma=stats.lognorm(0.3, scale=0.1),
    random_state=0,
).fit(X[train], y[train])

# %%
# ``predict_joint`` draws the labels of all new points from the field of training and new points.
# The share of a class among the draws is its probability.

one_by_one = model.predict_proba(X[test])[:, 1]
together = model.predict_joint(X[test], n_draws=400).mean(axis=0)

figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained", sharey=True)
for ax, (title, probabilities) in zip(
    axes, {"One by one": one_by_one, "Together": together}.items(), strict=True
):
    shown = ax.scatter(*X[test].T, c=probabilities, cmap="cividis", vmin=0, vmax=1, s=22)
    ax.scatter(
        *X[train].T,
        c=y[train],
        cmap="cividis",
        vmin=0,
        vmax=1,
        s=120,
        marker="*",
        edgecolor="#D55E00",
        linewidth=1.5,
    )
    error = np.mean((probabilities > 0.5) != y[test])
    ax.set(title=f"{title}: {error:.1%} wrong", xticks=[], yticks=[])
figure.colorbar(shown, ax=axes, label="probability of the second moon")

# %%
# The advantage rests on the priors. With vague ones, six labels cannot tell how strongly
# neighbours agree, and joint prediction can be worse than separate prediction: try it by leaving
# the priors out.
