"""
From thousands to a million rows
================================

The call does not change. Above 2,000 training points (1,500 in ``NearfieldClassifier``) each point
gives weight to its k nearest neighbours alone, and k is chosen from the data. Here we fit 8,000
rows; the figures for larger tables are those of the scaling document.
"""

# %%
# Twelve clusters of four classes in ten dimensions, with 5% wrong labels.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier

from nearfield import DistanceNeighborsClassifier

X, y = make_classification(
    10_000, n_features=10, n_informative=10, n_redundant=0, n_classes=4,
    n_clusters_per_class=3, flip_y=0.05, random_state=0,
)  # fmt: skip
train, test = np.arange(8_000), np.arange(8_000, 10_000)

start = time.process_time()
model = DistanceNeighborsClassifier(random_state=0).fit(X[train], y[train])
print(f"fit: {time.process_time() - start:.1f} s of CPU time, compilation included")
print(f"engine: {model.inference_}; k = {model.family_.n_neighbors}")

# %%
# The probabilities are better than the votes of k-nn at these k: a vote of k neighbours can say
# nothing between 0 and 1/k.

ks = (5, 15, 45, 100)
losses = [
    log_loss(y[test], KNeighborsClassifier(k).fit(X[train], y[train]).predict_proba(X[test]))
    for k in ks
]
ours = log_loss(y[test], model.predict_proba(X[test]))
for k, loss in zip(ks, losses, strict=True):
    print(f"k-nn, k = {k:3d}: log loss {loss:.3f}")
print(f"nearfield:       log loss {ours:.3f}")

# %%
# More labelled rows can be appended at the fitted parameters. This takes a search for their
# neighbours, and no new inference.

model.partial_fit(X[test][:1_000], y[test][:1_000])
rest = test[1_000:]
print(f"{len(model.labels_)} training points")
print(f"log loss of the rest: {log_loss(y[rest], model.predict_proba(X[rest])):.3f}")

# %%
# Measured on one thread with the same kind of data (:doc:`/scaling`): time grows about as n.

n = np.array([1e4, 1e5, 1e6])
fit, predict = np.array([1.0, 13.1, 149.6]), np.array([0.4, 1.8, 5.1])
figure, ax = plt.subplots(figsize=(6, 3.8), layout="constrained")
ax.loglog(n, fit, "o-", color="#0072B2", label="fit")
ax.loglog(n, predict, "s-", color="#D55E00", label="predict 10,000 points")
ax.loglog(n, fit[0] * n / n[0], color="0.7", linestyle=":", label="proportional to n")
ax.set(xlabel="training points", ylabel="CPU seconds", title="One thread, ten features")
ax.legend()
