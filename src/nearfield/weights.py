"""Alias of `nearfield.field.weights`, its name in version 0.1."""

from nearfield.field.weights import *  # noqa: F403
