"""The few Java classes that Penstock adds to Spark, compiled by Spark's own compiler into a cached jar."""

import hashlib
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from penstock.errors import PenstockError

SOURCES = Path(__file__).parent / "java"


def cache_directory() -> Path:
    """Where compiled classes are kept: `PENSTOCK_CACHE`, else the user's cache directory."""
    chosen = os.environ.get("PENSTOCK_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(chosen) if chosen else Path(base) / "penstock"


def spark_jars() -> Path:
    """The folder of the jars that PySpark brings."""
    import pyspark

    return Path(pyspark.__file__).parent / "jars"


def penstock_jar() -> Path:
    """The jar's path; compiled at the first call for a version of Spark (about 1 s, no JDK)."""
    return compiled_jar("penstock", SOURCES)


def compiled_jar(name: str, folder: Path, beside: Sequence[Path] = ()) -> Path:
    """A jar of the Java sources in a folder; `beside` Spark's jars they may need others."""
    import pyspark

    digest = hashlib.sha256(pyspark.__version__.encode())
    for path in beside:
        digest.update(path.name.encode())
    sources = sorted(folder.rglob("*.java"))
    for source in sources:
        digest.update(source.read_bytes())
    jar = cache_directory() / f"{name}-{digest.hexdigest()[:16]}.jar"
    if not jar.exists():
        jar.parent.mkdir(parents=True, exist_ok=True)
        _compile(folder, [*beside, *sorted(spark_jars().glob("*.jar"))], jar)
    return jar


def _compile(folder: Path, beside: Sequence[Path], jar: Path) -> None:
    sources = sorted(folder.rglob("*.java"))
    class_path = os.pathsep.join(map(str, beside))
    with tempfile.TemporaryDirectory(dir=jar.parent) as scratch:
        classes = Path(scratch) / "classes"
        classes.mkdir()
        command = [java(), "-cp", class_path, "org.codehaus.commons.compiler.samples.CompilerDemo"]
        command += ["-d", str(classes), "-sourcepath", str(folder), "-classpath", class_path]
        result = subprocess.run([*command, *map(str, sources)], capture_output=True, text=True, check=False)
        compiled = sorted(classes.rglob("*.class"))
        if result.returncode != 0 or len(compiled) < len(sources):
            raise PenstockError(
                "Penstock's Java classes must compile against the installed Spark, but: "
                + result.stderr.strip()
            )
        packed = Path(scratch) / "packed.jar"
        with zipfile.ZipFile(packed, "w") as archive:
            for path in compiled:
                archive.write(path, str(path.relative_to(classes)))
        os.replace(packed, jar)


def java() -> str:
    """The command that starts Java."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"
