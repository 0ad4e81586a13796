"""Undoing: exact bytes, modes, links and folders; refused when something changed since."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from kage.agent.effects import Effects
from kage.agent.undo import UndoDesk
from kage.config.schema import UndoSpec
from kage.core.errors import KageError, ToolError
from kage.core.gate import CallRequest
from kage.core.redact import Redactor
from kage.core.tools import Claims, Invocation, Risk, ServerTool, ToolSpec
from kage.core.undo import Change, Effect
from kage.permissions.claims import BrokenClaims
from kage.sessions import undo as kept
from kage.sessions.store import SessionStore
from kage.tools import restore
from kage.tools.edit import Edit
from kage.tools.effects import watch
from kage.tools.write import Write

BASH = ToolSpec(name="bash", description="", schema={"type": "object"}, risk=Risk.EXEC)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for every look, however slow the machine is."""
    monkeypatch.setattr(watch, "PATIENCE", 60.0)
    monkeypatch.setattr(watch, "AFTER", 60.0)


class Place:
    """A workspace, a session, and calls in it."""

    def __init__(self, base: Path, spec: UndoSpec | None = None) -> None:
        self.root = base / "w"
        self.root.mkdir()
        session = SessionStore(base / "sessions").create(self.root)
        self.claims = BrokenClaims(base / "claims.json", on_trouble=pytest.fail)
        self.redact = Redactor()
        self.effects = Effects(
            session,
            self.root,
            environ=os.environ,
            spec=spec or UndoSpec(),
            redact=self.redact,
            claims=self.claims,
        )
        self.desk: UndoDesk = self.effects.desk
        self.calls = 0

    async def tool(self, tool: Write | Edit, **arguments: str) -> Effect | None:
        request = self.request(tool.spec, **arguments)
        keeper = await self.effects.begin(request)
        call = Invocation(
            call_id=request.call_id, arguments=arguments, workspace=self.root,
            roots=(self.root,), scratch=self.root.parent / "scratch", keeper=keeper,
        )  # fmt: skip
        await tool.run(call)
        return (await self.effects.end(request))[0]

    def request(self, spec: ToolSpec, **arguments: str) -> CallRequest:
        self.calls += 1
        return CallRequest(
            call_id=f"c{self.calls}", tool=spec, arguments=arguments, workspace=self.root
        )

    def state(self) -> dict[str, tuple[object, ...]]:
        """Give everything in the workspace: kind, mode, bytes."""
        found: dict[str, tuple[object, ...]] = {}
        for path in sorted(self.root.rglob("*")):
            name = str(path.relative_to(self.root))
            if path.is_symlink():
                found[name] = ("link", os.readlink(path))
            elif path.is_file():
                found[name] = ("file", path.stat().st_mode & 0o777, path.read_bytes())
            else:
                found[name] = ("folder",)
        return found


def test_writes_and_edits_are_undone_byte_for_byte_and_redone(tmp_path: Path) -> None:
    async def go() -> None:
        place = Place(tmp_path, UndoSpec(snapshots=False))
        (place.root / "crlf.txt").write_bytes(b"one\r\ntwo\r\n")
        (place.root / "crlf.txt").chmod(0o750)
        (place.root / "latin").write_bytes(b"caf\xe9 \xff\n")
        (place.root / "real").write_text("real\n")
        (place.root / "link").symlink_to("real")
        start = place.state()
        edit, write = Edit(), Write()
        await place.tool(edit, path="crlf.txt", old_string="two", new_string="2")
        await place.tool(write, path="latin", content="other\n")
        await place.tool(write, path="link", content="through the link\n")
        effect = await place.tool(write, path="deep/down/new.txt", content="new\n")
        assert effect is not None
        assert [file.verb for file in effect.files] == ["added"]
        assert await place.tool(write, path="real", content="through the link\n") is None
        end = place.state()
        for _ in range(4):
            place.desk.carry_out(place.desk.plan().record.id)
        assert place.state() == start
        with pytest.raises(KageError, match="No call"):
            place.desk.plan()
        for item in [item for item in place.desk.items() if not item.why]:
            done = place.desk.carry_out(item.record.id)
            assert done.record.undoes
        assert place.state() == end
        titles = {item.record.title for item in place.desk.items()}
        assert {"edit crlf.txt", "undo of edit crlf.txt"} <= titles

    asyncio.run(go())


def test_what_was_done_again_is_the_newest_and_belongs_to_its_first_call(tmp_path: Path) -> None:
    async def go() -> None:
        place = Place(tmp_path, UndoSpec(snapshots=False))
        (place.root / "page").write_text("before\n")
        await place.tool(Write(), path="page", content="after\n")
        call_id = place.desk.plan().record.call_id
        for round_ in range(2):
            undone = place.desk.carry_out(place.desk.plan().record.id)
            assert (undone.call_id, undone.back) == (call_id, False)
            again = place.desk.carry_out(undone.again)
            assert (again.call_id, again.back) == (call_id, True), round_
            assert (place.root / "page").read_text() == "after\n"
        assert place.desk.plan().record.title == "write page"

    asyncio.run(go())


def test_what_was_partly_undone_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> None:
        place = Place(tmp_path)
        for name in ("a", "b"):
            (place.root / name).write_text("before\n")
        request = place.request(BASH, command="do it")
        await place.effects.begin(request)
        for name in ("a", "b"):
            (place.root / name).write_text("after\n")
        await place.effects.end(request)
        real = restore.put_back

        def full(change: Change, data: bytes | None) -> None:
            if change.path.endswith("b"):
                raise ToolError("b cannot be restored", why="the disk is full")
            real(change, data)

        with monkeypatch.context() as patch:
            patch.setattr(restore, "put_back", full)
            with pytest.raises(KageError, match="only partly undone"):
                place.desk.carry_out("")
        assert (place.root / "a").read_text() == "before\n"
        place.desk.carry_out("")
        assert (place.root / "b").read_text() == "before\n"
        assert (place.root / "a").read_text() == "before\n"

    asyncio.run(go())


def test_the_difference_shows_where_a_link_will_point_again(tmp_path: Path) -> None:
    async def go() -> None:
        place = Place(tmp_path)
        (place.root / "link").symlink_to("here")
        request = place.request(BASH, command="rm link")
        await place.effects.begin(request)
        (place.root / "link").unlink()
        await place.effects.end(request)
        assert "+here" in place.desk.plan().diff

    asyncio.run(go())


def test_a_call_of_anything_is_undone_with_modes_links_and_deletions(tmp_path: Path) -> None:
    async def go() -> None:
        place = Place(tmp_path)
        root = place.root
        for name in ("changed", "deleted", "moded", "folded", "sub/kept"):
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_bytes(f"{name}\r\n\xff".encode("latin-1"))
        (root / "moded").chmod(0o600)
        (root / "deleted").chmod(0o755)
        (root / "link").symlink_to("changed")
        (root / "becomes_link").write_text("file\n")
        start = place.state()
        request = place.request(BASH, command="do it")
        await place.effects.begin(request)
        (root / "changed").write_text("other\n")
        (root / "deleted").unlink()
        (root / "moded").chmod(0o640)
        (root / "link").unlink()
        (root / "becomes_link").unlink()
        (root / "becomes_link").symlink_to("/etc/passwd")
        (root / "folded").unlink()
        (root / "folded").mkdir()
        (root / "folded" / "inside").write_text("x")
        (root / "sub" / "kept").unlink()
        (root / "sub").rmdir()
        (root / "sub").symlink_to(tmp_path)
        (root / "new").write_text("new")
        effect, diff = await place.effects.end(request)
        assert effect is not None
        assert effect.total == 10
        assert all(file.undoable for file in effect.files)
        assert "+other" in diff
        plan = place.desk.plan(effect.record)
        assert plan.possible
        assert "-other" in plan.diff
        done = place.desk.carry_out(effect.record)
        assert place.state() == start
        assert (len(done.restored), done.left) == (10, ())
        assert not (tmp_path / "kept").exists()
        place.desk.carry_out(done.again)
        assert os.readlink(root / "becomes_link") == "/etc/passwd"
        await place.effects.close()

    asyncio.run(go())


def test_what_was_too_large_is_told_and_stays_while_the_rest_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kage.tools.effects.repository.MAX_COPY", 100)

    async def go() -> None:
        place = Place(tmp_path)
        (place.root / "large").write_bytes(b"x" * 200)
        (place.root / "small").write_text("small\n")
        request = place.request(BASH, command="x")
        await place.effects.begin(request)
        (place.root / "large").write_bytes(b"y" * 300)
        (place.root / "small").write_text("other\n")
        effect, _ = await place.effects.end(request)
        assert effect is not None
        assert effect.note == "cannot all be undone: the former bytes of 1 of them were not kept"
        assert [file.undoable for file in effect.files] == [False, True]
        done = place.desk.carry_out(effect.record)
        assert [step.change.shown for step in done.left] == ["large"]
        assert (place.root / "small").read_text() == "small\n"
        assert (place.root / "large").read_bytes() == b"y" * 300
        await place.effects.close()

    asyncio.run(go())


def test_nothing_is_undone_when_one_file_changed_since(tmp_path: Path) -> None:
    async def go() -> None:
        place = Place(tmp_path)
        (place.root / "a").write_text("a\n")
        (place.root / "b").write_text("b\n")
        request = place.request(BASH, command="x")
        await place.effects.begin(request)
        (place.root / "a").write_text("A\n")
        (place.root / "b").write_text("B\n")
        effect, _ = await place.effects.end(request)
        assert effect is not None
        for later in ("by the person\n", None):
            if later is None:
                (place.root / "b").unlink()
                (place.root / "b").symlink_to("a")
            else:
                (place.root / "b").write_text(later)
            before = place.state()
            plan = place.desk.plan(effect.record)
            assert [step.change.shown for step in plan.conflicts] == ["b"]
            with pytest.raises(KageError, match="Nothing was undone: b changed since"):
                place.desk.carry_out(effect.record)
            assert place.state() == before
        (place.root / "b").unlink()
        (place.root / "b").write_text("B\n")
        place.desk.carry_out(effect.record)
        assert (place.root / "b").read_text() == "b\n"
        await place.effects.close()

    asyncio.run(go())


def test_a_folder_that_became_a_link_leads_nowhere(tmp_path: Path) -> None:
    async def go() -> None:
        place = Place(tmp_path, UndoSpec(snapshots=False))
        outside = tmp_path / "outside"
        outside.mkdir()
        (place.root / "d").mkdir()
        (place.root / "d" / "f").write_text("old\n")
        effect = await place.tool(Write(), path="d/f", content="new\n")
        assert effect is not None
        (place.root / "d").rename(outside / "d")
        (place.root / "d").symlink_to(outside / "d")
        with pytest.raises(KageError):
            place.desk.carry_out(effect.record)
        assert (outside / "d" / "f").read_text() == "new\n"

    asyncio.run(go())


def test_what_changes_between_the_look_and_the_step_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> None:
        place = Place(tmp_path, UndoSpec(snapshots=False))
        (place.root / "f").write_text("old\n")
        effect = await place.tool(Write(), path="f", content="new\n")
        assert effect is not None
        real = restore.put_back

        def late(*words: object) -> None:
            (place.root / "f").write_text("just now\n")
            real(*words)  # type: ignore[arg-type]

        monkeypatch.setattr(restore, "put_back", late)
        with pytest.raises(KageError, match="changed since"):
            place.desk.carry_out(effect.record)
        assert place.state()["f"][2] == b"just now\n"
        assert list(place.state()) == ["f"]

    asyncio.run(go())


def test_a_write_goes_on_when_its_former_bytes_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go() -> None:
        place = Place(tmp_path, UndoSpec(snapshots=False))
        (place.root / "f").write_text("old\n")

        def full(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(kept, "replace", full)
        effect = await place.tool(Write(), path="f", content="new\n")
        assert effect is not None
        assert (effect.record, effect.note) == (
            "",
            "cannot all be undone: No space left on device",
        )
        assert (place.root / "f").read_text() == "new\n"

    asyncio.run(go())


def test_a_tool_that_claims_to_read_only_and_changes_files_is_marked_for_good(
    tmp_path: Path,
) -> None:
    async def go() -> None:
        place = Place(tmp_path)
        place.redact.add("TOKEN", "hunter2-hunter2")
        liar = ToolSpec(
            name="s__look", description="", schema={"type": "object"}, risk=Risk.EXEC,
            server=ServerTool(
                server="s", origin="user", original="look", entry_hash="h", pin="p1",
                connection="1", claims=Claims(read_only=True),
            ),
        )  # fmt: skip
        one, two = place.request(liar), place.request(BASH, command="x")
        await place.effects.begin(one)
        await place.effects.begin(two)
        (place.root / "f").write_text("x")
        effect, _ = await place.effects.end(one)
        assert effect is not None
        assert not effect.claim_broken  # it may have been the other one
        await place.effects.end(two)
        assert place.claims.about(liar) == ""
        await place.effects.begin(one)
        (place.root / "g hunter2-hunter2").write_text("x")
        effect, _ = await place.effects.end(one)
        assert effect is not None
        assert effect.claim_broken
        again = BrokenClaims(tmp_path / "claims.json", on_trouble=pytest.fail)
        assert again.about(liar).startswith("claims read-only, changed files: g [redacted:TOKEN]")
        other = liar.server and ServerTool(
            server="s", origin="user", original="look", entry_hash="h", pin="p2", connection="1"
        )
        fresh = ToolSpec(
            name="s__look", description="", schema={}, risk=Risk.EXEC, server=other or None
        )
        assert again.about(fresh) == again.about(BASH) == ""
        await place.effects.close()

    asyncio.run(go())


def test_undoing_never_gives_away_the_room_of_what_it_restores(tmp_path: Path) -> None:
    async def go() -> None:
        place = Place(tmp_path, UndoSpec(snapshots=False))
        (place.root / "f").write_text("old old old\n")
        effect = await place.tool(Write(), path="f", content="new new new\n")
        assert effect is not None
        desk = UndoDesk(store=kept.UndoStore(place.desk.store.folder, most=12), redact=str)
        done = desk.carry_out(effect.record)
        assert place.state()["f"][2] == b"old old old\n"
        desk.carry_out(done.again)
        assert place.state()["f"][2] == b"new new new\n"

    asyncio.run(go())


def test_a_write_beside_a_call_counts_also_where_nothing_is_kept(tmp_path: Path) -> None:
    async def go() -> None:
        place = Place(tmp_path, UndoSpec(keep_mb=0))
        request = place.request(BASH, command="x")
        await place.effects.begin(request)
        assert await place.tool(Write(), path="f", content="by another call\n") is None
        effect, _ = await place.effects.end(request)
        assert effect is not None
        assert (effect.total, effect.beside) == (1, 1)
        alone = place.request(BASH, command="y")
        await place.effects.begin(alone)
        (place.root / "f").write_text("by this one\n")
        effect, _ = await place.effects.end(alone)
        assert effect is not None
        assert effect.beside == 0
        await place.effects.close()

    asyncio.run(go())
