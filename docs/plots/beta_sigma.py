"""Class maps at fixed parameters: what beta and sigma do."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.metrics import pairwise_distances

from nearfield.field import DistanceFamily
from nearfield.inference import Posterior
from nearfield.plotting import ClassMapDisplay
from nearfield.prediction import Predictor

points, labels = make_moons(60, noise=0.25, random_state=1)
family = DistanceFamily(pairwise_distances(points), "gaussian", 2)
axes_values = [
    np.linspace(low - 0.4, high + 0.4, 80)
    for low, high in zip(*np.sort(points, axis=0)[[0, -1]], strict=True)
]
grid = np.stack([axis.ravel() for axis in np.meshgrid(*axes_values)], axis=1)
to_training = pairwise_distances(grid, points)

figure, axes = plt.subplots(3, 3, figsize=(7, 6), layout="constrained", sharex=True, sharey=True)
for row, beta in zip(axes, (1.0, 3.0, 10.0), strict=True):
    for ax, sigma in zip(row, (0.05, 0.3, 2.0), strict=True):
        known = Posterior.from_nodes([beta], [sigma], [1.0], "sigma")
        probabilities = Predictor(known, family, labels).probabilities(to_training)
        display = ClassMapDisplay(*axes_values, probabilities.reshape(80, 80, 2), np.array([0, 1]))
        display.plot(ax=ax).add_points(points, labels)
        ax.get_legend().remove()
        ax.set(
            xlabel="", ylabel="", xticks=[], yticks=[], title=f"beta = {beta:g}, sigma = {sigma:g}"
        )
