import warnings

import joblib
import numpy as np
import pytest
from benchmark_sets import BENCHMARK_SETS, training_set
from oracle import FIELDS, exact_posterior, log_partitions, tiny_family, tiny_labels, tiny_priors
from sbc import chi_square_p_value, ecdf_p_value, sbc_ranks
from scipy import stats
from sklearn.exceptions import ConvergenceWarning

from nearfield.datasets import load_crabs, load_iris, load_olive, load_wine, stratified_split
from nearfield.distances import distance_matrix
from nearfield.field import NeighborFamily
from nearfield.field.enumeration import label_distribution
from nearfield.inference import Exchange, PathSampling, Priors, default_priors
from nearfield.inference._problem import PathSettings, Problem
from nearfield.log_partition import Estimates, Reweighting

MODELS = ["gaussian", "exponential", "radius", "k"]
N_SEEDS = 3
# With eight groups an error has seven degrees of freedom: a z of 6 has probability 5e-4.
MAX_OFF, MAX_RMS = 6.0, 2.5
LEVEL = 1e-3


def z_scores(posterior, exact):
    """How far means and evidence are from the exact ones, in the errors reported."""
    off = (posterior.mean() - exact.mean()).to_numpy() / posterior.mean_error
    evidence = (posterior.log_evidence - exact.log_evidence) / posterior.log_evidence_error
    return np.array([*off, evidence])


def compare(family, labels, priors, n_seeds=N_SEEDS, n_scales=120):
    """Run several seeds; return their z scores, the last posterior and the exact one."""
    exact = exact_posterior(family, labels, priors, n_scales=n_scales)
    runs = [
        PathSampling().infer(np.random.default_rng(seed), family, labels, priors)
        for seed in range(n_seeds)
    ]
    return np.array([z_scores(run, exact) for run in runs]), runs[-1], exact


def assert_calibrated(scores):
    assert np.abs(scores).max() < MAX_OFF
    assert np.sqrt((scores**2).mean()) < MAX_RMS


def above_zero(family):
    if family.is_discrete:
        return Priors(stats.halfnorm(scale=50.0), default_priors(family).scale)
    return Priors(stats.halfnorm(scale=50.0), stats.uniform(0.0, 100.0))


@pytest.mark.parametrize(("model", "n_points", "n_classes"), FIELDS)
def test_path_sampling_gives_the_exact_posterior(model, n_points, n_classes):
    family = tiny_family(model, n_points, n_classes)
    n_scales = 250 if model == "radius" else 120
    scores, posterior, exact = compare(
        family, tiny_labels(family), tiny_priors(family), n_scales=n_scales
    )
    assert_calibrated(scores)
    # An error of the mean of x sd moves the sd and quantiles by about as much; the oracle's own
    # grids are good to one part in a hundred.
    tolerance = 6.0 * posterior.mean_error + 0.012 * exact.sd()
    assert (abs(posterior.sd() - exact.sd()) < tolerance).all()
    if model == "k":
        both = posterior.table().align(exact.table(), fill_value=0.0)
        assert abs(both[0] - both[1]).max() < 0.03
        tolerance = tolerance.drop("k")
    off = (posterior.quantile([0.05, 0.5, 0.95]) - exact.quantile([0.05, 0.5, 0.95])).abs().max()
    assert (off[tolerance.index] < 2.0 * tolerance).all()
    assert posterior.outside_mass < 1e-3
    assert posterior.log_evidence_error < 0.1


def test_an_external_field_and_a_negative_beta_are_handled():
    distances = distance_matrix(np.arange(8.0)[:, None])
    family = NeighborFamily.from_distances(distances, 2, external_field=[0.5, -0.2])
    priors = Priors(stats.norm(0.0, 2.0), stats.randint(1, 3))
    scores, _, exact = compare(family, np.arange(8) % 2, priors)
    assert_calibrated(scores)
    assert exact.mean()["beta"] < -1.0


@pytest.mark.parametrize(
    "priors",
    [
        Priors(stats.logistic(0.0, 1.0), stats.lognorm(0.5)),
        Priors(stats.uniform(0.5, 0.5), stats.uniform(0.5, 1.0)),
        Priors(stats.uniform(-3.0, 2.0), stats.gamma(2.0, scale=0.5)),
    ],
    ids=["unbounded", "hard edges", "below zero alone"],
)
def test_priors_of_all_kinds_are_integrated(priors):
    family = tiny_family("gaussian")
    scores, posterior, _ = compare(family, tiny_labels(family), priors, n_scales=200)
    assert_calibrated(scores)
    low, high = priors.beta.support()
    assert posterior.beta.min() >= low
    assert posterior.beta.max() <= high


def test_one_k_alone_is_enough():
    family = tiny_family("k")
    priors = Priors(stats.norm(0.0, 1.0), stats.randint(3, 4))
    scores, posterior, _ = compare(family, tiny_labels(family), priors)
    assert (posterior.k == 3).all()
    scores = np.delete(scores, 1, axis=1)  # the mean of k has no error
    assert_calibrated(scores)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_comparison_notices_a_wrong_log_z(monkeypatch):
    right = Reweighting.at

    def wrong(*arguments):
        log_z, slopes, n_effective = right(*arguments)
        return Estimates(1.02 * log_z, 1.02 * slopes, n_effective)

    monkeypatch.setattr(Reweighting, "at", wrong)
    family = tiny_family("gaussian")
    scores, *_ = compare(family, tiny_labels(family), tiny_priors(family), n_seeds=1)
    assert np.abs(scores).max() > MAX_OFF


def test_the_second_mode_below_zero_of_stratified_labels_is_found(rng):
    family, labels = training_set(load_crabs)
    paper = Priors(stats.norm(0.0, 50.0), stats.uniform(0.0, 100.0))
    posterior = PathSampling().infer(rng, family, labels, paper)
    below = posterior.weight[posterior.beta < 0.0].sum()
    # A mass p has the error that the mean, far apart in the two modes, has in their distance.
    is_below = posterior.beta < 0.0
    means = [
        np.average(posterior.beta[s], weights=posterior.weight[s]) for s in (is_below, ~is_below)
    ]
    error = posterior.mean_error[0] / (means[1] - means[0])
    # 0.396 +- 0.003: three runs with n_draws=64 (0.394, 0.395, 0.400), of this engine itself.
    assert below == pytest.approx(0.396, abs=4.0 * error)
    assert error < 0.05


def assert_dense_enough(family, labels, setting):
    runs = [
        PathSampling(**{setting: density}).infer(
            np.random.default_rng(2), family, labels, above_zero(family)
        )
        for density in (1.0, 2.0)
    ]
    assert (abs(runs[0].mean() - runs[1].mean()) < 0.05 * runs[1].sd()).all()
    assert runs[0].outside_mass < 1e-4


@pytest.mark.parametrize("load", [load_iris, load_wine])
@pytest.mark.parametrize("setting", ["scale_density", "beta_density"])
def test_twice_the_density_moves_no_mean_by_a_twentieth_of_its_sd(load, setting):
    assert_dense_enough(*training_set(load), setting)


@pytest.mark.long
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("load", BENCHMARK_SETS)
@pytest.mark.parametrize("setting", ["scale_density", "beta_density"])
def test_the_density_is_enough_for_all_models_and_data(load, model, setting):
    assert_dense_enough(*training_set(load, model), setting)


@pytest.mark.long
@pytest.mark.parametrize("load", BENCHMARK_SETS)
def test_errors_are_what_runs_with_other_seeds_show(load):
    family, labels = training_set(load)
    runs = [
        PathSampling().infer(np.random.default_rng(seed), family, labels, above_zero(family))
        for seed in range(20)
    ]
    found = np.array([[*run.mean(), run.log_evidence] for run in runs])
    errors = np.array([[*run.mean_error, run.log_evidence_error] for run in runs])
    ratios = found.std(axis=0, ddof=1) / np.sqrt((errors**2).mean(axis=0))
    assert (ratios < 2.0).all()
    assert (ratios > 0.5).all()


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_one_seed_gives_one_answer_for_any_number_of_jobs(backend):
    family = tiny_family("exponential", n_classes=3)
    labels, priors = tiny_labels(family), tiny_priors(family)
    alone = PathSampling().infer(np.random.default_rng(5), family, labels, priors, n_jobs=1)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        together = PathSampling().infer(np.random.default_rng(5), family, labels, priors)
    for name in ("beta", "sigma", "weight", "mean_error"):
        np.testing.assert_array_equal(getattr(alone, name), getattr(together, name))
    assert alone.log_evidence == together.log_evidence


def test_labels_all_the_same_leave_beta_to_its_prior(rng):
    family = tiny_family("gaussian", n_points=20)
    posterior = PathSampling().infer(rng, family, np.zeros(20, dtype=int))
    prior = stats.halfnorm(scale=50.0)  # beta below a few has a smaller likelihood
    assert posterior.mean()["beta"] == pytest.approx(prior.mean(), rel=0.1)
    assert posterior.sd()["beta"] == pytest.approx(prior.std(), rel=0.1)


def calibration_p_values(rng, n_classes, n_replicates):
    family = tiny_family("gaussian", n_points=5, n_classes=n_classes)
    engine = PathSampling(n_draws=1)
    ranks = sbc_ranks(rng, engine.infer, family, tiny_priors(family), n_replicates)
    tests = (chi_square_p_value, ecdf_p_value)
    return [test(values) for values in ranks.values() for test in tests]


def test_path_sampling_is_calibrated(rng):
    assert min(calibration_p_values(rng, n_classes=2, n_replicates=40)) > LEVEL


@pytest.mark.long
@pytest.mark.parametrize("n_classes", [2, 3])
def test_path_sampling_is_calibrated_over_many_replicates(rng, n_classes):
    assert min(calibration_p_values(rng, n_classes, n_replicates=300)) > LEVEL


@pytest.mark.long
@pytest.mark.parametrize("load", BENCHMARK_SETS)
def test_exchange_has_the_same_posterior(load):
    family, labels = training_set(load)
    # Up to 10, the sd of sigma is that of a tail (crabs: 0.003% of the mass, at sigma above 1) that
    # no chain of this length visits once.
    priors = Priors(above_zero(family).beta, stats.uniform(0.0, 2.0))
    ours = PathSampling().infer(np.random.default_rng(1), family, labels, priors)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = Exchange().infer(np.random.default_rng(1), family, labels, priors, n_jobs=2)
    error = np.hypot(ours.mean_error, theirs.summary()["mcse_mean"])
    assert (abs(ours.mean() - theirs.mean()) < 3.0 * error).all()
    assert (abs(ours.sd() / theirs.sd() - 1.0) < 0.15).all()


def test_a_run_that_needs_more_draws_says_so(rng):
    family = tiny_family("k")
    settings = PathSettings(min_effective=1e9)
    problem = Problem(family, tiny_labels(family), tiny_priors(family), settings)
    with pytest.warns(ConvergenceWarning, match="Raise n_draws"):
        PathSampling(n_draws=1).run(rng, problem)


@pytest.mark.parametrize("name", ["n_draws", "tolerance", "scale_density", "beta_density"])
def test_impossible_settings_are_refused(name):
    with pytest.raises(ValueError, match=f"Expected .*{name}"):
        PathSampling(**{name: 0})


def least_agreement(family):
    labelings, _ = label_distribution(family.at(1.0), 0.0)
    return min(labelings, key=family.at(1.0).agreement)


def exact_masses(family, labels, priors):
    """Betas, far into both tails, and the exact posterior mass up to each, not normalized."""
    betas = np.sinh(np.linspace(np.arcsinh(-1e6), np.arcsinh(1e6), 1_000))
    fields = [family.at(scale) for scale in priors.scale.ppf((np.arange(24) + 0.5) / 24)]
    log_likelihood = [betas * f.agreement(labels) - log_partitions(f, betas) for f in fields]
    density = np.exp(priors.log_beta(betas) + log_likelihood).mean(axis=0)
    return betas[1:], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(betas))


@pytest.mark.parametrize(
    ("prior", "labels_of"),
    [
        (stats.t(3.0, scale=10.0), tiny_labels),
        (stats.t(3.0, scale=10.0), least_agreement),  # beta is below zero, with a long tail
        (stats.cauchy(), tiny_labels),
    ],
    ids=["t", "t, mixed labels", "cauchy"],
)
def test_priors_with_long_tails_are_handled(rng, prior, labels_of):
    family = tiny_family("gaussian")
    labels, priors = labels_of(family), Priors(prior, stats.uniform(0.1, 2.4))
    posterior = PathSampling().infer(rng, family, labels, priors)
    betas, masses = exact_masses(family, labels, priors)
    off = posterior.log_evidence - np.log(masses[-1])
    assert abs(off) < 4.0 * posterior.log_evidence_error + 0.01
    assert posterior.outside_mass < 0.005
    for level in (0.05, 0.25, 0.5, 0.75, 0.95):
        beta = np.interp(level, masses / masses[-1], betas)
        assert posterior.weight[posterior.beta <= beta].sum() == pytest.approx(level, abs=0.05)


def test_the_mass_below_a_long_tail_is_bounded_and_told(rng):
    family = tiny_family("gaussian")
    labels, priors = least_agreement(family), Priors(stats.cauchy(), stats.uniform(0.1, 2.4))
    with pytest.warns(ConvergenceWarning, match="outside of the scales and of beta >= -200"):
        posterior = PathSampling().infer(rng, family, labels, priors)
    betas, masses = exact_masses(family, labels, priors)
    left_out = np.interp(-200.0, betas, masses / masses[-1])
    assert 0.5 * left_out < posterior.outside_mass < 0.1


def test_chains_that_freeze_below_zero_are_told(rng):
    # On a ring two neighbours that agree are a wall, which moves at no cost but meets no other in
    # time: the chains keep some walls at betas where the field has none.
    angles = 2.0 * np.pi * np.arange(100) / 100
    points = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    family = NeighborFamily.from_distances(distance_matrix(points), 2, "gaussian", n_neighbors=2)
    labels, priors = np.arange(100) % 2, Priors(stats.uniform(-100, 101), stats.uniform(0.5, 0.5))
    with pytest.warns(ConvergenceWarning, match="chains froze"):
        PathSampling().infer(rng, family, labels, priors)


def test_a_scale_that_no_draw_tells_about_is_not_taken_for_probable():
    # At k = 1 the field of the olive oils falls into pairs: draws at k = 2 and more hold none of
    # its labelings, so that log z at k = 1 by reweighting is far too small. The evidence is from
    # curves of log z at each k alone (`log_partition_curve`), by quadrature over beta.
    features, target = load_olive(return_X_y=True)
    train, _ = stratified_split(target, 0.25, random_state=0)
    points = (features[train] - features[train].mean(axis=0)) / features[train].std(axis=0)
    family = NeighborFamily.from_distances(distance_matrix(points), 3)
    priors = Priors(stats.halfnorm(scale=50.0), stats.randint(1, len(train)))
    for seed in (1, 3):
        posterior = PathSampling().infer(seed, family, target[train], priors)
        error = 0.02 + 4.0 * posterior.log_evidence_error
        assert posterior.log_evidence == pytest.approx(-13.347, abs=error)
        assert posterior.log_evidence_error < 0.1


def test_a_prior_far_below_zero_is_refused(rng):
    family = tiny_family("gaussian")
    priors = Priors(stats.norm(-1e5, 1.0), stats.uniform(0.0, 5.0))
    with pytest.raises(ValueError, match="a narrower one or cut it at zero"):
        PathSampling().infer(rng, family, tiny_labels(family), priors)


def test_impossible_problems_are_refused(rng):
    family = tiny_family("gaussian")
    labels = tiny_labels(family)
    with pytest.raises(TypeError, match=r"Expected rng as numpy.random.default_rng takes it"):
        PathSampling().infer("seed", family, labels)
    with pytest.raises(ValueError, match="labels from 0 to"):
        PathSampling().infer(rng, family, labels + 2)
    with pytest.raises(ValueError, match="joint distribution"):
        PathSampling().infer(
            rng, NeighborFamily.from_distances(family.distances, 2, is_directed=True), labels
        )
