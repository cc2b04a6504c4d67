"""Every method and composition, for the tests that all must pass. One row a method."""

from feddg.catalogue import compose

METHODS = [
    "fedavg",
    "fedavg(weights='uniform')",
    "fedprox(mu=0.1)",
    "fedmedian",
    "fedprox(mu=0.1)+fedmedian",
]

# Identities: at this value of its parameter a method is another. Bit for bit where the
# arithmetic is unchanged (tolerance 0), else to the tolerance given.
IDENTITIES = [
    ("fedprox(mu=0)", "fedavg", 0.0),
]

# Effects: switching a mechanism on must change the result (a silent no-op is a bug).
EFFECTS = [
    ("fedprox(mu=1)", "fedprox(mu=0)"),
    ("fedmedian", "fedavg(weights='uniform')"),
    ("fedavg(weights='uniform')", "fedavg"),
]

# A method that may need longer than 8 rounds on the toy task, with the reason beside it.
SLOW: dict[str, int] = {}


def ids(specs: list[str]) -> list[str]:
    return [s.replace("'", "") for s in specs]


def methods() -> list:
    return [compose(s) for s in METHODS]
