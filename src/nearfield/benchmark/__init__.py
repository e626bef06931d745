"""The quality benchmark: the recommended classifier against its peers.

`PARTS` say what is compared, `CHOOSING` what settings were chosen on; `run_benchmark` fills a
folder with one result for each data set, split and method, and continues a run that was stopped;
`read_results` reads the folder, and `write_report` writes a document with a figure of the mean
ranks.
"""

from nearfield.benchmark.methods import METHODS
from nearfield.benchmark.problems import PROBLEMS, Problem
from nearfield.benchmark.ranks import critical_difference, mean_ranks
from nearfield.benchmark.report import write_report
from nearfield.benchmark.run import PARTS, Suite, read_results, run_benchmark
from nearfield.benchmark.table_methods import TABLE_METHODS, one_hot
from nearfield.benchmark.tables import CHOOSING, LARGE, MIXED

__all__ = [
    "CHOOSING",
    "LARGE",
    "METHODS",
    "MIXED",
    "PARTS",
    "PROBLEMS",
    "TABLE_METHODS",
    "Problem",
    "Suite",
    "critical_difference",
    "mean_ranks",
    "one_hot",
    "read_results",
    "run_benchmark",
    "write_report",
]
