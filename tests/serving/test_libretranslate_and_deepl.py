"""LibreTranslate's and DeepL's APIs, used by their clients and by hand.

The served model returns a sentence in capitals, and as its second translation "so" and the sentence
in lower case.
"""

import json
from urllib.error import HTTPError
from urllib.parse import urlencode

import deepl
import pytest
from deep_translator import LibreTranslator
from libretranslatepy import LibreTranslateAPI
from support.servers import answer_to

TEXT = "Mr. Smith is here.  He sleeps.\n\n\tThe dog?  \n"
CAPITALS = "MR. SMITH IS HERE.  HE SLEEPS.\n\n\tTHE DOG?  \n"


def ask(
    server, method: str, path: str, content: object = None, **headers: str
) -> tuple[int, object]:
    """Return status and JSON of a response. A dict is sent as JSON, a list of pairs as a form."""
    body, kind = None, "application/json"
    if isinstance(content, dict):
        body = json.dumps(content).encode()
    elif isinstance(content, list):
        body, kind = urlencode(content).encode(), "application/x-www-form-urlencoded"
    elif isinstance(content, bytes):
        body = content
    answer = answer_to(server, method, path, body, {"Content-Type": kind} | headers)
    return answer.status, json.loads(answer.text)


# The clients of others


def test_libretranslatepy_is_answered(server):
    client = LibreTranslateAPI(server.rest)
    assert client.translate(TEXT, "en", "de") == CAPITALS
    assert client.translate("A dog.", "auto", "de") == "A DOG."
    assert client.languages() == [{"code": "en", "name": "English", "targets": ["de"]}]
    best, second = client.detect("The animal did not cross the street.")
    assert (best["language"], second["language"]) == ("en", "de")
    assert best["confidence"] > 90 > 10 > second["confidence"]
    with pytest.raises(HTTPError, match="400") as refused:
        client.translate("A dog.", "fr", "de")
    refused.value.close()


def test_deep_translator_is_answered(server):
    settings = {"source": "en", "target": "de", "custom_url": f"{server.rest}/"}
    client = LibreTranslator(api_key="any", **settings)
    assert client.translate(TEXT) == CAPITALS
    assert client.translate_batch(["A dog.", "A cat."]) == ["A DOG.", "A CAT."]


def test_deepls_client_is_answered(server):
    client = deepl.DeepLClient("any", server_url=server.rest)
    result = client.translate_text(TEXT, target_lang="DE")
    assert (result.text, result.detected_source_lang) == (CAPITALS, "EN")
    assert result.billed_characters == len(TEXT)
    many = client.translate_text(["A dog.", "A cat."], source_lang="EN", target_lang="DE")
    assert [translation.text for translation in many] == ["A DOG.", "A CAT."]
    assert [language.code for language in client.get_source_languages()] == ["EN"]
    assert [language.name for language in client.get_target_languages()] == ["German"]
    before = client.get_usage().character.count
    client.translate_text("A dog.", target_lang="DE")
    usage = client.get_usage()
    assert usage.character.count == before + len("A dog.")
    assert not usage.any_limit_reached


def test_deepls_client_has_the_faster_search_and_whole_lines(server):
    client = deepl.DeepLClient("any", server_url=server.rest)
    quick = client.translate_text("A dog.", target_lang="DE", model_type="latency_optimized")
    assert (quick.text, quick.model_type_used) == ("v10: A dog.", "latency_optimized")
    options = {"target_lang": "DE", "model_type": "latency_optimized", "split_sentences": "0"}
    assert client.translate_text("A. B c.\nD e.", **options).text == "v10: A. B c.\nv10: D e."


def test_deepls_client_has_lines_that_go_on(server):
    """A blank line nevertheless ends a sentence."""
    client = deepl.DeepLClient("any", server_url=server.rest)
    text = "The animal \r\n is tired.\nIt\nsleeps\n\nA dog\n"
    for split, expected in (
        ("1", text),
        ("nonewlines", "The animal is tired. It sleeps\n\nA dog\n"),
    ):
        result = client.translate_text(text, target_lang="DE", split_sentences=split)
        assert (result.text, result.billed_characters) == (expected.upper(), len(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<title>A <b>dog</b>.</title><p>A cat.</p>", "<title>A <b>DOG</b>.</title><p>A CAT.</p>"),
        ("<seg>A dog.</seg><code/><seg>A cat.</seg>", "<seg>A DOG.</seg><code/><seg>A CAT.</seg>"),
        ("A <x>dog</x>.", "A <x>DOG</x>."),
    ],
)
def test_deepls_client_has_xml_by_its_own_rules(server, text, expected):
    client = deepl.DeepLClient("any", server_url=server.rest)
    assert client.translate_text(text, target_lang="DE", tag_handling="xml").text == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<p>A dog.", "mismatched tag in line 1, column 10"),
        ("A dog.\nA cat & a dog.", "invalid token.* in line 2, column 8"),
        ("A <b>dog</c>.", "mismatched tag in line 1, column 11"),
    ],
)
def test_deepls_client_hears_what_is_no_xml(server, text, message):
    """DeepL also refuses a request with malformed XML, and names the position."""
    client = deepl.DeepLClient("any", server_url=server.rest)
    with pytest.raises(
        deepl.DeepLException, match=f"the XML cannot be read: .*{message}"
    ) as caught:
        client.translate_text(["<p>One.</p>", text], target_lang="DE", tag_handling="xml")
    assert caught.value.http_status_code == 400


def test_deepls_client_has_glossaries(server):
    client = deepl.DeepLClient("any", server_url=server.rest)
    entries = {"dog": "Hund", "guide dog": "Führhund"}
    made = client.create_glossary("Animals", "EN", "DE", entries)
    assert (made.name, made.source_lang, made.target_lang) == ("Animals", "EN", "DE")
    assert (made.ready, made.entry_count) == (True, 2)
    csv = 'cat,"Kater,\nalt",EN,DE\n'
    second = client.create_glossary_from_csv("Cats", "EN", "DE", csv)
    listed = {glossary.glossary_id: glossary.name for glossary in client.list_glossaries()}
    assert listed == {made.glossary_id: "Animals", second.glossary_id: "Cats"}
    assert client.get_glossary(made.glossary_id).creation_time == made.creation_time
    assert client.get_glossary_entries(made) == entries
    assert client.get_glossary_entries(second) == {"cat": "Kater, alt"}
    languages = client.get_glossary_languages()
    assert [(pair.source_lang, pair.target_lang) for pair in languages] == [("en", "de")]
    options = {"source_lang": "EN", "target_lang": "DE", "glossary": made}
    texts = ["A guide dog. Two dogs.", "A Dog."]
    said = [answer.text for answer in client.translate_text(texts, **options)]
    assert said == ["A Führhund. TWO DOGS.", "A Hund."]
    assert client.translate_text("<b>A dog</b>.", tag_handling="html", **options).text == (
        "<b>A Hund</b>."
    )
    client.delete_glossary(second)
    client.delete_glossary(made)
    assert client.list_glossaries() == []
    for call in (client.delete_glossary, client.get_glossary, client.get_glossary_entries):
        with pytest.raises(deepl.GlossaryNotFoundException, match="there is no glossary"):
            call(made.glossary_id)
    with pytest.raises(deepl.DeepLException, match="there is no glossary") as caught:
        client.translate_text("A dog.", **options)
    assert caught.value.http_status_code == 404


def test_a_glossary_with_a_mistake_is_refused(server):
    fields = {"name": "x", "source_lang": "EN", "target_lang": "DE"}

    def refused(entries: str, **other: str) -> str:
        status, answer = ask(
            server, "POST", "/v2/glossaries", fields | {"entries": entries} | other
        )
        assert status == 400
        return answer["message"]

    assert "line 2: 'a' = 'c' contradicts line 1, 'a' = 'b'" in refused("a\tb\na\tc")
    assert "line 2: a term and its translation must not be empty" in refused("a\tb\n\nc\td")
    assert "line 1: a term and its translation" in refused("a", entries_format="csv")
    assert "translation to FR is" in refused("a\tb", source_lang="", target_lang="FR")


def test_libretranslates_fields_have_a_glossary_too(server):
    fields = {"q": "The Dog sleeps.", "source": "en", "target": "de"}
    for glossary in ({"dog": "Hund"}, "dog\tHund\n"):
        status, answer = ask(server, "POST", "/translate", fields | {"glossary": glossary})
        assert (status, answer["translatedText"]) == (200, "THE Hund SLEEPS.")
    form = [*fields.items(), ("glossary", "dog\tHund")]
    assert ask(server, "POST", "/translate", form)[1]["translatedText"] == "THE Hund SLEEPS."
    status, answer = ask(server, "POST", "/translate", fields | {"glossary": {"dog": " "}})
    assert (status, "line 1: a term and its translation" in answer["error"]) == (400, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"formality": "more"}, "formality=more is not supported: .* has no tag for it; send pref"),
        ({"ignore_tags": ["x"]}, "ignore_tags is not supported"),
        ({"target_lang": "FR"}, "translation to FR is not supported; choose one of en to de"),
        ({"target_lang": "FR", "source_lang": "EN"}, "EN to FR is not supported"),
        ({"tag_handling": "latex"}, "tag_handling must be '', 'html' or 'xml'; it is 'latex'"),
    ],
)
def test_deepls_client_hears_what_is_not_supported(server, options, message):
    client = deepl.DeepLClient("any", server_url=server.rest)
    with pytest.raises(deepl.DeepLException, match=message) as caught:
        client.translate_text("A dog.", **({"target_lang": "DE"} | options))
    assert caught.value.http_status_code == 400


# By hand


def test_a_list_is_answered_with_lists(server):
    body = {"q": ["A dog.", ""], "source": "auto", "target": "de", "alternatives": 3}
    status, answer = ask(server, "POST", "/translate", body)
    assert status == 200
    assert answer["translatedText"] == ["A DOG.", ""]
    assert answer["alternatives"] == [["so a dog."], []]
    assert [language["language"] for language in answer["detectedLanguage"]] == ["en", "en"]
    assert ask(server, "POST", "/translate", body | {"q": []}) == (200, {"translatedText": []})


def test_forms_and_the_query_are_read(server):
    pairs = [("text", "A dog."), ("text", "Ж."), ("target_lang", "de")]
    status, answer = ask(server, "POST", "/v2/translate", pairs)
    assert (status, [t["text"] for t in answer["translations"]]) == (200, ["A DOG.", "Ж."])
    query = urlencode({"q": "A dog.", "source": "en", "target": "de"})
    assert ask(server, "POST", f"/translate?{query}") == (200, {"translatedText": "A DOG."})


def test_what_is_not_supported_may_be_empty(server):
    body = {"text": ["A dog."], "target_lang": "DE"}
    empty = {"ignore_tags": [], "splitting_tags": [], "glossary_id": "", "style_id": None}
    status, answer = ask(server, "POST", "/v2/translate", body | empty)
    assert (status, answer["translations"][0]["text"]) == (200, "A DOG.")
    form = [("text", "A dog."), ("target_lang", "DE"), ("ignore_tags", ""), ("glossary_id", "")]
    assert ask(server, "POST", "/v2/translate", form)[0] == 200
    for given in ({"ignore_tags": [""]}, {"style_id": "an-id"}, {"ignore_tags": "x"}):
        assert ask(server, "POST", "/v2/translate", body | given)[0] == 400


def test_the_settings_say_what_the_server_can(server):
    status, settings = ask(server, "GET", "/frontend/settings")
    assert status == 200
    assert settings["language"]["target"] == {"code": "de", "name": "German"}
    assert (settings["keyRequired"], settings["suggestions"]) == (False, False)


GOOD = {"q": "A dog.", "source": "en", "target": "de"}
BAD = {
    "no q": ({"target": "de"}, "the field q is missing"),
    "no target": ({"q": "a", "source": "en"}, "the field target is missing"),
    "a number": (GOOD | {"q": 7}, "q must be a valid string; it is 7"),
    "a nested list": (GOOD | {"q": [["a"]]}, "q must be a valid string"),
    "a format": (GOOD | {"format": "pdf"}, "format must be 'text' or 'html'"),
    "no language": ({"q": "a", "target": "xx"}, "translation to xx is not supported"),
    "a language": (GOOD | {"target": "xx"}, "en to xx is not supported"),
    "alternatives": (GOOD | {"alternatives": -1}, "alternatives must be greater than"),
    "digits": (
        GOOD | {"alternatives": "9" * 5000},
        "alternatives is incorrect (Unable to parse input string as an integer, exceeded",
    ),
    "a term": (GOOD | {"glossary": {"a": " "}}, "glossary, line 1: a term and its translation"),
    "no JSON": (b"{", "the body is not JSON"),
    "too much": (b" " * (2 * 2**20 + 1), "more than 2097152 bytes"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_requests_get_libretranslates_errors(server, name):
    content, message = BAD[name]
    status, answer = ask(server, "POST", "/translate", content)
    assert (status, set(answer)) == (413 if name == "too much" else 400, {"error"})
    assert message in answer["error"]


def test_errors_of_deepls_api_have_its_form(server):
    for content, message in (
        ({"target_lang": "DE"}, "the field text is missing"),
        ({"target_lang": "DE", "text": ["a"] * 51}, "field text must have at most 50 items"),
        ({"text": ["a"]}, "the field target_lang is missing"),
        (b"{", "the body is not JSON"),
    ):
        status, answer = ask(server, "POST", "/v2/translate", content)
        assert (status, set(answer)) == (400, {"message"})
        assert message in answer["message"]
    assert ask(server, "GET", "/v2/nowhere")[0] == 404
    assert ask(server, "GET", "/v2/translate")[0] == 405
    xml = ask(server, "POST", "/v2/translate", b"<x/>", **{"Content-Type": "text/xml"})
    assert xml[0] == 415
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert ask(server, "POST", "/v2/translate", b"text=%ff", **form)[0] == 400


# Forms in parts, as `curl --form` and many clients send them

PARTS = {"Content-Type": "multipart/form-data; boundary=limit"}


def part(name: str, value: bytes, more: bytes = b"") -> bytes:
    head = b'--limit\r\nContent-Disposition: form-data; name="' + name.encode() + b'"' + more
    return head + b"\r\n\r\n" + value + b"\r\n"


def in_parts(*pairs: tuple[str, str]) -> bytes:
    return b"".join(part(name, value.encode()) for name, value in pairs) + b"--limit--\r\n"


LANGUAGES = (("source", "en"), ("target", "de"))


@pytest.mark.parametrize(
    ("path", "pairs", "answer"),
    [
        ("/translate", [("q", TEXT)], {"translatedText": CAPITALS}),
        # TensorFlow's capitals are those of ASCII.
        ("/translate", [("q", "Größe 😀\x00")], {"translatedText": "GRößE 😀\x00"}),
        (
            "/translate",
            [("q", "A dog."), ("q", "A cat.")],
            {"translatedText": ["A DOG.", "A CAT."]},
        ),
        (
            "/align",
            [("q", "A dog."), ("translation", "A DOG.")],
            {"links": [], "confidence": None, "word_confidences": []},
        ),
    ],
)
def test_a_form_in_parts_has_the_fields_of_any_other(server, path, pairs, answer):
    form = [*pairs, *LANGUAGES]
    assert ask(server, "POST", path, in_parts(*form), **PARTS) == (200, answer)
    assert ask(server, "POST", path, form) == (200, answer)


def test_deepl_takes_a_form_in_parts(server):
    body = in_parts(("text", "A dog."), ("text", "A cat."), ("target_lang", "DE"))
    status, answer = ask(server, "POST", "/v2/translate", body, **PARTS)
    assert status == 200
    assert [translation["text"] for translation in answer["translations"]] == ["A DOG.", "A CAT."]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"no form", "the form cannot be read"),
        (b"--limit\r\n\r\nOne.\r\n--limit--\r\n", "the form cannot be read"),
        (b"--limit\r\nno header\r\n\r\nOne.\r\n--limit--", "the form cannot be read"),
        (
            part("target", b"de") + part("q", b"1", b'; filename="1.txt"') + b"--limit--",
            "the field q",
        ),
        (part("target", b"de") + b"--limit--\r\n", "the field q is missing"),
        (b"", "is missing"),
    ],
)
def test_a_form_in_parts_that_cannot_be_read_is_refused(server, body, message):
    status, answer = ask(server, "POST", "/translate", body, **PARTS)
    assert status == 400
    assert message in answer["error"]


def test_a_form_in_parts_has_a_limit_and_a_boundary(server):
    body = in_parts(("q", "a" * 2**20), ("source", "b" * 2**20), *LANGUAGES)
    assert ask(server, "POST", "/translate", body, **PARTS)[0] == 413
    kind = {"Content-Type": "multipart/form-data"}
    assert ask(server, "POST", "/translate", in_parts(("q", "One.")), **kind)[0] == 400
    many = in_parts(*[("q", "One.")] * 1_001, *LANGUAGES)
    assert ask(server, "POST", "/translate", many, **PARTS)[0] in (400, 413)
