"""The one place where Numba is imported: compiled kernels, their helpers and their cache on disk.

Numba's own cache knows a kernel by the file that it stands in, so that a change in a helper of
another file runs old machine code. Here a compiled kernel is a file whose name is a digest of
whatever the machine code depends on: the text of the kernel's module and of all modules of this
package that it takes functions from, the constants they read, the signature, the versions and the
processor. A file is written once and never changed, so that processes cannot harm each other.
"""

import hashlib
import os
import pickle
import sys
import typing
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any, Concatenate, Literal, ParamSpec, Protocol, TypeVar
from uuid import uuid4

import llvmlite
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.extending import intrinsic as _intrinsic
from numba.extending import overload as _overload
from numba.extending import register_jitable

__all__ = ["Kernel", "cgutils", "compilable", "compiled", "intrinsic", "ir", "overload", "types"]

_PACKAGE = __name__.partition(".")[0]
_N_FILES = 2_000  # a folder with more loses the older half; one state of the sources makes 200

_Parameters = ParamSpec("_Parameters")
_Function = TypeVar("_Function", bound=Callable[..., Any])
_Result = TypeVar("_Result")
_Result_co = TypeVar("_Result_co", covariant=True)


class Kernel(Protocol[_Parameters, _Result_co]):
    """A compiled function: called as it was written, and `py_func` as it was written."""

    @property
    def py_func(self) -> Callable[_Parameters, _Result_co]:
        """The plain Python function."""

    def __call__(self, *args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result_co:
        """Run the machine code."""


@typing.overload
def compiled(function: Callable[_Parameters, _Result], /) -> Kernel[_Parameters, _Result]: ...


@typing.overload
def compiled(
    *, fastmath: bool | set[str]
) -> Callable[[Callable[_Parameters, _Result]], Kernel[_Parameters, _Result]]: ...


def compiled(
    function: Callable[..., Any] | None = None, /, *, fastmath: bool | set[str] = False
) -> Any:
    """Compile a kernel when it is first called, or load it as it was compiled before.

    The kernel's `py_func` runs interpreted throughout, if its helpers are `compilable`.

    Parameters
    ----------
    function : callable
        A free function over plain arrays.
    fastmath : bool or set of str, default=False
        Which liberties the compiler may take with floating-point arithmetic, as in `numba.njit`.
    """
    if function is None:
        return partial(_compile, fastmath=fastmath)
    return _compile(function, fastmath)


def _compile(function: Callable[..., Any], fastmath: bool | set[str]) -> Any:
    if function.__closure__:
        raise TypeError(f"Expected a kernel without a closure; got {function.__qualname__}.")
    # No entry for C: it takes a tenth of the time of compilation, and nothing calls it.
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    kernel: Any = numba.njit(**options, fastmath=fastmath)(function)
    if kernel is not function:  # the same with NUMBA_DISABLE_JIT
        kernel._cache = _DiskCache(function, fastmath)
    return kernel


@typing.overload
def compilable(function: _Function, /) -> _Function: ...


@typing.overload
def compilable(
    *, inline: Literal["always", "never"] = "never", fastmath: set[str] = ...
) -> Callable[[_Function], _Function]: ...


def compilable(*function: Any, **options: Any) -> Any:
    """Let kernels call a function, which stays plain Python (`numba.extending.register_jitable`).

    With `inline="always"` it becomes part of the kernels that call it.
    """
    return register_jitable(*function, **options)


def intrinsic(
    function: Callable[Concatenate[Any, _Parameters], tuple[Any, Callable[..., Any]]],
) -> Callable[_Parameters, Any]:
    """Let kernels call what LLVM instructions compute (`numba.extending.intrinsic`).

    The function takes Numba's typing context before the arguments, and returns the signature and
    what generates the instructions.
    """
    return _intrinsic(function)


def overload(function: Callable[..., Any], **options: Any) -> Callable[[_Function], _Function]:
    """Give a function of the same module its compiled form (`numba.extending.overload`)."""

    def register(generator: _Function) -> _Function:
        if generator.__module__ != function.__module__:  # the digest would not cover it
            raise TypeError(
                f"Expected an overload in {function.__module__}, beside {function.__name__}; "
                f"got one in {generator.__module__}. Move it."
            )
        # Not strict: the annotations of what it returns would have to be those of the generator.
        return _overload(function, strict=False, **options)(generator)

    return register


class _DiskCache(NullCache):
    """The compiled signatures of one kernel, a file each; it answers where Numba asks its own."""

    def __init__(self, function: Callable[..., Any], fastmath: bool | set[str]) -> None:
        self._function = function
        self._fastmath = sorted(fastmath) if isinstance(fastmath, set) else fastmath

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Rebuild the machine code of a signature, or return None if it must be compiled."""
        target_context.refresh()
        name = self._file_name(sig, target_context.codegen())
        for folder in _cache_folders():
            payload = _read_checked(folder / name)
            if payload is not None:
                return CompileResult._rebuild(target_context, *pickle.loads(payload))
        _tell_who_watches()
        return None

    def save_overload(self, sig: Any, cres: Any) -> None:
        """Write the machine code of a signature into the first folder that takes it."""
        if cres.lifted or cres.library.has_dynamic_globals:
            return
        name = self._file_name(sig, cres.codegen)
        payload = numba.core.serialize.dumps(cres._reduce())
        if not any(_write_checked(folder, name, payload) for folder in _cache_folders()):
            _warn_of_no_cache()

    def _file_name(self, sig: Any, codegen: Any) -> str:
        arguments = sig if isinstance(sig, tuple) else sig.args
        config: Any = numba.config
        key = (
            [(type(argument).__name__, argument.name) for argument in arguments],
            self._function.__qualname__,
            self._fastmath,
            (config.BOUNDSCHECK, config.OPT, config.DEBUGINFO_DEFAULT),
            (sys.modules[_PACKAGE].__version__, numba.__version__, llvmlite.__version__),
            sys.implementation.cache_tag,
            codegen.magic_tuple(),
            _source_digest(self._function.__module__),
        )
        digest = hashlib.sha256(repr(key).encode()).hexdigest()
        return f"{self._function.__name__}-{digest[:40]}.kernel"


@cache
def _source_digest(name: str) -> str:
    """Digest the text and the constants of a module and of all that it takes functions from."""
    digest = hashlib.sha256()
    for module in sorted(_modules_behind(name)):
        digest.update(f"{module}\0".encode())
        digest.update(Path(sys.modules[module].__file__ or "").read_bytes())
        for key, value in sorted(vars(sys.modules[module]).items()):
            if not key.startswith("__") and _is_constant(value):
                digest.update(f"\0{key}={_constant_text(value)}".encode())
    return digest.hexdigest()


def _modules_behind(name: str) -> set[str]:
    found: set[str] = set()
    pending = [name]
    while pending:
        module = pending.pop()
        if module not in found:
            found.add(module)
            pending.extend(_homes(sys.modules[module]))
    return found


def _homes(module: ModuleType) -> Iterator[str]:
    """Name the modules of this package that the functions and classes in a module come from."""
    for value in vars(module).values():
        home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
        if isinstance(home, str) and home.partition(".")[0] == _PACKAGE and home != __name__:
            yield home


def _is_constant(value: object) -> bool:
    if isinstance(value, tuple):
        return all(_is_constant(item) for item in value)
    return isinstance(value, bool | int | float | complex | str | bytes | np.generic | np.ndarray)


def _constant_text(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype.str}{value.shape}{value.tobytes().hex()}"
    return repr(value)


@cache
def _cache_folders() -> tuple[Path, ...]:
    """Where kernels are looked for; the first that can be written takes new ones.

    A folder in the package comes first, so that an image whose kernels were compiled when it was
    built needs no folder of the user.
    """
    config: Any = numba.config
    if config.CACHE_DIR:
        return (Path(config.CACHE_DIR),)
    folders = [Path(__file__).parent / "__pycache__" / "kernels"]
    if "XDG_CACHE_HOME" in os.environ:
        folders.append(Path(os.environ["XDG_CACHE_HOME"], _PACKAGE))
    else:
        home = Path("~").expanduser() if "HOME" in os.environ or os.name == "nt" else None
        folders += [home / ".cache" / _PACKAGE] if home else []
    return tuple(folders)


def _read_checked(path: Path) -> bytes | None:
    """Read a payload that follows its own digest; None if there is none or it is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    checksum, payload = content[:32], content[32:]
    return payload if hashlib.sha256(payload).digest() == checksum else None


def _write_checked(folder: Path, name: str, payload: bytes) -> bool:
    partial_file = folder / f".{uuid4().hex}.partial"
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        _thin_out(folder)
        try:
            partial_file.write_bytes(hashlib.sha256(payload).digest() + payload)
            os.replace(partial_file, folder / name)
        finally:
            partial_file.unlink(missing_ok=True)
        return True
    return False


@cache
def _thin_out(folder: Path) -> None:
    """Remove the older half of a folder that is full, once a process."""
    files = sorted(folder.glob("*.kernel"), key=lambda path: path.stat().st_mtime)
    for path in files[: len(files) // 2] if len(files) > _N_FILES else []:
        path.unlink(missing_ok=True)


@cache
def _tell_who_watches() -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        print(
            "nearfield: compiling numerical code for this machine, once after installation "
            "(5 to 20 seconds)",
            file=sys.stderr,
        )


@cache
def _warn_of_no_cache() -> None:
    folders = " or ".join(str(folder) for folder in _cache_folders())
    warnings.warn(
        f"Compiled code cannot be kept: {folders} cannot be written, so that every process "
        "compiles again. Set NUMBA_CACHE_DIR to a folder that can be written.",
        stacklevel=2,
    )
