"""The two passes over a matrix of updates on a GPU, in Triton: each reads X once.

cuBLAS is made for square matrices; of a few long rows its product reads far below the memory's
rate, and tensor cores multiply padding. Here a warp holds some columns of all rows and makes all
their inner products; these are added up in float64.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

constexpr = tl.constexpr
SPANS = {10: 512, 20: 256, 32: 128}  # rows -> columns of a warp, which its registers hold
MOST = max(SPANS)  # rows; of more of them the inner products are cuBLAS's to make
UNROLLED = 128  # rows up to which `combine` is for
WIDE = 512  # columns of one program of `combine`


@triton.jit
def inner(x, part, columns, apart, K: constexpr, SPAN: constexpr):
    """part[program, i, j] = <x_i, x_j> over the program's columns, for i <= j."""
    column = tl.program_id(0).to(tl.int64) * SPAN + tl.arange(0, SPAN)
    inside = column < columns
    rows = ()
    for _ in tl.static_range(K):
        rows = rows + (tl.load(x + column, inside, other=0.0),)  # noqa: RUF005 (all that Triton knows)
        x += apart
    to = part + tl.program_id(0).to(tl.int64) * K * K
    for i in tl.static_range(K):
        for j in tl.static_range(i, K):
            tl.store(to + i * K + j, tl.sum(rows[i] * rows[j]))


@triton.jit
def combine(c, x, out, columns, apart, K: constexpr, WIDE: constexpr):
    """out = c @ X: a sum over rows, in their order."""
    column = tl.program_id(0).to(tl.int64) * WIDE + tl.arange(0, WIDE)
    inside = column < columns
    total = tl.zeros([WIDE], tl.float32)
    for k in tl.static_range(K):
        total += tl.load(c + k) * tl.load(x + column, inside, other=0.0)
        x += apart
    tl.store(out + column, total, inside)


def gram(x: Tensor) -> Tensor:
    """X X' in float64 of float32 rows, at most `MOST` of them; rows may lie apart."""
    k, columns = x.shape
    span = next(span for rows, span in SPANS.items() if k <= rows)
    programs = triton.cdiv(columns, span)
    part = torch.empty(programs, k, k, dtype=torch.float32, device=x.device)
    inner[(programs,)](x, part, columns, x.stride(0), k, span, num_warps=1)
    total = part.sum(0, dtype=torch.float64).triu()  # below it is what was there before
    return total + total.triu(1).T


def combined(c: Tensor, x: Tensor) -> Tensor:
    k, columns = x.shape
    out = torch.empty(columns, dtype=torch.float32, device=x.device)
    programs = triton.cdiv(columns, WIDE)
    combine[(programs,)](c.contiguous(), x, out, columns, x.stride(0), k, WIDE, num_warps=8)
    return out
