"""Exact posteriors of uniform fields, the oracle of path sampling across first-order transitions.

All distances are equal, so that the field is the same at every scale and log z is a convolution
over class counts.
"""

import time
import warnings
from functools import cache
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy import stats
from scipy.interpolate import CubicSpline
from scipy.special import gammaln
from sklearn.exceptions import ConvergenceWarning

from nearfield.distances import distance_matrix
from nearfield.field import DistanceFamily
from nearfield.inference import PathSampling, Priors
from nearfield.log_partition import log_partition_curve

PRIORS = Priors(stats.halfnorm(scale=50.0), stats.uniform(0.0, 100.0))


class Case(NamedTuple):
    """Numbers of points and classes, and the labels."""

    n_points: int
    n_classes: int
    share: float | None  # of the largest class; None for labels drawn at the transition

    def labels(self):
        """Give the labels; all classes but the largest have the same size, within one."""
        if self.share is None:
            return labels_at_transition(self.n_points, self.n_classes)
        n_first = round(self.share * self.n_points)
        rest = 1 + np.arange(self.n_points - n_first) % (self.n_classes - 1)
        return np.concatenate([np.zeros(n_first, dtype=int), rest])


class Exact(NamedTuple):
    """Moments of the posterior of beta."""

    mean: float
    sd: float
    log_evidence: float


class Errors(NamedTuple):
    """What a run is off by, and what it reports."""

    mean: float  # in posterior sds
    sd: float  # relative
    log_evidence: float
    mean_error: float  # reported, in posterior sds
    log_evidence_error: float  # reported
    n_warnings: int
    seconds: float  # of CPU time


def log_partition(n_points, n_classes, betas):
    """Compute log z as `uniform_log_partition` does, compiled and without the mean agreement."""
    counts = np.arange(n_points + 1.0)
    log_factorials = gammaln(counts + 1.0)
    agreements = counts * (counts - 1.0) / (n_points - 1.0)
    values = np.empty(len(betas))
    for b, beta in enumerate(betas):
        one = beta * agreements - log_factorials
        power, total = one, None
        for bit in bin(n_classes)[:1:-1]:
            if bit == "1":
                total = power if total is None else convolve(total, power)
            power = convolve(power, power)
        values[b] = total[-1] + log_factorials[-1]
    return values


@njit
def convolve(first, second):
    """Convolve two sequences given by their logarithms, up to the length of one."""
    out = np.empty_like(first)
    for n in range(len(first)):
        largest = -np.inf
        for m in range(n + 1):
            largest = max(largest, first[m] + second[n - m])
        total = 0.0
        for m in range(n + 1):
            term = first[m] + second[n - m] - largest
            if term > -40.0:
                total += np.exp(term)
        out[n] = largest + np.log(total)
    return out


def transition(n_points, n_classes):
    """Find the beta at which the variance of the agreement is largest."""
    betas = np.linspace(0.2, 4.0, 800)
    curvature = np.diff(log_partition(n_points, n_classes, betas), 2)
    return betas[1 + curvature.argmax()]


def labels_at_transition(n_points, n_classes):
    """Draw labels at the transition: class by class, from the law of the class counts."""
    beta = transition(n_points, n_classes)
    rng = np.random.default_rng(n_points + n_classes)
    labels = rng.integers(n_classes, size=n_points)
    # Gibbs sampling at a transition may stay in a phase; start in a random one.
    if rng.random() < 0.5:
        labels[:] = 0
    counts = np.bincount(labels, minlength=n_classes).astype(float)
    for _ in range(200):
        for i in range(n_points):
            counts[labels[i]] -= 1.0
            log_weights = beta * 2.0 * counts / (n_points - 1)
            weights = np.exp(log_weights - log_weights.max())
            labels[i] = rng.choice(n_classes, p=weights / weights.sum())
            counts[labels[i]] += 1.0
    return labels


@cache
def exact_uniform(case: Case) -> Exact:
    """Return the exact posterior of a case."""
    return exact_posterior(case.n_classes, case.labels())


def exact_posterior(n_classes, labels) -> Exact:
    """Integrate over beta by a fine grid of the closed form."""
    n_points, counts = len(labels), np.bincount(labels)
    agreement = (counts * (counts - 1)).sum() / (n_points - 1)

    def log_density(betas):
        log_z = log_partition(n_points, n_classes, betas)
        return betas * agreement - log_z + PRIORS.log_beta(betas)

    return moments_of(log_density)


def moments_of(log_density, highest=300.0, n_betas=500) -> Exact:
    """Integrate a log density over beta >= 0."""
    coarse = np.sinh(np.linspace(0.0, np.arcsinh(highest), max(n_betas // 3, 60)))
    values = log_density(coarse)
    inside = np.flatnonzero(values > values.max() - 30.0)
    ends = coarse[[max(inside[0] - 1, 0), min(inside[-1] + 1, len(coarse) - 1)]]
    betas = np.linspace(*ends, n_betas)
    values = log_density(betas)
    weights = np.exp(values - values.max())
    log_evidence = values.max() + np.log(weights.sum() * (betas[1] - betas[0]))
    weights /= weights.sum()
    mean = float(weights @ betas)
    return Exact(mean, float(np.sqrt(weights @ (betas - mean) ** 2)), float(log_evidence))


def two_clusters(n_points, n_classes, share, link):
    """Make two tight clusters with weak links, the labels, and the exact posterior.

    Distances are one inside of a cluster and between clusters so that every point gives the share
    `link` of its weight to the other cluster; the prior of sigma is as good as a point.
    """
    half = n_points // 2
    is_same = np.kron(np.eye(2), np.ones((half, half))) > 0.0
    log_odds = np.log(link * (half - 1) / ((1.0 - link) * half))  # of one point against another
    distances = np.where(is_same, 1.0, np.sqrt(1.0 - 2.0 * log_odds)) - np.eye(n_points)
    labels = np.tile(Case(half, n_classes, share).labels(), 2)
    priors = Priors(PRIORS.beta, stats.uniform(1.0, 1e-6))
    inner, outer = 2.0 * (1.0 - link) / (half - 1), 2.0 * link / half  # couplings
    counts = np.arange(half + 1.0)
    pairs = 0.5 * inner * counts * (counts - 1.0)
    agreements = pairs[:, None] + pairs + outer * counts[:, None] * counts
    log_factorials = gammaln(counts + 1.0)
    of_labels = np.bincount(labels[:half])
    agreement = (2.0 * pairs[of_labels] + outer * of_labels**2).sum()

    def log_density(betas):
        log_z = np.empty(len(betas))
        for b, beta in enumerate(betas):
            one = beta * agreements - log_factorials[:, None] - log_factorials
            total = one
            for _ in range(n_classes - 1):
                total = convolve_twice(total, one)
            log_z[b] = total[-1, -1] + 2.0 * log_factorials[-1]
        return betas * agreement - log_z + priors.log_beta(betas)

    family = DistanceFamily(distances, "gaussian", n_classes)
    return family, labels, priors, moments_of(log_density, highest=30.0, n_betas=160)


@njit
def convolve_twice(first, second):
    """Convolve over two counts, as `convolve` does over one."""
    out = np.empty_like(first)
    for n in range(first.shape[0]):
        for m in range(first.shape[1]):
            largest = -np.inf
            for i in range(n + 1):
                for j in range(m + 1):
                    largest = max(largest, first[i, j] + second[n - i, m - j])
            total = 0.0
            for i in range(n + 1):
                for j in range(m + 1):
                    term = first[i, j] + second[n - i, m - j] - largest
                    if term > -40.0:
                        total += np.exp(term)
            out[n, m] = largest + np.log(total)
    return out


def blocks(n_blocks, case: Case):
    """Make uniform fields without links, the labels of all, and the exact posterior: log z adds."""
    one = case.labels()
    distances = np.full((n_blocks * len(one),) * 2, 1e4)
    for block in range(n_blocks):
        part = slice(block * len(one), (block + 1) * len(one))
        distances[part, part] = 1.0
    np.fill_diagonal(distances, 0.0)
    counts = np.bincount(one)
    agreement = (counts * (counts - 1)).sum() / (len(one) - 1)

    def log_density(betas):
        log_z = log_partition(len(one), case.n_classes, betas)
        return n_blocks * (betas * agreement - log_z) + PRIORS.log_beta(betas)

    family = DistanceFamily(distances, "gaussian", case.n_classes)
    return family, np.tile(one, n_blocks), PRIORS, moments_of(log_density)


def noise(case: Case, n_features=10, sigma=2.0, n_curves=8):
    """Make features of noise, the labels of a case, and the posterior by long curves of log z.

    The mean of independent curves, each to 0.02, and a spline between their betas; the prior of
    sigma is as good as a point.
    """
    points = np.random.default_rng(0).normal(size=(case.n_points, n_features))
    family = DistanceFamily(distance_matrix(points), "gaussian", case.n_classes)
    labels, priors = case.labels(), Priors(PRIORS.beta, stats.uniform(sigma, 1e-6))
    field = family.at(sigma)
    betas = np.linspace(0.0, 8.0, 161)
    curves = [
        log_partition_curve(seed, field, betas, target_error=0.02)[0] for seed in range(n_curves)
    ]
    log_z = CubicSpline(betas, np.mean(curves, axis=0))

    def log_density(at):
        return at * field.agreement(labels) - log_z(at) + priors.log_beta(at)

    return family, labels, priors, moments_of(log_density, highest=8.0)


def run(family, labels, exact: Exact, seed, priors=PRIORS, engine=None) -> Errors:
    """Run path sampling and compare it with the exact posterior."""
    engine = PathSampling() if engine is None else engine
    started = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        posterior = engine.infer(np.random.default_rng(seed), family, labels, priors)
    return Errors(
        float(posterior.mean()["beta"] - exact.mean) / exact.sd,
        float(posterior.sd()["beta"]) / exact.sd - 1.0,
        posterior.log_evidence - exact.log_evidence,
        float(posterior.mean_error[0]) / exact.sd,
        posterior.log_evidence_error,
        len(caught),
        time.process_time() - started,
    )


def run_uniform(case: Case, seed) -> Errors:
    """Run path sampling on a uniform field."""
    labels = case.labels()
    family = DistanceFamily(1.0 - np.eye(case.n_points), "gaussian", case.n_classes)
    return run(family, labels, exact_uniform(case), seed)
