"""The paper, reproduced: its tables, figures and claims, computed and reported.

In reading order: ``paper`` (what it prints), ``texts.toml`` (the fixed words of the report),
``settings``, ``problems`` (data sets and splits), ``experiment`` (one method on one split),
``errors`` and ``readings`` (test errors over splits), ``tables`` and ``claims`` (the sections),
``report``, and ``run``. Results are kept by `nearfield.runs`.
"""

from nearfield.reproduction.metrics import point_losses
from nearfield.reproduction.run import PARTS, reproduce
from nearfield.reproduction.settings import QUICK, Settings

__all__ = ["PARTS", "QUICK", "Settings", "point_losses", "reproduce"]
