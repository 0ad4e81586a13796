"""Read a YAML file of another host as carefully as kage's own files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kage.config.documents import Document, Unreadable
from kage.config.positions import Positions
from kage.core.errors import ConfigFault

_DEEPEST = 30
_MOST_NODES = 50_000


def parse_yaml(file: Path, text: str) -> Document:
    """Parse YAML, whose root must be a table of plain data.

    Raises:
        Unreadable: with the line of the mistake; aliases and tags are mistakes here.
    """
    import yaml

    loader: yaml.SafeLoader | None = None
    try:
        loader = yaml.SafeLoader(text)
        for token in yaml.scan(text, Loader=yaml.SafeLoader):
            if isinstance(token, yaml.AliasToken | yaml.TagToken):
                raise _wrong(file, "uses an alias or a tag", token.start_mark.line)
        root = loader.get_single_node()
        positions = Positions()
        if root is not None:
            _walk(file, root, (), positions, [0])
        data: Any = loader.construct_document(root) if root is not None else {}
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = f"is no valid YAML: {error.problem or error.context}"
        raise _wrong(file, what, mark.line if mark is not None else -1) from error
    except (yaml.YAMLError, ValueError) as error:
        what = str(error).strip().partition("\n")[0]
        raise _wrong(file, f"is no valid YAML: {what}", -1) from error
    except RecursionError:
        raise _wrong(file, "is nested too deeply", -1) from None
    finally:
        if loader is not None:
            loader.dispose()
    if not isinstance(data, dict):
        raise _wrong(file, "is no table", 0)
    return Document(file=file, data=data, positions=positions)


def _walk(
    file: Path, node: Any, path: tuple[str | int, ...], found: Positions, count: list[int]
) -> None:
    """Note where keys stand; refuse what stands twice, is too much, or too deep."""
    import yaml

    count[0] += 1
    if len(path) > _DEEPEST or count[0] > _MOST_NODES:
        raise _wrong(file, "holds more than a settings file needs", node.start_mark.line)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag.endswith(":merge"):
                raise _wrong(file, "has a key that is no text", key.start_mark.line)
            if key.value in seen:
                raise _wrong(file, f"the key {key.value} stands twice", key.start_mark.line)
            seen.add(key.value)
            found.note((*path, key.value), key.start_mark.line + 1)
            _walk(file, value, (*path, key.value), found, count)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            found.note((*path, index), value.start_mark.line + 1)
            _walk(file, value, (*path, index), found, count)


def _wrong(file: Path, what: str, line: int) -> Unreadable:
    return Unreadable(ConfigFault(file=file, line=line + 1, key="", what=what))
