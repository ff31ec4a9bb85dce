"""What recipes say of patches by name: it has to be edited by a person where the names change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from toolkit import plan
from toolkit.errors import RecipeError
from toolkit.project import Project
from toolkit.recipe import recipe_names


@dataclass(frozen=True, kw_only=True, slots=True)
class StaleAcceptance:
    """A name in `accept_upstream` that no patch has any more; `new` is what the patch is called now, or empty."""

    recipe: str
    component: str
    old: str
    new: str


def stale_acceptances(project: Project, series: str, moved: Mapping[str, str]) -> list[StaleAcceptance]:
    """List the acceptances that a series' new names leave behind; a recipe that cannot be read says so elsewhere."""
    found = []
    for recipe in recipe_names(project.recipes) if moved else ():
        try:
            components = plan.read_recipe(project, recipe).components
        except RecipeError:
            continue
        found += [
            StaleAcceptance(recipe=recipe, component=part.name, old=name, new=moved[name])
            for part in components
            if part.series == series
            for name in part.accept_upstream
            if name in moved
        ]
    return found
