"""Several takes: generated at once, interrupted by the next, compared, starred, deleted and restored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import av
import pytest
from playwright.sync_api import expect

from tests.browser.screen import Screen, double_click, posted, press_while_heard
from tests.studio.server import Served

Open = Callable[..., Screen]
FRAME = 2048
TWO_SECONDS = 43 * FRAME  # samples of a two-second take in whole frames


def four(screen: Screen) -> None:
    screen.page.get_by_role("button", name="4 takes").click()
    expect(screen.takes).to_have_count(4)


def numbers(screen: Screen) -> list[int]:
    return [int(row.get_attribute("data-take") or 0) for row in screen.takes.all()]


def test_four_takes_are_generated_at_once_and_a_deleted_one_is_restored(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    screen.cut_after(2)
    speech = screen.asked_for_speech()
    four(screen)
    screen.until_over()
    assert len(speech) == 4
    assert not [body for body in speech if "seed" in body]
    assert screen.heard()["rendered"] == TWO_SECONDS
    assert screen.page.evaluate("window.studio.current.number") == 1
    assert numbers(screen) == [4, 3, 2, 1]
    seeds = {row.locator(".take-facts span").nth(3).inner_text() for row in screen.takes.all()}
    assert len(seeds) == 4

    before = numbers(screen)
    delete = screen.takes.nth(1).get_by_role("button", name="Delete take")
    double_click(delete, delete)  # its second click falls on the next take's button
    expect(screen.takes).to_have_count(3)
    screen.page.get_by_role("button", name="Undo").click()
    expect(screen.takes).to_have_count(4)
    assert sorted(numbers(screen)) == sorted(before)
    screen.page.route("**/v1/takes/**", lambda route: route.abort())
    star = screen.takes.nth(1).locator(".take-star")
    star.click()
    expect(screen.card).to_contain_text("The studio is not responding.")
    expect(star).to_have_attribute("aria-pressed", "false")
    screen.page.unroute_all()
    screen.card.get_by_role("button", name="Close").click()
    screen.page.get_by_role("button", name=f"Play take {before[1]}").click()
    screen.page.wait_for_function(
        "(number) => window.studio.current.number === number && window.studio.heard.rendered > 0", arg=before[1]
    )
    screen.until_over()
    assert screen.heard()["rendered"] == TWO_SECONDS


def test_stop_cancels_all_four_takes(steered: Callable[..., Served], open_page: Open) -> None:
    studio = steered()
    engine = studio.app.state.studio.speech.host.engine()
    engine.later_frames_gate.clear()
    screen = open_page(studio).ready()
    screen.page.get_by_role("button", name="4 takes").click()
    studio.until(running=engine.rows, waiting=4 - engine.rows)
    screen.stop.click()
    studio.until(running=0, waiting=0)
    expect(screen.speak).to_be_visible()


def test_double_click_on_speak_does_not_stop_the_take(steered: Callable[..., Served], open_page: Open) -> None:
    studio = steered()
    studio.app.state.studio.speech.host.engine().later_frames_gate.clear()
    screen = open_page(studio).ready()
    double_click(screen.speak, screen.stop)
    studio.until(running=1)
    screen.stop.click()
    studio.until(running=0)


def test_speaking_again_stops_the_previous_take_and_mixes_none_of_it_into_the_next(
    served: Served, open_page: Open
) -> None:
    screen = open_page(served).ready()
    screen.cut_after(30)
    screen.speak.click()
    screen.page.wait_for_function("window.studio.heard.rendered > 0")
    screen.cut_after(2)
    screen.script.press("Control+Enter")
    expect(screen.takes).to_have_count(2)
    screen.until_over()
    assert screen.page.evaluate("window.studio.current.number") == 2
    assert screen.heard()["rendered"] == TWO_SECONDS
    expect(screen.takes.nth(1)).to_contain_text("Stopped by you")


def test_two_takes_are_compared_at_the_same_position(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    screen.cut_after(6)
    four(screen)
    rows = {number: screen.page.locator(f"#takes li[data-take='{number}']") for number in (1, 3)}
    rows[1].get_by_role("button", name="Compare").click()
    rows[3].get_by_role("button", name="Compare").click()
    expect(screen.page.locator("#takes .pair [aria-pressed=true]")).to_have_text("Take 1")
    screen.until_over()
    first = screen.page.locator("#takes .pair").get_by_role("button", name="Take 1")
    place = press_while_heard(first, "x", 1)
    screen.page.wait_for_function("window.studio.current.number === 3 && window.studio.heard.rendered > 0")
    assert screen.page.evaluate("window.studio.position") >= place
    expect(screen.page.locator("#takes .pair [aria-pressed=true]")).to_have_text("Take 3")
    screen.page.get_by_role("button", name="Done").click()
    expect(screen.page.locator("#takes .pair")).to_be_hidden()


def test_take_is_saved_as_mp3_and_only_old_unstarred_takes_are_removed(
    served: Served, open_page: Open, tmp_path: Path
) -> None:
    screen = open_page(served).ready()
    screen.cut_after(2)
    screen.speak.click()
    expect(screen.takes).to_have_count(1)
    with screen.page.expect_download() as saving:
        screen.takes.get_by_role("button", name="Download").click()
        screen.page.get_by_role("menuitem", name="MP3").click()
    assert saving.value.suggested_filename.endswith(".mp3")
    saving.value.save_as(tmp_path / "take.mp3")
    with av.open(str(tmp_path / "take.mp3")) as file:
        assert file.streams.audio[0].codec.name.startswith("mp3")
        samples = sum(frame.samples for frame in file.decode(audio=0))
    assert samples == pytest.approx(TWO_SECONDS, abs=3 * 1152)  # whole MP3 frames, and the encoder's delay

    screen.takes.get_by_role("button", name="Star take 1").click()
    urls = screen.page.evaluate(
        """async () => {
            const script = document.querySelector('script[src$="/page.js"]').src;
            const { Take } = await import(new URL('takes/take.js', script));
            const first = window.studio.current;
            const dropped = [];
            for (let number = 2; number <= 40; number += 1) {
                const take = new Take({ ...first, number });
                take.add(44100, new Int16Array(4410));
                take.close('stop');
                take.drop = () => dropped.push(number);
                window.studio.list.add(take);
            }
            return dropped;
        }"""
    )
    assert urls == list(range(2, 11))
    expect(screen.takes).to_have_count(31)
    assert 1 in numbers(screen)


def test_delivery_sets_the_sampling_and_is_marked_while_active(served: Served, open_page: Open) -> None:
    screen = open_page(served).ready()
    lively = screen.page.get_by_role("button", name="Lively")
    expect(screen.page.get_by_role("button", name="Natural")).to_have_attribute("aria-pressed", "true")
    lively.click()
    expect(lively).to_have_attribute("aria-pressed", "true")
    screen.open_sampling()
    expect(screen.page.get_by_label("number input for Temperature")).to_have_value("1")
    screen.page.get_by_label("range slider for Temperature").fill("0.3")
    expect(lively).to_have_attribute("aria-pressed", "false")
    with screen.page.expect_request("**/v1/audio/speech") as request:
        screen.speak.click()
    sent = posted(request.value)
    assert (sent["temperature"], sent["top_p"], sent["top_k"]) == (0.3, 0.95, 60)
