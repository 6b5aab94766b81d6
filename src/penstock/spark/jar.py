"""The few Java classes that Penstock adds to Spark, compiled by Spark's own compiler into a cached jar."""

import hashlib
import os
import subprocess
import tempfile
import zipfile
from pathlib import Path

from penstock.errors import PenstockError

SOURCES = Path(__file__).parent / "java"


def cache_directory() -> Path:
    """Where compiled classes are kept: `PENSTOCK_CACHE`, else the user's cache directory."""
    chosen = os.environ.get("PENSTOCK_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(chosen) if chosen else Path(base) / "penstock"


def penstock_jar() -> Path:
    """The jar's path; compiled at the first call for a version of Spark (about 1 s, no JDK)."""
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    digest = hashlib.sha256(pyspark.__version__.encode())
    sources = sorted(SOURCES.rglob("*.java"))
    for source in sources:
        digest.update(source.read_bytes())
    jar = cache_directory() / f"penstock-{digest.hexdigest()[:16]}.jar"
    if not jar.exists():
        jar.parent.mkdir(parents=True, exist_ok=True)
        _compile(sources, jars, jar)
    return jar


def _compile(sources: list[Path], jars: Path, jar: Path) -> None:
    class_path = os.pathsep.join(str(path) for path in sorted(jars.glob("*.jar")))
    with tempfile.TemporaryDirectory(dir=jar.parent) as scratch:
        classes = Path(scratch) / "classes"
        classes.mkdir()
        command = [_java(), "-cp", class_path, "org.codehaus.commons.compiler.samples.CompilerDemo"]
        command += ["-d", str(classes), "-sourcepath", str(SOURCES), "-classpath", class_path]
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


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"
