"""Compiled kernels of distances and of learned metrics."""
