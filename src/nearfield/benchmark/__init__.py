"""The quality benchmark: the recommended classifier against its peers, on fourteen data sets.

`PROBLEMS` and `METHODS` say what is compared; `run_benchmark` fills a folder with one file a
data set, split and method, and goes on where an earlier run was stopped; `read_results` reads
it, and `write_report` turns it into a document with a picture of the mean ranks.
"""

from nearfield.benchmark.methods import METHODS
from nearfield.benchmark.problems import PROBLEMS, Problem
from nearfield.benchmark.ranks import critical_difference, mean_ranks
from nearfield.benchmark.report import write_report
from nearfield.benchmark.run import read_results, run_benchmark

__all__ = [
    "METHODS",
    "PROBLEMS",
    "Problem",
    "critical_difference",
    "mean_ranks",
    "read_results",
    "run_benchmark",
    "write_report",
]
