"""Threads and the tasks they run."""

from __future__ import annotations

import threading
import time

import pytest

from stackfix.sources.workers import Task, Workers


def test_work_is_done_once_whoever_asks() -> None:
    done: list[int] = []

    def work() -> int:
        done.append(1)
        return 7

    workers, task = Workers(3, "test"), Task(work)
    for _ in range(5):
        workers.submit(task)
    assert [task.result() for _ in range(5)] == [7] * 5
    workers.close(RuntimeError())
    assert done == [1]


def test_a_waiting_task_is_done_by_the_one_who_needs_it() -> None:
    hold = threading.Event()
    workers = Workers(1, "test")
    workers.submit(Task(lambda: hold.wait(20)))
    waiting = Task(threading.get_ident)
    workers.submit(waiting)
    assert waiting.result() == threading.get_ident()
    hold.set()
    workers.close(RuntimeError())


def test_a_fault_is_raised_for_each_who_asks() -> None:
    task = Task(lambda: 1 // 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            task.result()
    assert task.ready


def test_close_fails_what_has_not_begun() -> None:
    hold, begun = threading.Event(), threading.Event()

    def work() -> str:
        begun.set()
        hold.wait(20)
        return "finished"

    workers = Workers(1, "test")
    first, second = Task(work), Task(work)
    workers.submit(first)
    begun.wait(20)
    workers.submit(second)
    workers.close(RuntimeError("closed"))
    with pytest.raises(RuntimeError, match="closed"):
        second.result()
    hold.set()
    assert first.result() == "finished"


def test_no_more_threads_than_allowed_and_none_without_work() -> None:
    before = threading.active_count()
    workers = Workers(4, "test")
    assert threading.active_count() == before
    tasks = [Task(threading.get_ident) for _ in range(50)]
    for task in tasks:
        workers.submit(task)
    while not all(task.ready for task in tasks):
        time.sleep(0.01)
    assert len({task.result() for task in tasks}) <= 4
    workers.close(RuntimeError())


def test_tasks_go_by_rank() -> None:
    workers, begun, go_on, order = Workers(1, "test"), threading.Event(), threading.Event(), list[int]()

    def first() -> None:
        begun.set()
        assert go_on.wait(20)

    workers.submit(Task(first))
    assert begun.wait(20)
    tasks = [(rank, Task(lambda rank=rank: order.append(rank))) for rank in (2, 1, 0, 2, 0)]    # type: ignore[misc]
    for rank, task in tasks:
        workers.submit(task, rank)
    go_on.set()
    deadline = time.monotonic() + 20
    while not all(task.ready for _, task in tasks) and time.monotonic() < deadline:
        time.sleep(0.001)
    workers.close(RuntimeError("closed"))
    assert order == [0, 0, 1, 2, 2]
