import subprocess
import sys


def test_the_operators_are_imported_without_spark_and_without_opendp() -> None:
    question = (
        "import sys, penstock.operators.privacy; "
        "print([name for name in ('pyspark', 'py4j', 'opendp') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", question], capture_output=True, text=True, check=False)
    assert (answer.stdout, answer.stderr) == ("[]\n", "")
