"""One thread, no colours, nobody's home: what every test starts from."""

import os

# Before torch, rich and typer are imported, and for the processes that tests start.
os.environ.update(OMP_NUM_THREADS="1", MPLBACKEND="Agg", NO_COLOR="1", COLUMNS="100", LINES="40")
for name in ("FORCE_COLOR", "PY_COLORS", "CLICOLOR_FORCE", "GITHUB_ACTIONS", "TERMINAL_WIDTH"):
    os.environ.pop(name, None)

import pytest
import torch
from hypothesis import settings

torch.set_num_threads(1)
# The same examples on every machine; no deadline, which a busy one would miss.
settings.register_profile("feddg", derandomize=True, deadline=None, database=None)
settings.load_profile("feddg")


@pytest.fixture(scope="session", autouse=True)
def nobodys_home(tmp_path_factory):
    """No test reads or writes the home of who runs it (but for matplotlib's slow font cache)."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        cache = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
        patch.setenv("MPLCONFIGDIR", os.environ.get("MPLCONFIGDIR", f"{cache}/matplotlib"))
        patch.setenv("HOME", str(home))
        for kind in ("CACHE", "CONFIG", "DATA", "STATE"):
            patch.setenv(f"XDG_{kind}_HOME", str(home / kind.lower()))
        yield


def pytest_collection_modifyitems(config, items):
    """Tests of a GPU's programs are chosen where there is one: `pytest -m gpu`."""
    elsewhere = [] if torch.cuda.is_available() else [i for i in items if "gpu" in i.keywords]
    if elsewhere:
        config.hook.pytest_deselected(items=elsewhere)
        items[:] = [item for item in items if item not in elsewhere]


@pytest.fixture(autouse=True)
def seeded():
    """What a test draws from the global stream does not depend on the tests before it."""
    torch.manual_seed(0)
