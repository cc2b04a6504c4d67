"""HDF5 as h5py 3.16 wrote it: chunked, deflated, shuffled arrays in groups, without h5py here."""

import base64
import sys
import zlib

import numpy as np
import pytest

from feddg.data.digits import hdf5
from feddg.errors import DataError

# {train,test}/data: n×4 float32, 0, 1/20, 2/20, …, in chunks of 2×4; target: 0 … n − 1; n = 5, 3
PLAIN = (
    "eNrr9HBx4+WS4mIAAQ4OBhYGAQZk8B8Kvqii8mHyCVCaEUp3QOkVTDBxRrCcBFRcEGo+urqQIFdXkOr/aABmzwNWCM3B"
    "MApGIvBwdQwA0RFQPiw9nWBCVVdSlJiZB6JTi0uQ06UDmfbiSr8ezBB+Bitx6dcCmnAFRqNyNP0ipacOVlR1KYklieB0"
    "nFiUnlpCefoN9vN3YWRggqc7J1HU8joLyu8SRy1fFZhR1aGn95EGGBnYIGHBCONrQGgmiAAsWFigNDqfGRjjIJWCCvJQ"
    "MQUGcQ4G8Xq4eg6wPBMzxEBuBgswnxFavjGB5RkZijNK09JyUuHmMkLFU1LTchJLEOIc0BTGzMTcwAkzAuIcqBILisID"
    "lq5g6UWDHb96WPqTExktC5ABqN5gBKYO9HpDnYC+HcIQWpkBEbnYwH2oOhm09IgOmNDihQ1NPctoVI2CUTAKRsEoGAWj"
    "YBQMKKiIS7aoLrsW2RZ5jCf93BmbwwaXZxx83rPE//CZszzbtpUpMDC8eMozsSLOevaxgrKwWYaHZ5q0GRs7fjFmk/M0"
    "TWa3tq42YGA484brFFCJtfbZGYwc5860XLCbmHlU4ZYch4MJQ/tutkpGYL8EtdcD6VUwMqL2eljhvRwBsFIBDgZ4Lwel"
    "d8ME6d3AeyeMetD+J3q3YMIg7glCWtvM0FYxrhEi9J41oREiIUnUntIoGFkA1wjRKnFUddQeISI0ssGMMZIxaEY2oqTo"
    "MLLBJEHcyMYNldE0jDmywUTyyMYkaDjKExjZ2IkW3kyjIxajYBSMglEwCkbBKBgFw39kYxojx7klhnMYL5+XqHDYMnfu"
    "XtsONobuNrbthEYumNF6M6SPXLyArojiGXIjFwCaPfGS"
)
NEWER = (  # the same with libver="latest"
    "eNrr9HBx4+WS4mLm4GCAgf9QUMoO4RtAxUvmGH7y93AJYmKoYBJCVggDXEwMjAwMbAIMQIq1pCgxM28zVCsbP0iMpSS1"
    "uMSIBSpmyEA6ODxv3nZinACxLiWxJNGMEeoCQZAQW0liUXpqiRAzA6rXSAAbXWZcBDuBkYGRUYWBgYmJkZEVKgfzGjqf"
    "WYSBUVBBHspXYBDnYBCvB6kDupaZm1uMgZGJCeRwRrAKRjiLQwishpmRiYWFmcuJCWpcG8MgAQ8V/Ve6OXq4MDCKcMGC"
    "tBXqytofXdYVcckW1WXXItsij/Gknztjc9jg8oyDz3uW+B8+c5Zn27YyBQaGF095Jro5ujgxMMK8Fwel1ZEsugwVU0YS"
    "+wYVk0ES6zp4WrYiznr2sYKysFmGh2eatBkbO34xZpPzNE1mt7auBsb3mTdcp4BKrLXPzmDkOHem5YLdxMyjCrfkOBxM"
    "GNp3s1XC41YEGLeMiLiF0cw8DIwCHAzwuATHIRcoppgZ5aARLgJzzw6GIQs8Jz/zZQCnRmA4gPwNTc+kZb+tLFiyXywb"
    "+dnvNcuiH+jZjxk9u9Ek+x1kHWzZj01f4gss+8HKBhZo2Nr/+/eHpOwH895dVszsZwc1VB5JLG9njD8kq00D5qMlhnMY"
    "L5+XqHDYMnfuXtsONobuNrbt6FmJGS1+8GWlTGjlwzMMspLl8o585KwEAKWQz1c="
)


def unpacked(text):
    return zlib.decompress(base64.b64decode(text))


def test_arrays_by_their_paths(tmp_path):
    (tmp_path / "a.h5").write_bytes(unpacked(PLAIN))
    found = hdf5.read(tmp_path / "a.h5")
    assert set(found) == {"train/data", "train/target", "test/data", "test/target"}
    for part, n in (("train", 5), ("test", 3)):
        expected = np.arange(n * 4, dtype="f4").reshape(n, 4) / 20
        assert np.array_equal(found[f"{part}/data"], expected)
        assert found[f"{part}/data"].dtype == np.float32
        assert found[f"{part}/target"].tolist() == list(range(n))


def test_a_newer_file_takes_h5py(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    (tmp_path / "a.h5").write_bytes(unpacked(NEWER))
    with pytest.raises(DataError, match=r"a\.h5 is an HDF5 file with .*pip install h5py"):
        hdf5.read(tmp_path / "a.h5")


@pytest.mark.parametrize("keep", [60, 700, 2500, 9000])
def test_a_file_that_is_cut_short(keep, tmp_path):
    (tmp_path / "a.h5").write_bytes(unpacked(PLAIN)[:keep])
    with pytest.raises(DataError, match=r"a\.h5 is a damaged HDF5 file"):
        hdf5.read(tmp_path / "a.h5")


def test_what_is_no_hdf5(tmp_path):
    (tmp_path / "a.h5").write_bytes(b"PK\3\4")
    with pytest.raises(DataError, match=r"a\.h5 is no HDF5 file"):
        hdf5.read(tmp_path / "a.h5")
