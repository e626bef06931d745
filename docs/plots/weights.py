"""The weights that one point gives, under three kernels."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from sklearn.datasets import make_moons

from nearfield.distances import distance_matrix
from nearfield.field import kernel_weights

points, labels = make_moons(60, noise=0.12, random_state=4)
distances = distance_matrix(points)
center = 33
panels = {"gaussian": 0.35, "radius": 0.6, "exponential": 4.0}

figure, axes = plt.subplots(1, 3, figsize=(7.8, 2.3), layout="constrained", sharey=True)
for ax, (kernel, sigma) in zip(axes, panels.items(), strict=True):
    weights = kernel_weights(distances, kernel, sigma)[center]
    lines = [[points[center], other] for other in points]
    ax.add_collection(LineCollection(lines, linewidths=40 * weights, color="0.55", alpha=0.8))
    colors = np.where(labels == 0, "#0072B2", "#E69F00")
    ax.scatter(*points.T, c=colors, s=26, edgecolor="black", linewidth=0.5, zorder=2)
    ax.scatter(*points[center], s=130, facecolor="none", edgecolor="black", linewidth=1.8, zorder=3)
    ax.set(title=f"{kernel}, sigma = {sigma:g}", xticks=[], yticks=[], aspect="equal")
figure.suptitle("Out-weights of the circled point: the width of a line is the weight")
