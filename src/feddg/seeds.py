"""All chance comes from (experiment seed, site, round, label): on any engine the same stream."""

from hashlib import blake2b

from torch import Generator


def seed_for(*what: object) -> int:
    """A 63-bit seed from whatever names the stream."""
    digest = blake2b("/".join(map(str, what)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def generator(*what: object) -> Generator:
    """A CPU stream of its own; nobody draws from the global one."""
    return Generator().manual_seed(seed_for(*what))
