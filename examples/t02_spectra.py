"""
Spectra: from a raw file to an answer
=====================================

Spectra are wide (hundreds of channels), few, and disturbed by scatter and baseline. We write a raw
file as an instrument would, read it, correct the disturbances, and classify with few samples.
"""

# %%
# Simulated near infra-red spectra of three oils: two absorption bands differ slightly, while
# scatter, slope and offset vary far more from sample to sample.

import io

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline

from nearfield import NearfieldClassifier
from nearfield.spectra import SavitzkyGolay, StandardNormalVariate

rng = np.random.default_rng(1)
wavelengths = np.arange(1100, 2300, 8)
oils = np.repeat(["olive", "hazelnut", "sunflower"], 22)


def band(center, width):
    """Give an absorption band."""
    return np.exp(-(((wavelengths - center) / width) ** 2))


strengths = {"olive": (0.50, 0.32), "hazelnut": (0.48, 0.34), "sunflower": (0.44, 0.38)}
spectra = np.array(
    [
        rng.normal(1.0, 0.15)
        * (strengths[oil] + rng.normal(0, 0.006, 2))
        @ [band(1720, 60), band(1400, 80)]
        + rng.normal(0.3, 0.1)
        + rng.normal(0.0, 0.1) * (wavelengths - 1100) / 1200
        + rng.normal(0, 0.002, len(wavelengths))
        for oil in oils
    ]
)
raw = pd.DataFrame(spectra.round(5), columns=wavelengths).assign(oil=oils)
file = io.StringIO()
raw.to_csv(file, sep=";", decimal=",", index=False)  # as laboratory software writes it
print(file.getvalue()[:80], "...")

# %%
# The command ``nearfield fit oils.csv --target oil --out oils.model`` detects separator and
# decimal comma. In Python:

file.seek(0)
table = pd.read_csv(file, sep=";", decimal=",")
X, y = table.drop(columns="oil").to_numpy(), table["oil"].to_numpy()

# %%
# A smoothed derivative (Savitzky and Golay) removes offset and slope; the standard normal variate
# (SNV) removes scatter. Both treat each spectrum alone, so that nothing leaks from test to training
# samples.

correction = make_pipeline(SavitzkyGolay(window_length=15, deriv=1), StandardNormalVariate())
corrected = correction.fit_transform(X)
figure, axes = plt.subplots(1, 2, figsize=(9.5, 3.4), layout="constrained")
for oil, color in zip(np.unique(y), ("#0072B2", "#E69F00", "#009E73"), strict=True):
    axes[0].plot(wavelengths, X[y == oil].T, color=color, linewidth=0.5)
    differences = corrected[y == oil] - corrected.mean(axis=0)
    axes[1].plot(wavelengths, differences.T, color=color, linewidth=0.5)
    axes[0].plot([], [], color=color, label=oil)
axes[0].set(title="Raw", xlabel="wavelength, nm", ylabel="absorbance")
axes[1].set(title="Derivative and SNV, minus the mean spectrum", xlabel="wavelength, nm")
axes[0].legend()

# %%
# With 66 samples, every sample is predicted by a model of the others. Here the correction is ours;
# ``NearfieldClassifier(preprocess="spectra")`` tries several and weights them instead.

folds = StratifiedKFold(5, shuffle=True, random_state=0)
for name, model in {
    "raw": NearfieldClassifier(random_state=0),
    "corrected": make_pipeline(*correction, NearfieldClassifier(random_state=0)),
}.items():
    probabilities = cross_val_predict(model, X, y, cv=folds, method="predict_proba")
    truth = probabilities[np.arange(len(y)), np.unique(y, return_inverse=True)[1]]
    error = np.mean(np.unique(y)[probabilities.argmax(axis=1)] != y)
    print(f"{name:9s} error {error:.1%}, log loss {-np.log(truth).mean():.3f}")

# %%
# Is a new sample one of these oils at all? ``decide`` answers with a class, "undecided", or "none"
# at a stated rate of false rejections. The blends contain mineral oil, which has a band that no
# training sample has.

model = NearfieldClassifier(random_state=0).fit(corrected[::2], y[::2])
clean = X[1::2]
for share in (0.0, 0.005, 0.01, 0.05):
    blends = correction.transform(clean + share * band(2100, 40))
    answers, counts = np.unique(model.decide(blends, level=0.05).astype(str), return_counts=True)
    print(f"band of height {share}: {dict(zip(answers.tolist(), counts.tolist(), strict=True))}")

# %%
# How small a contamination is detected? ``membership`` gives the p-values behind these answers: a
# sample is refused where the largest of them, over the classes, is below the level. With eleven
# training samples of a class no p-value is below 1/12 for that class alone, so that the figure has
# those of all classes together (``class_conditional=False``).

heights = np.linspace(0.0, 0.02, 9)
p_values = np.array(
    [
        model.membership(
            correction.transform(clean + height * band(2100, 40)), class_conditional=False
        ).max(axis=1)
        for height in heights
    ]
)
figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
ax.plot(heights, p_values, color="0.75", linewidth=0.8)
ax.plot(heights, np.median(p_values, axis=1), color="#0072B2", linewidth=2, label="median")
ax.axhline(0.05, color="#D55E00", linestyle="--", label="level of 5%")
ax.set(
    xlabel="height of the foreign band (the oil's own bands have about 0.4)",
    ylabel="largest p-value of a class",
)
ax.legend()
