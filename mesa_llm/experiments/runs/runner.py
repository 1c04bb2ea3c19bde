"""Run many models with one budget: in this process, in threads, in worker processes, on Ray or on an executor.

Sweeps, benchmarks, studies and branches describe each run as a `Job`. A recorded run resumes from its own log, so an
interrupted experiment continues when started again.
"""

from __future__ import annotations

import concurrent.futures
import logging
import multiprocessing
import os
import signal
import sys
import threading
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from mesa import Model

from mesa_llm.engine.access import Access
from mesa_llm.errors import ConfigError, MesaLLMError, Stopped
from mesa_llm.llm import child_process
from mesa_llm.llm.child_process import spawning
from mesa_llm.llm.interrupts import WorkerInterrupts, send_to_main_thread
from mesa_llm.llm.shared_budget import RemoteBudget, limits_of_each, n_workers_for
from mesa_llm.model.model import LLMModel

logger = logging.getLogger(__name__)

N_THREADS = 16
"""Maximum number of concurrent runs in threads; the access limits the requests in flight."""

UNGUARDED = (
    "no worker process could start. Each imports the script that started it, so the script must make its runs under "
    "`if __name__ == '__main__':`; or make them in this process, with workers=1"
)
"""Error of a script that would start its runs again in each worker."""

MAX_STARTS = 3
"""Maximum number of times a run is started if its worker crashes."""

POLL_S = 0.2
"""Seconds between attempts to stop the current runs, and between reports of their progress."""

type Results[J, R] = Generator[tuple[J, R]]
"""Jobs with their results, in order of completion."""


class Progress(NamedTuple):
    """How far a run has come."""

    label: str
    """Label of its job."""

    steps: int
    """Number of steps so far."""

    decisions: int
    """Number of decisions so far."""

    failures: int
    """Number of failed ones."""

    dollars: float
    """US dollars for live replies in this session."""

    @classmethod
    def of(cls, label: str, model: Model[Any, Any]) -> Progress:
        """Return the progress of a model, which may be a plain Mesa model."""
        if not isinstance(model, LLMModel):
            return cls(label, int(model.time), 0, 0, 0.0)
        return cls(label, int(model.time), model.engine.decisions, model.usage.failures, model.usage.dollars)


class Stop:
    """Watches the runs of an experiment, and stops them.

    Attributes:
        is_requested: Whether a stop is requested: no further run starts.
    """

    def __init__(self) -> None:
        """Start without models to watch."""
        self.is_requested = False
        self._models: dict[Model[Any, Any], str] = {}
        self._lock = threading.Lock()

    @contextmanager
    def watching(self, model: Model[Any, Any], label: str = "") -> Generator[None]:
        """Report the progress of this model while it runs, and stop it too if a stop is requested.

        Args:
            model: The model.
            label: Label of its job; empty: its progress is not reported.
        """
        with self._lock:
            self._models[model] = label
        try:
            yield
        finally:
            with self._lock:
                del self._models[model]

    def run(self, model: Model[Any, Any], steps: int | None, label: str = "") -> None:
        """Run a model, unless a stop is requested.

        Args:
            model: The model; a plain Mesa model is stopped between two steps.
            steps: Number of steps to run; None to run until the model ends.
            label: Label of its job; empty: its progress is not reported.

        Raises:
            Stopped: If a stop ended it early.
        """
        if self.is_requested:
            raise Stopped("stopped before it began")
        with self.watching(model, label):
            if isinstance(model, LLMModel):
                model.run(steps)
            while not isinstance(model, LLMModel) and not self.is_requested and self._goes_on(model, steps):
                model.step()
        if self.is_requested and self._goes_on(model, steps):
            raise Stopped("stopped before its end")

    @staticmethod
    def _goes_on(model: Model[Any, Any], steps: int | None) -> bool:
        return model.running and (steps is None or model.time < steps)

    @contextmanager
    def reporting(self, report: Callable[[Progress], object] | None) -> Generator[None]:
        """Report the progress of the models that run, again and again, from another thread.

        Args:
            report: Called with the progress of each; None for no reports.
        """
        if report is None:
            yield
            return
        is_over = threading.Event()

        def poll() -> None:
            while not is_over.wait(POLL_S):
                with self._lock:
                    models = list(self._models.items())
                for model, label in models:
                    if label:
                        report(Progress.of(label, model))

        thread = threading.Thread(target=poll, daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def _request(self, *, gives_up: bool) -> None:
        """Request a stop of all running models."""
        self.is_requested = True
        with self._lock:
            models = list(self._models)
        for model in models:
            if isinstance(model, LLMModel):
                model.stop(gives_up=gives_up)

    def end(self, futures: Sequence[Future[Any]]) -> None:
        """Start no further runs and wait for the current ones. Ctrl-C abandons the replies they wait for.

        Args:
            futures: All runs.
        """
        self.is_requested = True
        for future in futures:
            future.cancel()
        gives_up = False
        while [future for future in futures if not future.done()]:
            try:
                self._request(gives_up=gives_up)  # repeat, since a model between two steps misses a stop
                concurrent.futures.wait(futures, timeout=POLL_S)
            except KeyboardInterrupt:
                gives_up = True


class Job[R](ABC):
    """One run of an experiment. Jobs for processes and Ray must be picklable, and so must their results."""

    @property
    def label(self) -> str:
        """What it runs, for reports of its progress and the error of a crashed worker."""
        return type(self).__name__

    @abstractmethod
    def run(self, access: Access, stop: Stop) -> R:
        """Execute the run.

        Args:
            access: Access to language models, with this worker's share of the limits.
            stop: Runs the model; in threads, it can stop it.
        """

    def broken(self, error: Exception) -> R:
        """Return a substitute result if every worker of this run crashed, for example killed for lack of memory.

        Args:
            error: Error of the last worker.

        Raises:
            MesaLLMError: Unless overridden.
        """
        raise MesaLLMError(f"the worker of {self.label} crashed: {error}") from error


def run_jobs[J: Job[Any]](
    jobs: Sequence[J],
    access: Access | Mapping[str, Any],
    *,
    on: str | Executor = "processes",
    workers: int | None = 1,
    on_progress: Callable[[Progress], object] | None = None,
) -> Results[J, Any]:
    """Execute jobs, and yield each with its result as it completes. No job starts once the generator is closed.

    Args:
        jobs: The runs.
        access: Options of the access shared by all runs, see `Access`; or an access, for runs in this process.
        on: `processes`; `threads` of this process, on its single event loop; `ray`, on the cluster of `RAY_ADDRESS` or
            on this machine; or your own executor.
        workers: Number of concurrent runs, each with a share of the limits; None for one per core as far as the limits
            can be divided, or `N_THREADS` threads. A single process means this one; None means it in a script that
            would run anew in each worker.
        on_progress: Called from another thread, again and again, with the progress of each run that this process or a
            worker process makes; None for no reports.

    Raises:
        ConfigError: If `on` is unknown or not installed, or the limits cannot be divided among the workers.
    """
    if (only := _ONLY.get()) is not None:
        yield from _in_turn(jobs, *only, on_progress)
        return
    if on == "threads":
        if workers is not None and workers < 1:
            raise ConfigError(f"workers must be a number of concurrent runs, 1 or more; got {workers!r}")
        yield from _in_threads(jobs, access, workers or N_THREADS, on_progress)
        return
    if isinstance(access, Access):
        yield from _in_turn(jobs, access, Stop(), on_progress)
        return
    if workers is None and on == "processes" and not is_importable_script():
        workers = 1
    n_workers = n_workers_for(workers, len(jobs), access)
    with limits_of_each(access, n_workers, _host_for(on)) as limits:
        if isinstance(on, Executor):
            yield from _on_executor(on, jobs, limits)
        elif on == "ray":
            yield from _on_ray(jobs, limits, n_workers)
        elif on != "processes":
            raise ConfigError(f"on={on!r}: expected 'processes', 'threads', 'ray', or an executor")
        elif n_workers == 1:
            try:
                yield from _in_turn(jobs, _access(limits), Stop(), on_progress)
            finally:
                _forget(limits)
        else:
            yield from _in_processes(jobs, limits, n_workers, on_progress)


_ONLY: ContextVar[tuple[Access, Stop] | None] = ContextVar("only", default=None)


@contextmanager
def through(access: Access, stop: Stop | None = None) -> Generator[None]:
    """Execute all jobs that are started in this context in this process, through one access, whatever their own.

    Args:
        access: The access, such as one that counts requests and sends none.
        stop: Stops them from another thread, by its `end`; None: nothing does.
    """
    token = _ONLY.set((access, stop or Stop()))
    try:
        yield
    finally:
        _ONLY.reset(token)


# -- in this process


type _Report = Callable[[Progress], object] | None


def _in_turn[J: Job[Any]](jobs: Sequence[J], access: Access, stop: Stop, report: _Report) -> Results[J, Any]:
    with stop.reporting(report):
        for job in jobs:
            yield job, job.run(access, stop)


def _in_threads[J: Job[Any]](
    jobs: Sequence[J], access: Access | Mapping[str, Any], n_threads: int, report: _Report
) -> Results[J, Any]:
    """Execute jobs in threads.

    A first Ctrl-C sends no more requests and waits for pending replies. A second one abandons them.
    """
    stop = Stop()
    is_ours = not isinstance(access, Access)
    shared = Access(**access) if is_ours else access
    try:
        with stop.reporting(report), ThreadPoolExecutor(n_threads, thread_name_prefix="mesa-llm-run") as pool:
            futures = {Future[Any](): job for job in jobs}  # those of `submit` are lost to a Ctrl-C within it
            try:
                for future, job in futures.items():
                    pool.submit(_fulfil, future, job, shared, stop)
                for future in concurrent.futures.as_completed(futures):
                    yield futures[future], future.result()
            except BaseException:
                stop.end(list(futures))
                raise
    finally:
        if is_ours:
            shared.close()


def _fulfil[R](future: Future[R], job: Job[R], access: Access, stop: Stop) -> None:
    """Execute a job, unless it was cancelled, and set its future's result."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(job.run(access, stop))
    except BaseException as error:  # noqa: BLE001 - it is raised where the result is read
        future.set_exception(error)


# -- in a worker


@dataclass(frozen=True)
class _Raised:
    """An exception that ended a run, returned from a worker."""

    error: Exception


def _run(job: Job[Any], limits: Mapping[str, Any]) -> Any:
    """Execute one run in a worker. Exceptions are returned, since only a crashed worker raises one."""
    stop = Stop()
    try:
        with _INTERRUPTS.busy(), stop.reporting(_REPORTS[-1] if _REPORTS else None):
            return job.run(_access(limits), stop)
    except Exception as error:  # noqa: BLE001 - it is raised again where the result is read
        return _Raised(error)


_INTERRUPTS = WorkerInterrupts()
"""Signals in this process, if it is a worker."""

_REPORTS: list[Callable[[Progress], object]] = []
"""How this process, if it is a worker of another, reports the progress of its run."""

_ACCESSES: dict[str, Access] = {}
"""Accesses of this process by their options. The runs of a worker share one."""


def _access(limits: Mapping[str, Any]) -> Access:
    key = _key_of(limits)
    if key not in _ACCESSES:
        options = {name: value for name, value in limits.items() if name != "purse"}
        purse = None if limits.get("purse") is None else RemoteBudget(*limits["purse"])
        _ACCESSES[key] = Access(**options, purse=purse)
    return _ACCESSES[key]


def _forget(limits: Mapping[str, Any]) -> None:
    """Close this process's access."""
    access = _ACCESSES.pop(_key_of(limits), None)
    if access is not None:
        access.close()


def _key_of(limits: Mapping[str, Any]) -> str:
    return repr(sorted(limits.items(), key=str))


# -- in several workers


def is_importable_script() -> bool:
    """Check whether workers may import the running program; a script without `__main__` in it would run anew."""
    program = sys.modules["__main__"]
    file = getattr(program, "__file__", None)
    if file is None or program.__spec__ is not None:  # a prompt or a notebook, or `python -m`
        return True
    try:
        return b"__main__" in Path(file).read_bytes()
    except OSError:
        return True


def _host_for(on: str | Executor) -> str:
    """Return the address of this machine that all workers can reach; on a cluster, its network address."""
    if on != "ray" or not os.environ.get("RAY_ADDRESS"):
        return "127.0.0.1"
    return ray_module().util.get_node_ip_address()


def _in_processes[J: Job[Any]](
    jobs: Sequence[J], limits: Mapping[str, Any], n_workers: int, report: _Report
) -> Results[J, Any]:
    """Execute each run in one of several processes. Each has its own pool, because a crash ends the pool.

    What interrupts this process, interrupts the runs: they send no more requests and wait for pending replies.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # the script is imported by a worker
        raise ConfigError(UNGUARDED)
    is_over, interrupt = multiprocessing.get_context("spawn").Pipe(duplex=False)  # its close interrupts all workers
    messages, sender = multiprocessing.get_context("spawn").Pipe(duplex=False)
    has_started = threading.Event()
    reader = threading.Thread(target=_read_messages, args=(messages, has_started, report), daemon=True)
    reader.start()
    pools = [_new_pool(is_over, sender) for _ in range(n_workers)]
    of_future, ended = dict[Any, int](), SimpleQueue[Any]()

    def submit(pool: ProcessPoolExecutor, job: J) -> Future[Any]:
        with spawning():
            return pool.submit(_run, job, limits)

    def start(job: J) -> Future[Any]:
        index = next(index for index in range(n_workers) if index not in of_future.values())
        try:
            future = submit(pools[index], job)
        except BrokenExecutor:  # its worker crashed
            pools[index].shutdown()
            pools[index] = _new_pool(is_over, sender)
            future = submit(pools[index], job)
        of_future[future] = index
        future.add_done_callback(ended.put)
        return future

    def first() -> Future[Any]:
        future = ended.get()
        del of_future[future]
        if isinstance(future.exception(), BrokenExecutor) and not has_started.wait(POLL_S):
            raise ConfigError(UNGUARDED)
        return future

    try:
        yield from _by_turns(jobs, n_workers, start, first, lambda future: future.result())
    except BaseException:
        interrupt.close()
        raise
    finally:
        for each in pools:  # waits for the current runs, which lock their logs
            each.shutdown(cancel_futures=True)
        sender.send(_END)
        reader.join()
        for end in (interrupt, is_over, messages, sender):
            end.close()


_START, _END = "start", "end"
"""Messages of a worker that has started, and of the parent that ends the thread that reads them."""


def _read_messages(messages: Connection, has_started: threading.Event, report: _Report) -> None:
    """Read what workers send, all through one pipe: that they have started, and the progress of their runs."""
    while (message := messages.recv()) != _END:
        if message == _START:
            has_started.set()
        elif report is not None:
            try:
                report(message)
            except Exception:
                logger.warning("the progress of runs is no longer shown", exc_info=True)
                report = None


def _by_turns[J: Job[Any], F](
    jobs: Sequence[J],
    n_at_once: int,
    start: Callable[[J], F],
    first: Callable[[], F],
    result_of: Callable[[F], Any],
) -> Iterator[tuple[J, Any]]:
    """Execute jobs in workers, and restart a run if its worker crashed, for example killed for lack of memory.

    Args:
        jobs: The runs.
        n_at_once: Maximum number of concurrent runs.
        start: Starts a run.
        first: Waits for any current run to complete, and returns it.
        result_of: Returns the result of a completed run, or raises the error of a crashed worker.

    Raises:
        Exception: The exception a run raised.
    """
    waiting, under_way, n_starts = deque(enumerate(jobs)), dict[F, tuple[int, J]](), Counter[int]()
    while waiting or under_way:
        while waiting and len(under_way) < n_at_once:
            index, job = waiting.popleft()
            n_starts[index] += 1
            under_way[start(job)] = index, job
        future = first()
        index, job = under_way.pop(future)
        try:
            result = result_of(future)
        except Exception as error:  # noqa: BLE001 - the worker itself broke, not the run in it
            if n_starts[index] < MAX_STARTS:
                waiting.append((index, job))
                continue
            result = job.broken(error)
        if isinstance(result, _Raised):
            raise result.error
        yield job, result


def _new_pool(interrupt: Connection, sender: Connection) -> ProcessPoolExecutor:
    spawn = multiprocessing.get_context("spawn")
    own = interrupt, sender, child_process.own_variables(), child_process.own_paths()
    with spawning():  # it starts a process that keeps track of its semaphores
        return ProcessPoolExecutor(1, mp_context=spawn, initializer=_begin_worker, initargs=own)


def _begin_worker(
    interrupt: Connection, sender: Connection, variables: Mapping[str, str | None], paths: Sequence[str]
) -> None:
    """Follow the parent of this worker: run in its environment, be interrupted with it, and end with it.

    A worker that outlived its parent would keep its log locked.

    Args:
        interrupt: Pipe whose other end the parent closes when it is interrupted.
        sender: Pipe that tells the parent that a worker has started, and how far its run has come.
        variables: The user's environment variables, see `child_process`.
        paths: The user's paths of modules.
    """
    _INTERRUPTS.install()
    sender.send(_START)
    _REPORTS.append(sender.send)
    child_process.restore(variables, paths)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow_parent, args=(parent.sentinel, interrupt), daemon=True).start()


def _follow_parent(parent: int, interrupt: Connection) -> None:
    if parent not in wait([parent, interrupt]):
        send_to_main_thread(signal.SIGTERM)
        wait([parent])
    os._exit(1)


def _on_executor[J: Job[Any]](executor: Executor, jobs: Sequence[J], limits: Mapping[str, Any]) -> Results[J, Any]:
    """Execute jobs on an executor, which limits its own concurrency."""
    started, ended = list[Future[Any]](), SimpleQueue[Any]()

    def start(job: J) -> Future[Any]:
        try:
            future = executor.submit(_run, job, limits)
        except BrokenExecutor as error:
            future = Future[Any]()
            future.set_exception(error)
        started.append(future)
        future.add_done_callback(ended.put)
        return future

    try:
        yield from _by_turns(jobs, len(jobs), start, ended.get, lambda future: future.result())
    finally:
        for future in started:
            future.cancel()


def ray_module() -> Any:
    """Import Ray.

    Raises:
        ConfigError: If it is not installed.
    """
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ConfigError("on='ray' needs Ray: `pip install ray`") from None
    return ray


@contextmanager
def ray_cluster(n_cpus: int) -> Generator[Any]:
    """Yield Ray's module, connected to the cluster of `RAY_ADDRESS`; without that, to one of this machine.

    Where it is connected already, it stays so; else the connection ends with the block.

    Args:
        n_cpus: Number of processors of a cluster of this machine.

    Raises:
        ConfigError: If Ray is not installed.
    """
    ray = ray_module()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if ray.is_initialized():
        yield ray
        return
    own = {"num_cpus": n_cpus, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    cluster = {"address": os.environ["RAY_ADDRESS"]} if os.environ.get("RAY_ADDRESS") else own
    variables = child_process.python_variables()
    variables["PYTHONPATH"] = os.pathsep.join((variables["PYTHONPATH"], *child_process.own_paths()))
    with spawning():
        ray.init(log_to_driver=False, runtime_env={"env_vars": variables}, **cluster)
    try:
        yield ray
    finally:
        ray.shutdown()


def _on_ray[J: Job[Any]](jobs: Sequence[J], limits: Mapping[str, Any], n_workers: int) -> Results[J, Any]:
    with ray_cluster(n_workers) as ray:
        run_there = ray.remote(num_cpus=1, max_retries=0)(_run)
        under_way: list[Any] = []

        def start(job: J) -> Any:
            under_way.append(run_there.remote(job, limits))
            return under_way[-1]

        def first() -> Any:
            (future, *_), under_way[:] = ray.wait(under_way, num_returns=1)
            return future

        yield from _by_turns(jobs, n_workers, start, first, ray.get)
