"""How far apart the points are: metrics, and the distances that they give.

Imports nothing of nearfield but the data sets; the next layer turns distances into weights.
"""

from nearfield.distances._dense import check_distances, distance_matrix

__all__ = ["check_distances", "distance_matrix"]
