"""A merged profile leaf by leaf: every value by its path, as it is spelled, and who set it."""

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.profile.loading import Loaded, Origin
from gateway.profile.nodes import MapNode, Node, plain
from gateway.profile.render import is_leaf_path, render_flow

Path = tuple[str, ...]
"""The keys that lead to a value; a key of `params` may have dots in it."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One value of a merged profile.

    Attributes:
        path: the keys that lead to it.
        value: as plain data, for comparing.
        text: as YAML on one line, numbers with the operator's literal.
        origin: who set it.
    """

    path: Path
    value: object
    text: str
    origin: Origin


def leaves_of(loaded: Loaded) -> dict[Path, Leaf]:
    """Every value of a merged profile, in the file's order; a list is one value."""
    return {
        path: Leaf(path, plain(node), render_flow(node), loaded.origins[path])
        for path, node in _walk(loaded.document, ())
    }


def _walk(node: MapNode, path: Path) -> Iterator[tuple[Path, Node]]:
    for key, child in node.items():
        below = (*path, key)
        if isinstance(child, MapNode) and not is_leaf_path(below):
            yield from _walk(child, below)
        else:
            yield below, child
