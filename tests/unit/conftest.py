"""A unit test starts no process and compiles no program: that keeps `make check` quick."""

import multiprocessing.process
import subprocess
import sys

import pytest

COMPILED = "/jax/core/compile/backend_compile_duration"
compiled: list[str] = []


def _listen() -> None:
    """Count the programs that JAX compiles, once it is imported."""
    if "jax" in sys.modules and not compiled:
        import jax.monitoring

        compiled.append("listening")
        jax.monitoring.register_event_duration_secs_listener(
            lambda event, *_, **__: compiled.append(event) if event == COMPILED else None
        )


@pytest.fixture(autouse=True)
def nothing_is_started_or_compiled(monkeypatch):
    def refused(*words, **options):
        raise AssertionError("a unit test starts no process: move it to tests/system")

    monkeypatch.setattr(subprocess.Popen, "__init__", refused)
    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", refused)
    _listen()
    before = len(compiled)
    yield
    assert len(compiled) == before, "a unit test compiles no program: move it to tests/contract"
