"""Where data sets are looked for by name."""

import os
from pathlib import Path


def home() -> Path:
    """`$FEDDG_DATA`, else `data` in the current folder; each set has a folder of its name there."""
    return Path(os.environ.get("FEDDG_DATA") or "data").expanduser()
