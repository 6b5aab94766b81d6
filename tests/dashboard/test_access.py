"""Who may look, and who may change something."""

from __future__ import annotations

import pytest

from penstock.dashboard.access import Access, Refusal

HERE = Access("secret", loopback=True)
OPEN = Access("secret", loopback=False)
LOCAL = {"Host": "localhost:4350"}
MARKED = {**LOCAL, "X-Penstock": "page"}


def status(refusal: Refusal | None) -> int:
    return 200 if refusal is None else refusal.status


@pytest.mark.parametrize("host", ["localhost:4350", "127.0.0.1:9999", "[::1]:4350", "localhost"])
def test_on_loopback_everybody_on_the_machine_may_look_whatever_the_port_of_a_tunnel(host: str) -> None:
    assert HERE.refusal("GET", {"Host": host}) is None


@pytest.mark.parametrize("host", ["evil.example:4350", "10.0.0.7", "", "localhost.evil.example"])
def test_a_name_of_somebody_else_that_leads_here_is_refused(host: str) -> None:
    assert status(HERE.refusal("GET", {"Host": host})) == 403
    assert status(HERE.refusal("GET", {"Host": host, "Authorization": "Bearer secret"})) == 403


@pytest.mark.parametrize(
    ("headers", "asked", "expected"),
    [
        ({}, "", 401),
        ({}, "wrong", 401),
        ({}, "secret", 200),
        ({"Authorization": "Bearer secret"}, "", 200),
        ({"Authorization": "Bearer wrong"}, "", 401),
        ({"Cookie": "a=b; penstock_token=secret"}, "", 200),
        ({"Cookie": "penstock_token="}, "", 401),
    ],
)
def test_elsewhere_looking_needs_the_token(headers: dict[str, str], asked: str, expected: int) -> None:
    assert status(OPEN.refusal("GET", {"Host": "gateway:4350", **headers}, asked)) == expected


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (LOCAL, 403),
        (MARKED, 200),
        ({**MARKED, "Origin": "http://localhost:4350"}, 200),
        ({**MARKED, "Origin": "http://localhost:9999"}, 403),
        ({**MARKED, "Origin": "https://evil.example"}, 403),
        ({**MARKED, "Sec-Fetch-Site": "cross-site"}, 403),
        ({**LOCAL, "Authorization": "Bearer secret"}, 200),
    ],
)
def test_what_changes_something_must_come_from_the_page_or_bring_the_token(
    headers: dict[str, str], expected: int
) -> None:
    assert status(HERE.refusal("POST", headers)) == expected


def test_a_cookie_alone_changes_nothing_as_the_browser_sends_it_for_every_site() -> None:
    cookie = {"Host": "gateway:4350", "Cookie": "penstock_token=secret"}
    assert status(OPEN.refusal("POST", cookie)) == 403
    assert OPEN.refusal("POST", {**cookie, "X-Penstock": "page", "Origin": "http://gateway:4350"}) is None
