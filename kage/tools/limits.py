"""Defaults and bounds that a tool's schema tells and its machinery, loaded later, keeps."""

FIND_DEFAULT = 500
FIND_MOST = 10_000
FIND_KINDS = ("file", "folder", "any")
GREP_DEFAULT = 200
GREP_MOST = 5_000
GREP_CONTEXT = 20
GREP_MODES = ("content", "files", "count")
FETCH_DEFAULT = 40_000  # characters of one part
