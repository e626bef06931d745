"""Data sets of different shape, of any number of points."""

import numpy as np
from sklearn.datasets import make_blobs, make_classification


def clustered(n_points):
    X, y = make_blobs(n_points, n_features=5, centers=12, cluster_std=2.0, random_state=0)
    return X, y % 4


def uniform(n_points):
    rng = np.random.default_rng(0)
    X = rng.random((n_points, 3))
    score = np.sin(6 * X[:, 0]) + np.cos(5 * X[:, 1]) + X[:, 2] + 0.3 * rng.normal(size=n_points)
    return X, np.digitize(score, [0.0, 1.0, 1.8])


def high_dimensional(n_points):
    return make_classification(
        n_points, n_features=40, n_informative=15, n_classes=3, flip_y=0.05, random_state=1
    )


def imbalanced(n_points):
    return make_classification(
        n_points,
        n_features=10,
        n_informative=6,
        n_classes=3,
        weights=[0.9, 0.07, 0.03],
        flip_y=0.02,
        random_state=2,
    )


SHAPES = [clustered, uniform, high_dimensional, imbalanced]
