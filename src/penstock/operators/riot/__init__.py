"""RIoTBench's operators: functions of their parameters that give functions from DataFrame to DataFrame.

All are Spark SQL expressions, recurrences (`penstock.operators.scan`) or MLlib. The parameters default to
RIoTBench's own; docs/riot.md lists the operators, and `rows.py` the columns that pass between them.
"""

from penstock.operators.riot.annotate import annotate
from penstock.operators.riot.block_average import block_average
from penstock.operators.riot.bloom_filter import bloom_filter
from penstock.operators.riot.distinct_count import distinct_count
from penstock.operators.riot.error_estimate import error_estimate, error_of_row
from penstock.operators.riot.interpolate import interpolate
from penstock.operators.riot.join_by_message import join_by_message
from penstock.operators.riot.kalman import kalman
from penstock.operators.riot.models import decision_tree, linear_regression
from penstock.operators.riot.payload import as_payload, as_payloads, csv_to_senml, published
from penstock.operators.riot.range_filter import range_filter
from penstock.operators.riot.rows import QUANTITIES
from penstock.operators.riot.second_order_moment import second_order_moment
from penstock.operators.riot.senml import parse_project, senml_parse, senml_project
from penstock.operators.riot.sliding_linear_regression import sliding_linear_regression
from penstock.operators.riot.training import ANSWERS, regression_training, tree_training
from penstock.operators.riot.training_rows import annotate_class, read_rows
from penstock.operators.transform import Transform, in_turn

__all__ = [
    "ANSWERS",
    "QUANTITIES",
    "Transform",
    "annotate",
    "annotate_class",
    "as_payload",
    "as_payloads",
    "block_average",
    "bloom_filter",
    "csv_to_senml",
    "decision_tree",
    "distinct_count",
    "error_estimate",
    "error_of_row",
    "in_turn",
    "interpolate",
    "join_by_message",
    "kalman",
    "linear_regression",
    "parse_project",
    "published",
    "range_filter",
    "read_rows",
    "regression_training",
    "second_order_moment",
    "senml_parse",
    "senml_project",
    "sliding_linear_regression",
    "tree_training",
]
