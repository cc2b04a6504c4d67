"""Downloads from a server of this machine: whole, gone on with, refused; and without a network."""

import hashlib
import io
import json
import socket
import tarfile
import zipfile

import pytest

from feddg.data import fetch, get, unpack
from feddg.data.get import Download, Source, find, sources
from feddg.errors import ConfigError, DataError
from tests.cli.command import feddg
from tests.data.served import served

BODY = bytes(range(256)) * 40
SHA = "sha256:" + hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with served({"digits.bin": BODY}) as found:
        yield found


def quiet(file, done, total):
    pass


def fetched(site, root, of="digits.bin", told=quiet, **fields):
    source = Source("https://page", (Download(site.url(of), **fields),))
    return get.get("digits", source, root, told)


def names(root):
    return sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())


def zipped(**files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        for name, text in files.items():
            packed.writestr(name, text)
    return out.getvalue()


def taped(*members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tape:
        for member, text in members:
            member.size = len(text)
            tape.addfile(member, io.BytesIO(text))
    return out.getvalue()


def test_a_whole_download_and_none_the_second_time(site, tmp_path):
    told = []
    (line,) = fetched(site, tmp_path, told=lambda *it: told.append(it), digest=SHA, into="mnist")
    assert line == f"digits.bin: {SHA}, as published"
    assert (tmp_path / "mnist" / "digits.bin").read_bytes() == BODY
    assert names(tmp_path) == ["downloads.json", "mnist/digits.bin"]
    assert told[0] == ("digits.bin", 0, len(BODY))
    assert told[-1] == ("digits.bin", len(BODY), len(BODY))
    assert fetched(site, tmp_path, digest=SHA, into="mnist") == ["digits.bin is here already"]
    assert site.asked == [None]


def test_a_download_that_breaks_off_goes_on_by_itself(site, tmp_path):
    site.cut = 1000
    fetched(site, tmp_path, digest=SHA)
    assert (tmp_path / "digits.bin").read_bytes() == BODY
    assert site.asked == [None, "bytes=1000-"]


def test_it_goes_on_when_the_command_is_given_again(site, tmp_path, monkeypatch):
    monkeypatch.setattr(fetch, "TRIES", 1)
    site.cut = 3000
    with pytest.raises(ConfigError, match=r"broke off at 3,000 bytes \(of 10,240\); run the same"):
        fetched(site, tmp_path, digest=SHA)
    assert names(tmp_path) == ["digits.bin.part", "digits.bin.part.tag"]
    fetched(site, tmp_path, digest=SHA)
    assert (tmp_path / "digits.bin").read_bytes() == BODY
    assert site.asked == [None, "bytes=3000-"]
    assert names(tmp_path) == ["digits.bin", "downloads.json"]


def test_a_file_that_changed_meanwhile_is_begun_anew(site, tmp_path, monkeypatch):
    """No digest is published: only the server's tag tells that the halves are of two files."""
    monkeypatch.setattr(fetch, "TRIES", 1)
    site.cut = 3000
    with pytest.raises(ConfigError, match="broke off"):
        fetched(site, tmp_path)
    site.files["digits.bin"] = BODY[::-1]
    site.tags["digits.bin"] = '"another"'
    fetched(site, tmp_path)
    assert (tmp_path / "digits.bin").read_bytes() == BODY[::-1]


def test_a_server_without_ranges_begins_anew(site, tmp_path):
    site.cut, site.ranges = 3000, False
    fetched(site, tmp_path, digest=SHA)
    assert (tmp_path / "digits.bin").read_bytes() == BODY


def test_another_part_than_was_asked_for_is_not_joined(site, tmp_path):
    site.cut, site.shift = 3000, 7
    fetched(site, tmp_path)  # without a digest that would tell
    assert (tmp_path / "digits.bin").read_bytes() == BODY
    assert site.asked == [None, "bytes=3000-", None]


@pytest.mark.parametrize("length", [len(BODY), len(BODY) + 5])
def test_what_is_whole_already_or_too_long(site, tmp_path, length):
    """Killed between the last byte and the new name; or another file of that name."""
    (tmp_path / "digits.bin.part").write_bytes((BODY + b"12345")[:length])
    fetched(site, tmp_path, digest=SHA)
    assert (tmp_path / "digits.bin").read_bytes() == BODY


def test_a_wrong_checksum_is_refused_and_nothing_kept(site, tmp_path):
    wrong = "md5:" + "0" * 32
    with pytest.raises(DataError, match=r"has the checksum md5:\w+, not md5:0+; nothing of it"):
        fetched(site, tmp_path, digest=wrong)
    assert names(tmp_path) == []


def test_without_a_published_checksum_the_first_is_recorded(site, tmp_path):
    (line,) = fetched(site, tmp_path)
    assert line == (
        f"digits.bin: {SHA}, recorded in {tmp_path / 'downloads.json'}, for none is published"
    )
    record = json.loads((tmp_path / "downloads.json").read_text())
    assert record[site.url("digits.bin")] == {
        "digest": SHA, "published": False, "made": ["digits.bin"],
    }  # fmt: skip
    (tmp_path / "digits.bin").unlink()
    assert fetched(site, tmp_path) == [f"digits.bin: {SHA}, as at the first download"]
    (tmp_path / "digits.bin").unlink()
    site.files["digits.bin"] = BODY[1:]
    with pytest.raises(DataError, match=f"not {SHA}"):
        fetched(site, tmp_path)


def test_a_file_brought_along_is_taken_and_checked(site, tmp_path):
    (tmp_path / "digits.bin").write_bytes(BODY)
    fetched(site, tmp_path, digest=SHA)
    (tmp_path / "downloads.json").unlink()
    (tmp_path / "digits.bin").write_bytes(b"else")
    with pytest.raises(DataError, match="remove it and try again"):
        fetched(site, tmp_path, digest=SHA)
    assert site.asked == []
    assert (tmp_path / "digits.bin").exists()


def test_archives_are_unpacked_and_then_done_with(site, tmp_path):
    folder = tarfile.TarInfo("images")
    folder.type = tarfile.DIRTYPE
    site.files["a.zip"] = zipped(**{"clipart/cat/1.png": "one", "list.txt": "two"})
    site.files["blob"] = taped((folder, b""), (tarfile.TarInfo("images/x.npz"), b"three"))
    fetched(site, tmp_path, "a.zip", unpack=True)
    fetched(site, tmp_path, "blob", unpack=True, file="archive.tar.gz", into="poverty_v1.1")
    assert names(tmp_path) == [
        "clipart/cat/1.png", "downloads.json", "list.txt", "poverty_v1.1/images/x.npz",
    ]  # fmt: skip
    assert (tmp_path / "poverty_v1.1" / "images" / "x.npz").read_bytes() == b"three"
    assert fetched(site, tmp_path, "a.zip", unpack=True) == ["a.zip is here already"]
    (tmp_path / "list.txt").unlink()
    with pytest.raises(DataError, match="clipart is there already; move it away"):
        fetched(site, tmp_path, "a.zip", unpack=True)
    assert (tmp_path / "a.zip").exists()  # nothing is wrong with it


def link(name, to, kind):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, to
    return member


def zipped_link():
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as packed:
        member = zipfile.ZipInfo("images")
        member.external_attr = 0o120777 << 16
        packed.writestr(member, "/etc")
    return out.getvalue()


FINE = (tarfile.TarInfo("fine.txt"), b"fine")


@pytest.mark.parametrize(
    ("file", "body", "sentence"),
    [
        ("a.zip", zipped(**{"fine.txt": "", "../out.txt": ""}), "'../out.txt' in it leads out of"),
        ("a.zip", zipped(**{"/out.txt": ""}), "leads out of the folder"),
        ("a.zip", zipped(**{"C:/out.txt": ""}), "leads out of the folder"),
        ("a.zip", zipped_link(), "'images' in it is a link or no file"),
        ("a.tar.gz", taped(FINE, (tarfile.TarInfo("x/../../out.txt"), b"")), "leads out of"),
        ("a.tar.gz", taped(FINE, (link("x", "/etc", tarfile.SYMTYPE), b"")), "is a link or no"),
        ("a.tar.gz", taped(FINE, (link("x", "fine.txt", tarfile.LNKTYPE), b"")), "is a link or"),
        ("a.tar.gz", taped(FINE, (link("x", "", tarfile.FIFOTYPE), b"")), "is a link or no file"),
        ("a.tar.gz", taped(FINE)[:-20], r"a\.tar\.gz is damaged"),
        ("a.zip", zipped(x="text")[:-9], r"a\.zip is damaged"),
        ("a.rar", b"Rar!", r"a\.rar is no archive that can be unpacked: \.zip"),
    ],
    ids=lambda v: "" if isinstance(v, bytes) else v,  # an archive's bytes hold the time
)
def test_archives_that_are_refused_leave_nothing(site, tmp_path, file, body, sentence):
    site.files[file] = body
    root = tmp_path / "data"
    with pytest.raises(DataError, match=sentence):
        fetched(site, root, file, unpack=True)
    assert names(tmp_path) == []
    assert not (root / unpack.FOLDER).exists()


def test_without_a_network_one_sentence_says_what_to_do(tmp_path, monkeypatch):
    with socket.socket() as free:  # a port where nobody listens
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    source = Source("https://page", (Download(f"http://127.0.0.1:{port}/a.zip"),))
    with pytest.raises(ConfigError) as said:
        get.get("digits", source, tmp_path, quiet)
    assert str(said.value) == (
        "there is no way to 127.0.0.1 ([Errno 111] Connection refused); with a network run"
        " `feddg data get digits` again, or get it elsewhere (see https://page) and put it there as"
        f" {tmp_path / 'a.zip'}"
    )
    unheard = Source("https://page", (Download("http://nowhere.invalid/a.zip", into="deep"),))
    with pytest.raises(ConfigError, match=r"there is no way to nowhere\.invalid"):
        get.get("digits", unheard, tmp_path / "digits", quiet)
    assert not (tmp_path / "digits").exists(), "an empty folder would look like the data's"


def test_what_the_server_does_not_have(site, tmp_path):
    with pytest.raises(ConfigError, match=r"none\.bin answers 404 Not Found; with a network"):
        fetched(site, tmp_path, "none.bin")
    with pytest.raises(ConfigError, match="is no address of a download"):
        get.get("x", Source("", (Download("file:///etc/passwd"),)), tmp_path, quiet)


def test_a_disk_without_room_is_said_before(site, tmp_path, monkeypatch):
    usage = type("usage", (), {"free": 5000})
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage)
    with pytest.raises(ConfigError, match=r"has room for 0\.0 GB, digits\.bin needs"):
        fetched(site, tmp_path)


def test_what_only_a_person_can_get(site, tmp_path):
    with pytest.raises(ConfigError, match=r"no program can fetch pacs: get .*drive\.google\.com"):
        get.get("pacs", find("pacs"), tmp_path, quiet)
    partly = Source("https://page", (Download(site.url("digits.bin")),), by_hand="the rest")
    *_, last = get.get("digits", partly, tmp_path, quiet)
    assert last == f"still to get by hand, into {tmp_path}: the rest; see https://page"


def test_every_source_is_complete():
    named = {
        "pacs", "vlcs", "office-home", "office-caltech-home", "office-caltech10",
        "terra-incognita", "domainnet", "digits-dg", "digit-five", "rotated-mnist", "camelyon17",
        "poverty", "fmow",
    }  # fmt: skip
    assert set(sources()) == named
    for source in sources().values():
        assert source.page.startswith("http")
        assert source.downloads or source.by_hand
        places = [(d.into, d.name) for d in source.downloads]
        assert len(set(places)) == len(places)
        for download in source.downloads:
            assert download.url.startswith("http")
            assert not download.digest or download.digest.partition(":")[0] in ("md5", "sha256")
            assert not download.unpack or download.name.endswith(unpack.ZIPS + unpack.TARS)


def test_the_command(site, tmp_path, monkeypatch, capsys):
    offered = Source("https://page", (Download(site.url("digits.bin"), SHA),), note="A note.")
    offers = {"digits": offered, "pacs": find("pacs")}
    monkeypatch.setattr(get, "sources", lambda: offers)
    monkeypatch.setenv("FEDDG_DATA", str(tmp_path))
    said = feddg(capsys, "data", "get", "digits")
    assert said.code == 0
    assert said.out.splitlines() == [
        f"digits: from https://page into {tmp_path / 'digits'}", "A note.",
        f"digits.bin: {SHA}, as published",
    ]  # fmt: skip
    assert (tmp_path / "digits" / "digits.bin").read_bytes() == BODY
    assert feddg(capsys, "data", "get", "digits", "--root", tmp_path / "b").code == 0
    assert (tmp_path / "b" / "digits.bin").exists()
    by_hand = feddg(capsys, "data", "get", "pacs")
    assert by_hand.code == 2
    assert "drive.google.com" in by_hand.err
    assert "did you mean 'digits'" in feddg(capsys, "data", "get", "digit").err
