"""The quality benchmark: the recommended classifier against its peers, on fourteen data sets.

`PROBLEMS` and `METHODS` say what is compared; `run_benchmark` fills a folder with one result for
each data set, split and method, and continues a run that was stopped; `read_results` reads the
folder, and `write_report` writes a document with a figure of the mean ranks.
"""

from nearfield.benchmark.methods import METHODS
from nearfield.benchmark.problems import PROBLEMS, Problem
from nearfield.benchmark.ranks import critical_difference, mean_ranks
from nearfield.benchmark.report import write_report
from nearfield.benchmark.run import Suite, read_results, run_benchmark

__all__ = [
    "METHODS",
    "PROBLEMS",
    "Problem",
    "Suite",
    "critical_difference",
    "mean_ranks",
    "read_results",
    "run_benchmark",
    "write_report",
]
