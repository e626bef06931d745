"""How a command ends: its result alone on standard output, an error as one line and an exit code.

Every command wears `one_line_errors`; one that returns its result as text or bytes, rather than
printing as it goes, wears `result_on_stdout` below it.
"""

import functools
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, ParamSpec

import typer

FAILED = 1
INTERRUPTED = 128 + signal.SIGINT
TERMINATED = 128 + signal.SIGTERM

# What a run can be expected to fail by; anything else is a defect, and says so.
_EXPECTED = (ValueError, TypeError, OSError, ImportError, MemoryError)

P = ParamSpec("P")

shows_tracebacks = False  # set by --debug


def one_line_errors(command: Callable[P, Any]) -> Callable[P, None]:
    """Turn what a command raises into one line on standard error and an exit code."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            with _one_line_warnings(), _terminated_as_interrupted():
                command(*args, **kwargs)
        except _Terminated:
            typer.echo("Terminated.", err=True)
            raise typer.Exit(TERMINATED) from None
        except KeyboardInterrupt:
            typer.echo("Interrupted.", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except BrokenPipeError:
            _forget_stdout()
            raise typer.Exit(FAILED) from None
        except Exception as error:
            if shows_tracebacks:
                raise
            typer.echo(f"Error: {_describe(error)}", err=True)
            raise typer.Exit(FAILED) from None

    return wrapped


class _Terminated(KeyboardInterrupt):
    """SIGTERM: to end as Ctrl-C does, with nothing half-written and no process left behind."""


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # only it takes signals
        yield
        return

    def terminate(*_: Any) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def result_on_stdout(command: Callable[P, str | bytes | None]) -> Callable[P, None]:
    """Write what a command returns to standard output, and nothing else.

    Whatever a library prints while the command runs goes to standard error, from worker
    processes too.
    """

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        with _stdout_to_stderr():
            result = command(*args, **kwargs)
        if result is None:
            return
        # A file name may hold bytes that are no text; they come out as they went in.
        content = result.encode(errors="surrogateescape") if isinstance(result, str) else result
        if sys.stdout is None:
            raise OSError("Expected an open standard output; it is closed. Pass --out.")
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.flush()

    return wrapped


@contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Send to standard error what is printed, by this process and by those it starts."""
    with redirect_stdout(sys.stderr):
        try:
            real, fallback = sys.__stdout__.fileno(), sys.__stderr__.fileno()  # type: ignore[union-attr]
            kept = os.dup(real)
        except (AttributeError, OSError, ValueError):  # no real files behind the streams
            yield
            return
        os.dup2(fallback, real)
        try:
            yield
        finally:
            os.dup2(kept, real)
            os.close(kept)


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Show a warning as its message, without the place in the code that gave it."""
    shown = set()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        text = _one_line(str(message))
        if text not in shown:  # of ten folds that warn, one says it
            shown.add(text)
            typer.echo(f"Warning: {text}", err=True)

    original, warnings.showwarning = warnings.showwarning, show
    try:
        yield
    finally:
        warnings.showwarning = original


def _describe(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror}."
    text = _one_line(str(error)) or type(error).__name__
    if isinstance(error, _EXPECTED):
        return text
    return (
        f"{type(error).__name__}: {text}. This is a defect of nearfield: "
        "run `nearfield --debug ...` and report what it shows."
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _forget_stdout() -> None:
    """Leave a closed pipe alone, so that the interpreter does not complain at its end."""
    with suppress(OSError, ValueError):  # a stream that is no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
