"""Compiled kernels of the neighbour search: free functions over plain arrays."""
