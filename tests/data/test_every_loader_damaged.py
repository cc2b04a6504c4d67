"""Every loader of images refuses each kind of damage that its data can have, and names the file."""

import re
import struct
import zlib
from pathlib import Path

import pytest

from feddg.data.catalogue import open_collection
from feddg.data.check import check
from feddg.data.folders import IMAGE_TYPES
from feddg.errors import DataError
from tests.data.miniatures import (
    digits_dg,
    home_archive,
    office_images,
    pacs_plain,
    ten,
    terra_folders,
    vlcs_domainbed,
)
from tests.data.wild import picture


def office_caltech_home(root):
    office_images(root / "office-caltech10")
    home_archive(root / "office-home")


SETS = {  # how it lies, the place of one class in one domain, options
    "pacs": (pacs_plain, "PACS/photo/dog", {}),
    "vlcs": (vlcs_domainbed, "VLCS/LabelMe/car", {}),
    "office-home": (home_archive, "OfficeHomeDataset_10072016/Real World/Bed", {}),
    "office-caltech10": (office_images, "images/caltech10/bike", {}),
    "office-caltech-home": (office_caltech_home, "office-caltech10/images/amazon/mug", {}),
    "terra-incognita": (terra_folders, "location_46/bird", {}),
    "domainnet": (ten, "domain_net/quickdraw/tiger", {"classes": "10"}),
    "digits-dg": (digits_dg, "digits_dg/svhn/train/7", {}),
}


def domain_of(cls: Path) -> Path:
    return cls.parents[1] if cls.parent.name == "train" else cls.parent


def image_of(cls: Path) -> Path:
    return min(cls.iterdir())


def cut_short(root, cls):
    image_of(cls).write_bytes(image_of(cls).read_bytes()[:150])
    return f"{image_of(cls)} is not a readable image"


def no_bytes(root, cls):
    image_of(cls).write_bytes(b"")
    return f"{image_of(cls)} is not a readable image"


def a_page_of_html(root, cls):
    """What a download leaves that was answered by a page for people."""
    image_of(cls).write_text("<html>Sign in to download</html>")
    return f"{image_of(cls)} is not a readable image"


def a_bomb(root, cls):
    """A PNG that says it is 60,000 pixels wide and high."""
    head = b"IHDR" + struct.pack(">IIBBBBB", 60000, 60000, 8, 2, 0, 0, 0)
    end = struct.pack(">I", zlib.crc32(head))
    image_of(cls).write_bytes(b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + head + end)
    return f"{image_of(cls)} is not a readable image"


def class_emptied(root, cls):
    for path in cls.iterdir():
        path.unlink()
    return f"class folder {cls} holds no image"


def class_gone(root, cls):
    class_emptied(root, cls)
    cls.rmdir()
    return f"(?i){domain_of(cls)} has no class folder {cls.name}"


def class_foreign(root, cls):
    """Of TerraIncognita, where a kind of animal may well be missing at a place."""
    class_gone(root, cls)
    picture(cls.with_name("unicorn") / "1.jpg", 0)
    return f"{cls.with_name('unicorn')} is no class of terra-incognita"


def domain_gone(root, cls):
    domain_of(cls).rename(root / "elsewhere")
    return "domain folder .* is missing in"


def domain_twice(root, cls):
    twin = domain_of(cls).with_name(domain_of(cls).name + "-")
    (twin / cls.name).mkdir(parents=True)
    return f"{domain_of(cls)} and {twin} are both domain"


def nothing_there(root, cls):
    root.rename(root.with_name("moved"))
    root.mkdir()
    return f"{root} has no domain folder"


def a_file_for_a_folder(root, cls):
    root.rename(root.with_name("moved"))
    root.write_text("")
    return f"{root} is not a folder"


OF_IMAGES = (cut_short, no_bytes, a_page_of_html, a_bomb, class_emptied, class_gone, domain_gone,
             domain_twice, nothing_there, a_file_for_a_folder)  # fmt: skip


def lists(cls: Path, part: str) -> Path:
    """All images of every domain in one part; the list of the domain that will be damaged."""
    domain = domain_of(cls)
    for place in (p for p in domain.parent.iterdir() if p.is_dir()):
        images = sorted(p for p in place.rglob("*") if p.suffix in IMAGE_TYPES)
        names = sorted({p.parent.name for p in images})
        rows = [
            f"{p.relative_to(domain.parent).as_posix()} {names.index(p.parent.name)}"
            for p in images
        ]
        (domain.parent / f"{place.name}_{part}.txt").write_text("\r\n".join(rows))
    return domain.parent / f"{domain.name}_{part}.txt"


def listed_but_gone(root, cls):
    path = lists(cls, "train")
    name = f"{cls.relative_to(domain_of(cls).parent).as_posix()}/absent.jpg"
    path.write_text(f"{name} 0\n{path.read_text()}")
    return f"{path}, line 1 names {name}, which is not in {domain_of(cls)}"


def number_beyond(root, cls):
    path = lists(cls, "train")
    path.write_text(re.sub(r" \d+", " 999", path.read_text(), count=1))
    return f"{path}, line 1: class number 999 is out of range"


def no_number(root, cls):
    path = lists(cls, "train")
    path.write_text(re.sub(r" \d+", "", path.read_text(), count=1))
    return f"{path}, line 1 is .*not a path and a class"


def in_both_lists(root, cls):
    lists(cls, "train")
    lists(cls, "val")
    return r"\.jpg is in the training and in the validation list of"


def one_list_gone(root, cls):
    lists(cls, "train").unlink()
    return "_train.txt has no like for domain"


OF_LISTS = (listed_but_gone, number_beyond, no_number, in_both_lists, one_list_gone)
BARE = ("vlcs", "office-home", "office-caltech10", "terra-incognita")  # come here without lists


def refused(name, damage, root):
    lay, place, options = SETS[name]
    lay(root)
    sentence = damage(root, root / place)
    with pytest.raises(DataError, match=sentence):
        open_collection(name, root=str(root), size="4", **options)
    assert any(re.search(sentence, p) for p in check(name, root=str(root), **options).problems)


@pytest.mark.parametrize("damage", OF_IMAGES)
@pytest.mark.parametrize("name", SETS)
def test_images_and_folders(name, damage, tmp_path):
    if (name, damage) == ("terra-incognita", class_gone):
        damage = class_foreign
    refused(name, damage, tmp_path / "data")


@pytest.mark.parametrize("damage", OF_LISTS)
@pytest.mark.parametrize("name", BARE)
def test_lists(name, damage, tmp_path):
    """PACS' own are in test_layout_damage.py."""
    refused(name, damage, tmp_path / "data")
