"""`schedlab view`: one page, for this computer only, and nothing else."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from browser import OVERFLOW, Browser
from schedlab.render.view import view_page
from schedlab.serving import PageServer
from test_timeline import EVIL, busy, ready, settled, span

PAGE = view_page(f"a trace {EVIL}", {"a": busy(6_000), "b": busy(5_000, name=EVIL)}, first_difference=2_000_000)


@pytest.fixture
def server() -> Iterator[PageServer]:
    with PageServer(PAGE) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.02,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def ask(server: PageServer, path: str, host: str | None = None, method: str = "GET") -> tuple[int, str, str]:
    """Status, policy and body."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.request(method, path, headers={"Host": host or server.names[0]})
    answer = connection.getresponse()
    found = answer.status, answer.getheader("Content-Security-Policy") or "", answer.read().decode()
    connection.close()
    return found


def test_the_address_answers_and_forbids_to_load_anything(server: PageServer) -> None:
    status, policy, body = ask(server, server.path)
    assert (status, body) == (200, PAGE)
    assert policy.startswith("default-src 'none'")
    assert server.server_address[0] == "127.0.0.1"
    assert len(server.path) > 30


REFUSED = [
    "/",
    "/x/",
    "{path}..",
    "{path}../../etc/passwd",
    "{path}x",
    "//etc/passwd",
    "{path}?x",
    "/%2e%2e/etc/passwd",
]


@pytest.mark.parametrize("path", REFUSED)
def test_every_other_path_is_refused(path: str, server: PageServer) -> None:
    status, _, body = ask(server, path.format(path=server.path))
    assert status == 404
    assert "root:" not in body
    assert server.path not in body


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "localhost:1", "evil.example:{port}"])
def test_a_foreign_name_of_this_computer_is_refused(host: str, server: PageServer) -> None:
    assert ask(server, server.path, host.format(port=server.server_port))[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_nothing_but_get_is_answered(method: str, server: PageServer) -> None:
    assert ask(server, server.path, method=method)[0] in (404, 501)


def test_two_servers_have_two_addresses() -> None:
    with PageServer("a") as first, PageServer("b") as second:
        assert first.path != second.path


@pytest.mark.parametrize("width", [400, 1280])
def test_a_browser_shows_it_under_this_policy(width: int, server: PageServer, browser: Browser) -> None:
    browser.visit(server.url, width)
    found = ready(browser)
    labels = [b.text for b in found.find_elements("css selector", "button")][:3]
    assert labels == ["Go to: first difference", "Go to: slowest wakeup in a", "Go to: slowest wakeup in b"]
    old = span(found)
    found.find_elements("css selector", "button")[1].click()
    settled(browser)
    assert span(found) != old
    assert browser.run(OVERFLOW) == 0
    assert browser.run("return document.querySelectorAll('img').length") == 0
    assert browser.complaints() == []
    assert browser.audit() == []


def test_recorded_traces_with_clocks_of_their_own_begin_together() -> None:
    late = busy(300)
    for lane in late.lanes:
        lane.slices = [s._replace(start=s.start + 10**12, end=s.end + 10**12) for s in lane.slices]
        lane.depth = [(at + 10**12, n) for at, n in lane.depth]
        lane.gaps = []
    late.wakes, late.slowest, late.start, late.end = [], {}, late.start + 10**12, late.end + 10**12
    from schedlab.render.view import _origins

    assert _origins({"a": busy(300), "b": late}) == {"a": busy(300).start, "b": late.start}
    assert _origins({"a": busy(300), "b": busy(200)}) == {"a": 0, "b": 0}


BAD = [
    (["view", "missing.ftrace"], "missing.ftrace"),
    (["view", "t.ftrace", "--seed", "1"], "--seed selects a run of a stored result"),
    (["view", ".", "t.ftrace"], "a stored result is viewed alone"),
    (["view", "t.ftrace", "--port", "70000"], "whole number from 0 to 65535"),
    (["view"], "TRACE|RESULT"),
]


@pytest.mark.parametrize(("words", "said"), BAD)
def test_what_cannot_be_viewed_is_said(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from schedlab.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.ftrace").write_text("# tracer: nop\n")
    assert main(words) == 2
    assert said in capsys.readouterr().err


def test_a_seed_that_did_not_run_is_said_with_those_that_did(
    scenario: Callable[..., str], schedlab: Callable[..., tuple[int, str, str]]
) -> None:
    scenario(behaviour={"eevdf": {"fail_on": [2]}})
    assert schedlab("compare", "toy.toml", "--out", "r", "--seeds", "3")[0] == 3
    code, _, err = schedlab("view", "r", "--seed", "2")
    assert code == 2
    assert "seed 2 did not run with cfs and eevdf" in err
    assert "hint: these seeds did: 1, 3" in err


def test_a_trace_without_switches_is_no_timeline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from schedlab.cli import main

    (tmp_path / "t.ftrace").write_text("# tracer: nop\n")
    assert main(["view", str(tmp_path / "t.ftrace")]) == 2
    assert "no task switch" in capsys.readouterr().err
