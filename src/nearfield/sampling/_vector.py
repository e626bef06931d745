"""Alias of `nearfield._vector`."""

from nearfield._vector import ANY_ORDER, bits_of, exp_of

__all__ = ["ANY_ORDER", "bits_of", "exp_of"]
