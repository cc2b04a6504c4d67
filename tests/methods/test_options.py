"""Numbers that a method cannot mean are refused before anything runs."""

import pytest

from feddg.catalogue import compose
from feddg.errors import ConfigError

REFUSED = [
    ("am(p=1.5)", "am: p must lie between 0 and 1, not 1.5"),
    ("am(strength=-1)", "am: strength must lie between 0 and 1, not -1"),
    ("consistency(weight=-1)", "consistency: weight must be at least 0, not -1"),
    ("consistency(shift=-1)", "consistency: shift must be at least 0, not -1"),
    ("csac(lam=-1)", "csac: lam must be at least 0, not -1"),
    ("csac(label_smoothing=2)", "csac: label_smoothing must lie between 0 and 1, not 2"),
    ("csac(channels=-4)", "csac: channels must be at least 0, not -4"),
    ("elcfs(window=0.6)", "elcfs: window must lie between 0 and 0.5, not 0.6"),
    ("elcfs(bank=0)", "elcfs: bank must be above 0 and at most 1, not 0"),
    ("elcfs(clip=0)", "elcfs: clip must be above 0, not 0"),
    ("elcfs(rate=-1)", "elcfs: rate must be at least 0, not -1"),
    ("elcfs(meta=-1)", "elcfs: meta must be at least 0, not -1"),
    ("fedadg(alpha=1.1)", "fedadg: alpha must lie between 0 and 1, not 1.1"),
    ("fedadg(label_smoothing=-1)", "fedadg: label_smoothing must lie between 0 and 1, not -1"),
    ("fedadg(rate=-1)", "fedadg: rate must be at least 0, not -1"),
    ("fedcmi(cmi=-1)", "fedsr: cmi must be at least 0, not -1"),
    ("fedgma(server_lr=-1)", "fedgma: server_lr must be at least 0, not -1"),
    ("fediir(ema=2)", "fediir: ema must lie between 0 and 1, not 2"),
    ("fediir(weight=-1)", "fediir: weight must be at least 0, not -1"),
    ("fedl2r(l2r=-1)", "fedl2r: l2r must be at least 0, not -1"),
    ("fedprox(mu=-5)", "fedprox: mu must be at least 0, not -5"),
    ("fedsam(rho=-1)", "fedsam: rho must be at least 0, not -1"),
    ("fedsr(samples=-1)", "fedsr: samples must be at least 0, not -1"),
    ("fedsr(size=-1)", "fedsr: size must be at least 0, not -1"),
    ("harmofl(alpha=-1)", "harmofl: alpha must be at least 0, not -1"),
    ("harmofl(low=0.6)", "harmofl: low must lie between 0 and 0.5, not 0.6"),
    ("jigen(ordered=1.5)", "jigen: ordered must lie between 0 and 1, not 1.5"),
    ("jigen(permutations=0)", "jigen: permutations must lie between 1 and 362879, not 0"),
    ("jigen(weight=-1)", "jigen: weight must be at least 0, not -1"),
    ("mixstyle(alpha=0)", "mixstyle: alpha must be above 0, not 0"),
    ("mixstyle(p=-0.1)", "mixstyle: p must lie between 0 and 1, not -0.1"),
    ("ppdg(server_lr=-1)", "ppdg: server_lr must be at least 0, not -1"),
    ("rsc(batch=2)", "rsc: batch must lie between 0 and 1, not 2"),
    ("rsc(features=-1)", "rsc: features must lie between 0 and 1, not -1"),
]


@pytest.mark.parametrize(("spec", "message"), REFUSED)
def test_a_number_out_of_range_is_refused_in_a_sentence(spec, message):
    with pytest.raises(ConfigError) as refused:
        compose(spec)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    "spec", ["elcfs(window=0.5, bank=1)", "harmofl(low=0.5)", "rsc(features=1)", "mixstyle(p=0)"]
)
def test_the_ends_of_a_range_are_in_it(spec):
    compose(spec)
