"""
A small table
=============

178 wines, 13 chemical measurements, three cultivars. We fit the recommended classifier to a
quarter of them, ask for class probabilities of the rest, and look at the samples that it is
unsure about.
"""

# %%
# The data comes with the package. :func:`~nearfield.datasets.stratified_split` draws a quarter of
# each class for training.

import matplotlib.pyplot as plt
import numpy as np

from nearfield import NearfieldClassifier
from nearfield.datasets import load_wine, stratified_split

wine = load_wine()
X, y = wine.data, wine.target_names[wine.target]
train, test = stratified_split(y, 0.25, random_state=0)
print(f"{len(train)} training and {len(test)} test samples, {X.shape[1]} features")

# %%
# No settings are needed: no k, no kernel, no scaling of the features.

model = NearfieldClassifier(random_state=0).fit(X[train], y[train])
print(f"accuracy {model.score(X[test], y[test]):.3f}")

# %%
# ``summary`` shows what was fitted: several kernels and metrics, with the weight that each has in
# the predictions.

print(model.summary().round(2).to_string(index=False))

# %%
# ``predict_proba`` averages over these estimators and over the posterior of their parameters, and
# ``predict_proba_interval`` says how much each probability varies with the parameters. The figure
# has a column for each of the 50 least certain test samples: the probability of the predicted
# class with its 95% interval, and a cross where the class is wrong.

probabilities = model.predict_proba(X[test])
lower, upper = model.predict_proba_interval(X[test])
top = probabilities.argmax(axis=1)
is_right = model.classes_[top] == y[test]
order = np.argsort(-probabilities.max(axis=1))[-50:]
rows = np.arange(len(order))
columns = top[order]

figure, ax = plt.subplots(figsize=(9, 3.8), layout="constrained")
ax.vlines(rows, lower[order, columns], upper[order, columns], color="0.75", linewidth=2.5)
colors = np.array(["#0072B2", "#E69F00", "#009E73"])
ax.scatter(rows, probabilities[order, columns], s=14, c=colors[columns], zorder=2)
wrong = np.flatnonzero(~is_right[order])
ax.scatter(
    wrong,
    probabilities[order, columns][wrong],
    s=90,
    marker="x",
    color="#D55E00",
    label="wrong",
    zorder=3,
)
for name, color in zip(model.classes_, colors, strict=True):
    ax.scatter([], [], color=color, label=name)
ax.set(
    xlabel="the 50 least certain of 133 test samples",
    ylabel="probability of the predicted class",
    ylim=(0.3, 1.02),
)
ax.legend(loc="lower left")

# %%
# All mistakes are among these 50, and where the class is uncertain the interval is wide. The
# samples to measure again:

for i in np.flatnonzero(probabilities.max(axis=1) < 0.8)[:5]:
    shown = ", ".join(
        f"{name} {p:.2f}" for name, p in zip(model.classes_, probabilities[i], strict=True)
    )
    print(f"sample {test[i]}: {shown}; true class {y[test][i]}")
