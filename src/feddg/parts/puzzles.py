"""Jigsaw puzzles of 3 x 3 tiles: the orders in which they may lie, and the laying."""

from functools import cache

import torch
from torch import Tensor

from feddg.seeds import generator

SIDE = 3  # tiles
TILES = SIDE * SIDE


@cache
def orders(count: int) -> Tensor:
    """The identity, then `count` permutations of the tiles, each the farthest from all before.

    Far means a large sum of Hamming distances (Noroozi and Favaro, ECCV 2016). Ties fall to a
    seeded order, the same everywhere.
    """
    every = torch.zeros(1, 1, dtype=torch.uint8)
    for n in range(1, TILES):
        new = torch.full((len(every), 1), n, dtype=torch.uint8)
        every = torch.cat([torch.cat([every[:, :i], new, every[:, i:]], 1) for i in range(n + 1)])
    every = every[torch.randperm(len(every), generator=generator("jigen", "permutations"))]
    chosen = [torch.arange(TILES, dtype=torch.uint8)]
    distance = torch.zeros(len(every), dtype=torch.long)
    while len(chosen) <= count:
        near = (every != chosen[-1]).sum(1)
        distance = torch.where(near == 0, -1, distance + near * (distance >= 0))
        chosen.append(every[distance.argmax()])
    return torch.stack(chosen).long()


def puzzle(x: Tensor, order: Tensor) -> Tensor:
    """Tile t of the result is tile order[t]; rows and columns beyond a multiple of 3 stay."""
    n, c, height, width = x.shape
    h, w = height // SIDE, width // SIDE
    tiles = x[..., : SIDE * h, : SIDE * w].reshape(n, c, SIDE, h, SIDE, w)
    tiles = tiles.permute(0, 2, 4, 1, 3, 5).flatten(1, 2)
    at = order[:, :, None, None, None].expand(-1, -1, *tiles.shape[2:])
    laid = tiles.gather(1, at).view(n, SIDE, SIDE, c, h, w).permute(0, 3, 1, 4, 2, 5)
    laid = laid.reshape(n, c, SIDE * h, SIDE * w)
    right, below = x[..., : SIDE * h, SIDE * w :], x[..., SIDE * h :, :]
    return torch.cat([torch.cat([laid, right], -1), below], -2)
