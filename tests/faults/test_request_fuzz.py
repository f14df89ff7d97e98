"""Random requests do not affect each other; known requests between them are answered correctly."""

import random

import pytest
from support.faults import record, size
from support.hostile_requests import Client, damaged_body, drawn_request, text


@pytest.mark.slow
def test_no_request_harms_another(server):
    """In turn: a random request, a damaged body and a known request."""
    client, draw = Client(server, "echo"), random.Random(25)
    requests, answered = 0, 0
    wanted = size("requests", 600)
    while requests < wanted:
        asked = drawn_request(draw)
        status, answer = client.rest(client.path(asked), client.body(asked))
        assert status in (200, 400, 404), answer
        answered += status == 200
        status, answer = client.rest(client.path(asked), damaged_body(client.body(asked), draw))
        assert status in (200, 400, 404), answer
        texts = ["canary", text(draw), "Ж"]
        assert client.translations(texts) == [f"v10: {sentence}" for sentence in texts]
        requests += 3
    assert requests / 12 < answered < requests / 3.6  # neither all refused nor all answered
    record("canary failures", f"0 of {requests // 3:,}, among {requests:,} requests")
    client.close()
