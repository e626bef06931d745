"""Draws from a label field: Gibbs sampling, cluster moves, and perfect sampling where possible.

Compiled kernels are free functions over plain arrays; whoever calls them checks the arguments.
Names imported `as` themselves are for the other packages of nearfield.
"""

from nearfield.sampling.free import draw_free_labels as draw_free_labels
from nearfield.sampling.gibbs import draw_labels
from nearfield.sampling.perfect import draw_labels_perfect
from nearfield.sampling.swendsen_wang import draw_after_clusters as draw_after_clusters
from nearfield.sampling.swendsen_wang import draw_labels_cluster

__all__ = ["draw_labels", "draw_labels_cluster", "draw_labels_perfect"]
