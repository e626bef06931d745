"""Compiled votes of nearest neighbours."""
