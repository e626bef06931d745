"""Path sampling against exact posteriors of uniform fields, across first-order transitions.

    python benchmarks/transitions.py --seeds 20                  # goes on where it was stopped
    python benchmarks/transitions.py --seeds 1 --points 1000
    python benchmarks/transitions.py --seeds 0                   # the table of what there is

The uniform field has all distances equal, so that log z is a convolution over class counts. Every
run of every case is one line of results/transitions.jsonl; the table for docs/validation.md is
printed: a row for each number of points and classes, over all labels and seeds.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))  # the oracle

from uniform_fields import Case, run_uniform  # noqa: E402

STORE = ROOT / "results" / "transitions.jsonl"
N_POINTS, N_CLASSES = (30, 60, 150, 300, 1_000), (2, 3, 5, 10)


def cases(n_points):
    """List the cases: balanced, dominated by one class, and drawn at the transition."""
    return [
        Case(n, n_classes, share)
        for n in n_points
        for n_classes in N_CLASSES
        for share in (1.0 / n_classes, 0.6, 0.8, 0.85, 0.97, None)
    ]


def read_store():
    if not STORE.exists():
        return []
    return [json.loads(line) for line in STORE.read_text().splitlines()]


def run_missing(n_points, n_seeds):
    """Run what the store does not have, seed by seed."""
    known = {(*row["case"], row["seed"]) for row in read_store()}
    STORE.parent.mkdir(exist_ok=True)
    with STORE.open("a") as store:
        for seed in range(n_seeds):
            for case in cases(n_points):
                if (*case, seed) not in known:
                    row = {"case": case, "seed": seed, **run_uniform(case, seed)._asdict()}
                    print(json.dumps(row), file=store, flush=True)


def table(rows):
    """Summarize all runs by the numbers of points and classes."""
    frame = pd.DataFrame(rows)
    frame[["n", "G", "share"]] = pd.DataFrame(frame["case"].tolist())
    frame["share"] = frame["share"].fillna(-1.0)
    lines = [
        "| points, classes | runs | outside the bounds | warned | mean off by at most (sd) "
        "| sd (%) | log evidence, beyond 3 errors | reported / spread: mean, evidence "
        "| CPU a run |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (n, n_classes), group in frame.groupby(["n", "G"]):
        excess = group["log_evidence"].abs() - 3.0 * group["log_evidence_error"]
        is_outside = (group["mean"].abs() > 0.1) | (group["sd"].abs() > 0.05) | (excess > 0.1)
        ratios = [
            f"{error_ratio(group, value, error):.2f}"
            for value, error in (
                ("mean", "mean_error"),
                ("log_evidence", "log_evidence_error"),
            )
        ]
        lines.append(
            f"| {n:,}, {n_classes} | {len(group)} | {is_outside.sum()} | "
            f"{(group['n_warnings'] > 0).sum()} | {group['mean'].abs().max():.2f} | "
            f"{100 * group['sd'].abs().max():.1f} | {max(excess.max(), 0.0):.2f} | "
            f"{', '.join(ratios)} | {group['seconds'].median():.1f} s |"
        )
    return "\n".join(lines)


def error_ratio(group, value, error):
    """Divide the rms of reported errors by that of the errors made; 0.01 is added to both."""
    reported, made = (np.sqrt((group[name] ** 2).mean()) + 0.01 for name in (error, value))
    return reported / made


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--points", type=int, nargs="+", default=N_POINTS)
    arguments = parser.parse_args()
    run_missing(arguments.points, arguments.seeds)
    print(table(read_store()))


if __name__ == "__main__":
    main()
