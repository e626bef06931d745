"""How many threads the linear algebra may use."""

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[object]:
    """Keep BLAS to one thread: the matrices are small, and its threads would wait for ours."""
    return _pools().limit(limits=1, user_api="blas")


@cache
def _pools() -> ThreadpoolController:
    """Look for the thread pools of this process, once: it takes milliseconds."""
    return ThreadpoolController()
