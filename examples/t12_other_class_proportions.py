"""
Other class proportions in use
==============================

Training sets are often balanced on purpose: as many cases as controls. In use one in fifty is a
case, and the probabilities of a balanced training set are far too high. ``class_prior`` mends
them.
"""

# %%
# Two overlapping classes. The training set is balanced; the population is not.

import matplotlib.pyplot as plt
import numpy as np

from nearfield import NearfieldClassifier

rng = np.random.default_rng(0)


def draw(n_controls, n_cases):
    """Draw controls around 0 and cases around 1.5."""
    y = np.repeat([0, 1], [n_controls, n_cases])
    return rng.normal(1.5 * y[:, None], 1.0, (len(y), 2)), y


X, y = draw(150, 150)
X_used, y_used = draw(9_800, 200)

# %%
# ``class_prior`` has the proportions of the population, in the order of ``classes_``. It holds
# for classes, probabilities, intervals and sets alike.

models = {
    "balanced, as trained": NearfieldClassifier(random_state=0),
    "class_prior=[0.98, 0.02]": NearfieldClassifier(class_prior=[0.98, 0.02], random_state=0),
}
figure, ax = plt.subplots(figsize=(5.6, 4.4), layout="constrained")
for (name, model), color in zip(models.items(), ("#D55E00", "#0072B2"), strict=True):
    probability = model.fit(X, y).predict_proba(X_used)[:, 1]
    print(f"{name}: mean probability of a case {probability.mean():.3f}; cases {y_used.mean():.3f}")
    edges = np.unique(np.quantile(probability, np.linspace(0, 1, 9)))
    which = np.clip(np.digitize(probability, edges) - 1, 0, len(edges) - 2)
    said = [probability[which == b].mean() for b in range(len(edges) - 1)]
    seen = [y_used[which == b].mean() for b in range(len(edges) - 1)]
    ax.loglog(said, seen, "o-", color=color, label=name)
ax.loglog([1e-3, 1], [1e-3, 1], color="0.6", linewidth=1, zorder=0)
ax.set(
    xlabel="probability of a case, mean of a bin",
    ylabel="share of cases in the bin",
    title="10,000 people, 2% cases",
    xlim=(1e-3, 1),
    ylim=(1e-3, 1),
)
ax.legend()

# %%
# The order of the people does not change: only the scale of the probabilities does. What changes
# is every decision that compares a probability with a cost.
