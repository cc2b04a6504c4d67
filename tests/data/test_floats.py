"""Real-valued images in the cache: their values, kept and made anew; and files that are no good."""

import numpy as np
import pytest
import torch

from feddg.data import cache, floats
from feddg.errors import DataError

SHAPE = (2, 3, 3)


@pytest.fixture
def paths(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDDG_CACHE", str(tmp_path / "cache"))
    (tmp_path / "images").mkdir()
    found = [tmp_path / "images" / f"{k}.npz" for k in range(7)]
    for k, path in enumerate(found):
        np.savez_compressed(path, x=np.full(SHAPE, k + 1 / 3, np.float64))
    return found


def files(tmp_path):
    return sorted(p.suffix for p in (tmp_path / "cache").iterdir())


@pytest.mark.parametrize(("precision", "dtype"), floats.DTYPES.items())
def test_rows_in_order_from_one_file(paths, tmp_path, precision, dtype):
    x = floats.stored_floats(paths, SHAPE, precision)
    assert (x.shape, x.dtype) == ((7, *SHAPE), dtype)
    assert torch.equal(x[:, 1, 2, 2], (torch.arange(7) + 1 / 3).to(dtype))
    assert files(tmp_path) == [".is", ".u8"]


def test_a_second_opening_reads_no_image(paths, monkeypatch):
    first = floats.stored_floats(paths, SHAPE)
    monkeypatch.setattr(floats, "read_array", None)
    assert floats.stored_floats(paths, SHAPE).equal(first)


def test_precisions_do_not_share_a_file(paths):
    half, full = (floats.stored_floats(paths, SHAPE, p) for p in ("half", "full"))
    assert not full.equal(half.float())


def test_it_goes_on_where_it_stopped(paths, monkeypatch, tmp_path):
    """Blocks of two images (72 bytes in half precision); interrupted at the sixth image."""
    monkeypatch.setattr(cache, "BLOCK", 72)
    honest, asked = floats.read_array, []

    def reading(path, shape, key):
        asked.append(path)
        if path == paths[5] and len(asked) < 7:
            raise KeyboardInterrupt
        return honest(path, shape, key)

    monkeypatch.setattr(floats, "read_array", reading)
    with pytest.raises(KeyboardInterrupt):
        floats.stored_floats(paths, SHAPE)
    before = len(asked)
    assert floats.stored_floats(paths, SHAPE)[:, 0, 0, 0].round().tolist() == list(range(7))
    assert sorted(asked[before:]) == paths[4:]
    assert files(tmp_path) == [".is", ".u8"]


def test_changed_files_make_a_new_store(paths):
    floats.stored_floats(paths, SHAPE)
    np.savez(paths[0], x=np.full(SHAPE, 9.0))
    assert floats.stored_floats(paths, SHAPE)[0].unique().tolist() == [9.0]


def test_where_nothing_can_be_written_they_are_in_memory(paths, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "folders", lambda beside: [])
    monkeypatch.delenv("FEDDG_CACHE")
    assert floats.stored_floats(paths, SHAPE)[3].unique().tolist() == [torch.tensor(10 / 3).half()]
    assert not (tmp_path / "cache").exists()


def test_what_is_no_npz_is_named(paths):
    for content in (b"", b"PK\x03\x04 cut", b"\x80\x04N."):  # the last is a pickle
        paths[3].write_bytes(content)
        with pytest.raises(DataError, match=r"3\.npz is not a readable \.npz"):
            floats.stored_floats(paths, SHAPE)
