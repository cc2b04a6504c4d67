"""The coordinate-wise median of the sites' updates: a robust merge in place of the mean."""

from dataclasses import dataclass
from typing import ClassVar

from feddg.merges import Median
from feddg.method import Method, Wrapper
from feddg.methods.fedavg import FedAvg


@dataclass(frozen=True)
class FedMedian(Wrapper):
    """Yin et al., ICML 2018. The server sees every site's update; weights play no part."""

    inner: Method = FedAvg()

    claims: ClassVar[frozenset[str]] = frozenset({"merge", "weights"})

    @property
    def leaf(self) -> FedAvg:
        return FedAvg(merge=Median(), weights="uniform")
