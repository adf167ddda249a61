"""References to secrets: resolved on use, never repeated in errors."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from floe.spec import SecretRef
from floe.spec.secrets import Secret, SecretNotFoundError, parse_secret, parse_text_or_secret


def test_secret_comes_from_the_environment(tmp_path: Path) -> None:
    reference = parse_secret("secret://env/RISK_PASSWORD")
    assert reference.resolve({"RISK_PASSWORD": "geheim"}, tmp_path) == "geheim"


def test_secret_comes_from_a_file_without_its_line_break(tmp_path: Path) -> None:
    (tmp_path / "risk").write_text("geheim\n", encoding="utf-8")
    assert parse_secret("secret://file/risk").resolve({}, tmp_path) == "geheim"


@pytest.mark.parametrize("text", ["secret://env/NOPE", "secret://file/nope"])
def test_missing_secret_error_says_what_to_set(text: str, tmp_path: Path) -> None:
    with pytest.raises(SecretNotFoundError, match=f"^{text} not found: "):
        parse_secret(text).resolve({}, tmp_path)


@pytest.mark.parametrize("text", ["hunter2", "secret://vault/x", "secret://file/../x", ""])
def test_invalid_reference_is_rejected_and_not_repeated(text: str) -> None:
    with pytest.raises(ValidationError) as failure:
        TypeAdapter(Secret).validate_python(text)
    message = failure.value.errors()[0]["msg"]
    assert message == "must be a reference to a secret"


def test_text_without_secret_prefix_stays_text() -> None:
    assert parse_text_or_secret("zstd") == "zstd"
    assert parse_text_or_secret("secret://env/KEY") == SecretRef("env", "KEY")


def test_reference_is_printed_as_written() -> None:
    assert str(SecretRef("env", "KEY")) == "secret://env/KEY"
