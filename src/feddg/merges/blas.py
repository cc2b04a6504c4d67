"""X X' of many rows on a CPU: BLAS computes the half of it that the other half mirrors.

scipy's own BLAS, called where the matrix lies: scipy's Python functions would copy every block.
Inside `open_engine` torch has one thread, and so has this: many are for who calls it elsewhere.
"""

import ctypes
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

import torch
from torch import Tensor

# Shorter ones cost calls, and the error grows with the length: as that of 4096 in MKL (Zen 5).
BLOCK = 16384  # columns of one product
FURTHEST = 2**31 - 1  # numbers from a row to the next one, which BLAS counts in 32 bits
LOCK, ENTERED = Lock(), list[int]()  # the threads that BLAS had, for each who is at work


def fits(x: Tensor) -> bool:
    """Whether BLAS can find the rows, where they lie or in a copy without gaps."""
    return max(x.stride(0), x.shape[1]) <= FURTHEST


def gram(x: Tensor) -> Tensor:
    """The upper triangle in float64, the same bits for any number of threads.

    Not so with a scipy that was built with another BLAS than its wheels' (`threads_of_blas`):
    that one may share out each product among threads of its own.
    """
    if x.stride(1) != 1 or x.stride(0) < x.shape[1]:
        x = x.contiguous()
    total = torch.zeros(len(x), len(x), dtype=torch.float64)
    with one_thread_each(), mapping(torch.get_num_threads()) as each:
        for products in each(upper, x.split(BLOCK, 1) if x.shape[1] else ()):
            total += products
    return total


def upper(block: Tensor) -> Tensor:
    """The upper triangle of float32 rows' products; BLAS reads the rows as columns."""
    k, p = block.shape
    products = torch.zeros(k, k)
    of = ctypes.byref
    ssyrk()(
        b"L", b"T", of(ctypes.c_int(k)), of(ctypes.c_int(p)), of(ctypes.c_float(1)),
        block.data_ptr(), of(ctypes.c_int(block.stride(0))), of(ctypes.c_float(0)),
        products.data_ptr(), of(ctypes.c_int(k)),
    )  # fmt: skip
    return products


@cache
def ssyrk() -> Callable[..., None]:
    """As scipy gives it to compiled code; a call leaves the interpreter to other threads."""
    from scipy.linalg import cython_blas

    capsule = cython_blas.__pyx_capi__["ssyrk"]
    of_capsule = ctypes.pythonapi.PyCapsule_GetName
    of_capsule.argtypes, of_capsule.restype = [ctypes.py_object], ctypes.c_char_p
    within = ctypes.pythonapi.PyCapsule_GetPointer
    within.argtypes, within.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    address = within(capsule, of_capsule(capsule))
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    kind = ctypes.CFUNCTYPE(None, text, text, *[pointer] * 8)
    return kind(address)


@cache
def threads_of_blas() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """What tells and sets the threads of one call, where scipy comes with its OpenBLAS."""
    from scipy.linalg import cython_blas

    library: Any = ctypes.CDLL(cython_blas.__file__)
    try:
        return library.scipy_openblas_get_num_threads, library.scipy_openblas_set_num_threads
    except AttributeError:
        return None


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Its threads would be all cores, whatever torch was told, and their number changes bits.

    The number is the whole process's: the first to enter changes it, the last to leave puts it
    back. The lock is held for a moment only, so that no process forks with it.
    """
    known = threads_of_blas()
    if known is None:
        yield
        return
    tell, choose = known
    with LOCK:
        ENTERED.append(tell())
        choose(1)
    try:
        yield
    finally:
        with LOCK:
            before = ENTERED.pop()
            if not ENTERED:
                choose(before)


@contextmanager
def mapping(threads: int) -> Iterator[Callable[..., Iterator[Tensor]]]:
    """`map` in so many threads, which have ended when it is left: a process may fork then."""
    if threads == 1:
        yield map
        return
    with ThreadPoolExecutor(threads) as pool:
        yield pool.map
