"""Claim: the exchange algorithm accepts about 25% and mixes well.

Its mixing is compared with that of the auxiliary variable method, which it replaces.
"""

import warnings
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

from nearfield.distances import distance_matrix
from nearfield.field import DistanceFamily
from nearfield.inference import AuxiliaryVariable, Exchange, Priors
from nearfield.reproduction import errors
from nearfield.reproduction.claims.findings import Finding, verdict
from nearfield.reproduction.experiment import beta_prior, sigma_prior
from nearfield.reproduction.figures import ACCENTS, COLOURS, MARKERS, new_figure
from nearfield.reproduction.paper import KERNELS, TITLES
from nearfield.reproduction.problems import DataHome, split, stream, why_missing
from nearfield.reproduction.settings import Settings
from nearfield.runs import Result, Results, Unit

ENGINES = {"exchange": Exchange, "auxiliary variable": AuxiliaryVariable}
USUAL_ACCEPTANCE = (0.15, 0.40)
_N_TRACE = 600


def make_units(settings: Settings) -> list[Unit]:
    """List each engine on each model, on every data set that is there."""
    units = []
    for name, method, engine in product(settings.long_data_sets, KERNELS, ENGINES):
        if why_missing(name, settings.data_home) is None:
            arguments = {"name": name, "method": method, "engine": engine, "seed": settings.seed}
            arguments |= settings.mixing_chain._asdict()
            units.append(Unit("exchange", run_chain, arguments, {"data_home": settings.data_home}))
    return units


def run_chain(
    name: str,
    method: str,
    engine: str,
    seed: int,
    n_burn: int,
    n_draws: int,
    n_sweeps: int,
    data_home: DataHome = None,
) -> Result:
    """Run two chains on the first split; measure acceptance and effective sample sizes."""
    problem = split(name, 0, seed, data_home)
    points = StandardScaler().fit_transform(problem.train_features)
    n_classes = int(problem.train_labels.max()) + 1
    family = DistanceFamily(distance_matrix(points), KERNELS[method], n_classes)
    settings = ENGINES[engine](n_draws=n_draws, n_burn=n_burn, n_sweeps=n_sweeps, n_chains=2)
    priors = Priors(beta_prior("cut"), sigma_prior(name))
    rng = np.random.default_rng(stream(seed, name, method, engine))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # poor mixing is what is measured
        posterior = settings.infer(rng, family, problem.train_labels, priors)
        ess = posterior.summary().loc[["beta", "sigma"], "ess_bulk"]
    return {
        "acceptance": posterior.acceptance_rate,
        "ess": {name: effective_draws(value) for name, value in ess.items()},
        "n_kept": 2 * n_draws,
        "trace": np.round(posterior.beta[0][:_N_TRACE], 4).tolist(),
    }


def effective_draws(ess: float) -> float:
    """Return the effective sample size, zero for a chain that never moved."""
    return float(ess) if np.isfinite(ess) else 0.0


def judge(results: Results, settings: Settings) -> Finding:
    """Compare acceptance, and effective draws for the same number of sweeps."""
    data = _collect(results)
    ratio = data["ratio"]
    accepted = data["acceptance_exchange"]
    low, high = USUAL_ACCEPTANCE
    is_usual = accepted.between(low, high)
    better = int((ratio > 1.0).sum())
    summary = (
        f"Exchange accepts {accepted.min():.0%} to {accepted.max():.0%} of its proposals, between "
        f"{low:.0%} and {high:.0%} in {is_usual.sum()} of {len(data)} runs; the rate follows from "
        "the proposal, tuned towards 27% during burn-in. For the same number of sweeps, exchange "
        "has a larger effective sample size than the auxiliary variable method in "
        f"{better} of {len(ratio)} runs, by a median factor of {ratio.median():.1f}."
    )
    share = min(better / len(ratio), float(is_usual.mean()))
    return Finding(verdict(share), summary, data, lambda: _draw(data, results))


def _collect(results: Results) -> pd.DataFrame:
    """Return one record for each data set and method, both engines side by side."""
    records: dict[tuple[str, str], dict[str, Any]] = {}
    for unit, result in results:
        key = unit.arguments["name"], unit.arguments["method"]
        engine = unit.arguments["engine"].split()[0]
        record = records.setdefault(key, {"name": key[0], "method": key[1]})
        record[f"acceptance_{engine}"] = result["acceptance"]
        record[f"ess_{engine}"] = 1_000.0 * min(result["ess"].values()) / result["n_kept"]
    frame = errors.in_paper_order(pd.DataFrame(list(records.values())))
    return frame.assign(ratio=frame["ess_exchange"] / frame["ess_auxiliary"])


def _draw(data: pd.DataFrame, results: Results) -> Any:
    figure, (left, right) = new_figure(9.5, 4.2, ncols=2)
    _draw_effective_draws(left, data)
    first = data.iloc[0]
    for colour, engine in zip(ACCENTS, ENGINES, strict=False):
        for unit, result in results:
            wanted = {"name": first["name"], "method": first["method"], "engine": engine}
            if wanted.items() <= unit.arguments.items():
                right.plot(result["trace"], lw=0.8, color=colour, label=engine)
    right.set_title(f"{TITLES[first['name']]}, {first['method']}", fontsize=10)
    right.set(xlabel="iteration after burn-in", ylabel="beta")
    right.legend(frameon=False)
    return figure


def _draw_effective_draws(ax: Any, data: pd.DataFrame) -> None:
    sizes = data[["ess_auxiliary", "ess_exchange"]].clip(lower=0.1)  # zero: a chain that stood
    limits = [sizes.to_numpy().min() / 1.5, sizes.to_numpy().max() * 1.5]
    ax.plot(limits, limits, color="0.6", lw=1.0)
    ax.text(0.03, 0.95, "exchange mixes better", transform=ax.transAxes, fontsize=9, color="0.35")
    for method in KERNELS:
        own = sizes[data["method"] == method].to_numpy()
        ax.plot(*own.T, MARKERS[method], color=COLOURS[method], label=method)
    ax.set(xscale="log", yscale="log", xlim=limits, ylim=limits)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    ax.set(xlabel="ESS per 1,000, auxiliary variable", ylabel="ESS per 1,000, exchange")
    ax.legend(frameon=False, loc="lower right")
