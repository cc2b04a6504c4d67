"""What a user gets wrong: one clear sentence on stderr, exit code 2, nothing half-written."""

import fcntl
from pathlib import Path

import pytest

from tests.cli.command import feddg, images, sites

QUICK = ("--rounds", 1, "--workers", 1)


@pytest.fixture
def refused(capsys, tmp_path):
    """Runs the command and checks all but the words."""

    def run(*argv, out=True):
        runs = tmp_path / "runs"
        said = feddg(capsys, *argv, *(("--out", runs) if out else ()))
        assert said.code == 2, said.err
        assert said.out == ""
        assert said.err.startswith("feddg: ")
        assert said.err.count("\n") == 1, "one sentence on one line"
        assert not runs.exists(), "nothing half-written"
        return said.err

    return run


def test_a_folder_with_one_domain_only(refused, tmp_path):
    sites(tmp_path / "one", ("alone",))
    told = refused("bench", tmp_path / "one", *QUICK)
    assert "one CSV only (alone.csv)" in told
    images(tmp_path / "pictures", ("day",))
    told = refused("run", tmp_path / "pictures", "--target", "day", *QUICK)
    assert "one domain only (day)" in told


def test_a_class_missing_at_a_site(refused, tmp_path):
    root = sites(tmp_path / "data")
    lines = (root / "b.csv").read_text().splitlines()
    (root / "b.csv").write_text("\n".join(v for v in lines if not v.endswith("ill")))
    told = refused("run", root, "--target", "c", *QUICK)
    assert "site 'b'" in told
    assert "class 'ill'" in told
    assert "--allow-missing-classes" in told


def test_a_class_missing_at_a_site_can_be_meant(capsys, tmp_path):
    root = sites(tmp_path / "data")
    lines = (root / "b.csv").read_text().splitlines()
    (root / "b.csv").write_text("\n".join(v for v in lines if not v.endswith("ill")))
    argv = ("run", root, "--target", "c", *QUICK, "--out", tmp_path / "runs")
    assert feddg(capsys, *argv, "--allow-missing-classes").code == 0
    said = feddg(capsys, "run", root, "--target", "b", *QUICK, "--out", tmp_path / "runs")
    assert said.code == 0, "a target may lack a class"


def test_a_broken_image(refused, tmp_path):
    root = images(tmp_path / "pictures")
    (root / "night" / "o" / "3.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    told = refused("run", root, "--target", "day", "--data-option", "size=8", *QUICK)
    assert str(root / "night" / "o" / "3.png") in told


def test_a_label_out_of_range(refused, tmp_path):
    root = sites(tmp_path / "data")
    with open(root / "b.csv", "a") as file:
        file.write("0.1,0.2,dead\n")
    told = refused(
        "run", root, "--data-option", "classes=well,ill", "--target", "c", *QUICK
    )  # fmt: skip
    assert "b.csv" in told
    assert "'dead'" in told


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--method", "fedporx"], ["'fedporx'", "did you mean 'fedprox'"]),
        (["--method", "fedprox(nu=1)"], ["option of fedprox 'nu'", "known: mu"]),
        (["--method", "csac:oficial"], ["'oficial'", "did you mean 'official'"]),
        (["--target", "vaa"], ["'vaa'", "did you mean 'va'"]),
        (["--target", "va", "--sources", "hungary"], ["did you mean 'hungarian'"]),
        (["--target", "va", "--sources", "va"], ["'va'", "choose"]),
        (["--target", "cleveland,hungarian,switzerland,va"], ["leave some to train on"]),
        (["--selection", "sourceval"], ["did you mean 'source-val'"]),
        (["--selection", "source-val", "--share", "0"], ["source-val", "--share"]),
        (["--selection", "oracle"], ["oracle", "--target"]),
        (["--selection", "domain-val"], ["domain-val", "--validation"]),
        (["--schedule", "papre"], ["did you mean 'paper'"]),
        (["--model", "mpl"], ["did you mean 'mlp'"]),
        (["--model", "no_such_package:Net"], ["no_such_package:Net", "cannot be imported"]),
        (["--set", "lrr=0.1"], ["'lrr'", "did you mean 'lr'"]),
        (["--set", "lr=fast"], ["lr must be a number", "'fast'"]),
        (["--set", "lr"], ["'lr'", "write name=value"]),
        (["--set", "optimizer=sgdd"], ["did you mean 'sgd'"]),
        (["--set", "epochs=0"], ["epochs must be at least 1"]),
        (["--set", "steps=0"], ["steps must be at least 1"]),
        (["--data-option", "scalling=site"], ["did you mean 'scaling'"]),
        (["--rounds", "0"], ["rounds must be at least 1"]),
        (["--workers", "0"], ["--workers must be at least 1"]),
        (["--share", "1.5"], ["share", "1.5"]),
        (["--participation", "0"], ["participation"]),
        (["--participation", "many"], ["--participation 'many'"]),
        (["--participation", "1.5"], ["participation"]),
        (["--participation", "1"], ["write 1.0 for all"]),
        (["--device", "cud"], ["did you mean 'cuda'"]),
        (["--device", "cuda"], ["--device cuda", "--device cpu"]),
    ],
    ids=lambda v: " ".join(v) if v and v[0].startswith("-") else "",
)  # fmt: skip
def test_a_wrong_option(refused, argv, words):
    told = refused("run", "heart-disease", *argv)
    for word in words:
        assert word in told


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--seeds", "0"], ["--seeds must be at least 1"]),
        (["--methods", ""], ["at least one method"]),
        (["--methods", "fedavg,fedavg"], ["twice"]),
        (["--methods", "fedavg,fedporx"], ["did you mean 'fedprox'"]),
        (["--targets", "vaa"], ["did you mean 'va'"]),
        (["--rounds", "0"], ["rounds must be at least 1"]),
        (["--schedule", "demoo"], ["did you mean 'demo'"]),
        (["--selection", "lst"], ["did you mean 'last'"]),
        (["--selection", "source-val", "--share", "0"], ["--share"]),
    ],
    ids=lambda v: " ".join(v) if v and v[0].startswith("-") else "",
)
def test_a_wrong_option_of_bench(refused, argv, words):
    told = refused("bench", "heart-disease", *argv)
    for word in words:
        assert word in told


def test_a_data_set_that_is_not_there(refused, tmp_path):
    assert "did you mean 'heart-disease'" in refused("run", "heart-diseases")
    assert "no folder" in refused("run", tmp_path / "nowhere")


def test_no_data_at_all(refused):
    assert "say what to train on" in refused("run")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('data = "heart-disease"\nronds = 3', ["'ronds'", "did you mean 'rounds'"]),
        ('data = "heart-disease"\nrounds = "three"', ["rounds must be a whole number", "three"]),
        ('data = "heart-disease"\nrounds = 2.5', ["rounds must be a whole number"]),
        ('data = "heart-disease"\npooled = 1', ["pooled must be true or false"]),
        ('data = "heart-disease"\ntargets = "va"', ["targets must be a list"]),
        ('data = "heart-disease"\ntargets = [1]', ["targets must be text"]),
        ('data = "heart-disease"\nshare = "much"', ["share must be a number"]),
        ('data = "heart-disease"\nrecipe = 3', ["recipe must be a table"]),
        ('data = "heart-disease"\n[recipe]\nmomentun = 0.9', ["did you mean 'momentum'"]),
        ('data = "heart-disease"\n[recipe]\nlr = "slow"', ["lr must be a number"]),
        ('data = "heart-disease"\n[recipe]\nschedule = "cosin"', ["did you mean 'cosine'"]),
        ('data = "heart-disease"\n[recipe]\nlr = nan', ["lr must be positive"]),
        ("rounds = 3", ["lacks the key 'data'"]),
        ("data = heart", ["is not TOML"]),
    ],
)  # fmt: skip
def test_a_wrong_configuration(refused, tmp_path, text, words):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    told = refused("run", "--config", path)
    assert str(path) in told or "recipe" in told
    for word in words:
        assert word in told


def test_a_configuration_that_is_not_there(refused, tmp_path):
    assert "no configuration file" in refused("run", "--config", tmp_path / "no.toml")
    assert "cannot be read" in refused("run", "--config", tmp_path)


def test_a_configuration_and_something_else(refused, tmp_path):
    (tmp_path / "mine.toml").write_text('data = "heart-disease"')
    assert "'rounds'" in refused("run", "--config", tmp_path / "mine.toml", "--rounds", 3)
    assert "'data'" in refused("run", "rotated-mnist", "--config", tmp_path / "mine.toml")


@pytest.mark.parametrize("place", ["/dev/null/runs", "file"])
def test_an_unwritable_output_folder(refused, tmp_path, place):
    """Root may write wherever chmod forbids it, but nobody below a file."""
    (tmp_path / "file").write_text("")
    out = place if place.startswith("/") else tmp_path / place
    told = refused("run", "heart-disease", *QUICK, "--out", out, out=False)
    assert "cannot write" in told
    assert str(out) in told
    assert "another --out" in told


def test_an_output_folder_in_use(capsys, tmp_path):
    """Another process holds it: as here a child does."""
    import os

    argv = ("run", "heart-disease", *QUICK, "--out", tmp_path)
    assert feddg(capsys, *argv).code == 0
    [folder] = tmp_path.iterdir()
    (folder / "model" / "model.safetensors").unlink()
    told, done = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        with open(folder / ".lock", "wb") as lock:
            fcntl.lockf(lock, fcntl.LOCK_EX)
            os.write(told[1], b"!")
            os.read(done[0], 1)
            os._exit(0)
    os.read(told[0], 1)
    said = feddg(capsys, *argv)
    os.write(done[1], b"!")
    os.waitpid(pid, 0)
    for end in (*told, *done):
        os.close(end)
    assert said.code == 2
    assert said.err == f"feddg: {folder} is in use by another feddg; wait for it or end it\n"


def test_a_folder_of_another_run_is_refused(capsys, tmp_path):
    argv = ("run", "heart-disease", *QUICK, "--out", tmp_path)
    assert feddg(capsys, *argv).code == 0
    [folder] = tmp_path.iterdir()
    (folder / "model" / "model.safetensors").unlink()
    config = folder / "config.toml"
    config.write_text(config.read_text() + "# changed\n")
    said = feddg(capsys, *argv)
    assert said.code == 2
    assert "holds another run" in said.err


def test_data_that_changed_since_the_run_began(capsys, tmp_path):
    root = sites(tmp_path / "data")
    argv = ("run", root, "--target", "c", *QUICK, "--out", tmp_path / "runs")
    assert feddg(capsys, *argv).code == 0
    [folder] = (tmp_path / "runs").iterdir()
    (folder / "model" / "model.safetensors").unlink()
    with open(root / "b.csv", "a") as file:
        file.write("0.1,0.2,ill\n")
    from feddg.benchmark import roles

    roles.opened.cache_clear()
    roles.federated.cache_clear()
    said = feddg(capsys, *argv)
    assert said.code == 2
    assert "split.json" in said.err
    assert "site 'b'" in said.err


def test_trouble_inside_a_sites_work_names_the_site(capsys, tmp_path, monkeypatch):
    """A network of the user's own that stumbles over one site's values."""
    (tmp_path / "stumbles.py").write_text(NET)
    monkeypatch.syspath_prepend(str(tmp_path))
    root = sites(tmp_path / "data")
    with open(root / "b.csv", "a") as file:
        file.write("1e6,0,ill\n" * 20)
    for workers in (1, 2):
        said = feddg(
            capsys, "run", root, "--target", "c", "--model", "stumbles:Net", "--rounds", 1,
            "--workers", workers, "--out", tmp_path / f"runs{workers}",
            "--data-option", "scaling=none",
        )  # fmt: skip
        assert said.code == 2
        assert "b: ValueError: that is too much" in said.err
        assert said.err.count("\n") == 1


NET = """
from torch import nn

class Net(nn.Module):
    def __init__(self, inputs: int, outputs: int):
        super().__init__()
        self.head = nn.Linear(inputs, outputs)

    def forward(self, x):
        if x.max() > 1e5:
            raise ValueError("that is\\ntoo much")
        return self.head(x)
"""


def test_typers_own_errors_are_2_too(capsys):
    said = feddg(capsys, "run", "heart-disease", "--rounds", "three")
    assert said.code == 2
    assert "Traceback" not in said.err


def test_a_model_folder_that_is_none(refused, tmp_path):
    assert "no folder" in refused("predict", tmp_path / "no", "heart-disease", out=False)
    assert "model.json" in refused("evaluate", tmp_path, "heart-disease", out=False)


def test_nothing_of_a_failed_run_is_left_in_the_working_folder(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused("run", "heart-disease", "--model", "mpl", out=False)
    assert not list(Path.cwd().iterdir())


def test_a_method_that_does_not_fit_the_data(refused):
    said = refused("run", "heart-disease", "--method", "am", "--target", "va")
    assert said.count("am(") == 1
    assert "cannot train this model on these data" in said
