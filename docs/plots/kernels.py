"""How the three kernels fall off with the distance."""

import matplotlib.pyplot as plt
import numpy as np

distances = np.linspace(0.0, 3.0, 301)
curves = {
    "gaussian (d-nn1)": lambda d, s: np.exp(-(d**2) / (2 * s**2)),
    "radius (d-nn2)": lambda d, s: np.where(d < s, 1.0, 1e-10),
    "exponential (d-nn3)": lambda d, s: np.exp(-d * s),
}
figure, axes = plt.subplots(1, 3, figsize=(7.8, 2.3), layout="constrained", sharey=True)
for ax, (name, kernel) in zip(axes, curves.items(), strict=True):
    for sigma, color in zip((0.5, 1.0, 2.0), ("#56B4E9", "#0072B2", "#000000"), strict=True):
        ax.plot(distances, kernel(distances, sigma), color=color, label=f"sigma = {sigma:g}")
    ax.set(title=name, xlabel="distance")
axes[0].set_ylabel("kernel")
axes[0].legend()
