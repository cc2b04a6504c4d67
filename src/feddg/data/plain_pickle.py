"""Lists and arrays out of a pickle by its grammar alone: nothing that it names is ever called.

A pickle is a program. This reads its steps, keeps plain values, and rebuilds numpy arrays from
their bytes by itself; a pickle that names anything else is refused.
"""

import gzip
import pickletools
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from feddg.errors import DataError

MARK = object()


@dataclass(frozen=True)
class _Named:
    name: str


@dataclass
class _Array:
    """An array that is announced and not filled yet."""

    value: Any = None


@dataclass
class _Dtype:
    text: str
    order: str = "|"


def read(path: Path) -> Any:
    """What a pickle holds, gzipped or not: numbers, text, lists, and arrays of these."""
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        stack: list[Any] = []
        memo: dict[int, Any] = {}
        for op, arg, _ in pickletools.genops(data):
            if op.name == "STOP":
                return finished(stack.pop())
            _step(op.name, arg, stack, memo)
    except _UnfitError as why:
        raise DataError(
            f"{path} is a pickle that would call {why}; it is not read: save its arrays as .npz"
        ) from None
    except (OSError, EOFError, zlib.error, ValueError, IndexError, KeyError, TypeError) as why:
        raise DataError(f"{path} is no readable pickle of arrays ({why}); get it again") from None
    raise DataError(f"{path} is a pickle that ends too early; get it again")


class _UnfitError(Exception):
    pass


def finished(value: Any) -> Any:
    """With arrays in the place of what announced them."""
    if isinstance(value, _Array):
        return value.value
    if isinstance(value, list | tuple):
        return type(value)(finished(v) for v in value)
    if isinstance(value, dict):
        return {k: finished(v) for k, v in value.items()}
    if isinstance(value, _Named | _Dtype):
        raise ValueError("something else than data is left")
    return value


def _step(name: str, arg: Any, stack: list[Any], memo: dict[int, Any]) -> None:
    if name in ("PROTO", "FRAME"):
        return
    if name in CONSTANTS:
        stack.append(CONSTANTS[name]())
    elif name in VALUES:
        stack.append(arg)
    elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
        memo[int(arg)] = stack[-1]
    elif name == "MEMOIZE":
        memo[len(memo)] = stack[-1]
    elif name in ("GET", "BINGET", "LONG_BINGET"):
        stack.append(memo[int(arg)])
    elif name in COLLECT:
        COLLECT[name](stack)
    elif name == "GLOBAL":
        stack.append(_Named(_allowed(arg.replace(" ", "."))))
    elif name == "STACK_GLOBAL":
        last, module = stack.pop(), stack.pop()
        stack.append(_Named(_allowed(f"{module}.{last}")))
    elif name == "REDUCE":
        args, what = stack.pop(), stack.pop()
        stack.append(_made(what, args))
    elif name == "BUILD":
        state = stack.pop()
        _filled(stack[-1], state)
    else:
        raise _UnfitError(f"the step {name}")


def _allowed(name: str) -> str:
    plain = name.replace("numpy._core.", "numpy.core.")
    if plain not in KNOWN:
        raise _UnfitError(name)
    return plain


def _made(what: Any, args: Any) -> Any:
    """In the place of a call: the value that numpy's own functions would have given."""
    if not isinstance(what, _Named):
        raise _UnfitError("what it has made itself")
    return KNOWN[what.name](*args)


def _filled(thing: Any, state: Any) -> None:
    if isinstance(thing, _Dtype):
        thing.order = state[1]
    elif isinstance(thing, _Array):
        _, shape, dtype, fortran, data = state
        thing.value = _array(data, dtype, shape, "F" if fortran else "C")
    else:
        raise _UnfitError("a state of its own")


def _array(data: Any, dtype: _Dtype, shape: tuple[int, ...], order: str = "C") -> Any:
    if dtype.text.startswith("O"):
        return [finished(v) for v in data]  # an array of texts
    given = dtype.text if dtype.text[0] in "<>|=" else f"{dtype.order}{dtype.text}"
    kind = np.dtype(given)
    if kind.kind not in "biufUS":
        raise ValueError(f"arrays of {kind}")
    raw = data.encode("latin-1") if isinstance(data, str) else bytes(data)
    return np.frombuffer(raw, kind).reshape(shape, order="F" if order == "F" else "C")


def _scalar(dtype: _Dtype, data: Any) -> Any:
    return _array(data, dtype, ()).item()


KNOWN: dict[str, Callable[..., Any]] = {
    "numpy.core.multiarray._reconstruct": lambda *_: _Array(),
    "numpy.core.multiarray.scalar": _scalar,
    "numpy.core.numeric._frombuffer": lambda data, dtype, shape, order: _Array(
        _array(data, dtype, shape, order)
    ),
    "numpy.ndarray": lambda *_: _Array(),
    "numpy.dtype": lambda text, *_: _Dtype(text),
    "_codecs.encode": lambda text, *_: text.encode("latin-1"),
}
CONSTANTS: dict[str, Callable[[], Any]] = {
    "MARK": lambda: MARK,
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "EMPTY_DICT": dict,
}
VALUES = frozenset(
    {"INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"}
    | {"STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE"}
    | {"BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"}
)


def _since_mark(stack: list[Any]) -> list[Any]:
    start = max(k for k, value in enumerate(stack) if value is MARK)
    taken = stack[start + 1 :]
    del stack[start:]
    return taken


def _tupled(count: int) -> Callable[[list[Any]], None]:
    def collect(stack: list[Any]) -> None:
        taken = tuple(stack[-count:])
        del stack[-count:]
        stack.append(taken)

    return collect


def _append(stack: list[Any]) -> None:
    last = stack.pop()
    stack[-1].append(last)


def _set_items(stack: list[Any]) -> None:
    taken = _since_mark(stack)
    stack[-1].update(zip(taken[::2], taken[1::2], strict=True))


def _set_item(stack: list[Any]) -> None:
    value, name = stack.pop(), stack.pop()
    stack[-1][name] = value


def _dict(stack: list[Any]) -> None:
    taken = _since_mark(stack)
    stack.append(dict(zip(taken[::2], taken[1::2], strict=True)))


def _drop(stack: list[Any]) -> None:
    _since_mark(stack)


def _appends(stack: list[Any]) -> None:
    taken = _since_mark(stack)
    stack[-1].extend(taken)


COLLECT: dict[str, Callable[[list[Any]], None]] = {
    "TUPLE": lambda stack: stack.append(tuple(_since_mark(stack))),
    "TUPLE1": _tupled(1),
    "TUPLE2": _tupled(2),
    "TUPLE3": _tupled(3),
    "LIST": lambda stack: stack.append(_since_mark(stack)),
    "DICT": _dict,
    "APPEND": _append,
    "APPENDS": _appends,
    "SETITEM": _set_item,
    "SETITEMS": _set_items,
    "POP": lambda stack: stack.pop(),
    "POP_MARK": _drop,
}
