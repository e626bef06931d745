import pickle
import sys
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from nearfield.inference import _arviz
from nearfield.inference._posterior import Posterior, warn_unless_converged


@pytest.fixture
def draws(rng):
    beta = rng.normal(2.0, 0.5, size=(4, 1_000))
    return Posterior.from_draws(
        beta, np.exp(beta), "sigma", acceptance_rates=[0.2, 0.3, 0.25, 0.25]
    )


@pytest.fixture
def nodes():
    """A fine quadrature of beta ~ N(1, 0.5^2) and, independent of it, sigma ~ U(0, 2)."""
    betas, sigmas = np.linspace(-2.0, 4.0, 301), (np.arange(100) + 0.5) / 50
    weight = np.outer(np.ones(100), stats.norm.pdf(betas, 1.0, 0.5)).ravel()
    return Posterior.from_nodes(
        np.tile(betas, 100),
        np.repeat(sigmas, 301),
        weight / weight.sum(),
        "sigma",
        log_evidence=-12.0,
        log_evidence_error=0.1,
        mean_error=[0.01, 0.02],
        outside_mass=1e-6,
    )


def test_nodes_give_the_moments_and_quantiles_of_their_distribution(nodes):
    assert nodes.mean()["beta"] == pytest.approx(1.0)
    assert nodes.sd()["beta"] == pytest.approx(0.5, rel=1e-3)
    assert nodes.mean()["sigma"] == pytest.approx(1.0)
    assert nodes.sd()["sigma"] == pytest.approx(2.0 / np.sqrt(12.0), rel=1e-3)
    quantiles = nodes.quantile([0.025, 0.5, 0.9])
    expected = stats.norm(1.0, 0.5).ppf([0.025, 0.5, 0.9])
    np.testing.assert_allclose(quantiles["beta"], expected, atol=1e-3)
    np.testing.assert_allclose(quantiles["sigma"], [0.05, 1.0, 1.8], atol=1e-6)


def test_draws_give_sample_moments_and_quantiles(draws):
    assert draws.is_draws
    assert draws.weight.sum() == pytest.approx(1.0)
    assert draws.mean()["beta"] == pytest.approx(draws.beta.mean())
    assert draws.sd()["sigma"] == pytest.approx(draws.sigma.std())
    assert draws.quantile(0.3)["sigma"] == pytest.approx(np.quantile(draws.sigma, 0.3), rel=1e-3)
    assert draws.acceptance_rate == pytest.approx(0.25)
    assert draws.log_evidence is None


def test_quantiles_of_k_are_whole_numbers():
    posterior = Posterior.from_draws([[1.0, 2.0, 1.5, 0.5]], [[3, 3, 4, 7]], "k")
    np.testing.assert_array_equal(
        posterior.quantile([0.0, 0.5, 0.51, 0.9, 1.0])["k"], [3, 3, 4, 7, 7]
    )


def test_the_table_of_k_holds_its_probabilities():
    posterior = Posterior.from_nodes(np.arange(4.0), [2, 5, 2, 9], [0.1, 0.2, 0.3, 0.4], "k")
    table = posterior.table()
    assert table.to_dict() == pytest.approx({2: 0.4, 5: 0.2, 9: 0.4})
    assert table.index.dtype == np.int64


def test_the_other_scale_is_an_attribute_error(draws):
    with pytest.raises(AttributeError, match="this one is of beta and sigma"):
        _ = draws.k
    with pytest.raises(AttributeError, match="beta and sigma"):
        draws.table()
    assert not hasattr(draws, "k")
    np.testing.assert_array_equal(draws.sigma, draws.scale)


def import_arviz():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # 0.x announces the next version
        return pytest.importorskip("arviz")


def test_the_summary_of_draws_agrees_with_arviz(draws):
    arviz, data = import_arviz(), draws.to_arviz()
    summary = draws.summary(level=0.9)
    assert list(summary.index) == ["beta", "sigma"]
    assert list(summary.columns) == [
        "mean", "sd", "lower", "upper", "mcse_mean", "ess_bulk", "ess_tail", "r_hat",
    ]  # fmt: skip
    expected = {
        "mcse_mean": arviz.mcse(data),
        "ess_bulk": arviz.ess(data),
        "ess_tail": arviz.ess(data, method="tail", prob=(0.05, 0.95)),
        "r_hat": arviz.rhat(data),
    }
    for name in summary.index:
        for column, values in expected.items():
            assert summary.loc[name, column] == pytest.approx(float(values[name]), rel=1e-9)
    assert summary.loc["beta", "lower"] == pytest.approx(np.quantile(draws.beta, 0.05), abs=1e-2)
    assert not summary.isna().any(axis=None)


def test_pareto_smoothing_is_that_of_arviz(rng):
    # 100 draws have a tail of 20 in both; at other sizes ArviZ 0.x takes one draw more.
    log_ratios = rng.standard_t(4, size=(5, 100))
    log_weights, pareto_k = _arviz.pareto_smoothed(log_ratios)
    np.testing.assert_allclose(np.exp(log_weights).sum(axis=1), 1.0)
    assert (np.argmax(log_weights, axis=1) == np.argmax(log_ratios, axis=1)).all()
    arviz = import_arviz()
    if not hasattr(arviz, "psislw"):
        return  # 1.x: it is the function of arviz-stats
    expected_weights, expected_k = arviz.psislw(log_ratios.copy())
    np.testing.assert_allclose(log_weights, expected_weights, atol=1e-9)
    np.testing.assert_allclose(pareto_k, expected_k, atol=1e-9)


@pytest.mark.parametrize("n_draws", [4, 20, 1_000])
def test_ratios_without_a_tail_are_not_smoothed(rng, n_draws):
    log_ratios = np.minimum(rng.normal(size=(3, n_draws)), -5.0 if n_draws == 1_000 else np.inf)
    log_weights, pareto_k = _arviz.pareto_smoothed(log_ratios)
    weights = np.exp(log_ratios)
    np.testing.assert_allclose(np.exp(log_weights), weights / weights.sum(axis=1, keepdims=True))
    assert np.isinf(pareto_k).all()


def test_the_summary_of_nodes_shows_the_error_of_the_engine(nodes):
    summary = nodes.summary()
    assert summary["mcse_mean"].tolist() == [0.01, 0.02]
    assert summary[["ess_bulk", "ess_tail", "r_hat"]].isna().all(axis=None)
    np.testing.assert_allclose(summary.loc["sigma", ["lower", "upper"]].tolist(), [0.05, 1.95])
    assert nodes.acceptance_rate is None
    assert (nodes.log_evidence, nodes.log_evidence_error) == (-12.0, 0.1)
    assert nodes.outside_mass == 1e-6


@pytest.mark.parametrize("kind", ["draws", "nodes"])
def test_samples_follow_the_record(rng, request, kind):
    posterior = request.getfixturevalue(kind)
    betas, sigmas = posterior.sample(20_000, rng)
    for drawn, name in ((betas, "beta"), (sigmas, "sigma")):
        error = posterior.sd()[name] / np.sqrt(20_000)
        assert abs(drawn.mean() - posterior.mean()[name]) < 4.0 * error


def test_samples_keep_pairs_together(rng, draws):
    betas, sigmas = draws.sample(50, rng)
    np.testing.assert_allclose(sigmas, np.exp(betas))


@pytest.mark.parametrize("kind", ["draws", "nodes"])
def test_arviz_opens_the_record_and_draws_it(request, kind):
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    arviz = import_arviz()
    data = request.getfixturevalue(kind).to_arviz()
    is_old = arviz.__version__.startswith("0.")
    assert type(data).__name__ == ("InferenceData" if is_old else "DataTree")
    assert data.posterior["beta"].dims == ("chain", "draw")
    n_chains, n_draws = (4, 1_000) if kind == "draws" else (1, 4_000)
    assert dict(data.posterior.sizes) == {"chain": n_chains, "draw": n_draws}
    assert ("independent" in data.posterior.attrs["sampling"]) == (kind == "nodes")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ArviZ and Matplotlib, about each other
        arviz.plot_trace(data)
        figure = plt.gcf()
        figure.canvas.draw()
    assert len(figure.axes) >= 2  # for beta and for sigma
    plt.close("all")


def test_without_arviz_its_record_says_what_to_install(monkeypatch, draws):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r'pip install "nearfield\[arviz\]"'):
        draws.to_arviz()


def test_good_chains_raise_no_warning(draws):
    warn_unless_converged(draws)


def test_chains_that_disagree_raise_a_warning(rng):
    apart = rng.normal(size=(4, 1_000)) + np.arange(4)[:, None]
    posterior = Posterior.from_draws(apart, rng.normal(size=(4, 1_000)) ** 2, "sigma")
    with pytest.warns(ConvergenceWarning, match=r"R-hat of beta is .*Raise n_draws") as caught:
        warn_unless_converged(posterior)
    assert len(caught) == 1
    assert "of sigma" not in str(caught[0].message)


@pytest.mark.parametrize("n_draws", [1, 3, 50])
@pytest.mark.parametrize("n_chains", [1, 4])
def test_too_few_draws_raise_a_warning(rng, n_draws, n_chains):
    values = rng.normal(size=(n_chains, n_draws))
    with pytest.warns(ConvergenceWarning, match="ESS of beta is"):
        warn_unless_converged(Posterior.from_draws(values, values**2, "sigma"))


def test_a_stuck_chain_raises_a_warning(rng):
    stuck = np.ones((2, 1_000))
    with pytest.warns(ConvergenceWarning, match="R-hat of beta is nan"):
        warn_unless_converged(Posterior.from_draws(stuck, stuck, "sigma"))
    with pytest.warns(ConvergenceWarning, match="R-hat of beta"):
        warn_unless_converged(Posterior.from_draws(stuck * [[1.0], [2.0]], stuck, "k"))


def test_a_k_that_never_changes_is_no_failure(rng):
    betas = rng.normal(size=(4, 1_000))
    warn_unless_converged(Posterior.from_draws(betas, np.full((4, 1_000), 3), "k"))


def test_a_single_chain_is_compared_with_itself(rng):
    values = rng.normal(size=(1, 2_001))
    drifting = values + np.linspace(0.0, 3.0, 2_001)
    good, bad = (
        Posterior.from_draws(v, v, "sigma").summary().loc["beta", "r_hat"]
        for v in (values, drifting)
    )
    assert good < 1.01 < bad


@pytest.mark.parametrize("kind", ["draws", "nodes"])
def test_the_record_survives_pickling(request, kind):
    posterior = request.getfixturevalue(kind)
    again = pickle.loads(pickle.dumps(posterior))
    np.testing.assert_array_equal(posterior.beta, again.beta)
    np.testing.assert_array_equal(posterior.weight, again.weight)
    assert again.scale_name == "sigma"


def test_impossible_records_are_refused(draws):
    with pytest.raises(ValueError, match="sum to one"):
        Posterior.from_nodes([1.0, 2.0], [1.0, 2.0], [0.5, 0.6], "sigma")
    with pytest.raises(ValueError, match="sum to one"):
        Posterior.from_nodes([1.0, 2.0], [1.0, 2.0], [1.5, -0.5], "sigma")
    with pytest.raises(ValueError, match=r"shape \(n_nodes,\)"):
        Posterior.from_nodes([1.0, 2.0], [1.0], [1.0], "sigma")
    with pytest.raises(ValueError, match=r"shape \(chain, draw\)"):
        Posterior.from_draws([1.0], [1.0], "sigma")
    with pytest.raises(ValueError, match="not finite"):
        Posterior.from_draws([[np.nan]], [[1.0]], "sigma")
    with pytest.raises(ValueError, match="'sigma' or 'k'"):
        Posterior.from_draws([[1.0]], [[1.0]], "tau")
    with pytest.raises(ValueError, match="mean_error of shape"):
        Posterior.from_nodes([1.0], [1.0], [1.0], "sigma", mean_error=[0.1])
    with pytest.raises(ValueError, match="0 <= q <= 1"):
        draws.quantile(1.5)
    with pytest.raises(ValueError, match="0 < level < 1"):
        draws.summary(level=1.0)
    with pytest.raises(ValueError, match="n >= 1"):
        draws.sample(0, np.random.default_rng(0))
