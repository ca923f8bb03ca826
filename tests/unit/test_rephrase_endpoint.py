"""An endpoint is asked until it answers: over real connections to a server that fails."""

import threading
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corl.diversity.rephrase.chat import EndpointError, completions_url
from corl.diversity.rephrase.endpoint import Endpoint, EndpointSettings
from corl.diversity.rephrase.pacing import LONGEST_PAUSE, Pace, backoff, retry_after
from corl.diversity.rephrase.rewriter import Ask
from rewriting_server import apples, reworded, serving

PASSING = [
    "reset", "cut body", "no JSON", "no choices", "no text", "compressed", "huge", "hang", "drip",
    "status 429", "status 429 0", "status 408", "status 500", "status 502", "status 503 0",
    "status 529",
]  # fmt: skip


def replies(server, *, rows=3, key=None, has_answered=False, **changes):
    asked = EndpointSettings(
        **{
            "url": server.url, "model": "m", "timeout": 5.0, "attempts": 3, "concurrency": 2,
            "first_backoff": 0.001, "key": key, **changes,
        }
    )  # fmt: skip
    endpoint = Endpoint(asked, has_answered=has_answered)
    try:
        asks = [Ask(row, 1, apples(row)) for row in range(rows)]
        return {reply.ask.row: reply for reply in endpoint.replies(asks, lambda: False)}
    finally:
        endpoint.close()


@pytest.mark.parametrize("fault", PASSING)
def test_a_failure_that_passes_costs_no_row(fault):
    def plan(problem, number):
        return fault if number < 3 else "good"

    timeout = 0.4 if fault in ("hang", "drip") else 5.0
    with serving(plan) as server:
        got = replies(server, timeout=timeout)
    assert sorted(got) == [0, 1, 2]
    assert all(reworded(apples(row)) in reply.text for row, reply in got.items())
    assert set(server.requests.values()) == {3}


@pytest.mark.parametrize("fault", ["no JSON", "status 500", "hang"])
def test_a_row_that_always_fails_is_given_up_alone(fault):
    def plan(problem, number):
        return fault if problem == apples(1) else "good"

    with serving(plan) as server:
        got = replies(server, timeout=0.4 if fault == "hang" else 5.0)
    assert got[1].text is None
    assert "3 times" in got[1].problem
    assert server.requests == {apples(0): 1, apples(1): 3, apples(2): 1}


def test_a_refusal_of_one_row_is_not_repeated():
    with serving(lambda problem, _: "status 400" if problem == apples(1) else "good") as server:
        got = replies(server)
    assert got[1].text is None
    assert "status 400 (said by the server" in got[1].problem
    assert set(server.requests.values()) == {1}


@pytest.mark.parametrize("fault", ["status 401", "status 403", "status 404", "redirect"])
def test_a_wrong_key_url_or_model_ends_the_job_at_once(fault):
    with serving(lambda *_: fault) as server, pytest.raises(EndpointError, match="endpoint http"):
        replies(server, rows=30)
    assert sum(server.requests.values()) <= 4


@pytest.mark.parametrize("fault", ["status 500", "status 400", "no choices"])
@pytest.mark.parametrize("rows", [3, 60])
def test_a_server_that_answers_nobody_is_an_error_and_no_verdict_on_rows(fault, rows):
    with serving(lambda *_: fault) as server, pytest.raises(EndpointError, match="in a row"):
        replies(server, rows=rows, attempts=1)
    assert sum(server.requests.values()) <= 12


def test_a_last_row_may_fail_where_others_were_answered_before():
    with serving(lambda *_: "status 500") as server:
        got = replies(server, rows=1, has_answered=True)
    assert got[0].text is None


def test_nobody_there_is_an_error_that_says_so():
    with serving() as server:
        pass
    with pytest.raises(EndpointError, match="no connection"):
        replies(server, attempts=2)


def test_a_cut_reply_says_so():
    with serving(lambda *_: "length") as server:
        assert replies(server, rows=1)[0].is_cut


def test_requests_under_way_stay_within_the_limit():
    with serving() as server:
        replies(server, rows=40, concurrency=3)
    assert server.most_at_once <= 3
    assert sum(server.requests.values()) == 40


def test_what_is_sent():
    with serving() as server:
        replies(server, rows=1, key="s3cret", max_tokens=77, extra={"top_p": 0.5})
    (body,), (headers,) = server.bodies, server.headers
    assert headers["path"] == "/v1/chat/completions"
    assert headers["Authorization"] == "Bearer s3cret"
    assert (body["model"], body["max_tokens"], body["top_p"]) == ("m", 77, 0.5)
    assert [one["role"] for one in body["messages"]] == ["system", "user"]
    assert apples(0) in body["messages"][1]["content"]


def test_the_key_is_never_shown():
    asked = EndpointSettings(url="http://h/v1", model="m", key="s3cret")
    assert "s3cret" not in repr(asked) + asked.name
    with serving(lambda *_: "status 401") as server, pytest.raises(EndpointError) as caught:
        replies(server, key="s3cret")
    assert "s3cret" not in str(caught.value)
    assert "who saw Bearer ***" in str(caught.value)
    with serving(lambda *_: "key") as server:
        assert "s3cret" not in replies(server, key="s3cret", rows=1)[0].text


@pytest.mark.parametrize("key", ["a b", "tab\there", "line\nbreak", "ключ"])
def test_a_key_that_breaks_headers_is_refused_unseen(key):
    asked = EndpointSettings(url="http://127.0.0.1:9/v1", model="m", key=key)
    with pytest.raises(EndpointError, match="characters that no key has") as caught:
        Endpoint(asked)
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "full"),
    [
        ("http://h:8000", "http://h:8000/v1/chat/completions"),
        ("http://h:8000/v1/", "http://h:8000/v1/chat/completions"),
        ("https://h/api/v3", "https://h/api/v3/chat/completions"),
        ("https://h/v1beta/openai", "https://h/v1beta/openai/chat/completions"),
        ("https://h/x/v1/chat/completions", "https://h/x/v1/chat/completions"),
    ],
)
def test_urls(given, full):
    assert completions_url(given) == full


@pytest.mark.parametrize(
    "url",
    ["h:8000/v1", "file:///etc/passwd", "", "http://", "http://h:port", "http://me:pass@h/v1",
     "http://h/v1?key=pass"],
)  # fmt: skip
def test_urls_that_are_none_or_hold_secrets(url):
    with pytest.raises(EndpointError) as caught:
        completions_url(url)
    assert "pass" not in str(caught.value).replace("password", "").replace("passwd", "")


@settings(deadline=None)
@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_backoff_grows_within_bounds(failures, draw):
    assert 0.5 <= backoff(failures, draw) <= 60
    assert backoff(failures, draw) <= backoff(failures + 1, draw)
    assert backoff(3, 0.0) == 2.0
    assert backoff(3, 0.5) == 3.0


NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        ("0.5", 0.5),
        ("-3", 0.0),
        ("1e99", LONGEST_PAUSE),
        ("nan", None),
        ("soon", None),
        ("Thu, 01 Jan 2026 12:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 11:00:00 GMT", 0.0),
    ],
)
def test_reads_retry_after(header, seconds):
    assert retry_after(header, NOW) == seconds


def test_a_stopped_pace_lets_nobody_wait():
    pace = Pace(None)
    pace.hold(1_000)
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(pace.wait_for_turn()))
    waiting.start()
    pace.stop()
    waiting.join(30)
    assert answers == [False]
    assert not pace.sleep(1_000)


def test_a_rate_limit_spaces_requests(monkeypatch):
    now = [1_000.0]
    monkeypatch.setattr("corl.diversity.rephrase.pacing.time.monotonic", lambda: now[0])
    pace = Pace(30)
    waited = []

    def wait(seconds):
        waited.append(seconds)
        now[0] += seconds
        return False

    monkeypatch.setattr(pace._stop, "wait", wait)
    assert all(pace.wait_for_turn() for _ in range(4))
    assert waited == pytest.approx([2.0, 2.0, 2.0])
    pace.hold(9)
    assert pace.wait_for_turn()
    assert waited[3:] == pytest.approx([9.0])
