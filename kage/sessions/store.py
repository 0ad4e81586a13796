"""All conversations on disk: make one, open one, list them; one kage writes one session."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from kage.core.errors import SessionError
from kage.core.files import reading
from kage.core.ids import new_id
from kage.core.messages import Message, UserMessage
from kage.core.sanitise import clip, visible
from kage.core.sessions import SessionInfo
from kage.sessions.format import BadLine, decode, seconds
from kage.sessions.reader import SessionFile, read
from kage.sessions.writer import Session

FILE = "session.jsonl"
LOCK = "lock"
HEAD = 256 << 10  # bytes read for the title
_NOTE = b'\n{"type":"model",'  # how a line begins that is no message
TITLE = 80  # characters


def _keep(text: str) -> str:
    return text


class SessionStore:
    """The folder ``<data>/sessions``.

    Args:
        root: The folder; made when the first session is.
        redact: Takes secrets out of every text before it is written.
        on_trouble: Told in words when a session cannot be written; the session goes on.
    """

    def __init__(
        self,
        root: Path,
        *,
        redact: Callable[[str], str] = _keep,
        on_trouble: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.root = root
        self._redact = redact
        self.on_trouble = on_trouble

    def create(self, workspace: Path) -> Session:
        """Start a conversation; its folder is made with the first message."""
        session_id = new_id("s")
        return Session(
            self.root / session_id,
            session_id=session_id,
            workspace=workspace,
            redact=self._redact,
            on_trouble=self.on_trouble,
        )

    def open(self, session_id: str) -> tuple[Session, SessionFile]:
        """Go on with a conversation; it stays locked until the session is closed.

        Raises:
            SessionError: there is none with that id or unique beginning, or it cannot be read.
            SessionLocked: another kage holds it.
        """
        folder = self.find(session_id)
        session = Session(
            folder,
            session_id=folder.name,
            workspace=Path(),
            redact=self._redact,
            on_trouble=self.on_trouble,
        )
        session.lock()
        try:
            held = read(folder / FILE)
        except OSError as error:
            session.close()
            raise _unreadable(folder.name, error) from error
        except BaseException:  # goes on; only the lock must not stay
            session.close()
            raise
        session.go_on(held)
        return session, held

    def load(self, session_id: str) -> SessionFile:
        """Read a conversation without going on with it.

        Raises:
            SessionError: there is none with that id or unique beginning, or it cannot be read.
        """
        folder = self.find(session_id)
        try:
            return read(folder / FILE)
        except OSError as error:
            raise _unreadable(folder.name, error) from error

    def find(self, session_id: str) -> Path:
        """Give the folder of the session with this id or unique beginning of one.

        Raises:
            SessionError: none or more than one fits.
        """
        fitting = [
            folder
            for folder in self._folders()
            if session_id and folder.name.startswith(session_id)
        ]
        exact = [folder for folder in fitting if folder.name == session_id]
        if len(exact or fitting) == 1:
            return (exact or fitting)[0]
        if not fitting:
            raise SessionError(
                f"There is no session {visible(session_id, single_line=True)!r}",
                fix="`kage session list` shows them all.",
            )
        raise SessionError(
            f"{len(fitting)} sessions begin with {session_id!r}", fix="Give more of the id."
        )

    def list(self, workspace: Path | None = None, *, limit: int = 200) -> tuple[SessionInfo, ...]:
        """Give the conversations, the one changed last first; of one workspace if it is given."""
        stamped = sorted(
            ((_changed(folder / FILE), folder) for folder in self._folders()), reverse=True
        )
        found: list[SessionInfo] = []
        for changed, folder in stamped:
            info = _info(folder, changed)
            if info is not None and (workspace is None or info.workspace == workspace):
                found.append(info)
                if len(found) >= limit:
                    break
        return tuple(found)

    def left_behind(self, name: str) -> tuple[Path, ...]:
        """Give the folders called ``name`` of sessions no kage has open."""
        return tuple(
            folder / name
            for folder in self._folders()
            if (folder / name).is_dir() and _holder(folder / LOCK) is None
        )

    def _folders(self) -> Iterator[Path]:
        try:
            with os.scandir(self.root) as entries:
                names = [entry.name for entry in entries if entry.is_dir()]
        except OSError:
            return
        for name in names:
            if (self.root / name / FILE).is_file():
                yield self.root / name


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _info(folder: Path, changed: float) -> SessionInfo | None:
    import json

    try:
        with reading(folder / FILE) as file:
            head = file.read(HEAD)
            count = head.count(b"\n") - head.count(_NOTE)
            tail = head[1 - len(_NOTE) :]
            while chunk := file.read(1 << 20):
                count += chunk.count(b"\n") - (tail + chunk).count(_NOTE)
                tail = chunk[1 - len(_NOTE) :]
            size = file.tell()
    except OSError:
        return None
    title, model, workspace, started = "", "", "", changed
    for line in head.split(b"\n"):
        try:
            data = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(data, dict):
            continue
        if data.get("type") == "session":
            workspace = str(data.get("workspace", ""))
            started = seconds(data.get("created")) or changed
        model = str(data.get("model") or model)
        if data.get("type") == "user" and not title:
            title = _title(data)
        if title and model:
            break
    return SessionInfo(
        id=folder.name,
        title=title,
        workspace=Path(workspace),
        model=model,
        started=started,
        changed=changed,
        messages=max(0, count - 1),
        size=size,
        locked_by=_holder(folder / LOCK),
    )


def _title(data: dict[str, object]) -> str:
    try:
        message: Message = decode(data)
    except BadLine:
        return ""
    return title_of(message) if isinstance(message, UserMessage) else ""


def title_of(message: UserMessage) -> str:
    """Give the title a conversation gets from its first prompt."""
    from kage.core.attachments import typed

    return clip(visible(typed(message.content)[:1000], single_line=True), TITLE)


def _holder(path: Path) -> int | None:
    """Say which process holds the lock, None when nobody does."""
    try:
        with reading(path) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                text = file.read(32).strip()
                return int(text) if text.isdigit() else 0
    except OSError:
        return None
    return None


def _unreadable(session_id: str, error: OSError) -> SessionError:
    return SessionError(f"Session {session_id} cannot be read", why=str(error.strerror or error))
