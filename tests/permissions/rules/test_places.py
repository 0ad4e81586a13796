"""Paths, addresses and arguments: resolved before they are judged, closed where they are odd."""

from __future__ import annotations

import pytest

from kage.permissions.rules.places import normal_url
from kage.permissions.rules.reading import Reading
from tests.permissions.calls import call, mcp


def path_allowed(pattern, raw, workspace, tool="write"):
    return bool(Reading.of(call(tool, {"path": raw}, workspace=workspace)).covering([pattern]))


def path_touched(pattern, raw, workspace, tool="write"):
    return bool(Reading.of(call(tool, {"path": raw}, workspace=workspace)).touching([pattern]))


def test_a_relative_pattern_is_about_the_workspace(tmp_path):
    assert path_allowed("docs/*", "docs/a.md", tmp_path)
    assert path_allowed("docs/*", "./docs//b/c.md", tmp_path)
    assert path_allowed("docs/*", str(tmp_path / "docs" / "a.md"), tmp_path)
    assert path_allowed("./docs/*", "docs/a.md", tmp_path)
    assert path_allowed("*.md", "docs/a.md", tmp_path)
    assert not path_allowed("docs/*", "src/a.md", tmp_path)
    assert not path_allowed("docs/*", "docsx/a.md", tmp_path)
    assert not path_allowed("docs/*", "/docs/a.md", tmp_path)


def test_a_value_that_climbs_matches_no_allow(tmp_path):
    assert not path_allowed("docs/*", "docs/../src/a.md", tmp_path)
    assert not path_allowed("docs/*", "docs/../docs/a.md", tmp_path)
    assert not path_allowed("/*", "/tmp/../etc/passwd", tmp_path)


def test_a_link_does_not_carry_a_relative_pattern_out_of_the_workspace(tmp_path):
    workspace, outside = tmp_path / "ws", tmp_path / "outside"
    workspace.mkdir()
    outside.mkdir()
    (workspace / "docs").symlink_to(outside)
    assert not path_allowed("docs/*", "docs/a.md", workspace)
    assert path_touched("docs/*", "docs/a.md", workspace)
    assert path_touched(f"{outside}/*", "docs/a.md", workspace)


def test_an_absolute_pattern_is_followed_through_its_links(tmp_path):
    real, named = tmp_path / "real", tmp_path / "named"
    real.mkdir()
    named.symlink_to(real)
    workspace = tmp_path / "ws"
    workspace.mkdir()
    assert path_allowed(f"{named}/*", f"{named}/x", workspace)
    assert path_allowed(f"{named}/*", f"{real}/x", workspace)
    assert not path_allowed(f"{named}/*", f"{tmp_path}/other/x", workspace)


def test_home_is_spelled_out_on_both_sides(tmp_path, own_home):
    assert path_allowed("~/notes/*", "~/notes/a", tmp_path)
    assert path_allowed("~/notes/*", str(own_home / "notes" / "a"), tmp_path)
    assert not path_allowed("~/notes/*", "~/other", tmp_path)


def test_a_pattern_for_a_folders_content_is_also_about_the_folder(tmp_path):
    assert path_allowed("docs/*", "docs", tmp_path, "ls")
    assert path_touched("docs/**", "docs", tmp_path, "ls")


@pytest.mark.parametrize(
    "raw", ["secrets/x", "./secrets/x", "a/../secrets/x", "secrets//x", "link/x", "secrets"]
)
def test_a_denied_place_is_found_however_it_is_spelled(tmp_path, raw):
    (tmp_path / "secrets").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "secrets")
    assert path_touched("secrets/*", raw, tmp_path)
    assert path_touched("secrets/*", str(tmp_path / raw), tmp_path)


def test_a_file_tool_without_a_path_is_about_its_default(tmp_path):
    reading = Reading.of(call("ls", {}, workspace=tmp_path))
    assert reading.path == tmp_path.resolve()
    assert reading.at_home


def test_a_tool_wide_rule_for_files_ends_at_the_workspace(tmp_path):
    assert path_allowed("", "a", tmp_path)
    assert not path_allowed("", "/etc/passwd", tmp_path)
    assert path_touched("", "/etc/passwd", tmp_path)


def test_a_subject_that_is_no_text_matches_no_allow_and_every_deny(tmp_path):
    for tool, argument in (("bash", "command"), ("write", "path"), ("web_fetch", "url")):
        reading = Reading.of(call(tool, {argument: ["x"]}, workspace=tmp_path))
        assert not reading.covering(["x*", "?x*"])
        assert reading.touching(["nothing like it"])


# -- addresses -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        ("HTTPS://Docs.Python.org", "https://docs.python.org/"),
        ("https://docs.python.org:443/3/#x", "https://docs.python.org/3/"),
        ("http://x:8080/a?b=c", "http://x:8080/a?b=c"),
        ("http://[::1]:80/", "http://[::1]/"),
        ("https://user@docs.python.org/", None),
        ("https://docs.python.org\\@evil/", None),
        ("https://docs.python.org /", None),
        ("https://x\n.evil/", None),
        ("ftp://x/", None),
        ("file:///etc/passwd", None),
        ("https:///x", None),
        ("https://[::1/", None),
        ("https://x:99999999/", None),
        ("nonsense", None),
    ],
)
def test_an_address_has_one_spelling_or_none(raw, normal):
    assert normal_url(raw) == normal


def url_allowed(pattern, raw, workspace):
    return bool(
        Reading.of(call("web_fetch", {"url": raw}, workspace=workspace)).covering([pattern])
    )


def url_touched(pattern, raw, workspace):
    return bool(
        Reading.of(call("web_fetch", {"url": raw}, workspace=workspace)).touching([pattern])
    )


def test_an_address_is_allowed_by_its_normal_spelling(tmp_path):
    assert url_allowed("https://docs.*", "HTTPS://docs.python.org/3", tmp_path)
    assert url_allowed("https://x.org", "https://x.org", tmp_path)
    assert url_allowed("https://x.org/*", "https://X.org:443/a", tmp_path)


@pytest.mark.parametrize(
    "raw",
    [
        "https://x.org@evil.com/",
        "https://x.org:x@evil.com/",
        "https://x.org.evil.com/",
        "https://evil.com/#https://x.org/",
        "https://x.org/a/../b",
        "https://x.org/a/%2e%2e/b",
        "https://x.org/a/%2E./b",
        "https://x.org\\.evil.com/",
        "http://x.org/",
        "https://x.org:444/",
        "https://ｘ.org/",
    ],
)
def test_an_odd_address_matches_no_allow(tmp_path, raw):
    assert not url_allowed("https://x.org/*", raw, tmp_path)


@pytest.mark.parametrize(
    "raw",
    [
        "https://evil.com/x",
        "HTTPS://EVIL.com/x",
        "https://evil.com:443/x",
        "https://user:pw@evil.com/x",
        "https://evil.com./x",
        " https://evil.com/x",
        "https://evil.com/a/../x",
        "https://evil.com/%78",
        "https://ｅvil.com/x",
    ],
)
def test_a_denied_address_is_found_however_it_is_spelled(tmp_path, raw):
    assert url_touched("https://evil.com/x*", raw, tmp_path)


# -- arguments -----------------------------------------------------------------------------------


def arguments_allowed(pattern, arguments, workspace):
    return bool(Reading.of(call(mcp(), arguments, workspace=workspace)).covering([pattern]))


def arguments_touched(pattern, arguments, workspace):
    return bool(Reading.of(call(mcp(), arguments, workspace=workspace)).touching([pattern]))


def test_arguments_match_by_name_and_glob(tmp_path):
    assert arguments_allowed("path=docs/*", {"path": "docs/a", "head": 3}, tmp_path)
    assert arguments_allowed("path=docs/*,head=3", {"path": "docs/a", "head": 3}, tmp_path)
    assert not arguments_allowed("path=docs/*,head=4", {"path": "docs/a", "head": 3}, tmp_path)
    assert not arguments_allowed("path=docs/*", {"file": "docs/a"}, tmp_path)
    assert not arguments_allowed("path=docs/*", {"path": "src/a"}, tmp_path)


def test_values_that_are_no_text_match_as_canonical_json(tmp_path):
    arguments = {"list": [1, {"b": None, "a": True}], "n": 1.5, "flag": False}
    assert arguments_allowed('list=[1\\,{"a":true\\,"b":null}]', arguments, tmp_path)
    assert arguments_allowed("n=1.5,flag=false", arguments, tmp_path)
    assert not arguments_allowed("flag=False", arguments, tmp_path)


@pytest.mark.parametrize("value", ["docs/../x", "docs/..", "..", "docs\\..\\x", "docs/%2e%2e/x"])
def test_an_argument_that_climbs_matches_no_allow(tmp_path, value):
    assert not arguments_allowed("path=*", {"path": value}, tmp_path)


@pytest.mark.parametrize("value", ["secrets/x", "./secrets/x", "docs/../secrets/x", "secrets//x"])
def test_a_denied_argument_is_found_however_its_path_is_spelled(tmp_path, value):
    assert arguments_touched("path=secrets/*", {"path": value}, tmp_path)
    assert arguments_touched("path=secrets/*", {"path": str(tmp_path / value)}, tmp_path)
