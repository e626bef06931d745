"""
Why this class? The training points behind a prediction
=======================================================

A nearest-neighbour prediction can be traced to the training points that made it. ``influence``
gives what each of them adds to the log odds of its class; ``explain`` adds the features.
"""

# %%
# Glass fragments from crime scenes: which kind of glass? We look at the least certain of the test
# fragments.

import numpy as np

from nearfield import DistanceNeighborsClassifier
from nearfield.datasets import load_glass, stratified_split
from nearfield.plotting import ExplanationDisplay, InfluenceDisplay

glass = load_glass(as_frame=True)
X, y = glass.data, glass.target_names[glass.target]
train, test = stratified_split(y, 0.5, random_state=1)
model = DistanceNeighborsClassifier("gaussian", random_state=0).fit(X.iloc[train], y[train])
probabilities = model.predict_proba(X.iloc[test])
least_sure = int(np.argmin(np.abs(np.diff(np.sort(probabilities, axis=1)[:, -2:]).ravel())))
fragment = X.iloc[[test[least_sure]]]
print(
    {
        str(name): round(float(p), 2)
        for name, p in zip(model.classes_, probabilities[least_sure], strict=True)
    }
)

# %%
# The bars are posterior means of beta times the coupling. Their sum over a class is its score;
# the difference of two sums is the log odds.

InfluenceDisplay.from_estimator(model, fragment, n_points=10)

# %%
# ``explain`` gives the same samples, and the features that decided between the two most probable
# classes: the share of each in the log odds, beside those of a mean fragment.

why = model.explain(fragment)[0]
for sample in why.samples[:3]:
    print(f"training fragment {train[sample.row]} ({sample.label}): {sample.influence:.2f}")

ExplanationDisplay.from_estimator(model, fragment)

# %%
# What would change the answer: values of a training fragment of the second class.

if why.change is not None:
    print(f"{why.first} would be {why.change.label} with {dict(why.change.values)}")

# %%
# ``why.to_dict()`` is ready for JSON, ``why.to_frame()`` is a data frame; on the command line,
# ``nearfield explain model data.csv --row 3`` prints the same.
