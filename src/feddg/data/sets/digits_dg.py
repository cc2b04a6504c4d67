"""Digits-DG: digits in four styles, 600 of each class and style."""

from feddg.data.layouts import Benchmark
from feddg.data.sets.photographs import TREE, spec

DIGITS = tuple("0123456789")

DIGITS_DG = Benchmark(
    name="digits-dg",
    domains={
        "mnist": (),
        "mnist_m": (),
        "svhn": (),
        "syn": ("synth", "syndigits", "synthdigits", "syntheticdigits"),
    },
    classes=DIGITS,
    published={d: dict.fromkeys(DIGITS, 600) for d in ("mnist", "mnist_m", "svhn", "syn")},
)

SPEC = spec(
    DIGITS_DG,
    defaults={"size": 32, "normalise": "half"},
    title="Digits-DG",
    summary="digits in 4 styles: MNIST, MNIST-M, SVHN, synthetic",
    size="24,000 images, 4 domains, 10 classes; 74 MB as uint8 at 32²",
    licence="those of the four sets; for research (Zhou et al., AAAI 2020)",
    source="https://drive.google.com/uc?id=15V7EsHfCcfbKgsDmzQKj_DfXt_XYp_P7 (Dassl's)",
    layout="<domain>/{train,val}/<class>/<image>",
    layouts=("digits_dg/<domain>/{train,val}/<0-9> (Dassl)", TREE),
    notes="32×32 in [−1, 1] unless the options say otherwise. The official split is 80:20.",
)
