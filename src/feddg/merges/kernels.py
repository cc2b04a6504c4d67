"""The two passes over a matrix of updates on a GPU, in Triton: each reads X once.

cuBLAS is made for square matrices; of a few long rows its product reads far below the memory's
rate. Here every program takes SPAN columns of all rows, and its sums are added up in float64.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

constexpr = tl.constexpr
SPAN = 4096  # columns over which products add up in float32
STEP = 128  # columns at a time
MOST = 32  # rows; of more of them the inner products are cuBLAS's to make
WIDE = 1024  # columns of one program of `combine`


@triton.jit
def inner(x, part, columns, apart, K: constexpr, ROWS: constexpr, SPAN: constexpr, STEP: constexpr):
    """part[program] = X X' of the program's columns; rows beyond K are 0."""
    row = tl.arange(0, ROWS)
    sums = tl.zeros([ROWS, ROWS], tl.float32)
    for at in range(0, SPAN, STEP):
        column = tl.program_id(0).to(tl.int64) * SPAN + at + tl.arange(0, STEP)
        inside = (row < K)[:, None] & (column < columns)[None, :]
        place = row.to(tl.int64)[:, None] * apart + column[None, :]
        tile = tl.load(x + place, inside, other=0.0)
        sums = tl.dot(tile, tl.trans(tile), sums, input_precision="ieee")
    to = tl.program_id(0) * ROWS * ROWS + row[:, None] * ROWS + row[None, :]
    tl.store(part + to, sums)


@triton.jit
def combine(c, x, out, columns, apart, K: constexpr, WIDE: constexpr):
    """out = c @ X: a sum over rows, in their order."""
    column = tl.program_id(0).to(tl.int64) * WIDE + tl.arange(0, WIDE)
    inside = column < columns
    total = tl.zeros([WIDE], tl.float32)
    for k in range(K):
        total += tl.load(c + k) * tl.load(x + column, inside, other=0.0)
        x += apart
    tl.store(out + column, total, inside)


def gram(x: Tensor) -> Tensor:
    """X X' in float64 of float32 rows, at most `MOST` of them; rows may lie apart."""
    k, columns = x.shape
    rows = max(16, triton.next_power_of_2(k))
    programs = triton.cdiv(columns, SPAN)
    part = torch.empty(programs, rows, rows, dtype=torch.float32, device=x.device)
    inner[(programs,)](x, part, columns, x.stride(0), k, rows, SPAN, STEP)
    return part[:, :k, :k].sum(0, dtype=torch.float64)


def combined(c: Tensor, x: Tensor) -> Tensor:
    k, columns = x.shape
    out = torch.empty(columns, dtype=torch.float32, device=x.device)
    combine[(triton.cdiv(columns, WIDE),)](c.contiguous(), x, out, columns, x.stride(0), k, WIDE)
    return out
