import logging
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from floe.notify import Delivery, Message, send
from floe.spec.platform import Channel
from floe.spec.secrets import SecretRef
from tests.notify.servers import Mailbox, mail_server, web_server

# apprise imports what Python 3.13 will no longer have, and has a way out for then.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning"),
]

SECRET = "hunter2-s3cr3t"
NIGHT_FAILED = Message(
    "The night failed",
    "daily_pnl stopped at its second step.",
    "error",
    {"Run": "http://127.0.0.1:3000/runs/42"},
)


def channel(**keys: Any) -> Channel:
    """A channel as platform.yaml declares it."""
    return TypeAdapter[Channel](Channel).validate_python(keys)


def reveal_from(environ: Mapping[str, str]) -> Any:
    """Resolve secrets as a site does."""
    return lambda value: (
        value.resolve(environ, Path("/nowhere")) if isinstance(value, SecretRef) else value
    )


def send_to(environ: Mapping[str, str] | None = None, **channels: Channel) -> list[Delivery]:
    return list(send(channels, NIGHT_FAILED, reveal_from(environ or {})))


def free_port() -> int:
    with socket.socket() as item:
        item.bind(("127.0.0.1", 0))
        return int(item.getsockname()[1])


def test_a_log_channel_writes_title_body_and_links_at_its_level(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert send_to(quiet=channel(type="log", level="warning")) == [Delivery("quiet")]
    [record] = caplog.records
    assert (record.name, record.levelno) == ("floe.notify", logging.WARNING)
    assert record.getMessage() == (
        "The night failed\ndaily_pnl stopped at its second step.\n\n"
        "Run: http://127.0.0.1:3000/runs/42"
    )


def test_a_webhook_gets_json_with_its_headers() -> None:
    with web_server() as hook:
        headers = {"X-Token": "secret://env/TOKEN"}
        ops = channel(type="webhook", url=f"{hook.url}/in?team=risk", headers=headers)
        assert send_to({"TOKEN": SECRET}, ops=ops) == [Delivery("ops")]
    [posted] = hook.posted
    assert posted.path == "/in?team=risk"
    assert posted.headers["X-Token"] == SECRET
    assert posted.headers["Content-Type"] == "application/json"
    assert {key: posted.body[key] for key in ("title", "body", "severity", "links")} == {
        "title": "The night failed",
        "body": "daily_pnl stopped at its second step.",
        "severity": "error",
        "links": {"Run": "http://127.0.0.1:3000/runs/42"},
    }


def test_a_busy_webhook_gets_the_same_id_again() -> None:
    with web_server(503, 429) as hook:
        assert send_to(ops=channel(type="webhook", url=hook.url)) == [Delivery("ops")]
    assert len(hook.posted) == 3
    assert len({posted.body["id"] for posted in hook.posted}) == 1


def test_a_webhook_that_keeps_failing_is_reported_with_the_reason() -> None:
    with web_server(500, 500, 500) as hook:
        [delivery] = send_to(ops=channel(type="webhook", url=hook.url))
    assert delivery.failure == "The webhook: it responded 500 Internal Server Error."
    assert len(hook.posted) == 3


def test_a_webhook_that_rejects_the_message_is_not_retried() -> None:
    with web_server(403) as hook:
        [delivery] = send_to(ops=channel(type="webhook", url=hook.url))
    assert delivery.failure == "The webhook: it responded 403 Forbidden."
    assert len(hook.posted) == 1


def test_a_webhook_that_does_not_respond_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        [delivery] = send_to(ops=channel(type="webhook", url=url, timeout="1s"))
    assert delivery.failure == "The webhook: it does not respond (timed out)."


@pytest.mark.parametrize("url", ["ftp://example.com/x", "http://", "http://[half", "no address"])
def test_an_invalid_webhook_url_is_reported_without_repeating_it(url: str) -> None:
    [delivery] = send_to({"URL": url}, ops=channel(type="webhook", url="secret://env/URL"))
    expected = "The webhook: its url must be a URL such as https://example.com/hook."
    assert delivery.failure == expected


def test_a_failing_channel_is_reported_and_does_not_stop_others() -> None:
    with web_server() as hook:
        dead = channel(type="webhook", url=f"http://127.0.0.1:{free_port()}/")
        lost = channel(type="webhook", url="secret://env/NOT_SET")
        live = channel(type="webhook", url=hook.url)
        deliveries = send_to(dead=dead, lost=lost, live=live)
    assert len(hook.posted) == 1
    assert deliveries == [
        Delivery("dead", "The webhook: it does not respond (Connection refused)."),
        Delivery("lost", "secret://env/NOT_SET not found: set the environment variable NOT_SET."),
        Delivery("live"),
    ]


def mail_to(box: Mailbox, **keys: Any) -> Channel:
    named = {"to": ["ops@example.com"], "sender": "floe@example.com", "tls": False}
    return channel(type="email", host="127.0.0.1", port=box.port, **{**named, **keys})


def test_a_mail_reaches_all_recipients() -> None:
    with mail_server(Mailbox()) as box:
        ops = mail_to(box, to=["ops@example.com", "risk@example.com"])
        assert send_to(ops=ops) == [Delivery("ops")]
    [letter] = box.letters
    assert letter["Subject"] == "The night failed"
    assert letter["From"] == "floe@example.com"
    assert letter["To"] == "ops@example.com, risk@example.com"
    assert letter["Date"]
    assert letter["Message-ID"].endswith("@example.com>")
    assert "Run: http://127.0.0.1:3000/runs/42" in letter.get_payload()


def test_a_title_with_two_lines_cannot_inject_mail_headers() -> None:
    message = Message("Failed\nBcc: all@example.com", "Geändert: Köln")
    with mail_server(Mailbox()) as box:
        assert send({"ops": mail_to(box)}, message, reveal_from({})) == (Delivery("ops"),)
    [letter] = box.letters
    assert letter["Subject"] == "Failed Bcc: all@example.com"
    assert letter["Bcc"] is None


def test_a_mail_server_gets_the_password_only_over_an_encrypted_connection() -> None:
    with mail_server(Mailbox()) as box:
        ops = mail_to(box, tls=True, user="floe", password="secret://env/MAIL")
        [delivery] = send_to({"MAIL": SECRET}, ops=ops)
    assert delivery.failure is not None
    assert "STARTTLS extension not supported" in delivery.failure
    assert (box.logins, box.letters) == ([], [])


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    asked = "-x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=127.0.0.1"
    asked += f" -addext subjectAltName=IP:127.0.0.1 -keyout {key} -out {cert}"
    subprocess.run(["openssl", "req", *asked.split()], check=True, capture_output=True)
    return cert, key


def test_a_mail_is_sent_encrypted_to_a_trusted_server(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with mail_server(Mailbox(certificate=certificate)) as box:
        ops = mail_to(box, tls=True, user="floe", password="secret://env/MAIL")
        assert send_to({"MAIL": SECRET}, ops=ops) == [Delivery("ops")]
    assert box.encrypted == [True]
    assert len(box.logins) == 1


def test_a_mail_server_with_an_untrusted_certificate_gets_nothing(
    certificate: tuple[Path, Path],
) -> None:
    with mail_server(Mailbox(certificate=certificate)) as box:
        [delivery] = send_to(ops=mail_to(box, tls=True))
    assert delivery.failure is not None
    assert "certificate verify failed" in delivery.failure
    assert box.letters == []


def test_rejected_recipients_are_named_and_the_others_get_the_mail() -> None:
    with mail_server(Mailbox(refuses=frozenset({"gone@example.com"}))) as box:
        some = mail_to(box, to=["gone@example.com", "ops@example.com"])
        none = mail_to(box, to=["gone@example.com"])
        deliveries = send_to(some=some, none=none)
    expected = f"The mail server 127.0.0.1:{box.port}: it refused gone@example.com."
    assert deliveries == [Delivery("some", expected), Delivery("none", expected)]
    assert len(box.letters) == 1


def test_an_unreachable_mail_server_is_reported() -> None:
    [delivery] = send_to(ops=mail_to(Mailbox(port=free_port())))
    assert delivery.failure is not None
    assert delivery.failure.endswith("Connection refused.")


def test_apprise_sends_to_its_services() -> None:
    with web_server() as hook:
        ops = channel(type="apprise", url="secret://env/URL")
        url = f"json://127.0.0.1:{hook.port}/{SECRET}"
        assert send_to({"URL": url}, ops=ops) == [Delivery("ops")]
    [posted] = hook.posted
    assert posted.path == f"/{SECRET}"
    assert posted.body["title"] == "The night failed"
    assert posted.body["type"] == "failure"


def test_an_invalid_apprise_url_is_reported() -> None:
    [delivery] = send_to({"URL": f"nonsense://{SECRET}"}, ops=secret_apprise())
    assert delivery.failure == "apprise: its url is not a valid apprise url."


def secret_apprise() -> Channel:
    return channel(type="apprise", url="secret://env/URL")


def test_failures_and_logs_contain_no_secrets(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    box = Mailbox(refuses_login=True)
    with web_server(*[500] * 6) as hook, mail_server(box):
        environ = {
            "HOOK": f"{hook.url}/{SECRET}",
            "URL": f"json://user:{SECRET}@127.0.0.1:{hook.port}/{SECRET}",
            "ODD": f"{SECRET}\r\nX-Other: 1",
            "MAIL": SECRET,
            "DEAD": f"https://{SECRET}.invalid/{SECRET}",
        }
        deliveries = send_to(
            environ,
            hook=channel(type="webhook", url="secret://env/HOOK"),
            odd=channel(type="webhook", url=hook.url, headers={"X-Key": "secret://env/ODD"}),
            dead=channel(type="webhook", url="secret://env/DEAD"),
            mail=mail_to(box, user="floe", password="secret://env/MAIL"),
            apprise=secret_apprise(),
        )
    assert [delivery.channel for delivery in deliveries if delivery.failure is None] == []
    failures = " ".join(str(delivery.failure) for delivery in deliveries)
    assert "535" in failures
    assert SECRET not in failures
    assert SECRET not in caplog.text
    assert "aHVudGVyMi1zM2NyM3" not in failures


def test_nothing_heavy_is_loaded_before_apprise_is_used() -> None:
    code = "import sys, floe.notify; sys.exit('apprise' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
