"""Prints the numbers that stats_test.cpp compares with: numpy and scipy, none of our code. Fieller by root finding on the t statistic."""
import numpy as np
from scipy import optimize, stats

A = np.array([0.612, 0.655, 0.631, 0.598, 0.644])
B = np.array([0.581, 0.640, 0.602, 0.590, 0.601])
NUM = np.array([0.021, 0.034, 0.017, 0.029, 0.024])
DEN = np.array([0.051, 0.060, 0.039, 0.055, 0.047])
WEAK = np.array([0.03, -0.02, 0.05, -0.01, 0.02])


def show(name, *values):
    print(name, " ".join(f"{v:.12g}" for v in values))


def t_interval(x):
    return stats.t.interval(0.95, len(x) - 1, loc=x.mean(), scale=stats.sem(x))


def fieller(a, b):
    t = stats.t.ppf(0.975, len(a) - 1)
    excess = lambda q: abs((a - q * b).mean()) - t * stats.sem(a - q * b)
    r = a.mean() / b.mean()
    return r, optimize.brentq(excess, r - 5, r), optimize.brentq(excess, r, r + 5)


show("mean A", A.mean(), A.std(ddof=1), *t_interval(A))
show("paired A - B", (A - B).mean(), *t_interval(A - B))
show("correlation", np.corrcoef(A, B)[0, 1])
show("fieller", *fieller(NUM, DEN))
show("weak denominator", *t_interval(WEAK))
show("t quantiles", stats.t.ppf(0.975, 1), stats.t.ppf(0.975, 4), stats.t.ppf(0.95, 9))
for k, n in [(0, 5), (2, 5), (5, 5), (17, 40)]:
    ci = stats.binomtest(k, n).proportion_ci(0.95, "wilson")
    show(f"wilson {k}/{n}", ci.low, ci.high)
