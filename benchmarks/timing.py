"""How the benchmarks measure: in turns, the best of several, so that a noisy machine is fair."""

import time

N_TURNS = 7


def seconds_per_call(functions, n_turns=N_TURNS):
    """Time functions in turns and return the best time of each, by name."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(n_turns):
        for name, function in functions.items():
            started = time.process_time()
            function()
            best[name] = min(best[name], time.process_time() - started)
    return best


def ratio_line(case, seconds, others, unit):
    """Format one line: the time of nearfield, and that of the others as a multiple of it."""
    ratios = "  ".join(f"{name} x{other / seconds:.2f}" for name, other in others.items())
    return f"  {case}  {seconds * 1e9:7.1f} ns a {unit}   {ratios}"
