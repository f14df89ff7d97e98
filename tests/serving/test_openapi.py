"""No request that schemathesis makes is a mistake of the server."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

CHECKS = [not_a_server_error, status_code_conformance, response_schema_conformance]
REQUESTS = 12  # of each route


@pytest.mark.slow
def test_no_request_of_the_description_is_a_mistake_of_the_server(server):
    """The answers have a status and a form that the description names."""
    schema = schemathesis.openapi.from_url(f"{server.rest}/openapi.json")
    operations = [one.ok() for one in schema.get_all_operations()]
    assert len(operations) == 15
    for operation in operations:

        @settings(
            max_examples=REQUESTS,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def check(case):
            case.call_and_validate(checks=CHECKS, timeout=60)

        check()
