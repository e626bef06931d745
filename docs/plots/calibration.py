"""Reliability of three methods on the same splits."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from nearfield import KNeighborsClassifierCV, NearfieldClassifier
from nearfield.datasets import load_glass, stratified_split
from nearfield.plotting import ReliabilityDisplay, expected_calibration_error

X, y = load_glass(return_X_y=True)
methods = {
    "nearfield": NearfieldClassifier(random_state=0),
    "k-nn, k by leave-one-out": KNeighborsClassifierCV(),
    "random forest": RandomForestClassifier(random_state=0),
}
figure, axes = plt.subplots(1, 3, figsize=(8.6, 3.2), layout="constrained", sharey=True)
for ax, (name, method) in zip(axes, methods.items(), strict=True):
    probabilities, truth = [], []
    for seed in range(5):
        train, test = stratified_split(y, 0.5, random_state=seed)
        probabilities.append(method.fit(X[train], y[train]).predict_proba(X[test]))
        truth.append(y[test])
    probabilities, truth = np.concatenate(probabilities), np.concatenate(truth)
    error = expected_calibration_error(truth, probabilities)
    ReliabilityDisplay.from_predictions(truth, probabilities, name=name, ax=ax)
    ax.set_title(f"{name}\ncalibration error {error:.3f}")
    ax.get_legend().remove()
