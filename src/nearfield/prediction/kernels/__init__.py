"""Compiled kernels of prediction: supports of new points, and averages of their softmax."""
