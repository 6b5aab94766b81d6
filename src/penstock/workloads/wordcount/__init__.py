"""WordCount with a source whose rate grows and shrinks (E2DF, section 5).

`Sentences` and `Ramp` say what is sent and when, `RampFeeder` sends it, `word_count` is the pipeline, and
`Tally` tells what was lost or doubled.
"""

from penstock.workloads.wordcount.pipeline import OPERATORS, word_count
from penstock.workloads.wordcount.ramp import Ramp, RampFeeder
from penstock.workloads.wordcount.sentences import SCHEMA, Sentences
from penstock.workloads.wordcount.tally import Tally

__all__ = ["OPERATORS", "SCHEMA", "Ramp", "RampFeeder", "Sentences", "Tally", "word_count"]
