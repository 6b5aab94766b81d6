"""The launcher, on a small copy of the repository: no packages to install, and a Java that is a script."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LAUNCHER = Path(__file__).resolve().parents[1] / "penstock"
TOOLS = (
    "sh",
    "cksum",
    "dirname",
    "readlink",
    "mkdir",
    "rm",
    "mv",
    "sed",
    "tail",
    "cut",
    "sleep",
    "flock",
    "ln",
    "id",
)


class Clone:
    """A copy of the launcher with a package that prints its arguments, started with a PATH of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bin = root / "bin"
        self.bin.mkdir(parents=True)
        for tool in TOOLS:
            if found := shutil.which(tool):
                (self.bin / tool).symlink_to(found)
        shutil.copy(LAUNCHER, root / "penstock")
        (root / "requirements.txt").write_text("# nothing\n")
        (root / "requirements-dev.txt").write_text("# nothing\n")
        (root / "src/penstock").mkdir(parents=True)
        (root / "src/penstock/__init__.py").touch()
        (root / "src/penstock/__main__.py").write_text(
            "import os, sys\nprint(os.environ['JAVA_HOME'], *sys.argv[1:])\n"
        )
        for program in ("mosquitto", "mosquitto_sub", "rabbitmq-server", "chromium"):
            self.script(f"bin/{program}", "")
        self.java_home = self.add_java("jdk", "17")
        self.environment = {
            "PATH": str(self.bin),
            "HOME": str(root),
            "JAVA_HOME": str(self.java_home),
            "PENSTOCK_PYTHON": sys.executable,
        }

    def script(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

    def add_java(self, name: str, version: str) -> Path:
        """The home of a java that only tells its version, and notes in `asked` that it was asked."""
        home = self.root / name
        told = f"java.home = {home}\n    java.specification.version = {version}"
        self.script(f"{name}/bin/java", f'echo >>"{self.root}/asked"; printf "    {told}\\n" >&2')
        return home

    def command(self, *arguments: str) -> list[str]:
        return [str(self.root / "penstock"), *arguments]

    def start(
        self, *arguments: str, cwd: Path | None = None, **changes: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            cwd=cwd or self.root,
            env=self.environment | changes,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def times_java_was_asked(self) -> int:
        asked = self.root / "asked"
        return len(asked.read_text().splitlines()) if asked.exists() else 0


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path / "a clone")


@pytest.fixture(scope="module")
def set_up_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("set-up") / "a clone"
    done = Clone(root).start("--help")
    assert done.returncode == 0, done.stderr
    return root


@pytest.fixture
def ready(clone: Clone, set_up_once: Path) -> Clone:
    """A clone whose set-up was done before, and then moved here."""
    shutil.copytree(set_up_once / ".venv", clone.root / ".venv", symlinks=True)
    stamp = clone.root / ".venv/ready"
    stamp.write_text(stamp.read_text().replace(str(set_up_once), str(clone.root)))
    return clone


@pytest.mark.parametrize("shell", ["sh", "bash", "dash"])
def test_every_shell_can_read_it(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    assert subprocess.run([shell, "-n", LAUNCHER], check=False).returncode == 0
    assert os.access(LAUNCHER, os.X_OK)


def test_a_second_start_works_from_any_directory_and_sets_nothing_up(ready: Clone, tmp_path: Path) -> None:
    done = ready.start("graph", "two words", cwd=tmp_path)
    assert (done.stdout, done.stderr) == (f"{ready.java_home} graph two words\n", "")
    assert ready.times_java_was_asked() == 0


def test_it_works_through_a_symbolic_link(ready: Clone, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(ready.root / "penstock")
    done = subprocess.run(
        [tmp_path / "link", "x"], env=ready.environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == f"{ready.java_home} x\n"


def test_changed_requirements_are_installed_once_in_the_same_environment(ready: Clone) -> None:
    (ready.root / "requirements.txt").write_text("# still nothing\n")
    (ready.root / ".venv/mark").touch()
    assert "installing the packages of requirements.txt" in ready.start("x").stderr
    assert ready.start("x").stderr == ""
    assert (ready.root / ".venv/mark").exists()


def test_the_set_up_ends_without_an_archive_of_classes_where_none_can_be_made(clone: Clone) -> None:
    package = clone.root / "src/penstock/__main__.py"
    package.write_text('import sys\nsys.exit("no room" if "install" in sys.argv else 0)\n')
    done = clone.start("x")
    assert done.returncode == 0
    assert "making an archive of Spark's classes" in done.stderr
    assert "it could not be made (" in done.stderr
    assert "no room" in (clone.root / ".setup/log").read_text()
    assert clone.start("x").stderr == ""


@pytest.mark.parametrize("command", ["test", "bench"])
def test_tests_and_benchmarks_want_the_second_file_too_and_others_then_keep_it(
    ready: Clone, command: str
) -> None:
    assert "installing the packages of requirements-dev.txt" in ready.start(command).stderr
    assert ready.start("x").stderr == ""
    assert ready.start(command).stderr == ""


def test_an_interrupted_set_up_is_made_anew(ready: Clone) -> None:
    (ready.root / ".venv/ready").unlink()
    (ready.root / ".venv/half-made").touch()
    done = ready.start("x")
    assert done.returncode == 0, done.stderr
    assert "making a virtual environment" in done.stderr
    assert not (ready.root / ".venv/half-made").exists()


@pytest.mark.parametrize("with_flock", [True, False])
def test_two_set_ups_at_once_leave_one_environment_that_works(clone: Clone, with_flock: bool) -> None:
    if not with_flock:
        (clone.bin / "flock").unlink(missing_ok=True)
    both = [
        subprocess.Popen(
            clone.command("x"),
            env=clone.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    told = [process.communicate(timeout=120) for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    assert [out for out, _ in told] == [f"{clone.java_home} x\n"] * 2
    assert sum("making a virtual environment" in err for _, err in told) == 1


def test_a_python_too_old_is_refused_by_name(clone: Clone) -> None:
    old = clone.script("old/python3", "echo 3.9")
    done = clone.start("x", PENSTOCK_PYTHON=str(old))
    assert done.returncode == 1
    assert done.stderr == (
        f"penstock: Python must be 3.11 or newer, PENSTOCK_PYTHON is 3.9 ({old}): name a newer one\n"
    )


def test_without_any_python_it_says_what_to_install(clone: Clone) -> None:
    done = clone.start("x", PENSTOCK_PYTHON="")
    assert done.returncode == 1
    assert done.stderr.startswith("penstock: Python 3.11 or newer is needed and was not found.\n")
    assert "sudo apt-get install python3 python3-venv" in done.stderr


def _python_without_venv(clone: Clone) -> Path:
    """A Python whose venv module is missing until the file `python3-venv` is there."""
    missing = f'case $2 in *ensurepip*) [ -e "{clone.root}/python3-venv" ] || exit 1 ;; esac'
    return clone.script("bare/python3", f'{missing}\nexec "{sys.executable}" "$@"')


def test_without_the_venv_module_a_user_is_told_what_to_install(clone: Clone) -> None:
    (clone.bin / "id").unlink()
    clone.script("bin/id", "echo 1000")
    done = clone.start("x", PENSTOCK_PYTHON=str(_python_without_venv(clone)))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert done.returncode == 1
    assert f"penstock: Python {version} has no venv module.\n" in done.stderr
    assert f"sudo apt-get install python{version}-venv" in done.stderr


def test_without_the_venv_module_root_gets_the_first_package_that_can_be_had(clone: Clone) -> None:
    (clone.bin / "id").unlink()
    clone.script("bin/id", "echo 0")
    clone.script(
        "bin/apt-get",
        f'case "$*" in *" python3-venv") : >"{clone.root}/python3-venv" ;; update) ;; *) exit 100 ;; esac',
    )
    done = clone.start("x", PENSTOCK_PYTHON=str(_python_without_venv(clone)))
    assert done.stdout == f"{clone.java_home} x\n", done.stderr


def test_a_java_too_old_leads_to_the_one_on_the_path(ready: Clone) -> None:
    old, new = ready.add_java("old", "11"), ready.add_java("new", "21")
    (ready.bin / "java").symlink_to(new / "bin/java")
    done = ready.start("x", JAVA_HOME=str(old))
    assert done.stdout == f"{new} x\n"
    assert f"JAVA_HOME={old} has no Java 17 or newer; looking elsewhere" in done.stderr
    assert ready.start("x", JAVA_HOME=str(old)).stderr == ""


def test_another_java_home_is_looked_at_once_and_kept(ready: Clone) -> None:
    new = ready.add_java("new", "21")
    assert ready.start("x", JAVA_HOME=str(new)).stdout == f"{new} x\n"
    assert ready.start("x", JAVA_HOME=str(new)).stdout == f"{new} x\n"
    assert ready.times_java_was_asked() == 1


def _without_a_broker(ready: Clone, user: int) -> Clone:
    (ready.bin / "mosquitto_sub").unlink()
    (ready.bin / "id").unlink()
    ready.script("bin/id", f"echo {user}")
    return ready


NO_BROKER = "penstock: Mosquitto was not found: what needs an MQTT broker is left out.\n"


@pytest.mark.parametrize("command", ["test", "bench"])
def test_without_mosquitto_a_user_is_told_what_to_install_and_goes_on(ready: Clone, command: str) -> None:
    done = _without_a_broker(ready, user=1000).start(command)
    assert done.stdout == f"{ready.java_home} {command}\n"
    assert NO_BROKER in done.stderr
    assert "sudo apt-get install mosquitto mosquitto-clients" in done.stderr
    assert ready.start("demo").stderr == ""


def test_root_gets_mosquitto_by_apt_without_its_service(ready: Clone) -> None:
    _without_a_broker(ready, user=0)
    ready.script(
        "bin/apt-get",
        f'case $1 in install) echo "$*" >>"{ready.root}/installed"; : >"{ready.bin}/mosquitto_sub"; '
        f'/bin/chmod 755 "{ready.bin}/mosquitto_sub" ;; esac',
    )
    ready.script("bin/systemctl", f'echo "$*" >>"{ready.root}/services"')
    assert "apt-get install mosquitto mosquitto-clients" in ready.start("bench").stderr
    assert ready.start("bench").stderr == ""
    installed = (ready.root / "installed").read_text()
    assert installed == "install -y --no-install-recommends mosquitto mosquitto-clients\n"
    assert (ready.root / "services").read_text() == "disable mosquitto\n"


def test_a_mosquitto_that_cannot_be_had_is_asked_for_once(ready: Clone) -> None:
    _without_a_broker(ready, user=0)
    ready.script("bin/apt-get", f'echo >>"{ready.root}/tries"; exit 100')
    assert "penstock: Mosquitto could not be installed" in ready.start("bench").stderr
    done = ready.start("bench")
    assert (done.returncode, "could not be installed" in done.stderr, NO_BROKER in done.stderr) == (
        0,
        False,
        True,
    )
    assert len((ready.root / "tries").read_text().splitlines()) == 2


def test_root_gets_rabbitmq_by_apt_and_one_that_cannot_be_had_is_asked_for_once(ready: Clone) -> None:
    (ready.bin / "rabbitmq-server").unlink()
    (ready.bin / "id").unlink()
    ready.script("bin/id", "echo 0")
    ready.script("bin/apt-get", f'echo "$*" >>"{ready.root}/tries"; exit 100')
    assert ready.start("demo").stderr == ""
    assert "penstock: RabbitMQ could not be installed" in ready.start("test").stderr
    assert ready.start("test").stderr == ""
    wanted = ["update", "install -y --no-install-recommends rabbitmq-server"]
    assert (ready.root / "tries").read_text().splitlines() == wanted


def _without_a_browser(ready: Clone, user: int) -> Clone:
    (ready.bin / "chromium").unlink()
    (ready.bin / "id").unlink()
    ready.script("bin/id", f"echo {user}")
    return ready


def test_root_gets_chromium_by_apt_for_the_tests_alone(ready: Clone) -> None:
    _without_a_browser(ready, user=0)
    ready.script(
        "bin/apt-get",
        f'case $1 in install) echo "$*" >>"{ready.root}/installed"; : >"{ready.bin}/chromium"; '
        f'/bin/chmod 755 "{ready.bin}/chromium" ;; esac',
    )
    assert "Chromium" not in ready.start("bench").stderr
    assert "the tests of the live page want a Chromium" in ready.start("test").stderr
    assert ready.start("test").stderr == ""
    assert (ready.root / "installed").read_text() == "install -y --no-install-recommends chromium\n"


def test_a_chromium_that_cannot_be_had_is_asked_for_once(ready: Clone) -> None:
    _without_a_browser(ready, user=0)
    ready.script("bin/apt-get", "exit 100")
    done = ready.start("test")
    assert (done.returncode, done.stdout) == (0, f"{ready.java_home} test\n")
    assert "penstock: Chromium could not be installed" in done.stderr
    assert ready.start("test").stderr == ""


def test_a_user_without_chromium_and_one_who_names_a_browser_are_not_asked(ready: Clone) -> None:
    _without_a_browser(ready, user=0)
    ready.script("bin/apt-get", f': >"{ready.root}/asked-apt"')
    ready.start("test", PENSTOCK_CHROMIUM="some/chrome")
    assert not (ready.root / "asked-apt").exists()
    ready.script("bin/id", "echo 1000")
    ready.start("test")
    assert ready.start("test").stderr == ""
    assert not (ready.root / "asked-apt").exists()
