"""Who sees the pages: whoever has the token, by this machine's names, and no other site."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

import pytest
from report_rows import evaluations

from .conftest import TOKEN, Served, write

PLACES = (
    "/",
    "/run/a.jsonl",
    "/run/a.jsonl/more?first=0",
    "/compare?run=a.jsonl&run=b.jsonl",
    "/x",
)


@pytest.fixture(autouse=True)
def _runs(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", evaluations()[:3])
    write(tmp_path / "b.jsonl", evaluations()[:3])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("given", ["", "wrong", TOKEN, "é", "0" * 64])
def test_without_the_token_nothing_is_shown(served: Served, place: str, given: str) -> None:
    """Neither a missing nor a wrong cookie opens any page, and no name of a file is told."""
    cookie = f"rag-eval-view-{served.port}={given}".encode().decode("latin-1") if given else ""
    status, _, content = served.ask(place, Cookie=cookie)

    assert status == 403
    assert "a.jsonl" not in content
    assert TOKEN not in content


def test_the_token_becomes_a_cookie_by_one_redirect(served: Served) -> None:
    """Scripts cannot read it, other sites do not send it, and no address holds it afterwards."""
    status, headers, _ = served.ask(f"/?token={quote(TOKEN)}", Cookie="")

    assert (status, headers["location"]) == (303, "/")
    name, *rules = headers["set-cookie"].split("; ")
    assert name == served.cookie
    assert {rule.lower() for rule in rules} == {"httponly", "path=/", "samesite=strict"}
    assert served.ask("/?token=wrong", Cookie="")[0] == 403
    assert served.ask(f"/run/a.jsonl?token={quote(TOKEN)}", Cookie="")[0] == 403


def test_pages_tell_the_browser_what_is_allowed(served: Served) -> None:
    """No page in a frame, no address sent on, no script but its own, no copy kept."""
    _, headers, content = served.ask("/")

    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    policy = content.split('http-equiv="Content-Security-Policy" content="')[1].split('"')[0]
    assert policy.startswith("default-src &#39;none&#39;; script-src &#39;sha256-")
    assert "connect-src &#39;self&#39;; form-action &#39;self&#39;" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_a_name_that_is_rebound_to_this_machine_is_refused(served: Served, host: str) -> None:
    """Even with the cookie, which a browser would not send."""
    status, _, content = served.ask("/", Host=host)

    assert status == 421
    assert "a.jsonl" not in content


@pytest.mark.parametrize("host", ["localhost:9000", "127.0.0.1", "[::1]:80", "LOCALHOST"])
def test_this_machine_has_several_names(served: Served, host: str) -> None:
    """Through a tunnel, the port is another."""
    assert served.ask("/", Host=host)[0] == 200


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "http://127.0.0.1:1"])
def test_no_other_site_changes_anything(served: Served, origin: str | None) -> None:
    """A request that is not a read says from which page it comes."""
    given = {} if origin is None else {"Origin": origin}
    status, _, _ = served.ask("/", method="POST", body="{}", **given)

    assert status == 403


@pytest.mark.parametrize(
    "place",
    ["..%2Fsecret.jsonl", "%2e%2e/secret.jsonl", "..%5csecret.jsonl", "link.jsonl", "inner",
     "inner%2Fdeep.jsonl", "%2Fetc%2Fpasswd", "a.jsonl%00", "loop.jsonl", "fifo.jsonl", ""],
)  # fmt: skip
def test_nothing_outside_of_the_folder_is_served(tmp_path: Path, place: str) -> None:
    """Names are looked up among the files of the folder; links, FIFOs and folders are left out."""
    from .conftest import serving

    runs = tmp_path / "runs"
    (runs / "inner").mkdir(parents=True)
    write(tmp_path / "secret.jsonl", evaluations()[:1])
    write(runs / "inner" / "deep.jsonl", evaluations()[:1])
    (runs / "link.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (runs / "loop.jsonl").symlink_to("loop.jsonl")
    os.mkfifo(runs / "fifo.jsonl")
    with serving(runs) as served:
        for end in ("", "/more?first=0"):
            status, _, content = served.ask(f"/run/{place}{end}")
            assert status == 404 or "The run has ended" in content
            assert "squeak" not in content
        assert "3 other files are not shown" in served.text()
    assert sorted(path.name for path in runs.iterdir()) == [
        "fifo.jsonl", "inner", "link.jsonl", "loop.jsonl",
    ]  # fmt: skip
