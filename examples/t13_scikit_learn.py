"""
In a scikit-learn workflow
==========================

The classifiers follow scikit-learn's interface: pipelines, cross-validation, searches, and
metrics work as usual. We compare with three other methods on the same folds.
"""

# %%
# ``NearfieldClassifier`` standardizes features and chooses kernels and metrics itself. The others
# get what they need.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import RepeatedStratifiedKFold, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nearfield import NearfieldClassifier
from nearfield.datasets import load_wine

X, y = load_wine(return_X_y=True)
methods = {
    "nearfield": NearfieldClassifier(random_state=0),
    "k-nn, k = 7": make_pipeline(StandardScaler(), KNeighborsClassifier(7)),
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
    "random forest": RandomForestClassifier(random_state=0),
}
folds = RepeatedStratifiedKFold(n_splits=3, n_repeats=3, random_state=0)
losses = {}
for name, method in methods.items():
    scores = cross_validate(method, X, y, cv=folds, scoring=("accuracy", "neg_log_loss"))
    losses[name] = -scores["test_neg_log_loss"]
    print(
        f"{name}: accuracy {scores['test_accuracy'].mean():.3f}, log loss {losses[name].mean():.3f}"
    )

# %%
# Accuracies are alike; the log losses, which score the probabilities, are not.

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
for row, values in enumerate(losses.values()):
    jitter = np.linspace(-0.12, 0.12, len(values))
    ax.scatter(values, row + jitter, s=22, alpha=0.7, color="#0072B2")
    ax.scatter(values.mean(), row, s=160, marker="|", color="#D55E00", linewidth=2.5)
ax.set_yticks(range(len(losses)), list(losses))
ax.invert_yaxis()
ax.set(xscale="log", xlabel="log loss in each of nine folds (bar: mean)", title="Wine")

# %%
# Parameters are named as usual, so that a search can vary them; a fitted model is saved with
# :func:`nearfield.save`.

print(sorted(NearfieldClassifier().get_params()))
