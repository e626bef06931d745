"""The joint predictive and the printed one: probabilities, and how they keep."""

import matplotlib.pyplot as plt
import numpy as np

from nearfield import DistanceNeighborsClassifier
from nearfield.datasets import load_pima, stratified_split
from nearfield.plotting import ReliabilityDisplay

X, y = load_pima(return_X_y=True)
joint, printed, truth = [], [], []
for seed in range(5):
    train, test = stratified_split(y, 0.25, random_state=seed)
    model = DistanceNeighborsClassifier(random_state=0).fit(X[train], y[train])
    joint.append(model.predict_proba(X[test]))
    printed.append(model.set_params(predictive="printed").predict_proba(X[test]))
    truth.append(y[test])
joint, printed, truth = map(np.concatenate, (joint, printed, truth))

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(9.4, 3.2), layout="constrained")
left.scatter(joint[:, 1], printed[:, 1], s=5, alpha=0.4, color="#0072B2")
left.plot([0, 1], [0, 1], color="0.6", linewidth=1)
left.set(
    xlabel="P(diabetes), joint (w + wᵀ)",
    ylabel="P(diabetes), printed (w alone)",
    title="The same fits, two predictives",
    aspect="equal",
)
ReliabilityDisplay.from_predictions(truth, joint, name="joint", ax=middle)
ReliabilityDisplay.from_predictions(truth, printed, name="printed", ax=right)
middle.set_title("Joint: near the diagonal")
right.set_title("Printed: not sure enough")
for ax in (middle, right):
    ax.set(xlim=(0.45, 1.0), ylim=(0.45, 1.0))
    ax.get_legend().remove()
