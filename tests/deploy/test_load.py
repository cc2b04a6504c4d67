import json
from hashlib import sha256

import pytest
import torch
from safetensors.torch import load_file, save_file

from feddg.deploy import load_model
from feddg.errors import ConfigError
from tests import toy
from tests.deploy.saved import save


@pytest.fixture
def folder(tmp_path):
    save(tmp_path / "model")
    return tmp_path / "model"


def edit(folder, change):
    """Alter model.json."""
    path = folder / "model.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def reweigh(folder, change):
    """Alter the weights, and the sum of them, as somebody who knows the format would."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)
    data = path.read_bytes()
    edit(folder, lambda c: c["weights"].update(bytes=len(data), sha256=sha256(data).hexdigest()))


def refusal(folder, **options):
    with pytest.raises(ConfigError) as caught:
        load_model(folder, **options)
    return str(caught.value)


def test_no_folder(tmp_path):
    assert "there is no folder" in refusal(tmp_path / "model")


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_a_missing_file(folder, name):
    (folder / name).unlink()
    assert f"{name} is missing" in refusal(folder)


def test_a_manifest_cut_short(folder):
    path = folder / "model.json"
    path.write_text(path.read_text()[:200])
    assert "model.json is no readable JSON" in refusal(folder)


def test_a_manifest_that_lacks_a_key(folder):
    edit(folder, lambda c: c.pop("layout"))
    assert "model.json lacks the key 'layout'" in refusal(folder)


@pytest.mark.parametrize("key", ["layout", "task", "input", "prepare", "architecture", "weights"])
@pytest.mark.parametrize("value", [3, "x", [1], {"a": 1}], ids=repr)
def test_a_manifest_with_nonsense(folder, key, value):
    edit(folder, lambda c: c.update({key: value}))
    assert "model.json" in refusal(folder)


@pytest.mark.parametrize("version", [2, None, "1"])
def test_another_format(folder, version):
    edit(folder, lambda c: c.update(format=version))
    assert f"format {version!r}, this feddg reads format 1" in refusal(folder)


def test_an_unknown_method(folder):
    edit(folder, lambda c: c["method"].update(spec="fedporx(mu=0.1)"))
    assert "unknown method 'fedporx'; did you mean 'fedprox'?" in refusal(folder)


def test_an_unknown_transform(folder):
    edit(folder, lambda c: c.update(prepare=[{"kind": "scael"}]))
    assert "unknown transform 'scael'; did you mean 'scale'?" in refusal(folder)


def test_weights_cut_short(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-8])
    assert "it is cut short" in refusal(folder)


def test_weights_with_one_flipped_bit(folder):
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert "does not have the sha256" in refusal(folder)


def test_weights_that_are_no_safetensors(folder):
    (folder / "model.safetensors").write_bytes(b"pickle")
    sums = {"bytes": 6, "sha256": sha256(b"pickle").hexdigest()}
    edit(folder, lambda c: c["weights"].update(sums))
    assert "is no safetensors file" in refusal(folder)


def test_weights_that_are_not_of_this_network(folder):
    reweigh(folder, lambda t: t.pop("head.bias"))
    assert "lacks 'head.bias'" in refusal(folder)
    reweigh(folder, lambda t: t.update({"head.bias": torch.zeros(4)}))
    assert "'head.bias' is 4 of float32, the network's is 3 of float32" in refusal(folder)
    reweigh(folder, lambda t: t.update({"head.bias": torch.zeros(3, dtype=torch.float64)}))
    assert "'head.bias' is 3 of float64" in refusal(folder)
    reweigh(folder, lambda t: t.update({"head.bias": torch.zeros(3), "tail": torch.zeros(1)}))
    assert "has an unknown 'tail'" in refusal(folder)


def test_a_layout_that_does_not_match(folder):
    edit(folder, lambda c: c["layout"]["shapes"].__setitem__(0, [1]))
    assert "is not of the shape (1,) that model.json says" in refusal(folder)


def test_another_network_is_refused(folder):
    assert "is not of this network" in refusal(folder, model=toy.Net(norm=False))


@pytest.mark.parametrize("path", ["os:system", "subprocess:Popen", "tests.deploy.saved:save"])
def test_what_makes_no_network_is_never_called(folder, tmp_path, path):
    """A folder from the internet cannot run what it names."""
    ran = tmp_path / "ran"
    options = {"command": f"touch {ran}"} if path == "os:system" else {"args": ["touch", str(ran)]}
    edit(folder, lambda c: c["architecture"].update(model=path, options=options))
    assert "is not a network's class" in refusal(folder)
    assert not ran.exists()


def test_a_network_that_is_not_here(folder):
    edit(folder, lambda c: c["architecture"].update(model="nowhere.at.all:Net"))
    assert "cannot be imported" in refusal(folder)
    edit(folder, lambda c: c["architecture"].update(model="mpl"))
    assert "unknown model 'mpl'; did you mean 'mlp'?" in refusal(folder)
    edit(folder, lambda c: c["architecture"].update(model="tests.toy:Net", options={"no": 1}))
    assert "refuses its options" in refusal(folder)
