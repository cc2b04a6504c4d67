"""AM, amplitude mix: a site's images swap amplitude spectra among themselves and keep their phase.

The augmentation of FACT (Xu et al., CVPR 2021) within one site, as FedDG-GA (Zhang et al.,
CVPR 2023) runs it as a baseline.
"""

from dataclasses import dataclass

from feddg.errors import within
from feddg.local import Job
from feddg.method import Method, Visit, Wrapper
from feddg.methods.fedavg import FedAvg
from feddg.packets import Inbox
from feddg.parts.spectra import AmplitudeMix, need_images
from feddg.trees import Tree


@dataclass(frozen=True)
class AM(Wrapper):
    """Full-spectrum amplitude mix with a shuffled copy of the same batch.

    Sends: nothing besides the model; all images stay in their site. Keeps: nothing.

    After the data's own transforms (normalised images), as the public code of FedDG-GA has it.
    `strength` is FACT's upper bound of the share, 1 in both papers' main results. FACT's
    teacher and its co-consistency loss are another method's.
    """

    inner: Method = FedAvg()
    p: float = 0.5
    strength: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        within("am: p", self.p, 0, 1)
        within("am: strength", self.strength, 0, 1)

    def local_update(self, inbox: Inbox, job: Job, memory: Tree) -> Visit:
        need_images(job, "am")
        mix = AmplitudeMix(self.p, self.strength)
        return (yield from self.inner.local_update(inbox, job.adding(mix), memory))
