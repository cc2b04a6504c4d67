"""Images decoded once: reuse, what makes it another file, being killed, company, no place."""

import os
import signal
import sys
import time
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch
from PIL import Image

from feddg.data import cache, images
from feddg.errors import DataError

N, SIZE = 12, 6


@pytest.fixture
def paths(tmp_path, monkeypatch):
    """Twelve images in blocks of four; every file is its own colour."""
    monkeypatch.delenv("FEDDG_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(images, "FEW", 4)
    monkeypatch.setattr(cache, "BLOCK", 4 * 3 * SIZE * SIZE)
    made = []
    for i in range(N):
        path = tmp_path / "pictures" / f"class{i % 2}" / f"{i:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (SIZE, SIZE), (i, 2 * i, 255 - i)).save(path)
        made.append(path)
    return made


@pytest.fixture
def decoded(monkeypatch):
    """The names of the files that are decoded."""
    names: list[str] = []
    plain = images.decode

    def noted(path, size, channels):
        names.append(path.name)
        return plain(path, size, channels)

    monkeypatch.setattr(images, "decode", noted)
    return names


def files(folder: Path) -> list[str]:
    return sorted(path.suffix for path in folder.iterdir()) if folder.is_dir() else []


def expected():
    colours = torch.tensor([[i, 2 * i, 255 - i] for i in range(N)], dtype=torch.uint8)
    return colours[:, :, None, None].expand(N, 3, SIZE, SIZE)


def kept(paths) -> Path:
    return paths[0].parents[2] / cache.FOLDER


def test_the_second_time_nothing_is_decoded(paths, decoded):
    first = images.stored(paths, SIZE, 3)
    assert sorted(decoded) == [path.name for path in paths]
    assert torch.equal(first, expected())
    assert files(kept(paths)) == [".is", ".u8"]
    decoded.clear()
    second = images.stored(paths, SIZE, 3)
    assert decoded == []
    assert torch.equal(second, expected())
    (whole,) = kept(paths).glob("*.u8")
    assert whole.name.startswith("pictures-6x3-")
    assert whole.read_bytes() == expected().contiguous().numpy().tobytes()


def test_it_is_mapped_and_writing_to_it_stays_here(paths):
    images.stored(paths, SIZE, 3)
    x = images.stored(paths, SIZE, 3)
    (whole,) = kept(paths).glob("*.u8")
    if sys.platform == "linux":
        assert str(whole) in Path("/proc/self/maps").read_text()
    x[0] = 99
    assert torch.equal(images.stored(paths, SIZE, 3), expected())


def test_few_images_leave_no_file(paths):
    assert torch.equal(images.stored(paths[:3], SIZE, 3), expected()[:3])
    assert files(kept(paths)) == []
    assert images.stored([], SIZE, 3).shape == (0, 3, SIZE, SIZE)


def test_what_changes_the_pixels_changes_the_key(paths, decoded):
    """The order, the size, the channels, and a file's bytes; not where the folder lies."""
    before = cache.entry(paths, SIZE, 3)
    assert cache.entry(paths, SIZE, 3) == before
    moved = paths[0].parents[1].rename(paths[0].parents[2] / "elsewhere")
    others = [moved / path.relative_to(path.parents[1]) for path in paths]
    assert cache.entry(others, SIZE, 3).name.split("-")[-1] == before.name.split("-")[-1]
    moved.rename(paths[0].parents[1])
    names = {before.name}
    for given in ((paths[::-1], SIZE, 3), (paths, SIZE + 1, 3), (paths, SIZE, 1)):
        names.add(cache.entry(*given).name)
    images.stored(paths, SIZE, 3)
    Image.new("RGB", (SIZE, SIZE), (7, 7, 7)).save(paths[5])
    names.add(cache.entry(paths, SIZE, 3).name)
    assert len(names) == 5
    decoded.clear()
    assert images.stored(paths, SIZE, 3)[5].unique().item() == 7
    assert len(decoded) == N


def test_other_times_and_names_of_the_same_bytes_are_not_decoded_again(paths, decoded, monkeypatch):
    """The bytes are read anew then, once; not where nothing has changed."""
    read = []
    plain = cache.bytes_of

    def noted(path):
        read.append(path)
        return plain(path)

    monkeypatch.setattr(cache, "bytes_of", noted)
    images.stored(paths, SIZE, 3)
    assert len(read) == N
    images.stored(paths, SIZE, 3)
    assert len(read) == N
    for path in paths:
        os.utime(path, ns=(0, 12345))
    renamed = [path.rename(path.with_stem(f"picture{path.stem}")) for path in paths]
    decoded.clear()
    assert torch.equal(images.stored(renamed, SIZE, 3), expected())
    assert decoded == []
    assert len(read) == 2 * N
    (kept(paths) / f"{cache.stamp(renamed)}.is").write_text("damaged")
    assert torch.equal(images.stored(renamed, SIZE, 3), expected())
    assert decoded == []
    assert len(read) == 3 * N


def test_files_that_differ_in_their_bytes_alone_are_kept_apart(paths, tmp_path, monkeypatch):
    """Two folders in one cache: the same names, sizes and times, as archives may give them."""
    monkeypatch.setenv("FEDDG_CACHE", str(tmp_path / "shared"))
    found = []
    for shade in (3, 4):
        others = [tmp_path / str(shade) / "set" / f"{path.stem}.bmp" for path in paths]
        others[0].parent.mkdir(parents=True)
        for path in others:
            Image.new("RGB", (SIZE, SIZE), (shade, shade, shade)).save(path)
            os.utime(path, ns=(0, 0))
        found.append(images.stored(others, SIZE, 3).unique().item())
    assert found == [3, 4]


def test_killed_in_the_middle_it_goes_on(paths, decoded, monkeypatch):
    """Two of three blocks are there when the process dies, and a line of the third is cut short."""
    child = get_context("fork").Process(target=dying, args=(paths,))
    child.start()
    child.join(20)
    assert child.exitcode == -signal.SIGKILL
    assert ".u8" not in files(kept(paths))
    (log,) = kept(paths).glob("*.done")
    assert len(log.read_text().splitlines()) == 2
    with open(log, "a") as file:
        file.write("2 0000")
    assert torch.equal(images.stored(paths, SIZE, 3), expected())
    assert sorted(decoded) == [path.name for path in paths[8:]]
    assert files(kept(paths)) == [".is", ".u8"]


def dying(paths):
    plain = images.decode

    def killed(path, size, channels):
        if path == paths[9]:
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(path, size, channels)

    images.decode = killed
    images.stored(paths, SIZE, 3)


def test_a_block_that_did_not_reach_the_disk_is_decoded_again(paths, decoded):
    child = get_context("fork").Process(target=dying, args=(paths,))
    child.start()
    child.join(20)
    (part,) = kept(paths).glob("*.part")
    with open(part, "r+b") as file:
        file.write(bytes(108))  # zeros, as after a power cut
    assert torch.equal(images.stored(paths, SIZE, 3), expected())
    assert sorted(decoded) == [path.name for path in [*paths[:4], *paths[8:]]]


def slow(paths, log):
    plain = images.decode

    def noted(path, size, channels):
        with open(log, "a") as file:
            file.write(f"{path.name}\n")
        time.sleep(0.01)
        return plain(path, size, channels)

    images.decode = noted
    assert torch.equal(images.stored(paths, SIZE, 3), expected())


def test_of_two_processes_one_decodes(paths, tmp_path):
    log = tmp_path / "log"
    fork = get_context("fork")
    both = [fork.Process(target=slow, args=(paths, log)) for _ in range(2)]
    for child in both:
        child.start()
    for child in both:
        child.join(20)
        assert child.exitcode == 0
    assert sorted(log.read_text().split()) == [path.name for path in paths]
    assert files(kept(paths)) == [".is", ".u8"]


def test_a_broken_image_leaves_no_pixels(paths):
    paths[9].write_bytes(b"no image")
    with pytest.raises(DataError, match=r"09\.png is not a readable image"):
        images.stored(paths, SIZE, 3)
    assert files(kept(paths)) == [".is", ".lock"]


def test_a_folder_that_takes_nothing(paths, tmp_path, decoded, monkeypatch):
    """Beside the data there is a file in the way: then at home; if there, too, in memory."""
    kept(paths).write_text("in the way")
    assert torch.equal(images.stored(paths, SIZE, 3), expected())
    assert files(tmp_path / "home" / "feddg") == [".is", ".u8"]
    decoded.clear()
    images.stored(paths, SIZE, 3)
    assert decoded == []
    monkeypatch.setenv("XDG_CACHE_HOME", str(paths[0]))
    assert torch.equal(images.stored(paths, SIZE, 3), expected())
    assert len(decoded) == N


def test_a_named_folder(paths, tmp_path, monkeypatch):
    monkeypatch.setenv("FEDDG_CACHE", str(tmp_path / "mine"))
    images.stored(paths, SIZE, 3)
    assert files(tmp_path / "mine") == [".is", ".u8"]
    assert files(kept(paths)) == []
    monkeypatch.setenv("FEDDG_CACHE", str(paths[0]))
    with pytest.raises(DataError, match=r"FEDDG_CACHE=.*nothing can be written there"):
        images.stored(paths, SIZE, 3)


def test_paths_from_here_and_from_the_root_of_the_disk(paths, tmp_path, monkeypatch):
    """The same files, some named from the folder in which we are; nothing is written into /."""
    monkeypatch.chdir(tmp_path)
    mixed = [p.relative_to(tmp_path) if i % 2 else p for i, p in enumerate(paths)]
    assert torch.equal(images.stored(mixed, SIZE, 3), expected())
    assert files(kept(paths)) == [".is", ".u8"]
    assert cache.entry(mixed, SIZE, 3) == cache.entry(paths, SIZE, 3)
    assert cache.folders(Path("/data")) == [tmp_path / "home" / "feddg"]


def test_no_room(paths, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    assert torch.equal(images.stored(paths, SIZE, 3), expected())
    monkeypatch.setenv("FEDDG_CACHE", str(kept(paths)))
    with pytest.raises(DataError, match="there is no room for 0 MiB"):
        images.stored(paths, SIZE, 3)


def test_a_half_written_whole_file_is_not_taken(paths, decoded):
    images.stored(paths, SIZE, 3)
    (whole,) = kept(paths).glob("*.u8")
    whole.write_bytes(whole.read_bytes()[:-1])
    decoded.clear()
    assert torch.equal(images.stored(paths, SIZE, 3), expected())
    assert len(decoded) == N


def test_a_missing_file_is_named(paths):
    paths[3].unlink()
    with pytest.raises(DataError, match=r"03\.png cannot be read"):
        images.stored(paths, SIZE, 3)


def test_a_terminal_sees_a_bar(paths, monkeypatch, capsys):
    from rich.progress import Progress

    seen = []
    plain = Progress.update
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)

    def noted(self, task, advance, refresh):
        seen.append(advance)
        plain(self, task, advance=advance, refresh=refresh)

    monkeypatch.setattr(Progress, "update", noted)
    images.stored(paths, SIZE, 3)
    assert seen == [4, 4, 4]
    assert "pictures" in capsys.readouterr().err
