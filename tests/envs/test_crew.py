"""A crew does every item once, tells of errors, and leaves no thread behind."""

import gc
import threading
import time

import pytest

from optimist.envs._crew import Crew


def settles_at(count: int) -> bool:
    """Whether the number of threads falls to `count`; one that was told to end needs a moment for it."""
    deadline = time.monotonic() + 10
    while threading.active_count() > count and time.monotonic() < deadline:
        time.sleep(0.001)
    return threading.active_count() == count


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_every_item_is_done_once_every_time(threads):
    done: list[int] = []
    crew = Crew(done.append, threads)
    for _ in range(200):
        crew.each(range(7))
        assert sorted(done) == list(range(7))
        done.clear()
    crew.close()


def test_the_work_is_done_by_several_threads_at_once():
    meeting = threading.Barrier(3, timeout=20)  # nobody passes before three are there
    crew = Crew(lambda _: meeting.wait(), 3)
    crew.each(range(3))
    crew.close()


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_is_raised_and_the_crew_works_on(threads):
    done: list[int] = []

    def work(item):
        if item == 2:
            raise ValueError("item 2")
        done.append(item)

    crew = Crew(work, threads)
    with pytest.raises(ValueError, match="item 2"):
        crew.each(range(4))
    done.clear()
    crew.each([5, 6])
    assert sorted(done) == [5, 6]
    crew.close()


def test_threads_end_when_the_crew_is_closed():
    before = threading.active_count()
    crew = Crew(print, 4)
    assert threading.active_count() == before + 3
    crew.close()
    assert settles_at(before)
    crew.close()


def test_threads_end_when_the_crew_is_forgotten():
    before = threading.active_count()
    crew = Crew(print, 4)
    crew.each([])
    del crew
    gc.collect()
    assert settles_at(before)
