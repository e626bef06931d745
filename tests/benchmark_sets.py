"""The paper's six benchmark data sets, as the engines see them: a quarter of each, standardized."""

from nearfield.datasets import (
    load_crabs,
    load_glass,
    load_iris,
    load_olive,
    load_pima,
    load_wine,
    stratified_split,
)
from nearfield.distances import distance_matrix
from nearfield.field import DistanceFamily, NeighborFamily

BENCHMARK_SETS = [load_crabs, load_glass, load_iris, load_olive, load_pima, load_wine]


def training_set(load, model="gaussian"):
    """Make the family of a model, of three kernels or k, and the labels of a training set."""
    features, target = load(return_X_y=True)
    train, _ = stratified_split(target, 0.25, random_state=0)
    points = (features[train] - features[train].mean(axis=0)) / features[train].std(axis=0)
    distances, n_classes = distance_matrix(points), int(target.max()) + 1
    if model == "k":
        return NeighborFamily.from_distances(distances, n_classes), target[train]
    return DistanceFamily(distances, model, n_classes), target[train]
