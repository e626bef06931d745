"""All speed benchmarks in one run: `make benchmark`. Ratios count; times are this machine's."""

import exchange
import gibbs
import startup

for part in (startup, gibbs, exchange):
    part.main()
    print()
