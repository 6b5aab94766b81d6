"""A SparkSession for many small turns: every setting with the reason it is there."""

import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.spark.class_archive import archive_options, our_jars
from penstock.spark.cluster.settings import (
    EXECUTOR_OPTIONS,
    ONLY_HERE,
    cluster_preset,
    is_on_this_machine,
    master_kind,
    shared_jars,
)
from penstock.spark.jar import penstock_jar
from penstock.spark.jvm import java_session, jvm
from penstock.spark.setting import LOGGING, Setting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("penstock")

DRIVER_OPTIONS = "spark.driver.extraJavaOptions"
DRIVER_MEMORY = "spark.driver.memory"
LEAST_YOUNG_MEGABYTES, MOST_YOUNG_MEGABYTES = 600, 2048
YOUNG_SHARE, MOST_YOUNG_SHARE = 0.3, 0.6
UNITS = {"": 2**-20, "k": 2**-10, "m": 1, "g": 2**10, "t": 2**20}
IN_ONE_PROCESS = ("spark.broadcast.blockSize", "spark.buffer.pageSize")
"""Settings of the preset for tasks in the driver's process: executors fetch broadcasts block by block, and
may have more memory than so many small pages."""
FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
FILE_SYSTEM = "spark.hadoop.fs.file.impl"
RENAMING_MANAGER = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
QUIET_FILE_SYSTEM = "penstock.QuietLocalFileSystem"


def young_megabytes(memory: str) -> int:
    """What of a heap of so much, as Spark's settings say it, is for young objects.

    >>> [young_megabytes(each) for each in ("512m", "2g", "4096m", "64g")]
    [307, 614, 1228, 2048]
    """
    said = re.fullmatch(r"(\d+)([kmgt]?)b?", memory.strip().lower())
    # Of what cannot be read Java will tell.
    megabytes = int(int(said[1]) * UNITS[said[2]]) if said else 2 * LEAST_YOUNG_MEGABYTES
    wanted = max(LEAST_YOUNG_MEGABYTES, YOUNG_SHARE * megabytes)
    return int(min(wanted, MOST_YOUNG_MEGABYTES, MOST_YOUNG_SHARE * megabytes))


def preset(cores: int, memory: str = "1g") -> dict[str, Setting]:
    """Settings for a session of `cores` slots and so much heap, whose state lies on `file:` paths."""
    return {
        FILE_MANAGER: Setting(
            RENAMING_MANAGER,
            "the default goes through FileContext, which forks readlink for each checkpoint file",
            "about 50 ms a turn on a local disk",
        ),
        FILE_SYSTEM: Setting(
            QUIET_FILE_SYSTEM,
            "Hadoop's own forks chmod for each file it makes",
            "about 30 ms a turn on a local disk",
        ),
        "spark.sql.streaming.stateStore.providerClass": Setting(
            "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
            "small state lives best on the heap; RocksDB costs 10 ms a turn and pays for large state, or "
            "where the slots of a stage with state are to change",
        ),
        "spark.sql.shuffle.partitions": Setting(
            str(cores),
            "a task costs about 5 ms, so no more of them than slots (a stage overrides it by its own)",
            "Spark's default of 200 tasks costs a second for each stateful turn",
        ),
        "spark.sql.adaptive.enabled": Setting(
            "false",
            "re-planning between the stages of a job costs more than a small turn",
            "about 5 ms a turn",
        ),
        "spark.broadcast.compress": Setting(
            "false", "what a turn sends to its tasks is small, and in local mode stays where it is"
        ),
        "spark.broadcast.checksum": Setting("false", "as above"),
        "spark.broadcast.blockSize": Setting(
            "128k",
            "each broadcast begins with a block of memory, 4 MB by default, and a turn has several",
        ),
        "spark.buffer.pageSize": Setting(
            "1m",
            "an aggregation takes memory by pages, for a hundred groups too; of up to 64 MB by default, they "
            "are too large for the young part of the heap: turns leave them for collections of all of it",
        ),
        "spark.sql.sources.parallelPartitionDiscovery.threshold": Setting(
            "100000", "listing a few files must not become a Spark job"
        ),
        "spark.sql.files.openCostInBytes": Setting(
            "65536", "segments are small: pack them into few tasks, not one of 4 MB each"
        ),
        "spark.sql.streaming.minBatchesToRetain": Setting(
            "10", "ten checkpoints suffice to recover; fewer files to list and to remove"
        ),
        "spark.sql.streaming.numRecentProgressUpdates": Setting(
            "2", "Penstock keeps its own turn records; the rest is heap"
        ),
        "spark.sql.streaming.noDataProgressEventInterval": Setting(
            "3600000", "an idle query has nothing to say"
        ),
        "spark.sql.streaming.stopTimeout": Setting(
            "20000", "a query that does not stop is an error, not a hang"
        ),
        "spark.sql.ui.explainMode": Setting(
            "simple", "Spark writes out the plan of every execution for its pages, and nobody reads it"
        ),
        "spark.sql.ui.retainedExecutions": Setting("5", "turns are many: keep few of them on the heap"),
        "spark.ui.retainedJobs": Setting("20", "as above"),
        "spark.ui.retainedStages": Setting("20", "as above"),
        "spark.ui.retainedTasks": Setting("200", "as above"),
        "spark.worker.ui.retainedExecutors": Setting("5", "as above"),
        "spark.ui.enabled": Setting("false", "the pages cost heap and threads; switch on to look inside"),
        "spark.ui.showConsoleProgress": Setting("false", "progress bars of 30 ms jobs are noise"),
        "spark.scheduler.mode": Setting(
            "FAIR", "two turns side by side must not wait for each other's tasks"
        ),
        "spark.sql.parquet.outputTimestampType": Setting(
            "TIMESTAMP_MICROS", "the old default carries no statistics, and event times are read from them"
        ),
        "spark.sql.execution.arrow.pyspark.enabled": Setting("true", "rows cross to Python as Arrow"),
        "spark.sql.session.timeZone": Setting("UTC", "event times mean the same on every machine"),
        "spark.cleaner.periodicGC.interval": Setting("10min", "shuffle files of small turns are soon many"),
        "spark.driver.host": Setting("127.0.0.1", "nothing listens outside of this machine in local mode"),
        "spark.driver.bindAddress": Setting("127.0.0.1", "as above"),
        DRIVER_OPTIONS: Setting(
            f"-XX:+UseSerialGC -XX:NewSize={young_megabytes(memory)}m -XX:ReservedCodeCacheSize=256m "
            "-XX:MinHeapFreeRatio=40 -XX:MaxHeapFreeRatio=50 -XX:-ShrinkHeapInSteps "
            "-XX:+IgnoreUnrecognizedVMOptions -XX:TrimNativeHeapInterval=10000 "
            f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
            "the serial collector needs no threads; young objects get room to die of age, as each "
            "collection of old ones is a pause of 0.2 s or more; with little room among the old ones there "
            "would be many; what a large turn needed goes back to the system after it, from the heap and "
            "from beside it, where a heap that is taken whole at the start would cost small machines 0.5 GB "
            "for good; no console noise",
        ),
    }


def build_session(
    *,
    cores: int | None = None,
    settings: Mapping[str, str] | None = None,
    name: str = "penstock",
    checkpoints_on_files: bool = True,
    master: str | None = None,
    region: str | None = None,
    state: Path | None = None,
) -> "SparkSession":
    """A session with the preset; `settings` override it. One session lives in a process at a time.

    Without a master its slots are `cores` threads of this process. On a cluster it takes what is there, of
    one `region` if that is named; executors on other machines find Penstock's classes in `state`, which they
    must reach.
    Where checkpoints lie on HDFS or an object store, not on `file:` paths, Spark's own choice stays.
    """
    from pyspark.sql import SparkSession

    slots = cores or os.cpu_count() or 1
    where = master or f"local[{slots}]"
    builder = SparkSession.builder.master(where).appName(name)
    memory = (settings or {}).get(DRIVER_MEMORY, "1g")
    chosen = {key: setting.value for key, setting in _settings_for(where, slots, memory, region).items()}
    jars, here = our_jars(), is_on_this_machine(where)
    seen = jars if here or state is None else shared_jars(jars, state)
    for key in (DRIVER_OPTIONS, EXECUTOR_OPTIONS) if here else (DRIVER_OPTIONS,):
        chosen[key] = f"{chosen.get(key, '')} {archive_options()}".strip()
    if master_kind(where) != "local":
        # An executor that does not find the class of a plugin ends, also where it does not reach the state.
        chosen["spark.jars"] = ",".join(map(str, jars))
    chosen |= {
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
        "spark.executor.extraClassPath": os.pathsep.join(map(str, seen)),
    }
    if not checkpoints_on_files:
        del chosen[FILE_MANAGER]
    chosen |= dict(settings or {})
    for key, value in chosen.items():
        builder = builder.config(key, value)
    # Python operators run where Penstock runs, also when its environment is not activated.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    with _own_interrupts():
        session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    _show_workers_the_package(session)
    return session


def _show_workers_the_package(session: "SparkSession") -> None:
    """Python operators of this package are found by their workers where it lies here."""
    import penstock

    environment = session.sparkContext.environment
    here = str(Path(penstock.__file__).parents[1])
    known = environment.get("PYTHONPATH", "").split(os.pathsep)
    if here not in known:
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [*known, here]))


def _settings_for(master: str, slots: int, memory: str, region: str | None) -> dict[str, Setting]:
    chosen = preset(slots, memory)
    if master_kind(master) != "local":
        chosen |= cluster_preset(master, region)
        for key in IN_ONE_PROCESS:
            del chosen[key]
    if not is_on_this_machine(master):
        for key in ONLY_HERE:
            del chosen[key]
    return chosen


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keeps Ctrl-C for the program: PySpark's handler cancels the jobs of turns, which then fail."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def session_warnings(session: "SparkSession") -> list[str]:
    """What the user's own session costs: one sentence for each setting that makes turns slower."""
    cores = session.sparkContext.defaultParallelism
    found = []
    for key, setting in preset(cores).items():
        if not setting.cost_without:
            continue
        value = _value(session, key)
        slow = value != setting.value
        if key == "spark.sql.shuffle.partitions":
            slow = value.isdigit() and int(value) > 4 * cores
        if slow:
            found.append(
                f"{key} is {value}: {setting.why}; that is {setting.cost_without}. Set it to {setting.value}"
            )
    return found


def _value(session: "SparkSession", key: str) -> str:
    """As it is set, or as Spark has it: a default that is named must be of the setting's own type."""
    from pyspark.errors import PySparkException

    try:
        return session.conf.get(key) or ""
    except PySparkException:
        return "not set"


def prepare_session(session: "SparkSession") -> None:
    """Gives a session what every stage needs: Penstock's classes, and time stamps with statistics.

    Its threads must find the classes from its start on: a jar that is added later is seen by the one that
    has added it alone.
    """
    from py4j.java_gateway import JavaPackage

    if isinstance(jvm(session).penstock.LightConfiguration, JavaPackage):
        raise PenstockError(
            "a session of your own must have Penstock's classes from its start, got one without: build it "
            'with .config("spark.jars", str(penstock_jar())), from penstock.spark.jar import penstock_jar, '
            "in a process that has no session yet; or let Engine() start one"
        )
    _show_workers_the_package(session)
    session.sql(f"ADD JAR '{penstock_jar()}'")
    jvm(session).penstock.LightConfiguration.make(java_session(session))
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
