import pytest

from penstock import Pipeline, sinks, sources
from penstock.pipeline import PipelineError, Sink, Tenant
from penstock.pipeline.nodes import Source


def targets(pipeline: Pipeline) -> dict[str, float | None]:
    return {node.name: node.latency_seconds for node in pipeline.nodes.values() if isinstance(node, Sink)}


def test_sinks_without_a_target_have_that_of_their_tenant() -> None:
    pipeline = Pipeline("p", tenant=Tenant("ads", latency="800ms"))
    rows = pipeline.source("rate", sources.Rate(1))
    rows.sink("own", sinks.Console(), latency="2s")
    rows.sink("other", sinks.Console())
    assert targets(pipeline) == {"own": 2.0, "other": 0.8}


def test_a_pipeline_without_a_tenant_is_one_by_itself_and_promises_nothing() -> None:
    pipeline = Pipeline("p")
    pipeline.source("rate", sources.Rate(1)).sink("out", sinks.Console())
    assert pipeline.tenant == Tenant("p")
    assert targets(pipeline) == {"out": None}


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"name": "a.b"}, "a name must begin with a letter"),
        ({"name": "ads", "latency": "0s"}, "latency target must be positive"),
        ({"name": "ads", "share": 1.5}, "the share of tenant 'ads' must be over 0 and up to 1, got 1.5"),
        ({"name": "ads", "share": 0.0}, "the share of tenant 'ads' must be over 0 and up to 1, got 0.0"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Tenant(**settings)  # type: ignore[arg-type]


def test_a_source_can_be_exchanged_for_another_of_its_name_only() -> None:
    pipeline = Pipeline("p")
    pipeline.source("rate", sources.Rate(1)).sink("out", sinks.Console())
    pipeline.exchange(Source("rate", sources.Rate(5)))
    assert pipeline.nodes["rate"] == Source("rate", sources.Rate(5))
    with pytest.raises(PipelineError, match="there must be a source of that name"):
        pipeline.exchange(Source("out", sources.Rate(5)))
