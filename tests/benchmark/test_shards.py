"""Which runs a machine takes: each run exactly once, whatever the number of shards."""

import pytest

from feddg.benchmark.bench import Bench
from feddg.benchmark.shards import WHOLE, Shard, shard
from feddg.errors import ConfigError

KEYS = [f"fedavg_m{t}_seed{s}" for t in range(6) for s in range(4)]


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 24, 30])
def test_every_run_is_one_shards(n):
    parts = [Shard(i, n).mine(KEYS) for i in range(1, n + 1)]
    assert sorted(k for part in parts for k in part) == sorted(KEYS)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_the_order_of_the_keys_does_not_matter():
    assert Shard(2, 5).mine(KEYS) == Shard(2, 5).mine(KEYS[::-1] + KEYS)


def test_of_a_bench():
    runs = Bench(data="rotated-mnist", methods=("fedavg", "fedprox"), seeds=2).unique()
    parts = [Shard(i, 5).mine(runs) for i in range(1, 6)]
    assert sorted(k for part in parts for k in part) == sorted(runs)


def test_as_text():
    assert shard(None) == WHOLE
    assert shard("2/8") == Shard(2, 8)
    assert str(Shard(2, 8)) == "2/8"


@pytest.mark.parametrize("text", ["0/3", "4/3", "1", "a/b", "1/0", "-1/2"])
def test_what_is_no_shard(text):
    with pytest.raises(ConfigError, match="--shard"):
        shard(text)


@pytest.mark.parametrize(
    ("array", "task", "wanted"),
    [
        (("8", "1", None), "1", Shard(1, 8)),  # --array=1-8
        (("8", "0", "1"), "7", Shard(8, 8)),  # --array=0-7
        (("8", "10", "10"), "30", Shard(3, 8)),  # --array=10-80:10
    ],
)
def test_a_slurm_array(array, task, wanted):
    names = ("COUNT", "MIN", "STEP")
    around = {f"SLURM_ARRAY_TASK_{k}": v for k, v in zip(names, array, strict=True) if v}
    assert shard("auto", {**around, "SLURM_ARRAY_TASK_ID": task}) == wanted


def test_auto_without_an_array():
    with pytest.raises(ConfigError, match="sbatch --array"):
        shard("auto", {})
