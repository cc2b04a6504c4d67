"""Half a product of many rows, in threads of our own."""

import os
import signal
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor

from feddg.merges import blas
from feddg.merges.geometry import MANY, gram

K = MANY + 3
P = 2 * blas.BLOCK + 100


@pytest.fixture
def two_threads() -> Iterator[None]:
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(1)


def exact(x: Tensor) -> Tensor:
    return x.double() @ x.double().T


def near(found: Tensor, x: Tensor) -> bool:
    sizes = x.double().norm(dim=1)
    return bool(((found - exact(x)).abs() <= 1e-6 * torch.outer(sizes, sizes)).all())


def test_the_upper_half_by_hand():
    """Rows (1, 2), (3, -1): squares 5 and 10, product 3 - 2 = 1."""
    x = torch.tensor([[1.0, 2.0], [3.0, -1.0]])
    assert torch.equal(blas.gram(x), torch.tensor([[5.0, 1.0], [0.0, 10.0]]).double())


def test_rows_that_are_cut_from_longer_ones():
    x = torch.randn(K, P)
    cut = slice(5, P - 9)
    assert near(gram(x, cut), x[:, cut])


@pytest.mark.parametrize("how", ["transposed", "every second", "one row again and again"])
def test_rows_that_do_not_lie_one_after_the_other(how):
    if how == "transposed":
        x = torch.randn(200, K).T
    elif how == "every second":
        x = torch.randn(K, 400)[:, ::2]
    else:
        x = torch.randn(200).expand(K, 200)
    assert not x.is_contiguous()
    assert near(gram(x), x)


@pytest.mark.parametrize(("k", "p"), [(K, 0), (0, P), (0, 0)])
def test_nothing(k, p):
    assert torch.equal(gram(torch.ones(k, p)), torch.zeros(k, k).double())


@pytest.mark.usefixtures("two_threads")
def test_the_same_bits_for_any_number_of_threads():
    x = torch.randn(K, 5 * blas.BLOCK + 1)
    of_two = [gram(x) for _ in range(3)]
    torch.set_num_threads(1)
    assert all(torch.equal(found, gram(x)) for found in of_two)
    assert near(of_two[0], x)


def test_as_many_threads_as_torch_has(monkeypatch):
    """One by one in the caller's; else in a pool of so many, which has ended afterwards."""
    asked: list[int] = []

    def pool(threads: int) -> ThreadPoolExecutor:
        asked.append(threads)
        return ThreadPoolExecutor(threads)

    monkeypatch.setattr("feddg.merges.blas.ThreadPoolExecutor", pool)
    gram(torch.ones(K, P))
    assert asked == []
    torch.set_num_threads(2)
    try:
        gram(torch.ones(K, P))
    finally:
        torch.set_num_threads(1)
    assert asked == [2]


def test_blas_itself_uses_one_thread_and_gets_back_its_own():
    known = blas.threads_of_blas()
    assert known, "scipy's wheels come with their OpenBLAS"
    tell, choose = known
    before = tell()
    choose(2)
    try:
        with blas.one_thread_each():
            assert tell() == 1
        assert tell() == 2
    finally:
        choose(before)


def test_the_last_of_several_at_once_gives_back_its_threads():
    """Entered and left crosswise, as several threads may do."""
    known = blas.threads_of_blas()
    assert known
    tell, choose = known
    before = tell()
    choose(2)
    try:
        one, other = blas.one_thread_each(), blas.one_thread_each()
        one.__enter__()
        other.__enter__()
        one.__exit__(None, None, None)
        assert tell() == 1, "the other is at work"
        other.__exit__(None, None, None)
        assert tell() == 2
    finally:
        choose(before)
    assert blas.ENTERED == []


def test_who_enters_waits_for_who_is_entering(monkeypatch):
    """Between the question how many threads there are and the change to one, nobody may ask."""
    held = []

    def chosen(count: int) -> None:
        held.append((count, blas.LOCK.locked()))

    def told() -> int:
        held.append((0, blas.LOCK.locked()))
        return 5

    monkeypatch.setattr(blas, "threads_of_blas", lambda: (told, chosen))
    with blas.one_thread_each():
        assert held == [(0, True), (1, True)]
        assert not blas.LOCK.locked(), "while it works others may enter"
    assert held[2:] == [(5, True)]


def test_rows_too_far_apart_go_the_other_way(monkeypatch):
    """BLAS would take the low 32 bits of the distance, and read elsewhere."""
    far = torch.empty_strided((K, 10), (2**31, 1), device="meta")
    assert not blas.fits(far)
    assert blas.fits(torch.empty_strided((K, 10), (2**31 - 1, 1), device="meta"))
    assert not blas.fits(torch.empty(1, 2**31, device="meta").expand(K, -1))
    x = torch.randn(K, 300)[:, 50:250]
    monkeypatch.setattr(blas, "gram", lambda x: torch.full((K, K), 7.0).double())
    monkeypatch.setattr(blas, "FURTHEST", 299)
    assert near(gram(x), x)
    monkeypatch.setattr(blas, "FURTHEST", 300)
    assert torch.equal(gram(x).triu(), torch.full((K, K), 7.0).double().triu())


def test_a_blas_that_cannot_be_told_is_used_as_it_is(monkeypatch):
    monkeypatch.setattr(blas, "threads_of_blas", lambda: None)
    x = torch.randn(K, P)
    assert near(gram(x), x)


@pytest.mark.usefixtures("two_threads")
def test_a_forked_process_goes_on():
    """After threads of ours, and of BLAS itself, have worked in the parent (ADR 0002)."""
    from scipy.linalg.blas import sgemm

    x = torch.randn(K, P)
    sgemm(1.0, x.numpy(), x.numpy(), trans_b=True)
    found = gram(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # BLAS keeps its threads
        pid = os.fork()
    if not pid:
        signal.alarm(20)  # a deadlock ends, too
        torch.set_num_threads(1)
        os._exit(0 if torch.equal(gram(x), found) else 3)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
