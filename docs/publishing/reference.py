"""The reference: public names with their types, from the source; commands and options, from the parsers."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from optimist.cli import index
from optimist.cli.main import COMMANDS, EPILOG, command_words

SOURCE = Path(__file__).resolve().parents[2] / "src" / "optimist"
PYTHON = {
    "optimist": "The names of `import optimist`. `Dataset`, `Recorder`, `Spec` and `Transition` are under "
    "[Data](data.md), `agents` under [Agents](agents.md).",
    "optimist.api": ["open", "train", "collect", "load", "select", "export"],
    "optimist.envs._recording": ["record"],
    "What they return": "",
    "optimist.training.run": ["Run"],
    "optimist.training.play.acting": ["Policy"],
    "optimist.choosing.ranking": ["Selection", "Ranked"],
    "optimist.training.export": ["Exported"],
    "Settings": "What `train` and `collect` take as further keywords. The defaults are the paper's. "
    "A recipe, which `auto` chooses by the data, sets some of them otherwise: its values follow the default.",
    "optimist.training.settings": ["Training", "Collection"],
    "Errors": "Each is one line that names the remedy; the number is the exit code of a command.",
    "optimist.errors": [
        "OptimistError",
        "UsageError",
        "DataError",
        "RunError",
        "DivergedError",
        "StorageError",
    ],
}
PARTS = {
    "What an agent is made of": "Write your own by [Write an agent](../extending.md).",
    "optimist.agents._agent": ["Agent", "Objective"],
    "optimist.agents._table_agent": [
        "TableAgent",
        "ValueAgent",
        "HuberAgent",
        "ManyHeads",
        "EnsembleAgent",
        "DistributionalEnsemble",
    ],
    "optimist.agents._actor_critic": ["ActorAgent", "CriticAgent", "ActorCritic"],
    "optimist.networks.tables": ["Table", "MultiHead", "MultiNetwork"],
    "optimist.equations.mixtures": [],
    "optimist.equations.losses": [],
    "optimist.equations.optimizers": [],
    "Where it acts": "",
    "optimist.envs._environment": ["Environment", "Step"],
    "Where its figures go": "",
    "optimist.training.loggers": ["Logger"],
}
# Records whose fields are a table; each field under a heading of its own would fill pages.
IN_TABLES = {"Training": "training", "Collection": "collection"}


def pages() -> dict[str, str]:
    """Every page of the reference by its file name."""
    return {
        "python.md": _names("Python", PYTHON),
        "data.md": _names("Data", {"optimist.data": exported(SOURCE / "data" / "__init__.py")}),
        "agents.md": agents(),
        "parts.md": _names("Parts to replace", PARTS),
        "command-line.md": "\n".join(_commands()),
        "names.md": names(),
    }


def exported(module: Path) -> list[str]:
    """The names of `__all__`."""
    tree = ast.parse(module.read_text("utf-8"))
    lists = [node.value for node in tree.body if isinstance(node, ast.Assign) and _is_all(node.targets[0])]
    return ast.literal_eval(lists[0])


def _is_all(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id == "__all__"


def _names(title: str, modules: dict[str, Any]) -> str:
    """A page: text stands under a heading, names of a module become their documentation."""
    lines = [f"# {title}", ""]
    for module, members in modules.items():
        if isinstance(members, str):
            lines += [f"## {module}" if module != "optimist" else "", "", members, ""]
        for name in members if isinstance(members, list) else []:
            lines += [f"::: {module}.{name}", ""]
            if name in IN_TABLES:
                lines[-1:] = ["    options:", "      members: false", ""]
                lines += _settings(index.records()[IN_TABLES[name]], _by_recipe(IN_TABLES[name]))
        if members == []:
            lines += [f"::: {module}", ""]
    return "\n".join(lines)


def agents() -> str:
    """Every agent: what it is, its presets, and its class with its settings."""
    lines = [
        "# Agents",
        "",
        "Train one with `optimist train NAME DATA`, or `optimist.train(name, data)`.",
        "",
    ]
    for actions, title in index.ACTIONS.items():
        lines += [f"## For {title}", ""]
        for name, entry in index.agents().items():
            if entry["actions"] == actions:
                lines += [f"### {name} {{ #{name} }}", "", entry["what"], ""]
                lines += [f"::: optimist.agents.{name}.{_class_of(name)}"]
                lines += ["    options:", "      heading_level: 4", "      members: false", ""]
                first, *others = entry["presets"]
                more = f" Further presets: {', '.join(f'`{other}`' for other in others)}." if others else ""
                lines += [f"Settings of the preset `{first}`.{more}", ""]
                lines += _settings(entry["presets"][first]["settings"])
    return "\n".join(lines)


def _class_of(agent: str) -> str:
    """The class of an agent's file: the one that is named like the file."""
    tree = ast.parse((SOURCE / "agents" / f"{agent}.py").read_text("utf-8"))
    classes = [node.name for node in tree.body if isinstance(node, ast.ClassDef)]
    return next(name for name in classes if name.lower() == agent.replace("_", ""))


def names() -> str:
    """Environments, formats, engines and recipes."""
    lines = ["# Environments, formats, engines, recipes", "", "## Environments", ""]
    for family, entry in index.environments().items():
        games = ", ".join(f"`{family}/{game}`" for game in entry["games"])
        lines += [f"### {family}", "", entry["about"], "", games, "", *_settings(entry["settings"])]
    lines += ["## Formats", "", "`optimist data import FORMAT` and `optimist data export FORMAT`.", ""]
    for name, entry in index.formats().items():
        lines += [f"### {name}", "", entry["about"], ""]
        for action, title in (("read", "Options of import"), ("write", "Options of export")):
            lines += [f"{title}:", "", *_settings(entry[action])] if entry[action] else []
    lines += ["## Engines", "", "`optimist study run NAME --engine ENGINE`.", ""]
    for name, settings in index.engines().items():
        lines += [f"### {name}", "", *_settings(settings)]
    lines += [
        "## Recipes",
        "",
        "`--recipe NAME` sets these unless you set them; `auto` follows the data.",
        "",
    ]
    for name, recipe in index.recipes().items():
        settings = {key: value for key, value in recipe["training"].items() if value is not None}
        lines += [f"### {name}", "", ", ".join(f"`{key} {value}`" for key, value in settings.items()), ""]
    return "\n".join(lines)


def _by_recipe(record: str) -> dict[str, dict[str, Any]]:
    """What the recipes that "auto" chooses set, by setting."""
    chosen = {name: recipe[record] for name, recipe in index.recipes().items() if recipe["actions"]}
    return {
        setting: {name: recipe[setting] for name, recipe in chosen.items()} for setting in chosen["paper"]
    }


def _settings(settings: dict[str, list], by_recipe: dict[str, dict[str, Any]] | None = None) -> list[str]:
    if not settings:
        return []
    rows = [
        _row(f"`{name}`", f"`{kind}`", help, "; ".join([f"`{default}`", *_others(default, recipes)]))
        for name, (kind, help, default) in settings.items()
        for recipes in [(by_recipe or {}).get(name, {})]
    ]
    return [_row("setting", "type", "what it is", "default"), _row("---", "---", "---", "---"), *rows, ""]


def _others(default: Any, recipes: dict[str, Any]) -> list[str]:
    """The values of recipes that differ from the default."""
    return [f"{name} `{value}`" for name, value in recipes.items() if value != default]


def _row(*cells: str) -> str:
    """A row of a table, in which a bar would begin the next cell."""
    return "| " + " | ".join(cell.replace("|", " or ").replace("<", "&lt;") for cell in cells) + " |"


def _commands() -> Iterator[str]:
    """Every command with its arguments and options."""
    yield from ("# Command line", "", "```", EPILOG, "```", "")
    for name in COMMANDS:
        line = command_words(name, [])
        yield from (f"## optimist {name}", "", line.about.replace("<", "&lt;"), "")
        yield from ("```", line.usage(), "```", "")
        words = [word for group in line.groups.values() for word in group if not word.is_hidden]
        for title, is_option in (("argument", False), ("option", True)):
            rows = [_row(f"`{word.usage}`", word.help) for word in words if word.is_option == is_option]
            yield from (_row(title, "what it is"), _row("---", "---"), *rows, "") if rows else ()
        yield from ("```", line.after, "```", "") if line.after else ()
