"""The k-nearest-neighbour graph: the neighbours of a new point, and whose neighbour it is."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from sklearn.metrics import pairwise_distances

rng = np.random.default_rng(5)
points = np.concatenate([rng.normal(0.0, 0.25, (70, 2)), rng.normal([1.6, 0.3], 0.6, (50, 2))])
new, k = np.array([0.75, 0.2]), 6

figure, axes = plt.subplots(
    1, 2, figsize=(7.8, 3.2), layout="constrained", sharex=True, sharey=True
)
from_new = pairwise_distances([new], points)[0]
kth = np.sort(pairwise_distances(points), axis=1)[:, k]
found = {
    f"Out-weights: to its {k} nearest points": np.argsort(from_new)[:k],
    f"In-weights: from points that rank it among their {k}": np.flatnonzero(from_new < kth),
}
for ax, (title, which) in zip(axes, found.items(), strict=True):
    ax.add_collection(LineCollection([[new, points[j]] for j in which], color="#0072B2", zorder=1))
    ax.scatter(*points.T, s=16, color="0.55", zorder=2)
    ax.scatter(*points[which].T, s=26, color="#0072B2", zorder=3)
    ax.scatter(*new, s=120, marker="*", color="#D55E00", zorder=4)
    ax.set(title=title, xticks=[], yticks=[], aspect="equal")
