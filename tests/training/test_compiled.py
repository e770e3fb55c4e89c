"""A program is compiled once for all processes of a machine, whatever happens to one of them."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from little import plain_python

COMPILE = """
import logging, jax, jax.numpy as jnp
{before}
import optimist.training.learner
logging.basicConfig(format="%(message)s")
logging.getLogger("jax._src.compiler").setLevel(logging.DEBUG)
print(jax.jit(lambda x: jnp.sin(x) @ x)(jnp.ones((4, 4))).sum())
"""


def compiles(cache, *, before: str = "", **variables) -> str:
    """What a process says that compiles one program, with this folder as the user's cache."""
    return plain_python(COMPILE.format(before=before), XDG_CACHE_HOME=cache, JAX_PLATFORMS="cpu", **variables)


def programs(cache) -> list:
    return sorted((cache / "optimist" / "compiled").glob("*/*-cache"))


def test_what_one_process_compiled_serves_the_next(tmp_path):
    assert "cache hit" not in compiles(tmp_path) and "cache hit" in compiles(tmp_path)
    [folder] = (tmp_path / "optimist" / "compiled").iterdir()
    assert (folder / ".lockfile").exists()  # processes take turns


def test_it_serves_a_process_that_had_compiled_before_it_imported_us(tmp_path):
    compiles(tmp_path)
    assert "cache hit" in compiles(tmp_path, before="jnp.ones(3) + 1")


def test_processes_that_compile_at_once_agree(tmp_path):
    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(lambda _: compiles(tmp_path), range(4)))
    assert len({text.splitlines()[-1] for text in said}) == 1
    assert not any("Error" in text for text in said)
    assert "cache hit" in compiles(tmp_path)


def test_what_a_killed_process_left_half_written_is_compiled_again(tmp_path):
    compiles(tmp_path)
    for program in programs(tmp_path):
        program.write_bytes(program.read_bytes()[:100])
        program.with_name(program.name.replace("-cache", "-atime")).unlink()
    said = compiles(tmp_path)
    assert "cache hit" not in said and "Error" not in said
    assert "cache hit" in compiles(tmp_path)


def kept_before(cache, size: int):
    """A program of this size that was used long ago."""
    [folder] = (cache / "optimist" / "compiled").iterdir()
    (folder / "old-cache").write_bytes(bytes(size))
    (folder / "old-atime").write_bytes(bytes(8))
    return folder / "old-cache"


def test_keeping_a_program_reads_none_of_the_others(tmp_path):
    compiles(tmp_path)
    for program in programs(tmp_path):
        program.unlink()
    last_use = kept_before(tmp_path, 10).with_name("old-atime")
    last_use.unlink()
    last_use.mkdir()  # reading it fails
    said = compiles(tmp_path)
    assert "cache hit" not in said and "Error" not in said
    assert "cache hit" in compiles(tmp_path)


def test_the_programs_that_were_not_used_for_longest_are_removed(tmp_path):
    compiles(tmp_path)
    old = kept_before(tmp_path, 2**20)
    assert "cache hit" in compiles(tmp_path) and old.exists()
    small = "import optimist.training.compiled as compiled; compiled.LARGEST = 2**20"
    assert "cache hit" in compiles(tmp_path, before=small) and not old.exists()


@pytest.mark.parametrize(
    ("variable", "value"), [("JAX_COMPILATION_CACHE_DIR", "mine"), ("JAX_ENABLE_COMPILATION_CACHE", "false")]
)
def test_the_users_own_folder_wins_and_so_does_none(tmp_path, variable, value):
    place = tmp_path / value if value == "mine" else value
    compiles(tmp_path, **{variable: place})
    assert (tmp_path / "mine").exists() == (value == "mine")
    assert not (tmp_path / "optimist").exists()


def test_a_home_that_cannot_be_written_does_not_stop_a_process(tmp_path):
    (tmp_path / "file").touch()
    assert "cache hit" not in compiles(tmp_path / "file")
