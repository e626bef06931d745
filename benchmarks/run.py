"""All speed benchmarks in one run: `make benchmark`. Ratios count; times are this machine's."""

import gibbs
import startup

for part in (startup, gibbs):
    part.main()
    print()
