"""No request that the server's description allows, or nearly allows, causes a server error."""

from collections import Counter
from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance
from support.faults import record, size
from support.servers import served

CHECKS = [not_a_server_error, status_code_conformance, response_schema_conformance]
# The description names neither the languages nor the models of the server.
LANGUAGES = {"source": "en", "target": "de"}
KNOWN = {
    "/translate": LANGUAGES | {"glossary": ""},
    "/translate/stream": LANGUAGES | {"model": ""},
    "/v2/translate": {"source_lang": "EN", "target_lang": "DE", "glossary_id": ""},
}
SHARES = {GenerationMode.POSITIVE: 0.75, GenerationMode.NEGATIVE: 0.25}  # allowed, nearly allowed
REQUESTS = 420


@pytest.fixture
def address(request) -> Iterator[str]:
    """The address of a server; in the nightly tests, of a trained run."""
    if not size("described_requests", 0):
        yield request.getfixturevalue("server").rest
        return
    with served(f"en-de={request.getfixturevalue('tiny_run')}") as server:
        yield server.rest


def requests_of(operation: APIOperation, mode: GenerationMode, count: int) -> Iterator[Case]:
    """Yield requests that the description of an operation allows or nearly allows."""
    cases: list[Case] = []

    @settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(mode))
    def keep(case: Case) -> None:
        cases.append(case)

    keep()
    yield from cases


@pytest.mark.nightly
def test_no_request_of_the_description_is_a_mistake_of_the_server(address):
    """Each response has a described status and form, and most requests are translated."""
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    operations = [route.ok() for route in schema.get_all_operations()]
    assert len(operations) == 22
    with_body = [route for route in operations if route.method == "post"]
    asked, answered = Counter(), Counter()
    for operation in operations:
        wanted = size("described_requests", REQUESTS) / len(with_body)
        counts = {mode: round(wanted * share) for mode, share in SHARES.items()}
        if operation not in with_body:  # there are few
            counts = {GenerationMode.POSITIVE: 10}
        for mode, count in counts.items():
            for case in requests_of(operation, mode, count):
                if mode is GenerationMode.POSITIVE and operation.path in KNOWN:
                    case.body |= KNOWN[operation.path]
                response = case.call_and_validate(checks=CHECKS, timeout=60)
                asked[operation.path] += 1
                answered[operation.path] += response.status_code == 200
    translated = sum(answered[path] for path in KNOWN)
    record("requests of the description", f"0 mistakes in {asked.total():,}")
    record("  of which translated", f"{translated:,}")
    assert asked.total() >= size("described_requests", REQUESTS)
    assert translated > sum(asked[path] for path in KNOWN) / 2, (asked, answered)
    for path in KNOWN:
        assert answered[path] > asked[path] / 4, (path, answered, asked)
