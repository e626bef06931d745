"""Alias of `nearfield.field.enumeration`, its name in version 0.1."""

from nearfield.field.enumeration import *  # noqa: F403
