"""The description of the server's APIs lists every route and the served languages."""

from support.served_texts import backwards, with_client


def test_the_description_names_the_routes_models_and_languages_of_its_server():
    async def scenario(client):
        return await (await client.get("/openapi.json")).json()

    described = with_client(scenario, backwards("mine", [], languages=["en", "de"]))
    assert described["openapi"].startswith("3.1")
    assert described["info"]["description"].endswith("Models: mine, from en to de.")
    assert described["paths"].keys() == {
        *("/translate", "/translate/stream", "/align", "/detect", "/languages"),
        *("/frontend/settings", "/v2/translate", "/v2/languages", "/v2/usage"),
        *("/v1/models/{name}", "/v1/models/{name}/metadata", "/v1/models/{name}:predict"),
        *("/health", "/healthz", "/readyz"),
    }
