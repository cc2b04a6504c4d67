"""Benchmarks in miniature, as Dassl, DomainBed, JiGen, GA, FedBN and the archives lay them out."""

import json

from feddg.data.sets.office_caltech10 import CLASSES as OFFICE
from feddg.data.sets.office_home import CLASSES as HOME
from feddg.data.sets.pacs import CLASSES as PACS
from feddg.data.sets.terra_incognita import CLASSES as ANIMALS
from feddg.data.sets.vlcs import CLASSES as VLCS
from tests.data.wild import picture, tree, write

STYLES = ("art_painting", "cartoon", "photo", "sketch")
HOMES = ("Art", "Clipart", "Product", "Real World")
WIDE = ("clipart", "infograph", "painting", "quickdraw", "real", "sketch")


def pacs_plain(root):
    tree(root / "PACS", STYLES, PACS)


def pacs_shouted(root):
    tree(root, ("Art Painting", "CARTOON", "Photo", "SKETCH"), [c.upper() for c in PACS])


def kfold_lists(root, folder, first, suffix="_kfold"):
    """Of two images a class, the first trains and the second validates; all are tested on."""
    for domain in STYLES:
        for part, ns in (("train", (0,)), ("crossval", (1,)), ("test", (0, 1))):
            write(
                root / f"{domain}_{part}{suffix}.txt",
                [f"{folder}{domain}/{c}/pic_{n:03}.jpg {k + first}" for k, c in enumerate(PACS)
                 for n in ns],
            )  # fmt: skip


def pacs_archive(root):
    tree(root / "kfold", STYLES, PACS)
    kfold_lists(root / "Train val splits and h5py files pre-read", "", 1)


def pacs_dassl(root):
    tree(root / "pacs" / "images", STYLES, PACS)
    kfold_lists(root / "pacs" / "splits", "", 1)


def pacs_jigen(root):
    tree(root / "kfold", STYLES, PACS)
    kfold_lists(root / "txt_lists", "/home/fmc/data/PACS/kfold/", 0, "")


def pacs_flat(root):
    """No class folders: the lists alone say the class, and a 7 of seven classes counts from 1."""
    for domain in STYLES:
        lines = []
        for k in range(len(PACS)):
            for n in range(2):
                picture(root / domain / f"{k}_{n}.png", k)
                lines.append(f"{domain}/{k}_{n}.png {k + 1}")
        write(root / f"{domain}_train.txt", lines[::2])
        write(root / f"{domain}_crossval.txt", lines[1::2])
        write(root / f"{domain}_test.txt", lines)


def vlcs_dassl(root):
    """full/ repeats what train/ and crossval/ have, under the same names."""
    upper = ("CALTECH", "LABELME", "PASCAL", "SUN")
    digits = [str(k) for k in range(5)]
    tree(root / "VLCS", upper, digits, ("train", "crossval", "test"))
    named = {"train": lambda _, n: f"train_{n:03}", "crossval": lambda _, n: f"crossval_{n:03}"}
    for part in named:
        tree(root / "VLCS", upper, digits, ("full",), numbered=named[part])


def vlcs_domainbed(root):
    tree(root / "VLCS", ("Caltech101", "LabelMe", "SUN09", "VOC2007"), VLCS)


def vlcs_jigen(root):
    upper = ("CALTECH", "LABELME", "PASCAL", "SUN")
    digits = [str(k) for k in range(5)]
    tree(root / "VLCS", upper, digits, ("full", "test"), each=1)
    for domain in upper:
        for part, folder in (("train", "full"), ("test", "test")):
            write(
                root / "txt_lists" / f"{domain}_{part}.txt",
                [f"/home/fmc/data/VLCS/{domain}/{folder}/{k}/{folder}_000.jpg {k}" for k in digits],
            )


def home_archive(root):
    """With the two files that lie beside the domains there."""
    base = tree(root / "OfficeHomeDataset_10072016", HOMES, HOME.split(), each=1)
    write(base / "ImageInfo.csv", ["x,y,z", "1,2,3"])
    write(base / "imagelist.txt", ["Art/Alarm_Clock/00001.jpg"])


def home_dassl(root):
    tree(root / "office_home_dg", ("art", "clipart", "product", "real_world"),
         [c.lower() for c in HOME.split()], ("train", "val"), each=1)  # fmt: skip


def home_ga(root):
    tree(root, ("Art", "Clipart", "Product", "Real_World"), HOME.split(), each=1)
    for domain in ("Art", "Clipart", "Product", "Real_World"):
        write(
            root / f"{domain}_img_label_list.txt",
            [f"/x/{domain}/{c}/pic_000.jpg {k}" for k, c in enumerate(sorted(HOME.split()))],
        )


def office_images(root):
    tree(root / "images", ("amazon", "caltech10", "dslr", "webcam"), OFFICE)


def office_fedbn(root):
    names = [{"backpack": "back_pack", "laptop": "laptop_computer"}.get(c, c) for c in OFFICE]
    tree(root / "office_caltech_10", ("amazon", "caltech", "dslr", "webcam"), names)


def terra_folders(root):
    tree(root, [f"location_{n}" for n in (100, 38, 43, 46)], ANIMALS)


def terra_archive(root):
    """Two annotation files; place 7 and the car are not of the benchmark."""
    images, marks = [], []
    for place in ("100", "38", "43", "46", 7):
        for k in range(len(ANIMALS)):
            for n in range(2):
                name = f"{place}_{k}_{n}"
                picture(root / "eccv_18_all_images_sm" / f"{name}.jpg", k)
                images.append({"id": name, "location": place, "file_name": f"{name}.jpg"})
                marks += [{"image_id": name, "category_id": k}] * 2
    images.append({"id": "car", "location": "38", "file_name": "car.jpg"})
    marks.append({"image_id": "car", "category_id": 99})
    names = [{"id": k, "name": c} for k, c in enumerate(ANIMALS)] + [{"id": 99, "name": "car"}]
    for k in range(2):
        part = {"images": images[k::2], "annotations": marks, "categories": names}
        home = root / "eccv_18_annotation_files"
        home.mkdir(exist_ok=True)
        (home / f"{k}.json").write_text(json.dumps(part))


def ten(root):
    tree(root / "domain_net", WIDE, sorted({*TEN, "zigzag"}))
    for domain in WIDE:
        write(
            root / "domain_net" / "splits" / f"{domain}_train.txt",
            [f"{domain}/{c}/pic_000.jpg {k * 30}" for k, c in enumerate((*TEN, "zigzag"))],
        )
        write(
            root / "domain_net" / "splits" / f"{domain}_test.txt",
            [f"{domain}/{c}/pic_001.jpg {k * 30}" for k, c in enumerate((*TEN, "zigzag"))],
        )


TEN = ("bird", "feather", "headphones", "ice_cream", "teapot", "tiger", "whale", "windmill",
       "wine_glass", "zebra")  # fmt: skip


def digits_dg(root):
    tree(root / "digits_dg", ("mnist", "mnist_m", "svhn", "syn"), "0123456789", ("train", "val"),
         each=1)  # fmt: skip
