"""
A kernel or a metric of one's own
=================================

A metric is a function of two rows, and goes into any classifier. A kernel is a function of
distances and sigma, and goes into `DistanceNeighborsClassifier`, or into a family of fields, which
every engine accepts.
"""

# %%
# A metric for angles, such as wind directions or dihedral angles: the distance around the circle.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_score

from nearfield import DistanceNeighborsClassifier
from nearfield.distances import distance_matrix
from nearfield.field import DistanceFamily
from nearfield.inference import PathSampling


def around_the_circle(a, b):
    """Give the distance of two sets of angles, each the shorter way round."""
    gap = np.abs(a - b) % (2 * np.pi)
    return np.sqrt(np.sum(np.minimum(gap, 2 * np.pi - gap) ** 2))


rng = np.random.default_rng(0)
labels = np.repeat([0, 1], 40)
centers = np.where(labels, 1.6, 0.0)[
    :, None
]  # the first class lies around zero, on both sides of it
angles = rng.vonmises(centers, 2.0, (80, 2)) % (2 * np.pi)
for name, metric in (("euclidean", "euclidean"), ("around the circle", around_the_circle)):
    model = DistanceNeighborsClassifier(
        metric=metric, standardize=False, inference="pseudolikelihood", random_state=0
    )
    scores = cross_val_score(model, angles, labels, cv=5, scoring="neg_log_loss")
    print(f"{name}: log loss {-scores.mean():.3f}")

# %%
# A kernel gives its logarithm. This one has heavier tails than the Gaussian: :math:`1 / (1 +
# d^2/\sigma^2)`.


def cauchy(distances, sigma):
    """Give the log of the Cauchy kernel."""
    return -np.log1p((distances / sigma) ** 2)


points = rng.normal(size=(60, 2))
classes = (points[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(int)
distances = distance_matrix(points)
posteriors = {
    name: PathSampling().infer(
        np.random.default_rng(1), DistanceFamily(distances, kernel, 2), classes
    )
    for name, kernel in (
        ("gaussian", "gaussian"),
        ("exponential", "exponential"),
        ("cauchy", cauchy),
    )
}
for name, posterior in posteriors.items():
    print(f"{name}: log evidence {posterior.log_evidence:.2f} ± {posterior.log_evidence_error:.2f}")

# %%
# The classifier takes the same function.

model = DistanceNeighborsClassifier(cauchy, inference="pseudolikelihood", random_state=0)
scores = cross_val_score(model, points, classes, cv=5, scoring="neg_log_loss")
print(f"cauchy: log loss {-scores.mean():.3f}")

# %%
# The coupling of one point to the others under each kernel, at the posterior mean of sigma. The
# Cauchy kernel has the heaviest tails.

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
order = np.argsort(distances[0])[1:]
for (name, posterior), color in zip(
    posteriors.items(), ("#0072B2", "#E69F00", "#009E73"), strict=True
):
    kernel = cauchy if name == "cauchy" else name
    field = DistanceFamily(distances, kernel, 2).at(posterior.mean()["sigma"])
    ax.plot(
        distances[0, order], field.coupling[0, order], "o-", markersize=3, color=color, label=name
    )
ax.set(xlabel="distance from the point", ylabel="coupling w + wᵀ", yscale="log", ylim=(1e-4, 1))
ax.legend()
