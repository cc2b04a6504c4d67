"""PACS: photographs, art paintings, cartoons and sketches of seven kinds of things."""

from feddg.data.layouts import Benchmark
from feddg.data.sets.photographs import TREE, spec

CLASSES = ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")
COUNTS = {  # by class as counted in the 9,991 images; the sums are those of the paper
    "art_painting": (379, 255, 285, 184, 201, 295, 449),
    "cartoon": (389, 457, 346, 135, 324, 288, 405),
    "photo": (189, 202, 182, 186, 199, 280, 432),
    "sketch": (772, 740, 753, 608, 816, 80, 160),
}

PACS = Benchmark(
    name="pacs",
    domains={"art_painting": ("art", "artpaintings"), "cartoon": (), "photo": (), "sketch": ()},
    classes=CLASSES,
    withdrawn=("sketch/dog/n02103406_4068-1.png",),
    published={d: dict(zip(CLASSES, n, strict=True)) for d, n in COUNTS.items()},
)

SPEC = spec(
    PACS,
    title="PACS",
    summary="7 kinds of things in 4 styles: art paintings, cartoons, photographs, sketches",
    size="9,991 images, 4 domains, 7 classes; 1.5 GB as uint8 at 224²",
    licence="none given; for research (Li et al., ICCV 2017)",
    source="https://domaingeneralization.github.io, or github MachineLearning2020/Homework3-PACS",
    layout=TREE,
    layouts=(
        "PACS/<domain>/<class> (DomainBed, Homework3-PACS)",
        "kfold/<domain>/<class> with <domain>_{train,crossval,test}_kfold.txt (the archive)",
        "images/<domain>/<class> with splits/ (Dassl)",
        "with txt_lists/<domain>_{train,test}.txt (JiGen, CSAC)",
    ),
    notes="Official lists count classes from 1 or, as CSAC's and JiGen's, from 0; the folders"
    " decide. Without lists a share is held out by seed.",
)
