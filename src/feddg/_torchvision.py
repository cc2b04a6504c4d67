"""`import torchvision`, also beside a CPU-only torch.

The registry has no CPU build of torchvision. Beside a CPU-only torch the C++ extension of its CUDA
wheel cannot be loaded, so nobody defines the operators `torchvision::nms` and `torchvision::qnms`;
torchvision then registers shape functions for them all the same, and its import fails with
"operator torchvision::nms does not exist". All else that we use (models, transforms, data sets) is
Python. So, after that failure and no other, we declare the two operators by name and signature,
without a kernel, and import again. A call of `torchvision.ops.nms` still fails, with torchvision's
own sentence, and so do its C++ image readers. A healthy torchvision is left alone.
"""

import sys
from importlib import import_module
from types import ModuleType

import torch

from feddg.errors import ConfigError

SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


def torchvision() -> ModuleType:
    """The module torchvision, imported when first asked for.

    Call it also before a library that imports torchvision by itself, as torchmetrics does.
    """
    try:
        return import_module("torchvision")
    except ModuleNotFoundError as error:
        if error.name != "torchvision":
            raise
        raise ConfigError(
            "torchvision is not installed; install it with: pip install 'feddg[vision]'"
        ) from None
    except RuntimeError as error:
        if "operator torchvision::nms does not exist" not in str(error):
            raise
    _declare("nms", "qnms")
    _forget("torchvision")
    return import_module("torchvision")


def _declare(*operators: str) -> None:
    for name in operators:
        if not hasattr(torch.ops.torchvision, name):
            torch.library.define(f"torchvision::{name}", SIGNATURE)


def _forget(package: str) -> None:
    """Drop what a failed import leaves behind; its submodules would lack their parent."""
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        del sys.modules[name]
