"""A program is compiled once for all processes of a machine, whatever happens to one of them."""

import shutil
from concurrent.futures import ThreadPoolExecutor

import filelock
import pytest

from little import plain_python

COMPILE = """
import logging, jax, jax.numpy as jnp
{before}
from optimist.training.learner import set_up_jax
set_up_jax()
logging.basicConfig(format="%(message)s")
logging.getLogger("jax._src.compiler").setLevel(logging.DEBUG)
print(jax.jit(lambda x: jnp.sin(x) @ x)(jnp.ones((4, 4))).sum())
"""


def compiles(cache, *, before: str = "", **variables) -> str:
    """What a process says that compiles one program, with this folder as the user's cache."""
    return plain_python(COMPILE.format(before=before), XDG_CACHE_HOME=cache, JAX_PLATFORMS="cpu", **variables)


def programs(cache) -> list:
    return sorted((cache / "optimist" / "compiled").glob("*/*-cache"))


@pytest.fixture(scope="module")
def user(tmp_path_factory):
    """A user whose first process has compiled the program: the cache, and a copy of it."""
    folder = tmp_path_factory.mktemp("user")
    assert "cache hit" not in compiles(folder / "cache")
    shutil.copytree(folder / "cache", folder / "copy")
    return folder


@pytest.fixture
def cache(user):
    """The cache as the first process left it; to JAX a program at another place is another program."""
    shutil.rmtree(user / "cache")
    return shutil.copytree(user / "copy", user / "cache")


def test_what_one_process_compiled_serves_the_next_though_it_compiled_before_it_imported_us(cache):
    assert "cache hit" in compiles(cache, before="jnp.ones(3) + 1")
    [folder] = (cache / "optimist" / "compiled").iterdir()
    assert (folder / ".lockfile").exists()  # processes take turns


def test_processes_that_compile_at_once_agree(tmp_path):
    with ThreadPoolExecutor(2) as pool:
        said = list(pool.map(lambda _: compiles(tmp_path), range(2)))
    assert len({text.splitlines()[-1] for text in said}) == 1
    assert not any("Error" in text for text in said)
    assert "cache hit" in compiles(tmp_path)


def test_what_a_killed_process_left_half_written_is_compiled_again(cache):
    for program in programs(cache):
        program.write_bytes(program.read_bytes()[:100])
        program.with_name(program.name.replace("-cache", "-atime")).unlink()
    said = compiles(cache)
    assert "cache hit" not in said and "Error" not in said
    assert "cache hit" in compiles(cache)


def kept_before(cache, size: int):
    """A program of this size that was used long ago."""
    [folder] = (cache / "optimist" / "compiled").iterdir()
    (folder / "old-cache").write_bytes(bytes(size))
    (folder / "old-atime").write_bytes(bytes(8))
    return folder / "old-cache"


def test_keeping_a_program_reads_none_of_the_others(cache):
    for program in programs(cache):
        program.unlink()
    last_use = kept_before(cache, 10).with_name("old-atime")
    last_use.unlink()
    last_use.mkdir()  # reading it fails
    said = compiles(cache)
    assert "cache hit" not in said and "Error" not in said
    assert "cache hit" in compiles(cache)


def test_the_programs_that_were_not_used_for_longest_are_removed(cache):
    old = kept_before(cache, 2**20)
    assert "cache hit" in compiles(cache) and old.exists()
    small = "import optimist.training.learner as learner; learner.LARGEST = 2**20"
    assert "cache hit" in compiles(cache, before=small) and not old.exists()


@pytest.mark.parametrize(
    ("variable", "value"), [("JAX_COMPILATION_CACHE_DIR", "mine"), ("JAX_ENABLE_COMPILATION_CACHE", "false")]
)
def test_the_users_own_folder_wins_and_so_does_none(tmp_path, variable, value):
    place = tmp_path / value if value == "mine" else value
    compiles(tmp_path, **{variable: place})
    assert (tmp_path / "mine").exists() == (value == "mine")
    assert not (tmp_path / "optimist").exists()


def test_a_folder_that_another_process_has_locked_delays_nothing(cache):
    """JAX waited ten seconds for each program, and printed a warning of several lines."""
    [folder] = (cache / "optimist" / "compiled").iterdir()
    with filelock.FileLock(folder / ".lockfile"):
        said = compiles(cache)
    assert "cache hit" not in said and "Error" not in said
    assert f"{folder} is locked by another process: programs are compiled again\n" in said


def test_the_folder_may_be_on_a_disk_without_locks(cache):
    without = """
import errno, fcntl
def flock(*_): raise OSError(errno.ENOLCK, "No locks available")
fcntl.flock = flock
"""
    said = compiles(cache, before=without)
    assert "cache hit" not in said and "Error" not in said


BITS = """
import jax
from optimist import agents
from optimist.data import Spec
from optimist.training.learner import Learner
spec = Spec((3,), "float32", actions=2)
state = Learner(agents.Dqn(), spec).init((0, 5))
print([float(abs(leaf).sum()) for leaf in jax.tree.leaves(state.params)])
print([leaf.dtype for leaf in jax.tree.leaves(state)])
print(jax.random.normal(jax.random.PRNGKey(3), (5,)))
"""


def test_importing_the_package_leaves_jax_as_it_is(tmp_path):
    text = "import jax, optimist, optimist.training.offline; print(jax.config.jax_compilation_cache_dir)"
    assert plain_python(text, XDG_CACHE_HOME=tmp_path).strip() == "None" and not list(tmp_path.iterdir())


def test_no_variable_of_jax_changes_a_bit():
    usual = plain_python(BITS)
    variables = {
        "JAX_ENABLE_X64": "1",
        "JAX_DEFAULT_PRNG_IMPL": "rbg",
        "JAX_THREEFRY_PARTITIONABLE": "0",
        "JAX_RANDOM_SEED_OFFSET": "7",
    }
    assert "float64" not in usual and plain_python(BITS, **variables) == usual


def test_a_home_that_cannot_be_written_does_not_stop_a_process(tmp_path):
    (tmp_path / "file").touch()
    assert "cache hit" not in compiles(tmp_path / "file")
