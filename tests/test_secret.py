from __future__ import annotations

from pathlib import Path

import pytest

from penstock.secret import Secret, SecretError

TEXT = "tr0ub4dor"


def test_a_secret_is_read_anew_from_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "secret"
    file.touch(0o600)
    places = [Secret.from_env("A_SECRET"), Secret.from_file(file), Secret.from_callable(lambda: kept[0])]
    for text in (TEXT, "another"):
        kept = [text]
        monkeypatch.setenv("A_SECRET", text)
        file.write_text(f"{text}\n")
        assert [place.reveal() for place in places] == [text] * 3
        assert not any(text in repr(place) for place in places)


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(TEXT)
    file.chmod(0o644)
    with pytest.raises(SecretError) as caught:
        Secret.from_file(file).reveal()
    assert str(caught.value) == (
        f"file {file} must be readable by its owner alone, has mode 644: chmod 600 {file}"
    )


def test_what_goes_wrong_is_told_without_the_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("A_SECRET", raising=False)

    def failing() -> str:
        raise RuntimeError(f"cannot decode {TEXT}")

    for secret, text in (
        (
            Secret.from_env("A_SECRET"),
            "environment variable A_SECRET must hold a secret, but is empty or missing",
        ),
        (Secret.from_file(tmp_path / "none"), "but cannot be read (FileNotFoundError)"),
        (Secret.from_callable(failing), "the function of a secret raised RuntimeError"),
    ):
        with pytest.raises(SecretError) as caught:
            secret.reveal()
        assert text in str(caught.value)
        assert caught.value.__cause__ is None
        assert TEXT not in str(caught.value)
    with pytest.raises(SecretError, match="which is not shown as it may be the secret"):
        Secret.from_env("not a name: " + TEXT)
