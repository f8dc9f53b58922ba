"""Signs of life: a loop tells of its steps to who watches in this thread, and to no one else."""

from __future__ import annotations

import threading

from dpselect.steps import each_step, unwatched, watched


def test_a_loop_tells_of_its_steps_to_who_watches() -> None:
    seen: list[tuple[str, int, int]] = []
    with watched(lambda *told: seen.append(told)):
        assert list(each_step("training", 3)) == [0, 1, 2]
    assert seen == [("training", 0, 3), ("training", 1, 3), ("training", 2, 3)]
    list(each_step("training", 3))
    assert len(seen) == 3


def test_another_thread_tells_nothing() -> None:
    seen: list[tuple[str, int, int]] = []
    with watched(lambda *told: seen.append(told)):
        thread = threading.Thread(target=lambda: list(each_step("training", 3)))
        thread.start()
        thread.join()
    assert seen == []


def test_a_loop_that_continues_tells_of_the_steps_that_are_left() -> None:
    seen: list[tuple[str, int, int]] = []
    with watched(lambda *told: seen.append(told)):
        assert list(each_step("training", 3, 2)) == [2]
    assert seen == [("training", 2, 3)]
    assert list(each_step("training", 3, 3)) == []


def test_a_loop_of_a_secret_number_tells_nothing() -> None:
    seen: list[tuple[str, int, int]] = []
    with watched(lambda *told: seen.append(told)):
        with unwatched():
            list(each_step("training", 3))
        assert seen == []
        list(each_step("training", 1))
    assert seen == [("training", 0, 1)]
