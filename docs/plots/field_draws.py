"""Labels drawn from the field as beta grows."""

import matplotlib.pyplot as plt
import numpy as np

from nearfield.distances import distance_matrix
from nearfield.field import LabelField, gaussian_weights
from nearfield.sampling import draw_labels_cluster

rng = np.random.default_rng(3)
points = rng.uniform(size=(400, 2)) * [2.0, 1.0]
field = LabelField.from_weights(gaussian_weights(distance_matrix(points), 0.06), n_classes=3)
colors = np.array(["#0072B2", "#E69F00", "#009E73"])

figure, axes = plt.subplots(1, 4, figsize=(8.6, 1.9), layout="constrained")
for ax, beta in zip(axes, (0.0, 1.0, 1.6, 2.2), strict=True):
    labels = draw_labels_cluster(rng, field, beta, 200)
    ax.scatter(*points.T, c=colors[labels], s=12)
    ax.set(title=f"beta = {beta:g}", xticks=[], yticks=[], aspect="equal")
