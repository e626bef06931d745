"""Whether the modal class of the neighbourhood has probability one as beta grows."""

import numpy as np
import pandas as pd

from nearfield.reproduction.claims._claim import Claim, verdict
from nearfield.reproduction.experiment import distance_model, fit_quietly
from nearfield.reproduction.figures import COLOURS, new_figure
from nearfield.reproduction.paper import KERNELS
from nearfield.reproduction.problems import split, stream
from nearfield.reproduction.sections import Figure, Table
from nearfield.reproduction.settings import Settings
from nearfield.reproduction.units import Result, Unit

TITLE = "The limit of a large beta"
QUOTE = "In the limit as β → ∞, the modal class label in the neighbourhood set has probability 1."
BETAS = np.geomspace(0.1, 1e6, 43)
PREDICTIVES = ("printed", "joint")


def make_units(settings: Settings) -> list[Unit]:
    """List one run a kernel, on the first split of wine."""
    return [
        Unit(
            TITLE, f"limit-{KERNELS[method]}", run_limit, {"method": method, "seed": settings.seed}
        )
        for method in KERNELS
    ]


def run_limit(method: str, seed: int) -> Result:
    """Raise beta at the posterior mean of sigma and watch the modal class of each test point.

    The modal class is that with the most weight among the neighbours, as the paper prints it.
    """
    from nearfield.inference import Posterior
    from nearfield.prediction import Predictor

    problem = split("wine", 0, seed)
    model = distance_model("wine", method, "pseudolikelihood", "cut", stream(seed, "limit"))
    fit_quietly(model, problem)
    sigma = float(model.posterior_.mean()["sigma"])
    distances = model.metric_space_.distances_to(problem.test_features)

    def probabilities(beta: float, predictive: str):
        posterior = Posterior.from_nodes([beta], [sigma], [1.0], "sigma")
        predictor = Predictor(posterior, model.family_, model.labels_, predictive)
        return predictor.probabilities(distances)

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


def judge(results: list[tuple[Unit, Result]], settings: Settings) -> Claim:
    """Count the test points whose modal class has all probability at the largest beta."""
    curves = {
        (unit.arguments["method"], predictive): np.array(result["modal_probability"][predictive])
        for unit, result in results
        for predictive in PREDICTIVES
    }
    data = pd.DataFrame(
        [
            _row(method, predictive, curves[method, predictive])
            for method in KERNELS
            for predictive in PREDICTIVES
        ]
    )
    printed, joint = (data[data["predictive"] == kind]["share at one"] for kind in PREDICTIVES)
    finding = (
        f"With the paper's predictive {printed.min():.1%} to {printed.max():.1%} of the test "
        "points of wine have their modal class at probability one when beta is 10⁶, ties apart. "
        "With the predictive of the joint, which counts how much the neighbours listen "
        f"to the new point as well, {joint.min():.1%} to {joint.max():.1%}: for the rest another "
        "class has the most coupling."
    )
    shown = data.copy()
    for column in data.columns[2:]:
        shown[column] = [f"{value:.3f}" for value in data[column]]
    caption = "Probability of the modal class, mean over test points"
    return Claim(
        TITLE,
        QUOTE,
        "Section 3, comment 4",
        verdict(float(printed.min()), most=0.95),
        finding,
        [
            Table("claim-limit", caption, shown, data),
            Figure(
                "claim-limit",
                "Probability of the modal class of each test point of wine as beta grows (thin), "
                "and their mean (thick); the paper's predictive",
                lambda: _draw({method: curves[method, "printed"] for method in KERNELS}),
            ),
        ],
    )


def _row(method: str, predictive: str, probabilities: np.ndarray) -> dict:
    return {
        "method": method,
        "predictive": predictive,
        **{
            f"mean at beta {beta:g}": float(probabilities[np.abs(BETAS - beta).argmin()].mean())
            for beta in (1.0, 10.0, 100.0, 1e6)
        },
        "share at one": float((probabilities[-1] > 0.999).mean()),
    }


def _draw(curves: dict[str, np.ndarray]):
    figure, axes = new_figure(9.5, 3.4, ncols=3, sharey=True)
    for ax, method in zip(axes, KERNELS, strict=True):
        ax.plot(BETAS, curves[method], color=COLOURS[method], lw=0.4, alpha=0.35)
        ax.plot(BETAS, curves[method].mean(axis=1), color="black", lw=2.0)
        ax.set(xscale="log", title=method, xlabel="beta", ylim=(0.0, 1.02))
    axes[0].set_ylabel("probability of the modal class")
    return figure
