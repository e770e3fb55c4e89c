"""The options that `collect` and `train` share: the preset, the recipe, all settings, the environment's."""

import argparse
from typing import Any

from optimist.cli import index
from optimist.cli.options import Parser
from optimist.cli.settings import Setting, add_settings, given, union
from optimist.errors import UsageError, did_you_mean


def add_choices(parser: Parser) -> None:
    """Add the options that decide the defaults of the settings."""
    names = ", ".join(index.read()["recipes"])
    parser.add_argument("--preset", metavar="name", help="the agent's named settings [its first]")
    parser.add_argument(
        "--recipe",
        default="auto",
        metavar="name",
        help=f"lengths and rates: {names} [auto: by the observations and actions]",
    )
    parser.add_argument("--restart", action="store_true", help="delete what the folder holds and start again")


def add_training_settings(
    parser: Parser, kind: str, name: str | None, preset: str | None, recipe: str | None
) -> None:
    """Add the settings of the training and of the agent; without an agent, hidden options of all agents."""
    found, recipes = index.read(), index.read()["recipes"]
    if recipe and recipe not in (*recipes, "auto"):
        raise UsageError(f'there is no recipe "{recipe}": {did_you_mean(recipe, [*recipes, "auto"])}')
    entry = index.agent(name) if name else None
    fitting = (
        (recipe,) if recipe and recipe in recipes else index.FITTING[entry["actions"] if entry else "any"]
    )
    add_settings(
        parser.add_argument_group(f"{kind}, with the default of each recipe where they differ"),
        index.settings(found["settings"][kind]),
        "setting",
        others={each: recipes[each][kind] for each in fitting},
    )
    if name and entry:
        chosen = index.preset(name, preset)
        others = () if preset else entry["presets"].values()  # a recipe may prefer one of these
        add_settings(
            parser.add_argument_group(entry["source"].rstrip(".")),
            union(index.settings(each["settings"]) for each in (*others, chosen)),
            "agent",
            others={each: (chosen if preset else entry)["fitted"][kind].get(each, {}) for each in fitting},
        )
        return
    every: list[dict[str, Setting]] = [
        index.settings(chosen["settings"])
        for agent in found["agents"].values()
        for chosen in agent["presets"].values()
    ]
    parser.add_argument_group("the agent", f"to see its settings: {parser.prog} AGENT --help")
    add_settings(parser, union(every), "agent", hidden=True)


def add_former_names(parser: Parser) -> None:
    """Add hidden options of version 0.1.0; the resolver reports their new names."""
    for place, name in (("agent", "hidden"), ("agent", "network")):
        if f"--{name}" not in parser._option_string_actions:  # a user's own agent may have such a field
            parser.add_argument(
                f"--{name}", dest=f"{place}:{name}", default=argparse.SUPPRESS, help=argparse.SUPPRESS
            )


def add_environments(parser: Parser, families: dict[str, Any]) -> None:
    for family, entry in families.items():
        if entry["settings"]:
            group = parser.add_argument_group(f"the environment, if it is {family}/...")
            add_settings(group, index.settings(entry["settings"]), "environment")


def asked(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments of the resolver."""
    return {
        "preset": options.preset,
        "recipe": options.recipe,
        "options": given(options, "agent"),
        "settings": given(options, "setting"),
    }


def with_options(environment: str, options: argparse.Namespace) -> str:
    """The environment's name with the given options."""
    chosen = given(options, "environment")
    if not chosen:
        return environment
    from optimist import envs
    from optimist.training.values import with_values

    usual = envs.options_of(environment) if environment else None
    if usual is None:
        option = f"--{next(iter(chosen)).replace('_', '-')}"
        raise UsageError(f'{environment or "no environment"} has no option "{option}": leave it out')
    return envs.named(environment, with_values(usual, chosen, environment))
