"""
Reading a posterior
===================

For statisticians: the posterior of beta and sigma by path sampling and by the exchange algorithm,
its evidence, and a posterior predictive check. The data are 38 irises of three species. The export
to ArviZ needs ``pip install "nearfield[arviz]"``.
"""

# %%
# Path sampling is the default engine up to 1,000 points. It gives the posterior on quadrature
# nodes, with the Monte Carlo error of each mean, and the evidence.

import matplotlib.pyplot as plt
import numpy as np

from nearfield import DistanceNeighborsClassifier
from nearfield.datasets import load_iris, stratified_split
from nearfield.inference import Exchange, posterior_predictive_check
from nearfield.plotting import PosteriorDisplay

X, y = load_iris(return_X_y=True)
train, test = stratified_split(y, 0.25, random_state=0)
path = DistanceNeighborsClassifier(random_state=0).fit(X[train], y[train])
print(path.posterior_.summary().round(3)[["mean", "sd", "lower", "upper", "mcse_mean"]])
print(f"log evidence {path.log_evidence_:.2f} ± {path.log_evidence_error_:.2f}")

# %%
# The prior matters for interpretation: by default beta has a half-normal prior with scale 50 and
# sigma is uniform on (0, 100).
#
# The exchange algorithm draws from the same posterior by Markov chains. The paper runs 10,000
# iterations after a burn-in of 10,000, with 1,000 sweeps for each auxiliary draw; less is enough
# here.

engine = Exchange(n_draws=4_000, n_burn=1_000, n_sweeps=50)
exchange = DistanceNeighborsClassifier(inference=engine, random_state=0).fit(X[train], y[train])
columns = ["mean", "sd", "mcse_mean", "ess_bulk", "r_hat"]
print(exchange.posterior_.summary().round(3)[columns])

# %%
# R-hat is close to 1, and the two engines agree within their Monte Carlo errors. The figure shows
# path sampling as contours and 1,000 draws of exchange as dots.

beta, sigma = exchange.posterior_.sample(1_000, np.random.default_rng(0))
display = PosteriorDisplay.from_estimator(path)
display.ax_.scatter(beta, sigma, s=4, color="black", alpha=0.4, label="exchange, 1,000 draws")
display.ax_.legend(markerscale=2)
display.ax_.set_title("Path sampling and exchange, 38 irises")

# %%
# Draws go to ArviZ for anything else that it offers.

print(exchange.posterior_.to_arviz())

# %%
# Does the model explain the labels? Labels replicated from the posterior should agree with each
# other as much as the observed ones do. A p-value near 0 or 1 would say that they do not.

check = posterior_predictive_check(
    np.random.default_rng(1), path.family_, path.labels_, path.posterior_, n_draws=400
)
figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
bins = np.linspace(0, len(train), 26)
ax.hist(check.replicated, bins, alpha=0.6, color="#0072B2", label="replicated labels")
ax.hist(check.observed, bins, alpha=0.6, color="#E69F00", label="observed labels")
ax.set(
    xlabel="agreement S(y)",
    ylabel="posterior draws",
    title=f"Posterior predictive check: p = {check.p_value:.2f}",
)
ax.legend()
