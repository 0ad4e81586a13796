"""What a sandbox is made of: the words in front of a program, what is hidden, what is refused."""

from __future__ import annotations

import asyncio
import itertools
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kage.core.sandbox import LEVELS, Cage, SandboxRefused, is_looser
from kage.sandbox import bubblewrap, landlock, mechanism
from kage.sandbox.mechanism import Mechanism, look
from kage.sandbox.places import hidden_places, is_below, without
from kage.sandbox.sandboxes import Sandboxes

NAMES = st.sampled_from(["a", "b", "c"])
PLACES = st.lists(NAMES, min_size=1, max_size=3).map("/".join)


def test_a_deeper_place_is_mounted_over_a_higher_one(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".netrc").write_text("")
    words = bubblewrap.command(
        "/bin/bwrap",
        network=True,
        write=[str(home), str(home / ".ssh" / "work")],
        hide=[str(home / ".ssh"), str(home / ".netrc"), str(home / "absent")],
        show=[],
        temporary="/var/tmp/kage",
        argv=("/bin/sh", "-c", "x"),
    )
    assert words[-4:] == ("--", "/bin/sh", "-c", "x")
    assert "--unshare-net" not in words and "absent" not in " ".join(words)
    order = [words.index("/tmp"), words.index(str(home)), words.index(str(home / ".ssh"))]
    assert order == sorted(order) and order[-1] < words.index(str(home / ".ssh" / "work"))
    assert words[words.index(str(home / ".netrc")) - 1] == "/dev/null"
    open_ = bubblewrap.command(
        "b", network=True, write=["/tmp"], hide=[], show=[], temporary="/var/t", argv=("x",)
    )
    assert open_.index("/var/t") < open_.index("/tmp", open_.index("/var/t") + 2)  # seen, not lost
    closed = bubblewrap.command(
        "b", network=False, write=[], hide=[], show=[], temporary="/tmp", argv=("x",)
    )
    assert {"--unshare-net", "--die-with-parent", "--cap-drop"} < set(closed)


def test_what_the_command_names_in_the_temporary_folder_stays_readable() -> None:
    """A program installed below /tmp is found, and what is written there stays writable."""
    with tempfile.TemporaryDirectory(dir="/tmp") as place:
        named = (f"{place}/bin/python", f"{place}/s.py", "/tmp/absent/x", "/tmp/..", "/tmp/", "-x")
        words = bubblewrap.command(
            "b", network=True, write=[place], hide=[], show=[], temporary="/var/t", argv=named
        )
    mounts = [words[at : at + 3] for at in range(len(words)) if words[at].endswith("bind")]
    of_place = [mount[0] for mount in mounts if mount[2] == place]
    assert of_place == ["--ro-bind", "--bind"]
    assert [mount[2] for mount in mounts if mount[2].startswith("/tmp")] == ["/tmp", place, place]


def test_landlock_gets_each_place_with_its_right_and_nothing_that_is_hidden(tmp_path: Path) -> None:
    for name in ("work", "keys"):
        (tmp_path / name).mkdir()
    words = landlock.command(
        network=False,
        write=[str(tmp_path / "work")],
        hide=[str(tmp_path / "keys")],
        show=[],
        argv=("/bin/true",),
    )
    assert words[words.index("none") - 1].endswith("landlock_exec.py")
    assert {f"w{tmp_path / 'work'}", f"r{tmp_path / 'work'}", "d/dev/null"} < set(words)
    assert not {f"{right}{place}" for right in "rw" for place in (tmp_path, tmp_path / "keys")} & {
        *words
    }
    assert words[-2:] == ("--", "/bin/true")


@settings(max_examples=40, deadline=None)
@given(made=st.sets(PLACES, max_size=8), hidden=st.sets(PLACES, max_size=4))
def test_what_is_given_out_is_all_that_is_not_hidden(
    made: set[str], hidden: set[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    top = str(tmp_path_factory.mktemp("tree"))
    for place in made:
        os.makedirs(os.path.join(top, place), exist_ok=True)
    secret = [os.path.join(top, place) for place in hidden]
    given_out = list(without(top, secret))
    for one, other in itertools.combinations(given_out, 2):
        assert not is_below(one, other) and not is_below(other, one)
    for folder, _, _ in os.walk(top):
        covered = any(is_below(folder, place) for place in given_out)
        hidden_here = any(is_below(folder, place) for place in secret)
        around = any(is_below(place, folder) for place in secret)
        assert covered is (not hidden_here and not around)


def test_kages_own_folders_and_the_usual_keys_are_hidden(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "data").symlink_to("real")
    environ = {"HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path / "run")}
    found = hidden_places(environ, (tmp_path / "data",), (tmp_path / "letters",))
    for name in ("real", "letters", ".ssh", ".aws", ".netrc", "run"):
        assert tmp_path / name in found, name
    assert Path(os.path.realpath("/run/user")) in found


def test_no_sandbox_wanted_changes_nothing_and_looks_at_nothing(tmp_path: Path) -> None:
    cage = Cage(sandbox=Sandboxes(environ={}, mechanism=Mechanism(kind="")), level="none")
    env = {"A": "b"}
    wrapped = asyncio.run(cage.around(("x",), env, workspace=tmp_path, name="n"))
    assert (wrapped.argv, wrapped.env) == (("x",), env)


def test_a_sandbox_that_cannot_be_had_is_refused_with_what_is_missing(tmp_path: Path) -> None:
    none = Mechanism(kind="", why="bubblewrap is not installed", fix="Install bubblewrap")
    cage = Cage(sandbox=Sandboxes(environ={}, mechanism=none), level="no-network")
    with pytest.raises(SandboxRefused) as caught:
        asyncio.run(cage.around(("/bin/true",), {}, workspace=tmp_path, name="n"))
    text = str(caught.value)
    assert '"no-network"' in text and "not installed" in text and "Install" in text


def test_a_place_to_write_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    some = Mechanism(kind="landlock", version=3)
    cage = Cage(
        sandbox=Sandboxes(environ={}, mechanism=some),
        level="workspace",
        write=(tmp_path / "absent",),
    )
    with pytest.raises(SandboxRefused, match="absent, which does not exist"):
        asyncio.run(cage.around(("/bin/true",), {}, workspace=tmp_path, name="n"))


def test_without_bubblewrap_and_landlock_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "version", lambda: 2)
    monkeypatch.setattr(mechanism.sys, "platform", "linux")
    found = look(str(tmp_path))
    assert found.kind == "" and found.covers == ""
    assert "not installed" in found.why and "version 2 of Landlock, and 3 is needed" in found.why
    broken = tmp_path / "bin"
    broken.mkdir()
    (broken / "bwrap").write_text("#!/bin/sh\necho 'bwrap: No permissions' >&2; exit 1\n")
    (broken / "bwrap").chmod(0o755)
    assert "does not work here (No permissions)" in look(str(broken)).why
    monkeypatch.setattr(landlock, "version", lambda: 4)
    assert look(f"{broken}:/absent").kind == "landlock"
    monkeypatch.setattr(mechanism.sys, "platform", "darwin")
    assert "Linux only" in look(f"{broken}:/elsewhere").why


def test_levels_are_ordered_from_loose_to_strict() -> None:
    for one, other in itertools.product(LEVELS, LEVELS):
        assert is_looser(one, other) is (LEVELS.index(one) < LEVELS.index(other))
