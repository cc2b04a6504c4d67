"""`feddg._torchvision`: mends one failure, and nothing else."""

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest
import torch

from feddg._torchvision import torchvision
from feddg.errors import ConfigError

needs_torchvision = pytest.mark.skipif(not find_spec("torchvision"), reason="needs feddg[vision]")
DECLARED = "hasattr(torch.ops.torchvision, 'nms'), hasattr(torch.ops.torchvision, 'qnms')"


def fresh(code, path=None):
    """What a new interpreter prints; with `path` first among its folders of modules."""
    first = f"import sys; sys.path.insert(0, {str(path)!r})\n" if path else ""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", first + code], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def fake(folder, body):
    """A torchvision of our own making, to be found before the real one."""
    package = folder / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text(body)
    return folder


@needs_torchvision
def test_resnet18_trains():
    model = torchvision().models.resnet18(num_classes=3)
    loss = model(torch.rand(2, 3, 64, 64)).logsumexp(1).sum()
    loss.backward()
    assert loss.isfinite()
    assert model.conv1.weight.grad.abs().sum() > 0


@needs_torchvision
def test_transforms_work():
    torchvision()
    v2 = import_module("torchvision.transforms.v2")
    image = torch.arange(3 * 8 * 8, dtype=torch.uint8).view(3, 8, 8)
    assert torch.equal(v2.functional.horizontal_flip(image), image.flip(-1))


@needs_torchvision
def test_imports_afresh_and_then_for_everyone():
    code = (
        "from feddg._torchvision import torchvision as mended\n"
        "first = mended()\n"
        "import torchvision, torchvision.ops\n"
        "print(first is torchvision is mended(), torchvision.ops.__name__)"
    )
    assert fresh(code) == "True torchvision.ops"


@pytest.mark.skipif(not (find_spec("torchvision") and find_spec("torchmetrics")), reason="extras")
def test_torchmetrics_imports_after_it():
    # Whether torchmetrics is free of warnings is not ours to test.
    code = "from feddg._torchvision import torchvision; torchvision()\nimport warnings\n"
    assert fresh(code + "warnings.simplefilter('ignore'); import torchmetrics; print(1)") == "1"


def test_declares_what_a_broken_extension_left_out(tmp_path):
    # As torchvision does it: a shape function for an operator that must exist by then.
    folder = fake(
        tmp_path,
        "import torch\nfor op in 'nms', 'qnms':\n"
        "    torch.library.register_fake(f'torchvision::{op}', lambda a, b, c: a)",
    )
    code = "import torch\nfrom feddg._torchvision import torchvision\ntorchvision()\n"
    assert fresh(f"{code}print({DECLARED})", folder) == "True True"


def test_leaves_a_healthy_one_alone(tmp_path):
    folder = fake(tmp_path, "healthy = True")
    code = (
        "import torch\nfrom feddg._torchvision import torchvision\nprint(torchvision().healthy)\n"
    )
    assert fresh(f"{code}print({DECLARED})", folder).split() == ["True", "False", "False"]


def test_any_other_failure_is_told_as_it_is(tmp_path, monkeypatch):
    fake(tmp_path, "raise RuntimeError('something else')")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(RuntimeError, match="something else"):
        torchvision()


def test_missing_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(ConfigError, match=r"pip install 'feddg\[vision\]'"):
        torchvision()


def test_import_feddg_does_not_load_it():
    code = "import sys, feddg, feddg._torchvision\nprint('torchvision' in sys.modules)"
    assert fresh(code) == "False"
