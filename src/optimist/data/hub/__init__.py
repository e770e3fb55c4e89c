"""Folders on the Hugging Face Hub: datasets and runs are sent there and brought back, each with a card."""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from optimist.data.dataset import Dataset
from optimist.data.disk.files import check_no_link_leads_out, make_folder
from optimist.data.look import card
from optimist.data.verify import verify
from optimist.data.warnings import warnings
from optimist.errors import DataError, StorageError, UsageError, command_line

DATA_FILES = ("manifest.json", "*.arrow")
RUN_FILES = (  # never a file that could be run
    *("config.toml", "versions.json", "alarms.json", "selection.json", "DONE"),
    *("metrics.jsonl", "episodes.csv", "policies/*"),
)
CHECKPOINTS = "checkpoints/*"
LEFTOVERS = ".cache"  # of a download; with it an interrupted one continues
CARD = "README.md"
SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n")  # by the number of digits
FACTS = (  # of a dataset's card, with their names there
    *("environment", "spec", "steps", "episodes", "complete_episodes", "left_out"),
    *("features", "action_names", "action_columns", "allowed_actions", "probabilities"),
    *("return_mean", "return_median", "return_best", "return_worst", "fingerprint"),
)


def push_data(folder: Path, repository: str, *, private: bool = False, license: str = "") -> str:
    """Send a dataset, with a card made from its facts; return its address."""
    dataset = Dataset.open(folder)
    return _push(folder, repository, "dataset", DATA_FILES, data_card(dataset, repository, license), private)


def pull_data(repository: str, folder: Path) -> Dataset:
    """Bring a dataset and check every byte of it; an interrupted call continues."""
    _pull(repository, folder, "dataset", DATA_FILES)
    if problems := verify(folder):
        raise DataError(f"{repository}: {len(problems)} problems in {folder}, the first: {problems[0]}")
    return Dataset.open(folder)


def push_run(
    folder: Path,
    repository: str,
    facts: Mapping[str, Any],
    *,
    private: bool = False,
    checkpoints: bool = False,
) -> str:
    """Send a run: its settings, results and policies; its checkpoints only if asked. Return its address."""
    files = (*RUN_FILES, *([CHECKPOINTS] if checkpoints else []))
    return _push(folder, repository, "model", files, run_card(facts, repository), private)


def pull_run(repository: str, folder: Path) -> None:
    """Bring a run; an interrupted call continues."""
    _pull(repository, folder, "model", (*RUN_FILES, CHECKPOINTS))
    if not (folder / "config.toml").exists():
        raise DataError(f"{repository} is not a run of Optimist: it has no config.toml")


def data_card(dataset: Dataset, repository: str, license: str = "") -> str:
    """What people should know of a dataset before they use it, in the Hub's form."""
    known = {"environment": dataset.provenance.get("environment"), **card(dataset)}
    return _card(
        "data_card",
        repository,
        {name.replace("_", " "): known.get(name) for name in FACTS},
        size=SIZES[min(max(0, len(str(len(dataset))) - 3), 5)],
        license=license,
        warnings=warnings(dataset),
        agent="rem" if dataset.spec.discrete else "bcq",
    )


def run_card(facts: Mapping[str, Any], repository: str) -> str:
    """What people should know of a run."""
    return _card("run_card", repository, facts, use=use_of_run("run", facts.get("environment")))


def _card(template: str, repository: str, facts: Mapping[str, Any], **more: Any) -> str:
    """A text from a template, with the facts that are known."""
    from jinja2 import Environment, PackageLoader

    loader = PackageLoader("optimist.data.hub")
    pages = Environment(loader=loader, trim_blocks=True, keep_trailing_newline=True)
    shown = {name: _plain(value) for name, value in facts.items() if value not in (None, "")}
    title = repository.rpartition("/")[2]
    page = pages.get_template(f"{template}.md.jinja")
    return page.render(title=title, repository=repository, facts=shown, **more)


def use_of_run(folder: str | Path, environment: Any) -> str:
    """The command to try a run with; a policy of a log without an environment can only act elsewhere."""
    if environment:
        return command_line("evaluate", folder)
    return command_line("export", folder, "--to", "policy.npz")


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):  # "mean 2.5, least 1, most 4"
        value = ", ".join(f"{name} {_plain(each)}" for name, each in value.items())
    text = f"{value:,.6g}" if isinstance(value, float) else str(value)
    return " ".join(text.replace("|", "/").split())[:300]


def _push(folder: Path, repository: str, kind: str, files: tuple[str, ...], text: str, private: bool) -> str:
    check_no_link_leads_out(folder)
    hub = _package()
    with _problems(hub, repository):
        api, there = _client(hub), {"repo_id": repository, "repo_type": kind}
        address = api.create_repo(**there, private=private, exist_ok=True)
        api.upload_file(**there, path_or_fileobj=text.encode(), path_in_repo=CARD, commit_message="The card")
        patterns = {"allow_patterns": list(files), "delete_patterns": list(files)}
        api.upload_folder(**there, **patterns, folder_path=folder, commit_message="Files of Optimist")
    return str(address)


def _pull(repository: str, folder: Path, kind: str, files: tuple[str, ...]) -> None:
    if folder.exists() and any(folder.iterdir()) and not (folder / LEFTOVERS).exists():
        raise UsageError(f"{folder} is not empty: choose another --out")
    hub = _package()
    make_folder(folder)
    with _problems(hub, repository):
        _client(hub).snapshot_download(
            repository, repo_type=kind, local_dir=folder, allow_patterns=[*files, CARD]
        )
    shutil.rmtree(folder / LEFTOVERS, ignore_errors=True)


def _package() -> Any:
    try:
        import huggingface_hub.errors  # neither is an attribute of the package before it is imported
        import huggingface_hub.utils
    except ModuleNotFoundError:
        raise UsageError('huggingface_hub is not installed: pip install "optimist-rl[hub]"') from None
    if not sys.stderr.isatty():
        huggingface_hub.utils.disable_progress_bars()
    return huggingface_hub


def _client(hub: Any) -> Any:
    return hub.HfApi(endpoint=os.environ.get("HF_ENDPOINT"), library_name="optimist")


@contextlib.contextmanager
def _problems(hub: Any, repository: str) -> Iterator[None]:
    """The Hub's refusals in one line."""
    errors = hub.errors
    try:
        yield
    except errors.HFValidationError as problem:
        raise UsageError(f'"{repository}" is not the name of a repository: write user/name') from problem
    except errors.RepositoryNotFoundError as problem:
        raise UsageError(
            f"the Hub has no {repository} that you may see: correct it, or log in (hf auth login, HF_TOKEN)"
        ) from problem
    except errors.HfHubHTTPError as problem:
        code = getattr(problem.response, "status_code", "")
        remedy = "log in (hf auth login, HF_TOKEN)" if code in (401, 403) else "try again"
        raise StorageError(f"the Hub refuses {repository} (code {code}): {remedy}") from problem
    except (errors.LocalEntryNotFoundError, OSError, RuntimeError) as problem:
        reason = " ".join(str(problem).split())[:150]
        raise StorageError(f"the Hub cannot be reached for {repository} ({reason}): try again") from problem
