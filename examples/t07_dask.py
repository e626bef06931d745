"""
Training points on a cluster
============================

``nearfield.dask`` fits the same models to Dask arrays and frames whose rows are spread over
workers. Answers equal those of one machine. The example uses threads of this process as the
cluster; a ``distributed.Client`` needs no other code. Install
``"nearfield[dask,plot]"`` for it.
"""

# %%
# 7,000 rows in seven blocks. Blocks may come from Parquet files, be of unknown length, or lack
# some classes.

import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

import nearfield
from nearfield.dask import DistanceNeighborsClassifier

dask.config.set(scheduler="threads", num_workers=1)
X, y = make_blobs(8_000, centers=12, n_features=4, cluster_std=2.2, random_state=0)
y %= 3
points, labels = (
    da.from_array(X[:7_000], chunks=(1_000, 4)),
    da.from_array(y[:7_000], chunks=1_000),
)
new_points = da.from_array(X[7_000:], chunks=(250, 4))

# %%
# Each shard owns a region of space, its points, and an index to search them. The neighbours that
# shards find are merged by distance, and class sums are added up: no worker holds all points.

model = DistanceNeighborsClassifier(random_state=0).fit(points, labels)
lazy = model.predict_proba(new_points)
print(lazy)

# %%
# The prediction is lazy until computed. On one machine, the estimator of the same name gives the
# same numbers.

distributed = lazy.compute()
local = nearfield.DistanceNeighborsClassifier(random_state=0).fit(X[:7_000], y[:7_000])
difference = np.abs(distributed - local.predict_proba(X[7_000:]))
print(f"largest difference from one machine: {difference.max():.1e}")

figure, ax = plt.subplots(figsize=(4.6, 4.4), layout="constrained")
ax.scatter(
    local.predict_proba(X[7_000:]).ravel(), distributed.ravel(), s=6, alpha=0.4, color="#0072B2"
)
ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, zorder=0)
ax.set(xlabel="probability, one machine", ylabel="probability, seven shards", aspect="equal")

# %%
# ``to_local`` brings the fitted estimator to the client, where it can be saved.

print(type(model.to_local()).__module__)
