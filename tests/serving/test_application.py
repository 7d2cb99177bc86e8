"""The endpoints: what they answer, what they refuse and with which status, and what they count."""

import asyncio
import contextlib
import json
import re
import threading
import warnings
from types import SimpleNamespace

import pytest
import torch
from torch import nn

import pluribus
from pluribus.data import Columns
from pluribus.serving import ServerSettings, bodies
from pluribus.serving import application as application_module
from pluribus.serving.errors import RequestError
from pluribus.serving.model import open_model
from pluribus.serving.settings import HELD_BODIES

from .files import CLASSES, draw_images, encode_png, export_classifier
from .loops import run_apart

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

SETTINGS = ServerSettings(max_rows=5, max_bytes=4000, threads=1)
ROW = draw_images(1)[0].tolist()
PNG = encode_png(draw_images(1)[0])


@contextlib.contextmanager
def open_client(model, settings=SETTINGS, report=lambda error: None):
    with TestClient(application_module.build_application(model, settings, report)) as client:
        yield client


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    file = tmp_path_factory.mktemp("served") / "insects.onnx"
    export_classifier(file)
    return open_model(file, threads=1)


@pytest.fixture
def client(model):
    with open_client(model) as client:
        yield client


def test_rows_and_pictures_get_the_same_answers(client, model):
    images = draw_images(3)
    expected = [{"row": row} | answer for row, answer in enumerate(model.answer([images]))]
    rows = client.post("/predict", json={"rows": images.tolist()})
    form = client.post("/predict", files=[("images", (f"{n}.png", encode_png(image))) for n, image in enumerate(images)])
    one = client.post("/predict", content=encode_png(images[0]), headers={"content-type": "image/png"})
    assert [answer.status_code for answer in (rows, form, one)] == [200, 200, 200]
    assert rows.json() == form.json() == {"answers": expected}
    assert one.json()["answers"][0]["label"] == expected[0]["label"]
    assert one.json()["answers"][0]["confidence"] == pytest.approx(expected[0]["confidence"], abs=1e-6)


def nest(value):
    return [[[value] * 4] * 4]


WRONG = {
    "no JSON": (b"{", 400, "is no JSON: EOF"),
    "NaN, which JSON has not": (b'{"rows": [[[[NaN, 1, 1, 1]]]]}', 422, "finite|number"),
    "a list": (b"[]", 422, "must hold a mapping"),
    "no rows": (b'{"rows": []}', 422, "at least 1 entries for 'rows'"),
    "another key": (json.dumps({"rows": [ROW], "more": 1}).encode(), 422, "unknown key 'more'"),
    "too deep": (b'{"rows": ' + b"[" * 1500 + b"]" * 1500 + b"}", 400, "is no JSON: recursion"),
    "a wrong shape": (
        json.dumps({"rows": [[ROW[0][:3]]]}).encode(),
        422,
        r"at least 4 entries .* uint8 of the shape \[1, 4, 4\]",
    ),
    "a ragged row": (json.dumps({"rows": [ROW, [[[1, 2, 3, 4], [1], [1], [1]]]]}).encode(), 422, "'rows.1.0.1'"),
    "a text": (json.dumps({"rows": [nest("7")]}).encode(), 422, "a whole number for 'rows.0.0.0.0', got '7'"),
    "a pixel above 255": (json.dumps({"rows": [nest(256)]}).encode(), 422, "at most 255"),
    "half a pixel": (json.dumps({"rows": [nest(0.5)]}).encode(), 422, "whole number"),
    "too many rows": (json.dumps({"rows": [ROW] * 6}).encode(), 413, "at most 5 rows"),
    "too many bytes": (b" " * 4001, 413, "at most 4,000 bytes, got 4,001"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_malformed_json_is_refused_with_what_is_expected(client, wrong):
    body, status, message = WRONG[wrong]
    answer = client.post("/predict", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status, answer.text
    assert re.search(message, answer.json()["detail"])
    assert client.post("/predict", json={"rows": [ROW]}).status_code == 200


def test_wrong_pictures_and_forms_are_refused(client):
    def send(content, kind, **options):
        answer = client.post("/predict", content=content, headers={"content-type": kind}, **options)
        return answer.status_code, answer.json()["detail"]

    assert send(b"no picture", "image/png")[0] == 422
    assert "cannot be read as an image" in send(PNG[:40], "image/png")[1]
    assert send(b"x", "text/plain") == (
        415,
        "the content type must be application/json, image/… or multipart/form-data, got text/plain",
    )
    assert send(b"x", "multipart/form-data")[0] == 400
    assert send(b"--b\r\nnonsense", "multipart/form-data; boundary=b")[0] in (400, 422)
    form = client.post("/predict", files={"image": ("a.png", PNG)}, data={"rows": "[1]"})
    assert (form.status_code, form.json()["detail"]) == (422, "every field of the form must be a file, got a text for 'rows'")
    many = client.post("/predict", files=[("images", ("a.png", PNG))] * 6)
    assert many.status_code == 413


def test_a_body_without_a_length_is_refused_while_it_arrives(client):
    sent = []

    def chunks():
        for _ in range(1000):
            sent.append(1)
            yield b" " * 1000

    answer = client.post("/predict", content=chunks(), headers={"content-type": "application/json"})
    assert answer.status_code == 413
    assert answer.headers["connection"] == "close"
    assert answer.json()["detail"].startswith("a body must have at most 4,000 bytes, got more")


def test_a_body_that_takes_too_long_is_refused(model, monkeypatch):
    """Sent by hand: clients wait for their own generators, and not for the clock of the server."""
    monkeypatch.setattr(bodies, "BODY_SECONDS", 0.05)

    async def send_slowly():
        async def receive():
            await asyncio.sleep(20)

        said = []

        async def keep(message):
            said.append(message)

        app = application_module.build_application(model, SETTINGS)
        scope = {"type": "http", "method": "POST", "path": "/predict", "headers": [], "query_string": b""}
        async with app.router.lifespan_context(app):
            await asyncio.wait_for(app(scope, receive, keep), 15)
        return said

    start, body = run_apart(send_slowly())[:2]
    assert start["status"] == 408
    assert b"must arrive within 0.05 seconds" in body["body"]


def test_bodies_that_are_held_together_are_bounded(model):
    reader = bodies.BodyReader(100)
    request = SimpleNamespace(headers={}, stream=None)

    async def chunk():
        yield b" " * 100

    async def hold(count):
        request.stream = chunk
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(count):
                await stack.enter_async_context(reader.read(request))

    run_apart(hold(HELD_BODIES))
    assert reader.held == 0
    with pytest.raises(RequestError, match="too many large requests") as refused:
        run_apart(hold(HELD_BODIES + 1))
    assert (refused.value.status, reader.held) == (503, 0)


def test_the_pixels_of_a_picture_are_limited(client, monkeypatch):
    monkeypatch.setenv("PLURIBUS_MAX_PIXELS", "10")
    answer = client.post("/predict", content=PNG, headers={"content-type": "image/png"})
    assert answer.status_code == 422
    assert "16 pixels, more than the limit of 10" in answer.json()["detail"]


def test_the_root_says_what_the_model_is(client):
    found = client.get("/").json()
    assert (found["title"], found["task"], found["classes"]) == ("insects", "classification", list(CLASSES))
    assert found["inputs"] == [{"name": "input", "type": "uint8", "shape": [1, 4, 4]}]
    assert found["limits"] == {"rows": 5, "bytes": 4000, "waiting_rows": 1024}
    assert "DeepEnsemble(members=3)" in found["method"]
    assert "POST /predict" in found["endpoints"]


def test_the_page_and_its_description_need_no_other_server(client):
    page = client.get("/docs").text
    addresses = re.findall(r"""(?:src|href|url)\s*[=:]\s*['"]([^'"]+)""", page)
    assert "/openapi.json" in addresses
    for address in addresses:
        assert address.startswith("/"), address
        assert client.get(address).status_code == 200, address
    described = client.get("/openapi.json").json()
    post = described["paths"]["/predict"]["post"]
    rows = post["requestBody"]["content"]["application/json"]["schema"]["properties"]["rows"]
    assert (rows["minItems"], rows["maxItems"]) == (1, 5)
    assert set(post["requestBody"]["content"]) == {"application/json", "image/*", "multipart/form-data"}
    said = post["responses"]["200"]["content"]["application/json"]["schema"]["properties"]["answers"]["items"]["properties"]
    answered = client.post("/predict", json={"rows": [ROW]}).json()["answers"][0]
    assert set(answered) == set(said) - {"error"}
    assert {"400", "408", "413", "415", "422", "503"} < set(post["responses"])


def test_requests_rows_and_runs_are_counted(client):
    client.post("/predict", json={"rows": [ROW, ROW]})
    client.post("/predict", json={"rows": []})
    lines = client.get("/metrics").text.splitlines()
    for line in (
        'pluribus_requests_total{status="200"} 1.0',
        'pluribus_requests_total{status="422"} 1.0',
        'pluribus_rows_total{said="answered"} 2.0',
        "pluribus_run_rows_sum 2.0",
        "pluribus_run_seconds_count 1.0",
        "pluribus_request_seconds_count 2.0",
        "pluribus_waiting_rows 0.0",
    ):
        assert line in lines
    assert any(line.startswith("process_resident_memory_bytes") for line in lines)


class Blocked:
    """The answers of a model, which come once they may."""

    def __init__(self, model):
        self.model, self.may_run, self.began = model, threading.Event(), threading.Event()

    def __getattr__(self, name):
        return getattr(self.model, name)

    def answer(self, rows):
        self.began.set()
        assert self.may_run.wait(20)
        return self.model.answer(rows)


def test_a_full_queue_is_answered_with_503_and_is_not_ready(model):
    blocked = Blocked(model)
    found = []
    with open_client(blocked, ServerSettings(max_rows=1, max_waiting=1, max_wait_ms=0)) as client:
        assert client.get("/health/ready").status_code == 200

        def send():
            found.append(client.post("/predict", json={"rows": [ROW]}).status_code)

        threads = [threading.Thread(target=send) for _ in range(2)]
        threads[0].start()
        assert blocked.began.wait(20)
        threads[1].start()
        while client.get("/health/ready").status_code == 200:
            pass
        refused = client.post("/predict", json={"rows": [ROW]})
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert client.get("/health/live").status_code == 200
        blocked.may_run.set()
        for thread in threads:
            thread.join(20)
        assert client.get("/health").json() == {"live": True, "ready": True}
    assert found == [200, 200]


def test_an_error_that_nobody_foresaw_is_reported_and_stops_nothing(model, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("secret")

    errors = []
    with open_client(model, report=errors.append) as client:
        with monkeypatch.context() as patch:
            patch.setattr(application_module, "parse_json_rows", fail)
            answer = client.post("/predict", json={"rows": [ROW]})
        assert answer.status_code == 500
        assert "secret" not in answer.text
        assert [type(error) for error in errors] == [ZeroDivisionError]
        assert client.post("/predict", json={"rows": [ROW]}).status_code == 200


def test_rows_of_a_table_are_objects_of_its_columns(tmp_path):
    import pandas

    frame = pandas.DataFrame({"age": [20.0, 40.0, 30.0], "colour": ["red", "blue", "red"]})
    columns = Columns.fit(frame, answer="kind", classes=("cat", "dog"))
    ensemble = pluribus.ensemble(nn.Linear(3, 2), pluribus.DeepEnsemble(members=2)).eval()
    x = columns.encode(frame)
    pluribus.export(ensemble, tmp_path / "m.pt2", example=x, preparation=columns, classes=("cat", "dog"))
    with open_client(open_model(tmp_path / "m.pt2", trust=True)) as client:
        found = client.post("/predict", json={"rows": frame.to_dict("records")}).json()["answers"]
        assert [answer["label"] for answer in found] == [("cat", "dog")[place] for place in ensemble.predict(x).labels.tolist()]
        strange = client.post("/predict", json={"rows": [{"age": 3, "colour": "green", "other": None}]}).json()
        assert "category that training did not have, such as 'green'" in strange["warnings"][0]
        for row, message in (
            ({"age": 3}, "'colour' missing"),
            ({"age": "old", "colour": "red"}, "must hold numbers, got 'old'"),
            ({"age": None, "colour": "red"}, "NaN in column 'age'"),
            ({"age": 10**400, "colour": "red"}, "infinity in column 'age'|infinite|smaller"),
            ({"age": [1], "colour": "red"}, "rows.0.age"),
            ([1, 2, 3], "an object with the columns age, colour"),
        ):
            answer = client.post("/predict", json={"rows": [row]})
            assert answer.status_code == 422, row
            assert re.search(message, answer.json()["detail"]), answer.text
        assert client.post("/predict", content=PNG, headers={"content-type": "image/png"}).status_code == 415
        assert client.get("/").json()["columns"] == ["age", "colour"]


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(7, 4), nn.Linear(5, 3)

    def forward(self, ids, weight):
        return self.head(torch.cat([self.table(ids).mean(1), weight], 1))


def test_several_inputs_are_objects_and_a_row_that_the_model_refuses_is_named(tmp_path):
    x = {"ids": torch.randint(0, 7, (4, 2)), "weight": torch.randn(4, 1)}
    ensemble = pluribus.ensemble(Tokens(), pluribus.DeepEnsemble(members=2), example=x).eval()
    pluribus.export(ensemble, tmp_path / "m.onnx", example=x)
    with open_client(open_model(tmp_path / "m.onnx", threads=1)) as client:
        rows = [{"ids": ids, "weight": weight} for ids, weight in zip(x["ids"].tolist(), x["weight"].tolist(), strict=True)]
        found = client.post("/predict", json={"rows": rows}).json()["answers"]
        assert [int(answer["label"]) for answer in found] == ensemble.predict(x).labels.tolist()
        for row, message in (
            ({"ids": [1, 2]}, "lacks the key 'rows.0.weight'"),
            ({"ids": [1, 2], "weight": [1e39]}, "at most 3.4"),
            ({"ids": [1, 99], "weight": [0.0]}, "the model cannot answer these rows"),
        ):
            answer = client.post("/predict", json={"rows": [row]})
            assert answer.status_code == 422
            assert message in answer.json()["detail"]


def test_settings_that_make_no_sense_are_refused():
    with pytest.raises(ValueError, match="max_rows must be at most max_waiting"):
        ServerSettings(max_rows=10, max_waiting=5)
    with pytest.raises(ValueError, match="max_wait_ms must be from 0"):
        ServerSettings(max_wait_ms=-1)
