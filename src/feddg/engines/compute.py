"""Where and how runs are computed: it changes speed and rounding, never what a method is."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch

from feddg.engines.loop import Run
from feddg.errors import ConfigError, check_choices

Precision = Literal["auto", "fp32", "tf32", "bf16"]
Execution = Literal["auto", "one-by-one", "workers", "stacked", "streams"]


@dataclass(frozen=True)
class Compute:
    """`auto` takes the GPU where there is one, and what is fastest there without other results.

    precision   fp32; tf32: products of 10-bit mantissas, float32 sums (a GPU's default); bf16:
                autocast with float32 weights
    execution   one-by-one; workers: processes side by side (CPU); stacked: all sites of one form
                as one vmapped program; streams: one program a site, several at a time
    workers     processes; the default is one a core
    """

    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Precision = "auto"
    execution: Execution = "auto"
    workers: int | None = None

    def __post_init__(self) -> None:
        check_choices("compute", self)
        if self.workers is not None and self.workers < 1:
            raise ConfigError(f"--workers must be at least 1, not {self.workers}")
        if self.device == "cuda" and not torch.cuda.is_available():
            raise ConfigError("--device cuda: this machine has no usable GPU; use --device cpu")
        if self.on_gpu and self.execution == "workers":
            raise ConfigError("--execution workers is for --device cpu; a GPU has stacked, streams")
        if not self.on_gpu and self.precision not in ("auto", "fp32"):
            raise ConfigError(f"--precision {self.precision} is for a GPU; on the CPU it is fp32")

    @staticmethod
    def of(given: "Compute | int | None") -> "Compute":
        """A number stands for so many workers."""
        return given if isinstance(given, Compute) else Compute(workers=given)

    @property
    def on_gpu(self) -> bool:
        return self.device == "cuda" or (self.device == "auto" and torch.cuda.is_available())

    @property
    def target(self) -> torch.device:
        return torch.device("cuda", torch.cuda.current_device()) if self.on_gpu else CPU

    @property
    def visits_at_once(self) -> int:
        """In lockstep: enough to keep cores, or a GPU, busy; few to keep in memory."""
        return 360 if self.on_gpu else 24

    @property
    def exactness(self) -> Literal["fp32", "tf32", "bf16"]:
        if self.precision != "auto":
            return self.precision
        return "tf32" if self.on_gpu else "fp32"

    def placed(self, run: Run) -> Run:
        """The run with its data and network on the device."""
        if not self.on_gpu:
            return run
        at = self.target
        model = deepcopy(run.model).to(at)
        return replace(run, model=model, federation=run.federation.to(at))

    def told(self) -> dict[str, str]:
        """For the record of a run's environment."""
        name = torch.cuda.get_device_name(self.target) if self.on_gpu else "cpu"
        return {"device": name, "precision": self.exactness, "execution": self.execution}

    def autocast(self) -> Callable[[], AbstractContextManager[Any]]:
        if self.exactness != "bf16":
            return nullcontext
        return partial(torch.autocast, "cuda", torch.bfloat16, cache_enabled=False)


CPU = torch.device("cpu")


@contextmanager
def exact(compute: Compute) -> Iterator[None]:
    """The GPU's arithmetic: the same bits every time, at the precision asked for."""
    matmul, conv = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, conv.allow_tf32, conv.deterministic, conv.benchmark
    fast = compute.exactness != "fp32"
    matmul.allow_tf32, conv.allow_tf32, conv.deterministic, conv.benchmark = fast, fast, True, False
    try:
        yield
    finally:
        matmul.allow_tf32, conv.allow_tf32, conv.deterministic, conv.benchmark = before
