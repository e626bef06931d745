"""The picture of the README: class probabilities, their entropy, and distance from the data.

python docs/plots/overview.py   # writes docs/_static/overview.png
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from nearfield import NearfieldClassifier
from nearfield.plotting import ClassMapDisplay

X, y = make_moons(150, noise=0.25, random_state=3)
model = NearfieldClassifier(random_state=0).fit(X, y)

figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.3), layout="constrained")
corners = np.array([[-1.9, -1.4], [2.9, 1.9]])
region = np.concatenate([X, corners])
ClassMapDisplay.from_estimator(model, region, ax=axes[0]).add_points(X, y)
axes[0].set_title("Which class, and how probable")
ClassMapDisplay.from_estimator(model, region, response="entropy", ax=axes[1]).add_points(X, y)
axes[1].get_legend().remove()
axes[1].set_title("How uncertain the class is")
figure.axes[-1].set_ylabel("0: certain, 1: equally probable")

xs, ys = (np.linspace(*axes[0].get_xlim(), 90), np.linspace(*axes[0].get_ylim(), 90))
grid = np.stack([axis.ravel() for axis in np.meshgrid(xs, ys)], axis=1)
score = model.outlier_score(grid).reshape(90, 90)
shown = axes[2].contourf(xs, ys, score, levels=12, cmap="cividis_r")
figure.colorbar(shown, ax=axes[2], label="outlier score")
axes[2].scatter(*X.T, s=8, color="black")
axes[2].set_title("How far from all training points")
for ax in axes:
    ax.set(xlabel="", ylabel="", xticks=[], yticks=[])

if __name__ == "__main__":
    figure.savefig(Path(__file__).parents[1] / "_static" / "overview.png", dpi=110)
