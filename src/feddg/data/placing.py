"""Where the inputs lie: on the device if they fit, else on the host, from where batches come."""

from math import inf

import torch
from torch import Tensor

SHARE = 0.5  # of a device's free memory that one store may take: activations want the rest


def room(device: torch.device) -> float:
    """Free bytes."""
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else inf


def placed(store: Tensor, device: torch.device) -> Tensor:
    """There, or the store itself where it is too large."""
    return store.to(device) if store.nbytes <= SHARE * room(device) else store


def brought(store: Tensor, rows: Tensor, device: torch.device) -> Tensor:
    """These rows of a store, on the device; the store itself is neither read whole nor copied."""
    if store.device != torch.device("cpu") or rows.dim() != 1 or rows.dtype != torch.int64:
        return store[rows].to(device)
    if device.type != "cuda":
        return store.index_select(0, rows).to(device)  # whole rows at a time, as [] does not
    batch = torch.empty((len(rows), *store.shape[1:]), dtype=store.dtype, pin_memory=True)
    torch.index_select(store, 0, rows, out=batch)
    return batch.to(device, non_blocking=True)
