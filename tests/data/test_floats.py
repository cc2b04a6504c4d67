"""The store of real-valued images: written once, gone on with, made anew when files change."""

import numpy as np
import pytest
import torch

from feddg.data import floats
from feddg.errors import ConfigError, DataError

SHAPE = (2, 3, 3)


@pytest.fixture
def paths(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDDG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(floats, "AT_ONCE", 2)
    (tmp_path / "images").mkdir()
    found = [tmp_path / "images" / f"{k}.npz" for k in range(7)]
    for k, path in enumerate(found):
        np.savez_compressed(path, x=np.full(SHAPE, k, np.float64))
    return found


def files(tmp_path):
    return sorted(p.name for p in (tmp_path / "cache" / "floats").iterdir())


def test_rows_in_order_from_one_file(paths, tmp_path):
    x = floats.stored_floats(paths, SHAPE)
    assert (x.shape, x.dtype) == ((7, *SHAPE), torch.float16)
    assert x[:, 0, 0, 0].tolist() == list(range(7))
    assert [name.split(".", 1)[1] for name in files(tmp_path)] == ["lock", "raw"]
    assert floats.stored_floats(paths, SHAPE, "full").dtype == torch.float32


def test_a_second_opening_reads_no_image(paths, monkeypatch):
    first = floats.stored_floats(paths, SHAPE)
    monkeypatch.setattr(floats, "read", None)
    assert floats.stored_floats(paths, SHAPE).equal(first)


def test_it_goes_on_where_it_stopped(paths, monkeypatch, tmp_path):
    """Interrupted at the sixth image: four rows are noted, the last three are read again."""
    honest = floats.read_array

    def interrupted(path, shape, key):
        if path == paths[5]:
            raise DataError("interrupted")
        return honest(path, shape, key)

    monkeypatch.setattr(floats, "read_array", interrupted)
    with pytest.raises(DataError, match="interrupted"):
        floats.stored_floats(paths, SHAPE)
    assert [name.split(".", 1)[1] for name in files(tmp_path)] == ["lock", "raw.done", "raw.part"]
    again = []

    def counted(path, shape, key):
        again.append(path)
        return honest(path, shape, key)

    monkeypatch.setattr(floats, "read_array", counted)
    assert floats.stored_floats(paths, SHAPE)[:, 0, 0, 0].tolist() == list(range(7))
    assert sorted(again) == paths[4:]
    assert [name.split(".", 1)[1] for name in files(tmp_path)] == ["lock", "raw"]


def test_changed_files_make_a_new_store(paths):
    floats.stored_floats(paths, SHAPE)
    np.savez(paths[0], x=np.full(SHAPE, 9.0))
    assert floats.stored_floats(paths, SHAPE)[0].unique().tolist() == [9.0]


def test_without_a_cache_named_it_lies_beside_the_images(paths, tmp_path, monkeypatch):
    monkeypatch.delenv("FEDDG_CACHE")
    assert len(floats.stored_floats(paths, SHAPE)) == 7
    assert len(list(tmp_path.glob(".feddg-cache/floats/*.raw"))) == 1
    monkeypatch.setattr("os.access", lambda path, how: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    assert len(floats.stored_floats(paths, SHAPE)) == 7
    assert len(list(tmp_path.glob("home/feddg/floats/*.raw"))) == 1


def test_a_folder_that_cannot_be_written(paths, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FEDDG_CACHE", str(tmp_path / "file"))
    with pytest.raises(ConfigError, match=r"cannot write .*/file/floats/.*\.raw"):
        floats.stored_floats(paths, SHAPE)


def test_what_is_no_npz_is_named(paths):
    for content in (b"", b"PK\x03\x04 cut", b"\x80\x04N."):  # the last is a pickle
        paths[3].write_bytes(content)
        with pytest.raises(DataError, match=r"3\.npz is not a readable \.npz"):
            floats.stored_floats(paths, SHAPE)
