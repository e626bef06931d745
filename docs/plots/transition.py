"""The first-order transition of the uniform field: exact averages, and two chains at one beta."""

import matplotlib.pyplot as plt
import numpy as np

from nearfield.field import LabelField
from nearfield.field.enumeration import uniform_mean_agreement
from nearfield.sampling import draw_labels

N_POINTS = 150
betas = np.linspace(0.5, 3.5, 121)
figure, (left, right) = plt.subplots(1, 2, figsize=(7.8, 2.9), layout="constrained")
for n_classes, color in zip((2, 3, 10), ("#0072B2", "#E69F00", "#D55E00"), strict=True):
    agreement = uniform_mean_agreement(N_POINTS, n_classes, betas)
    left.plot(betas, agreement / N_POINTS, color=color, label=f"{n_classes} classes")
critical = betas[np.argmax(np.gradient(agreement))]  # of ten classes
left.axvline(critical, color="0.5", linestyle=":", linewidth=1)
left.set(xlabel="beta", ylabel="mean agreement per point", title="The mean jumps at a transition")
left.legend()

field = LabelField.from_weights((1.0 - np.eye(N_POINTS)) / (N_POINTS - 1), 10)
rng = np.random.default_rng(0)
starts = {
    "from equal labels": np.zeros(N_POINTS, int),
    "from random labels": rng.integers(10, size=N_POINTS),
}
for (name, labels), color in zip(starts.items(), ("#D55E00", "#0072B2"), strict=True):
    trace = []
    for _ in range(400):
        labels = draw_labels(rng, field, critical, 1, initial=labels)
        trace.append(field.agreement(labels) / N_POINTS)
    right.plot(trace, color=color, linewidth=0.9, label=name)
right.set(
    xlabel="Gibbs sweep", ylim=(0, 1), title=f"Two chains at beta = {critical:.2f}, ten classes"
)
right.legend(loc="center right")
