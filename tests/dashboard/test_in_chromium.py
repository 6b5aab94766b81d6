"""The live page in a real Chromium, over an engine without Spark; skipped where there is no Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts.browser import NO_CHROMIUM, Browser, find_chromium
from tests.dashboard.fakes import FakeEngine

from penstock.dashboard import Dashboard, Watch

pytestmark = pytest.mark.skipif(find_chromium() is None, reason=NO_CHROMIUM)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> FakeEngine:
    engine = FakeEngine(tmp_path_factory.mktemp("state"))
    engine.advance(30)
    return engine


@pytest.fixture(scope="module")
def watch(engine: FakeEngine) -> Iterator[Watch]:
    with Watch(engine, clock=engine.clock) as watch:
        engine.advance(10)
        watch.fresh(0)
        yield watch


@pytest.fixture(scope="module")
def browser(watch: Watch) -> Iterator[Browser]:
    with Dashboard(watch, port=0) as page, Browser(1280, 900) as browser:
        browser.prefer("dark")
        browser.open(page.url)
        browser.wait_for("document.body?.dataset.drawn", 60)
        yield browser


def focused(browser: Browser) -> str:
    return str(browser.run("document.activeElement.getAttribute('aria-label') ?? ''"))


def test_it_shows_every_stage_sink_and_tenant_without_an_error(browser: Browser) -> None:
    assert browser.run("document.querySelectorAll('svg .stage').length") == 7
    assert browser.run("document.querySelectorAll('#stage-table tbody tr').length") == 7
    assert browser.run("document.querySelectorAll('#latency .chart').length") == 3
    assert browser.run("document.querySelectorAll('#tenants tbody tr').length") == 2
    assert browser.run("document.querySelector('#link').textContent") == "live"
    assert "turns of 7 stages" in browser.run("document.querySelector('#turns').getAttribute('aria-label')")
    assert browser.errors == []


def test_canvases_have_something_drawn_on_them(browser: Browser) -> None:
    for selector in ("#latency canvas", "#turns", "#pool"):
        drawn = browser.run(
            f"(() => {{ const c = document.querySelector('{selector}');"
            "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
            "return d.some((value) => value > 0); })()"
        )
        assert drawn, selector


def where(browser: Browser) -> str:
    """The heading of the section that has the focus."""
    return str(
        browser.run("document.activeElement.closest('section')?.querySelector('h2').textContent ?? ''")
    )


def test_the_tab_key_goes_through_the_page_in_the_order_of_reading(browser: Browser) -> None:
    browser.run("document.activeElement.blur(), document.querySelector('.skip').focus()")
    seen = [browser.run("document.activeElement.textContent")]
    for _ in range(6):
        browser.press("Tab")
        seen.append(browser.run("document.activeElement.id") or focused(browser).split(":")[0])
    assert seen == [
        "Skip to the table of stages",
        "span",
        "theme",
        "help",
        "Pause pipeline heat",
        "heat.parse",
        "heat.warm",
    ]


def test_letters_lead_to_sections_and_a_question_mark_to_the_keys(browser: Browser) -> None:
    browser.run("document.activeElement.blur()")
    for key, section in {"g": "Pipelines", "l": "Latency at sinks", "s": "Stages"}.items():
        browser.press(key)
        assert where(browser) == section
    browser.press("?")
    browser.wait_for("document.querySelector('#keys[open]')")
    assert focused(browser) == "Close"
    browser.press("Escape")
    browser.wait_for("!document.querySelector('#keys[open]')")


def test_turns_are_stepped_through_by_the_keyboard_and_read_aloud(browser: Browser) -> None:
    turns = "document.querySelector('#turns')"
    browser.run(f"{turns}.focus()")
    told = []
    for key in ("ArrowLeft", "ArrowLeft", "ArrowRight", "Home", "End"):
        browser.press(key)
        told.append(str(browser.run(f"{turns}.getAttribute('aria-valuetext')")))
        assert browser.run("document.querySelector('#turn-tip').textContent") == told[-1]
    last, before, again, first, end = told
    assert re.fullmatch(r"(heat|usage)\.[a-z ]+: \d+ ms, [\d.k]+ rows, from \d\d:\d\d:\d\d", last)
    assert again == last == end
    assert len({last, before, first}) == 3
    assert int(browser.run(f"{turns}.getAttribute('aria-valuenow')")) > 1
    browser.press("Tab")
    assert browser.run("document.querySelector('#turn-tip').hidden")


def test_a_stage_is_reached_and_its_story_told_by_the_keyboard(browser: Browser) -> None:
    browser.run("document.querySelector('svg .stage').focus()")
    assert focused(browser).startswith("heat.parse: ")
    browser.press("ArrowRight")
    assert focused(browser).startswith("heat.warm: ")
    browser.press("Enter")
    browser.wait_for("document.querySelector('#story[open] .figures')")
    text = browser.run("document.querySelector('#story').textContent")
    assert "heat.warm was held back by the schedule" in text
    assert "A turn costs 20 ms" in text
    browser.press("Escape")
    browser.wait_for("!document.querySelector('#story[open]')")
    assert focused(browser).startswith("heat.warm: ")


def test_what_changes_in_the_engine_changes_on_the_page(
    browser: Browser, watch: Watch, engine: FakeEngine
) -> None:
    engine.turn_since["usage.clean"] = engine.now - 20
    watch.fresh(0)
    browser.wait_for("document.querySelector('.alert.critical')?.textContent.includes('Stuck: usage.clean')")
    assert browser.run("document.title") == "(1) Penstock"
    engine.turn_since.clear()
    watch.fresh(0)
    browser.wait_for("document.querySelector('.alert.calm')")


def test_a_pipeline_is_paused_by_the_keyboard_after_asking_twice_and_resumed(
    browser: Browser, engine: FakeEngine
) -> None:
    button, said = "document.querySelector('#graphs article button')", "document.querySelector('#said')"
    browser.run(f"{button}.focus()")
    browser.press("Enter")
    assert focused(browser) == "Pause: sure? pipeline heat"
    assert browser.run(f"{said}.textContent") == "Pause heat? Press again within 6 seconds to pause it"
    assert browser.run(f"{said}.getAttribute('role')") == "status"
    assert engine.pipelines["heat"] == "running"
    browser.press(" ")
    browser.wait_for(f"{button}.textContent == 'Resume'")
    assert focused(browser) == "Resume pipeline heat"
    assert engine.pipelines["heat"] == "paused"
    browser.press("Enter")
    browser.wait_for(f"{button}.textContent == 'Pause'")
    assert engine.pipelines["heat"] == "running"


def test_a_target_is_changed_by_the_keyboard(browser: Browser, engine: FakeEngine) -> None:
    browser.run("document.querySelector('[aria-label=\"Change the target of heat.alarms\"]').focus()")
    browser.press("Enter")
    assert focused(browser) == "New target of heat.alarms"
    browser.type("500ms")
    browser.press("Enter")
    browser.wait_for("[...document.querySelectorAll('.aim')].some((e) => e.textContent.includes('500 ms'))")
    assert engine.graphs["heat"].stage("heat.alarm").latency_seconds == 0.5


def test_nodes_have_a_line_where_there_is_a_cluster(
    browser: Browser, watch: Watch, engine: FakeEngine
) -> None:
    legend = "document.querySelector('#pool-legend').textContent"
    assert "nodes" not in browser.run(legend)
    engine.pool_nodes = 3
    watch.fresh(0)
    browser.wait_for(f"{legend}.includes('nodes')")
    assert "on 3 nodes" in browser.run("document.querySelector('#pool').getAttribute('aria-label')")
    assert "on 3 nodes" in browser.run("document.querySelector('#facts').textContent")
    engine.pool_nodes = None


def test_it_is_dark_or_light_as_the_system_is_and_as_somebody_chooses(browser: Browser) -> None:
    back = "getComputedStyle(document.body).backgroundColor"
    dark = browser.run(back)
    browser.prefer("light")
    browser.wait_for(f"{back} != '{dark}'")
    browser.run("document.activeElement.blur()")
    browser.press("d")
    browser.wait_for(f"{back} == '{dark}'")
    browser.press("d")
    browser.wait_for(f"{back} != '{dark}'")


def test_everything_that_can_be_used_has_a_name(browser: Browser) -> None:
    nameless = browser.run(
        "[...document.querySelectorAll('button, select, input, canvas, svg, [role=button], a, dialog')]"
        ".filter((e) => !(e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length))"
        ".map((e) => e.outerHTML.slice(0, 80))"
    )
    assert nameless == []
    assert browser.run("document.documentElement.lang") == "en"
    assert browser.errors == []


def test_a_narrow_screen_does_not_scroll_sideways(browser: Browser, tmp_path: Path) -> None:
    browser.resize(420, 900)
    browser.wait_for("document.documentElement.scrollWidth <= 420")
    browser.picture(tmp_path / "narrow.png")
