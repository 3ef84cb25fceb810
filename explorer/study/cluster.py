"""An existing Dask cluster as the executor of a sweep. `distributed` is an optional extra."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any

from explorer.experiment import InvalidExperiment

_PATIENCE = 10  # seconds for the scheduler to answer


@contextmanager
def executor(address: str) -> Iterator[tuple[Executor, int]]:
    """(the cluster, how many points to give it at a time): a few more than it has threads.

    A worker that dies has its points run again by others; Dask gives a point up when that has
    happened to it a few times (`distributed.scheduler.allowed-failures`).

    Raises:
        InvalidExperiment: `distributed` is not installed, or no cluster answers there.
    """
    try:
        from distributed import Client
    except ImportError:
        raise InvalidExperiment(
            {"dask": "The package distributed is not installed. Get it with "
             "pip install 'explorer[dask]', in this environment and in that of the workers."}
        ) from None  # fmt: skip
    try:
        client: Any = Client(address, timeout=_PATIENCE, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, TimeoutError, ValueError) as error:
        raise InvalidExperiment(
            {"dask": f"No Dask scheduler answers at {address}: {error}. Give its address, such as "
             "tcp://192.0.2.10:8786."}
        ) from error  # fmt: skip
    with client:
        threads = sum(client.nthreads().values())
        if not threads:
            raise InvalidExperiment({"dask": f"The Dask cluster at {address} has no workers."})
        # Not pure: two sweeps of the same points are two measurements.
        yield client.get_executor(pure=False), threads + 2
