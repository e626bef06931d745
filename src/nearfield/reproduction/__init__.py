"""The paper, reproduced: its tables, its figures and its claims, as experiments with a report.

In reading order: ``paper`` (what it prints), ``settings``, ``problems`` (data sets and their
splits), ``units`` (one result, one file), ``experiment`` (one method on one split), ``metrics``,
then a module a part (``table1``, ``table2``, ``spectra``, ``claims``), ``figures``, ``report`` and
``page`` (Markdown, csv, JSON, PNG and a web page) and ``run``, which puts them in order.
"""

from nearfield.reproduction.metrics import point_losses
from nearfield.reproduction.run import PARTS, reproduce
from nearfield.reproduction.settings import QUICK, Settings

__all__ = ["PARTS", "QUICK", "Settings", "point_losses", "reproduce"]
