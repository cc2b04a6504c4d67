"""Office-Caltech10: ten kinds of things that Office-31 and Caltech-256 share."""

from feddg.data.layouts import Benchmark
from feddg.data.sets.photographs import TREE, spec

CLASSES = (
    "backpack", "bike", "calculator", "headphones", "keyboard",
    "laptop", "monitor", "mouse", "mug", "projector",
)  # fmt: skip
ALSO = {  # as Office-31 and Caltech-256 call them
    "bike": ("touring-bike",),
    "headphones": ("headphone",),
    "keyboard": ("computer-keyboard",),
    "laptop": ("laptop_computer",),
    "monitor": ("computer-monitor",),
    "mouse": ("computer-mouse",),
    "mug": ("coffee-mug",),
    "projector": ("video-projector",),
}
COUNTS = {  # by class as counted in the 2,533 images; the sums are those of the papers
    "amazon": (92, 82, 94, 99, 100, 100, 99, 100, 94, 98),
    "caltech": (151, 110, 100, 138, 85, 128, 133, 94, 87, 97),
    "dslr": (12, 21, 12, 13, 10, 24, 22, 12, 8, 23),
    "webcam": (29, 21, 31, 27, 27, 30, 43, 30, 27, 30),
}
DOMAINS: dict[str, tuple[str, ...]] = {
    "amazon": ("amazon10",),
    "caltech": ("caltech10", "caltech256"),
    "dslr": ("dslr10",),
    "webcam": ("webcam10",),
}

OFFICE_CALTECH10 = Benchmark(
    name="office-caltech10",
    domains=DOMAINS,
    classes=CLASSES,
    also=ALSO,
    published={d: dict(zip(CLASSES, n, strict=True)) for d, n in COUNTS.items()},
)

SPEC = spec(
    OFFICE_CALTECH10,
    title="Office-Caltech10",
    summary="10 kinds of things: shop pictures, Caltech-256, a reflex camera, a webcam",
    size="2,533 images, 4 domains, 10 classes; 0.4 GB as uint8 at 224²",
    licence="none given; for research (Gong et al., CVPR 2012)",
    source="github ZhangJUJU/OfficeCaltechDomainAdaptation, images/",
    layout=TREE,
    layouts=(
        "images/{amazon,caltech10,dslr,webcam}/<class>",
        "office_caltech_10/{amazon,caltech,dslr,webcam}/<class> (FedBN)",
    ),
)
