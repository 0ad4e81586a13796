"""Gives up rights by Landlock and a system call filter, then becomes the program.

Run as a script with ``python -I -S``: it imports nothing of kage. Its arguments: ``net`` or
``none`` (the network), then places, each with a letter in front (``r`` to read, ``w`` to write,
``d`` a device), then ``--`` and the program. When anything fails, the program is not started.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 1 << 1, 1 << 2, 1 << 3
_MAKE_NODES = 1 << 6 | 1 << 11  # devices: handled, and never allowed
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_FILE = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL
_READ = EXECUTE | READ_FILE | READ_DIR
_SCOPES = 0b11  # abstract sockets, signals

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 38, 22, 2
_SET_SECUREBITS, _NOROOT, _DROP_CAPABILITY = 28, 0b11, 24

_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_AF_UNIX, _EPERM, _ENOSYS = 1, 1, 38
_IO_URING_SETUP = 425
_MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}  # arch, socket()

_libc = ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: object) -> int:
    result = int(_libc.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def restrict_files(places: list[tuple[str, str]]) -> None:
    """Allow what ``places`` name and forbid everything else to this process for ever."""
    abi = _call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1))
    if abi < 3:
        raise OSError(0, f"version {abi} of Landlock is too old")
    handled = (1 << (16 if abi >= 5 else 15)) - 1
    parts = [handled, 0, _SCOPES] if abi >= 6 else [handled]
    attributes = struct.pack(f"={len(parts)}Q", *parts)
    ruleset = _call(_CREATE, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    for kind, place in [("l", "/"), *places]:
        _allow(ruleset, kind, place, handled)
    _call(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))
    os.close(ruleset)


def _allow(ruleset: int, kind: str, place: str, handled: int) -> None:
    try:
        descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # gone since it was listed: nothing to allow
        return
    rights = {
        "l": READ_DIR | EXECUTE,  # names may be listed everywhere, contents not
        "r": _READ,
        "w": handled & ~_MAKE_NODES & ~_IOCTL,
        "d": READ_FILE | WRITE_FILE | _TRUNCATE | _IOCTL,
    }[kind]
    if not os.path.isdir(f"/proc/self/fd/{descriptor}"):
        rights &= _FILE
    rule = struct.pack("=Qi", rights & handled, descriptor)
    try:
        _call(_ADD, ctypes.c_int(ruleset), ctypes.c_int(1), rule, ctypes.c_uint32(0))
    finally:
        os.close(descriptor)


def drop_capabilities() -> None:
    """Leave the superuser no more than others have; others have nothing to drop."""
    _libc.prctl(_SET_SECUREBITS, _NOROOT, 0, 0, 0)
    number = 0
    while not _libc.prctl(_DROP_CAPABILITY, number, 0, 0, 0):
        number += 1


def restrict_sockets(*, network: bool) -> None:
    """Forbid to make sockets: those of this machine, and without ``network`` all of them."""
    arch, socket = _MACHINES[platform.machine()]
    deny = [(_RETURN, 0, 0, _ERRNO | _EPERM)]
    by_kind = [(_LOAD, 0, 0, 16), (_EQUAL, 0, 1, _AF_UNIX), *deny] if network else deny
    program = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, arch),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 0, 1, 0x40000000),  # the other numbering of x86
        *deny,
        (_EQUAL, 0, 1, _IO_URING_SETUP),  # makes sockets, too; programs do without
        (_RETURN, 0, 0, _ERRNO | _ENOSYS),
        (_EQUAL, 0, len(by_kind), socket),
        *by_kind,
        (_RETURN, 0, 0, _ALLOW),
    ]
    code = b"".join(struct.pack("=HBBI", *step) for step in program)
    held = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HP", len(program), ctypes.addressof(held))
    if _libc.prctl(_SET_SECCOMP, _FILTER, header, 0, 0):
        raise OSError(ctypes.get_errno(), "the system call filter was refused")


def _environment() -> dict[bytes, bytes]:
    """Give the environment as it came: Python itself adds to it in the C locale."""
    with open("/proc/self/environ", "rb") as file:
        entries = file.read().split(b"\0")
    return dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)


def main(words: list[str]) -> None:
    """Restrict this process and become the program."""
    end = words.index("--")
    places = [(word[0], word[1:]) for word in words[1:end]]
    program = words[end + 1 :]
    env = _environment()
    if _libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "privileges cannot be given up")
    drop_capabilities()
    restrict_files(places)
    restrict_sockets(network=words[0] == "net")
    os.execve(program[0], program, env)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (OSError, ValueError, KeyError) as error:
        print(f"kage: the sandbox could not be made: {error}", file=sys.stderr)
        sys.exit(125)
