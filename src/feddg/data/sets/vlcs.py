"""VLCS: five kinds of things in four older photograph collections."""

from feddg.data.layouts import Benchmark
from feddg.data.sets.photographs import TREE, spec

CLASSES = ("bird", "car", "chair", "dog", "person")
COUNTS = {  # by class as in the official lists, training and test together
    "caltech": (237, 123, 118, 67, 870),
    "labelme": (80, 1209, 88, 42, 1237),
    "pascal": (330, 699, 428, 420, 1499),
    "sun": (20, 932, 1036, 30, 1264),
}

VLCS = Benchmark(
    name="vlcs",
    domains={
        "caltech": ("caltech101",),
        "labelme": (),
        "pascal": ("voc2007", "pascalvoc", "pascalvoc2007"),
        "sun": ("sun09",),
    },
    classes=CLASSES,
    also={c: (str(k),) for k, c in enumerate(CLASSES)},
    published={d: dict(zip(CLASSES, n, strict=True)) for d, n in COUNTS.items()},
)

SPEC = spec(
    VLCS,
    title="VLCS",
    summary="5 kinds of things in 4 collections: Caltech101, LabelMe, Pascal VOC 2007, SUN09",
    size="10,729 images, 4 domains, 5 classes; 1.6 GB as uint8 at 224²",
    licence="those of the four collections; for research",
    source="https://drive.google.com/uc?id=1skwblH1_okBwxWxmRsp9_qi15hyPpxg8 (DomainBed's)",
    layout=TREE,
    layouts=(
        "<DOMAIN>/{train,crossval,test,full}/<0-4> (Dassl; full repeats train and crossval)",
        "{Caltech101,LabelMe,SUN09,VOC2007}/<class> (DomainBed)",
        "with <DOMAIN>_{train,test}.txt (JiGen)",
    ),
    notes="The official split is 70:30; a target is judged on its test part then.",
)
