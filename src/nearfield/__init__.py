"""Bayesian nearest-neighbour classification: labels as a Markov random field over distances.

The distance nearest neighbour models of Friel and Pettitt (2011), and what they build on.
Layers, each importing only from those before it: ``datasets``, ``distances``, ``weights``,
``field`` (with ``enumeration``, the exact oracle), ``families``, ``sampling``, ``inference``.
"""

__version__ = "0.1.0"
