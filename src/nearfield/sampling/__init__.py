"""Draws from a label field: Gibbs sampling, and perfect sampling where it is possible.

The compiled kernels of nearfield live in this package and nowhere else. They are free functions
over plain arrays; whoever calls them checks the arguments.
"""

from nearfield.sampling.gibbs import draw_labels
from nearfield.sampling.perfect import draw_labels_perfect

__all__ = ["draw_labels", "draw_labels_perfect"]
