"""The description of the server's APIs has the values of the models that it serves."""

import http.client
import json
from urllib.parse import urlsplit

import jsonschema_rs
import pytest


@pytest.fixture(scope="module")
def described(server) -> dict:
    connection = http.client.HTTPConnection(urlsplit(server.rest).netloc, timeout=60)
    connection.request("GET", "/openapi.json")
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def test_the_description_names_the_languages_and_models_of_its_server(described):
    schemas = described["components"]["schemas"]
    assert schemas["Source"]["enum"] == ["auto", "en"]
    assert schemas["Target"]["enum"] == ["de"]
    assert (schemas["DeeplSource"]["enum"], schemas["DeeplTarget"]["enum"]) == (["EN"], ["DE"])
    name = described["components"]["parameters"]["name"]["schema"]
    assert name["enum"] == schemas["Model"]["enum"] == ["echo"]


@pytest.mark.parametrize(
    ("request_body", "is_described"),
    [
        ({"instances": ["a", "b"]}, True),
        ({"instances": ["a"] * 64}, True),
        ({"inputs": {"text": ["a"]}}, True),
        ({"signature_name": "translate_beam", "instances": ["a"]}, True),
        ({"signature_name": "translate_ids", "inputs": {"ids": [[2, 3]], "lengths": [2]}}, True),
        ({"signature_name": "score", "instances": [{"source": "a", "target": "b"}]}, True),
        ({"instances": []}, False),
        ({"instances": ["a"] * 65}, False),
        ({"instances": [1]}, False),
        ({"instances": ["a"], "inputs": {"text": ["a"]}}, False),
        ({"inputs": {"text": ["a"], "other": ["a"]}}, False),
        ({"signature_name": "none", "instances": ["a"]}, False),
        ({"signature_name": "score", "instances": ["a"]}, False),
        ({"signature_name": "translate_ids", "inputs": {"ids": [2, 3], "lengths": [2]}}, False),
        ({"signature_name": "translate_ids", "inputs": {"ids": [[2**31]], "lengths": [1]}}, False),
    ],
)
def test_a_request_is_described_if_the_server_answers_it(
    server, described, request_body, is_described
):
    schema = described["components"]["schemas"]["Predict"]
    assert jsonschema_rs.is_valid(schema, request_body) == is_described
    connection = http.client.HTTPConnection(urlsplit(server.rest).netloc, timeout=60)
    connection.request("POST", "/v1/models/echo:predict", json.dumps(request_body))
    assert connection.getresponse().status == (200 if is_described else 400)
    connection.close()
