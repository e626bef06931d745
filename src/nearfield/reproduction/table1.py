"""Table 1: the sizes of the data sets, beside the paper's."""

import pandas as pd

from nearfield.reproduction.paper import (
    BENCHMARKS,
    SIZE_REASONS,
    SPECTRA,
    SPECTRA_SIZES,
    TABLE1,
    TITLES,
    Sizes,
)
from nearfield.reproduction.problems import DataHome, load
from nearfield.reproduction.sections import Section, Table


def build(data_home: DataHome = None) -> Section:
    """Compare classes, features and points of each data set with the paper's."""
    rows, missing = [], []
    for name in (*BENCHMARKS, *SPECTRA):
        try:
            bunch = load(name, data_home)
        except FileNotFoundError:
            missing.append(TITLES[name])
            continue
        ours = Sizes(len(bunch.target_names), bunch.data.shape[1], bunch.data.shape[0])
        rows.append(_row(name, ours))
    data = pd.DataFrame(rows)
    shown = data.drop(columns="name").set_axis(
        ["data set", "G", "F", "N", "paper's G", "paper's F", "paper's N", "agrees", "why"], axis=1
    )
    shown["agrees"] = ["yes" if agrees else "no" for agrees in data["agrees"]]
    blocks: list = [
        "Classes G, features F and points N of each data set, as loaded and as printed in the "
        "paper's Table 1 (the spectra: in the text of its section 5.2).",
        Table("table1", "Table 1. The data sets", shown, data),
    ]
    if missing:
        blocks.append(
            f"Not found, so left out: {' and '.join(missing)}. The spectra are not part of "
            "nearfield; `--data` or NEARFIELD_DATA names the folder that holds them."
        )
    return Section("table1", "Table 1: the data sets", blocks)


def _row(name: str, ours: Sizes) -> dict:
    paper = TABLE1[name] if name in TABLE1 else SPECTRA_SIZES[name]
    return {
        "name": name,
        "data_set": TITLES[name],
        "n_classes": ours.n_classes,
        "n_features": ours.n_features,
        "n_points": ours.n_points,
        "paper_n_classes": paper.n_classes,
        "paper_n_features": paper.n_features,
        "paper_n_points": paper.n_points,
        "agrees": ours == paper,
        "reason": SIZE_REASONS.get(name, ""),
    }
