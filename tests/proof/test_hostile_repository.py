"""SECURITY T1: whatever a person does in a cloned repository, nothing of it runs by itself."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.proof.forking import Job, kages
from tests.proof.hostile import Repository, repository
from tests.proof.house import House, server
from tests.proof.verbs import lines

# each with what it ends with; 0 to 3 are answers, anything else is an accident
COMMANDS = (
    ("mcp", "list"),
    ("mcp", "list", "--json"),
    ("mcp", "get", "team"),
    ("mcp", "get", "own", "--origin"),
    ("mcp", "tools"),
    ("mcp", "tools", "lazy"),
    ("mcp", "test", "web"),
    ("mcp", "test", "script"),
    ("mcp", "status", "--start"),
    ("mcp", "call", "team__echo", "text=x"),
    ("mcp", "trust", "path"),
    ("mcp", "trust", "--list"),
    ("mcp", "export"),
    ("config", "check"),
    ("session", "list"),
    ("doctor",),
    ("-p", "hello", "--model", "offline"),
)


@pytest.fixture
def clone(house: House) -> Iterator[Repository]:
    house.write(server("own", "echo"))
    house.command = (sys.executable, "-P", "-m", "kage")  # as installed: nothing of the folder
    with repository(house.workspace, house.home / "mark") as found:
        yield found


@pytest.mark.parametrize("broken", [True, False], ids=["as it is", "without its mistakes"])
def test_no_command_starts_anything_of_a_cloned_repository(
    house: House, clone: Repository, broken: bool
) -> None:
    if not broken:  # faults of a file stop many verbs: then the tricks that are no faults
        (house.workspace / ".kage" / "config.toml").unlink()
        text = (house.workspace / ".mcp.json").read_text()
        odd = ('"bash"', '"a__b"', '"x\\u202ey"', '"\\u001b]0;t\\u0007"', '"keys"')
        for number, name in enumerate(odd):
            assert name in text
            text = text.replace(name, f'"n{number}"')
        text = text.replace("${OPENAI_API_KEY:-none}", "none")
        (house.workspace / ".mcp.json").write_text(text)
    for words in COMMANDS if not broken else COMMANDS[::4]:
        ended = house.kage(*words)
        assert ended.code in (0, 1, 2, 3), (words, ended.err)
        assert clone.worked() == [], words
        assert "\x1b" not in ended.out + ended.err, words
    if not broken:
        assert house.kage("-p", "hello", "--model", "offline", "--require-mcp").code == 3
        assert clone.worked() == []


def test_no_verb_and_no_switch_starts_anything_of_a_cloned_repository(
    house: House, clone: Repository
) -> None:
    """Each has a home of its own, so that what one writes does not save the next."""
    jobs = []
    told = [
        *lines("team"),
        *lines("own"),
        ("-p", "hi", "--model", "offline"),
        ("mcp", "import", ".mcp.json"),
    ]
    for number, words in enumerate(told):
        config = house.home / "homes" / str(number)
        (config / "kage").mkdir(parents=True)
        (config / "kage" / "config.toml").write_text(server("own", "echo"))
        environ = {f"XDG_{kind}_HOME": str(config) for kind in ("CONFIG", "DATA", "CACHE")}
        jobs.append(Job(words=words, cwd=house.workspace, environ=environ))
    for words, ended in zip(told, kages(jobs, house.environ, house.workspace), strict=True):
        assert ended["code"] in range(8), (words, ended)
        assert "\x1b" not in ended["out"] + ended["err"], words
    assert clone.worked() == []


def test_enter_through_every_question_of_the_screen_starts_nothing(
    house: House, clone: Repository
) -> None:
    with house.terminal(columns=120) as terminal:
        terminal.until("May this server start?")
        without = 0  # looks in a row that showed no question
        for _ in range(120):
            terminal.read(0.6)
            without = 0 if "this server start" in terminal.text else without + 1
            if without == 5:
                break
            terminal.send("\r")
        assert without == 5, terminal.text
        assert clone.worked() == []
        terminal.send("\x11")
        terminal.ended()
    assert clone.worked() == []
