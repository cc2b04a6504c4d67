"""Runs for TensorBoard: a folder each, in it one file that is a function of the records.

The file is written here rather than by torch's SummaryWriter, whose threads would be forked with
the workers and whose every resumption adds a file with points of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from feddg.benchmark.experiment import Experiment
from feddg.benchmark.selection import Record
from feddg.checkpoint import unwritable, write_whole
from feddg.report.sinks import missing, numbers, timed

FILE = "events.out.tfevents.0.feddg"
Encode = Callable[[Mapping[str, float], int, float], bytes]  # values, step, time


@dataclass(frozen=True)
class TensorBoard:
    root: Path
    encode: Encode

    @property
    def name(self) -> str:
        return f"tensorboard:{self.root}"

    def mirror(
        self, key: str, experiment: Experiment, records: Sequence[Record], began: float
    ) -> None:
        with unwritable(self.root, "choose another folder for --track"):
            (self.root / key).mkdir(parents=True, exist_ok=True)
        whole = [self.encode(numbers(r), r["round"], when) for r, when in timed(records, began)]
        write_whole(self.root / key / FILE, b"".join(whole))

    def add(self, key: str, record: Record, when: float) -> None:
        with open(self.root / key / FILE, "ab") as file:
            file.write(self.encode(numbers(record), record["round"], when))

    def end(self, key: str) -> None:
        """Nothing is held open."""


def tensorboard(where: str) -> TensorBoard:
    try:
        import tensorboard as installed
    except ImportError:
        raise missing("tensorboard") from None
    assert installed
    return TensorBoard(Path(where).expanduser(), encoded)


def encoded(values: Mapping[str, float], step: int, when: float) -> bytes:
    """One event with all values of a round, framed as event files are."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    found = [Summary.Value(tag=tag, simple_value=value) for tag, value in values.items()]
    event = Event(wall_time=when, step=step, summary=Summary(value=found))
    buffer = BytesIO()
    RecordWriter(buffer).write(event.SerializeToString())
    return buffer.getvalue()
