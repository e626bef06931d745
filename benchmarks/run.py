"""All speed benchmarks in one run: `make benchmark`. Ratios count; times are this machine's."""

import boosting
import engines
import engines_mixing
import exchange
import gibbs
import prediction
import scaling
import scaling_others
import startup

for part in (
    startup,
    gibbs,
    exchange,
    engines,
    engines_mixing,
    prediction,
    scaling,
    scaling_others,
    boosting,
):
    part.main()
    print()
