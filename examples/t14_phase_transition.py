"""
Log z across a phase transition
===============================

For readers from statistical physics: the partition function of a field with a first-order
transition, against the exact answer.
"""

# %%
# With all weights equal the field is a mean-field Potts model, whose partition function is a
# convolution over class counts. Five classes have a first-order transition.

import matplotlib.pyplot as plt
import numpy as np

from nearfield.field import LabelField
from nearfield.field.enumeration import uniform_log_partition, uniform_mean_agreement
from nearfield.log_partition import log_partition_curve

n_points, n_classes = 60, 5
field = LabelField.from_weights((1.0 - np.eye(n_points)) / (n_points - 1), n_classes)
betas = np.linspace(0.0, 4.0, 41)
exact = uniform_log_partition(n_points, n_classes, betas)

# %%
# ``log_partition_curve`` places states by thermodynamic length, visits them forward and backward,
# crosses transitions by restrained states, and pools all draws by MBAR.

estimate, error = log_partition_curve(0, field, betas)
print(f"largest difference {np.abs(estimate - exact).max():.3f}, reported error {error.max():.3f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
left.plot(betas, uniform_mean_agreement(n_points, n_classes, betas) / n_points, color="#0072B2")
left.set(xlabel="beta", ylabel="mean agreement per point", title="A jump, rounded by n = 60")
right.errorbar(
    betas, estimate - exact, 2 * error, fmt="o", markersize=3, color="#0072B2", ecolor="0.7"
)
right.axhline(0, color="black", linewidth=0.8)
right.set(
    xlabel="beta", ylabel="estimate - exact log z", title="Error, with two reported standard errors"
)

# %%
# The same function takes any :class:`~nearfield.field.LabelField`, with any symmetric,
# non-negative coupling.
