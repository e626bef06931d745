"""Claim: as beta grows, the modal class of the neighbourhood gets probability one."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from nearfield.inference import Posterior
from nearfield.reproduction.claims.findings import Finding, verdict
from nearfield.reproduction.experiment import fit_quietly, make_model, predict
from nearfield.reproduction.figures import COLOURS, new_figure
from nearfield.reproduction.paper import KERNELS
from nearfield.reproduction.problems import split, stream
from nearfield.reproduction.settings import Settings
from nearfield.runs import Result, Results, Unit

BETAS = np.geomspace(0.1, 1e6, 43)
PREDICTIVES = ("printed", "joint")


def make_units(settings: Settings) -> list[Unit]:
    """List each kernel, on the first split of wine."""
    seed = settings.seed
    return [Unit("limit", run_limit, {"method": method, "seed": seed}) for method in KERNELS]


def run_limit(method: str, seed: int) -> Result:
    """Follow the probability of each test point's modal class as beta grows.

    sigma is its posterior mean; the modal class has the largest weight among the neighbours.
    """
    problem = split("wine", 0, seed)
    model = make_model("wine", method, "pseudolikelihood", "cut", stream(seed, "limit"))
    fit_quietly(model, problem)
    sigma = float(model.posterior_.mean()["sigma"])
    distances = model.metric_space_.distances_to(problem.test_features)

    def probabilities(beta: float, predictive: str) -> NDArray[np.float64]:
        posterior = Posterior.from_nodes([beta], [sigma], [1.0], "sigma")
        return predict(model, posterior, distances, predictive)

    modal = probabilities(1.0, "printed").argmax(axis=1)
    points = np.arange(len(modal))
    return {
        "sigma": sigma,
        "modal_probability": {
            predictive: [
                np.round(probabilities(beta, predictive)[points, modal], 6).tolist()
                for beta in BETAS
            ]
            for predictive in PREDICTIVES
        },
    }


def judge(results: Results, settings: Settings) -> Finding:
    """Count the test points whose modal class has probability one at the largest beta."""
    curves = {
        (unit.arguments["method"], predictive): np.array(result["modal_probability"][predictive])
        for unit, result in results
        for predictive in PREDICTIVES
    }
    keys = [(method, predictive) for method in KERNELS for predictive in PREDICTIVES]
    data = pd.DataFrame([_record(*key, curves[key]) for key in keys])
    printed, joint = (data[data["predictive"] == kind]["at_one"] for kind in PREDICTIVES)
    summary = (
        f"At beta = 10⁶ the modal class has probability one for {printed.min():.1%} to "
        f"{printed.max():.1%} of the test points of wine with the printed predictive. With the "
        f"joint predictive, whose coupling includes the in-weights, {joint.min():.1%} to "
        f"{joint.max():.1%}: for the others a different class has the largest support."
    )
    shown = {method: curves[method, "printed"] for method in KERNELS}
    share = float(printed.min())
    return Finding(verdict(share, most=0.95), summary, data, lambda: _draw(shown))


def _record(method: str, predictive: str, probabilities: np.ndarray) -> dict[str, Any]:
    return {
        "method": method,
        "predictive": predictive,
        **{
            f"mean_{beta}": float(probabilities[np.abs(BETAS - beta).argmin()].mean())
            for beta in (1, 10, 100, 1_000_000)
        },
        "at_one": float((probabilities[-1] > 0.999).mean()),
    }


def _draw(curves: dict[str, np.ndarray]) -> Any:
    figure, axes = new_figure(9.5, 3.4, ncols=3, sharey=True)
    for ax, method in zip(axes, KERNELS, strict=True):
        ax.plot(BETAS, curves[method], color=COLOURS[method], lw=0.4, alpha=0.35)
        ax.plot(BETAS, curves[method].mean(axis=1), color="black", lw=2.0)
        ax.set(xscale="log", title=method, xlabel="beta", ylim=(0.0, 1.02))
    axes[0].set_ylabel("probability of the modal class")
    return figure
