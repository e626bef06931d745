"""
Categories and missing values
=============================

Tables as people have them: numbers, text, ordered grades and missing values in one data frame.
Neither encoding nor imputation is needed.
"""

# %%
# An invented study: 240 patients of three groups, with a biomarker, an age, a blood type and a
# grade. A tenth of the values is missing.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from nearfield import NearfieldClassifier
from nearfield.datasets import stratified_split

rng = np.random.default_rng(0)
n = 240
group = rng.integers(3, size=n)
grades = ["low", "medium", "high"]
table = pd.DataFrame(
    {
        "biomarker": rng.normal(np.array([0.0, 1.2, 2.0])[group], 0.8),
        "age": rng.normal(50, 12, n).round(),
        "blood": np.where(rng.random(n) < 0.7, np.array(["A", "B", "0"])[group], "AB"),
        "grade": pd.Categorical.from_codes(
            np.clip(group + rng.integers(-1, 2, n), 0, 2), grades, ordered=True
        ),
    }
)
table = table.mask(rng.random(table.shape) < 0.1)
diagnosis = np.array(["healthy", "mild", "severe"])[group]
print(table.head())

# %%
# ``columns_`` says what each column was taken for. Text counts as a category; an ordered
# categorical keeps its order. Name other columns in ``categorical_features``.

train, test = stratified_split(diagnosis, 0.5, random_state=0)
model = NearfieldClassifier(random_state=0).fit(table.iloc[train], diagnosis[train])
print(model.columns_)

# %%
# The usual alternative is a pipeline that imputes and encodes before k-nn.

numbers, texts = ["biomarker", "age"], ["blood", "grade"]
encode = make_column_transformer(
    (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
    (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), texts),
)
peer = make_pipeline(encode, KNeighborsClassifier(15)).fit(table.iloc[train], diagnosis[train])
losses = {
    name: log_loss(diagnosis[test], method.predict_proba(table.iloc[test]))
    for name, method in (("nearfield", model), ("impute, encode, k-nn", peer))
}
print({name: round(loss, 3) for name, loss in losses.items()})

# %%
# A patient with fewer known values gets a less certain diagnosis. The figure removes the values of
# one severe case, one after the other.

case = table.iloc[test][(diagnosis[test] == "severe") & table.iloc[test].notna().all(axis=1)].iloc[
    [0]
]
stages, probabilities = ["all known"], [model.predict_proba(case)[0]]
for column in ("biomarker", "blood", "grade"):
    case = case.copy()
    case[column] = pd.NA if column == "grade" else np.nan
    stages.append(f"{'and' if len(stages) > 1 else ''} without {column}".strip())
    probabilities.append(model.predict_proba(case)[0])

figure, ax = plt.subplots(figsize=(7, 3), layout="constrained")
left = np.zeros(len(stages))
colors = ("#009E73", "#E69F00", "#0072B2")
for values, name, color in zip(np.transpose(probabilities), model.classes_, colors, strict=True):
    ax.barh(stages, values, left=left, color=color, edgecolor="white", label=name)
    left += values
ax.invert_yaxis()
ax.set(xlabel="probability", xlim=(0, 1), title="One patient, with less and less known")
ax.legend(ncols=3, loc="upper center", bbox_to_anchor=(0.5, -0.22))
