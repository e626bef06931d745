"""One posterior by four engines."""

import matplotlib.pyplot as plt
import numpy as np

from nearfield import DistanceNeighborsClassifier
from nearfield.datasets import load_wine, stratified_split
from nearfield.inference import Exchange
from nearfield.plotting import PosteriorDisplay

X, y = load_wine(return_X_y=True)
train, _ = stratified_split(y, 0.25, random_state=0)
engines = {
    "path sampling": "path",
    "exchange, four chains": Exchange(n_draws=3_000, n_burn=1_000, n_sweeps=50),
    "pseudolikelihood": "pseudolikelihood",
}
figure, axes = plt.subplots(1, 3, figsize=(8.6, 2.9), layout="constrained")
for ax, (name, engine) in zip(axes, engines.items(), strict=True):
    model = DistanceNeighborsClassifier(inference=engine, random_state=0)
    model.fit(X[train], y[train])
    PosteriorDisplay.from_estimator(model, ax=ax)
    ax.set_title(name)
limits = np.array([[*ax.get_xlim(), *ax.get_ylim()] for ax in axes])
for ax in axes:
    ax.set(xlim=(1, limits[:, 1].max()), ylim=(limits[:, 2].min(), limits[:, 3].max()))
    ax.set_xscale("log")
    ax.set_xticks([1, 2, 5, 10, 20, 50], ["1", "2", "5", "10", "20", "50"])
