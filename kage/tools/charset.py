"""Turn the bytes of a web page into text."""

from __future__ import annotations

import re

from kage.tools.encoding import sniff

# Python knows codecs that are no character sets, some of them slow on hostile input.
_KNOWN = re.compile(
    r"(utf-?(8|16|32)([_-]?(le|be))?|us-ascii|ascii|latin-?[1-9]|iso-?8859-\d+|windows-\d+|cp\d+"
    r"|koi8-[rut]|gb2312|gbk|gb18030|big5(-hkscs)?|euc-?(jp|kr)|shift[_-]?jis|iso-2022-(jp|kr)"
    r"|tis-620|macintosh)",
    re.IGNORECASE,
)
_META = re.compile(rb"<meta[^<>]{0,200}?charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)


def decode(body: bytes, content_type: str, *, html: bool) -> str:
    """Decode by byte order mark, header, the page's own word, else UTF-8, else Windows-1252."""
    found = sniff(body[:4])
    if found is not None and found.mark:
        return body[len(found.mark) :].decode(found.name, "replace")
    name = parameter(content_type, "charset")
    if not name and html and (said := _META.search(body[:4096])):
        name = said[1].decode("ascii", "replace")
    if name and _KNOWN.fullmatch(name):
        try:
            return body.decode(name, "replace")
        except LookupError:
            pass
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        cut = error.reason == "unexpected end of data"  # where reading stopped at its cap
        return body.decode("utf-8" if cut else "cp1252", "replace")


def parameter(content_type: str, name: str) -> str:
    """Give a parameter of a Content-Type header, "" when it has none of that name."""
    for piece in content_type.split(";")[1:]:
        key, _, value = piece.partition("=")
        if key.strip().lower() == name:
            return value.strip().strip("\"'")
    return ""
