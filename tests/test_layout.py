"""What holds for the whole tree: pure packages stay pure, and no file tells of the machine it came from."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import penstock

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(penstock.__file__).parent
PURE = ("measure", "model", "plan", "act", "scheduling", "simulate", "pipeline", "stages", "queues", "ingest")


def _modules_of(package: str) -> list[str]:
    files = sorted((PACKAGE / package).rglob("*.py"))
    names = [".".join(file.relative_to(PACKAGE.parent).with_suffix("").parts) for file in files]
    return [name.removesuffix(".__init__") for name in names]


@pytest.mark.parametrize("package", [name for name in PURE if (PACKAGE / name).is_dir()])
def test_a_pure_package_imports_without_spark(package: str) -> None:
    modules = ", ".join(_modules_of(package))
    question = f"import sys, {modules}; print([name for name in ('pyspark', 'py4j') if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=False)
    assert (answer.stdout, answer.stderr) == ("[]\n", "")


def _text_files() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode != 0:
        pytest.skip("not a git work tree")
    files = [ROOT / name for name in listing.stdout.split("\0") if name]
    return [file for file in files if file.is_file() and b"\0" not in file.read_bytes()]


def _lines_with(pattern: str) -> list[str]:
    """Where the pattern stands, apart from this file, which has to spell it."""
    wanted = re.compile(pattern)
    found = []
    for file in _text_files():
        if file == Path(__file__).resolve():
            continue
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            if wanted.search(line):
                found.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()[:120]}")
    return found


def test_no_file_names_the_host_of_a_package_registry() -> None:
    hosts = (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("maven", "org"),
        ("maven", "apache", "org"),
        ("npmjs", "org"),
        ("crates", "io"),
        ("golang", "org"),
        ("debian", "org"),
    )
    assert _lines_with("|".join(r"\b" + r"\.".join(parts) + r"\b" for parts in hosts)) == []


def test_no_file_names_a_directory_of_one_machine() -> None:
    assert _lines_with(r"""(?:^|[\s"'`=(:])/(?:work|root|home|Users|opt)/\w""") == []


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_requirements_are_pinned_and_hashed_and_name_no_address(name: str) -> None:
    text = (ROOT / name).read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith("#")]
    pinned = re.compile(r"[a-z0-9-]+==[^ ]+( ; [^-]+?)?( +--hash=sha256:[0-9a-f]{64})+ *")
    assert [line[:60] for line in lines if not pinned.fullmatch(line)] == []
    assert any(line.startswith("pyspark==4.3.") for line in lines)


def test_requirements_for_tests_hold_the_very_pins_of_the_others() -> None:
    def pins(name: str) -> set[str]:
        return set(re.findall(r"^[a-z0-9-]+==\S+", (ROOT / name).read_text(), re.MULTILINE))

    assert pins("requirements.txt") <= pins("requirements-dev.txt")


def test_the_java_sources_are_part_of_the_package() -> None:
    assert list((PACKAGE / "spark/java").rglob("*.java"))
