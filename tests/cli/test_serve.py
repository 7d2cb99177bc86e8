"""`pluribus serve`: a process that answers as `pluribus predict` does, holds many clients, and ends when it is told to."""

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from pluribus.data import load
from tests.cli.files import npz

from ..serving.files import encode_png, export_classifier
from .test_export import TRAIN

WAIT = 120
"""Seconds that a server may take to start or to stop: tests run beside other work."""


@contextlib.contextmanager
def start_server(line, folder):
    """The process of `pluribus serve LINE` and a client for it."""
    words = [sys.executable, "-m", "pluribus", "serve", *line.split(), "--port", "0", "--threads", "1"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    process = subprocess.Popen(words, cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert select.select([process.stdout], [], [], WAIT)[0], "the server did not start"
        said = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+", said)
        assert address, said + process.stderr.read()
        with httpx.Client(base_url=address[0], timeout=WAIT, trust_env=False) as client:
            yield process, client
    finally:
        process.kill()
        process.communicate()


def stop(process):
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=WAIT)
    assert err == ""
    assert out == "stopped\n"
    return process.returncode


def check_same(found, expected):
    assert list(found) == [key for key in expected if key != "file"]
    for key, value in found.items():
        if isinstance(value, float):
            assert abs(value - expected[key]) < 1e-5
        elif key == "probabilities":
            assert list(value) == list(expected[key])
            assert all(abs(value[name] - expected[key][name]) < 1e-5 for name in value)
        else:
            assert value == expected[key], key


def test_concurrent_clients_get_the_answers_of_predict(pluribus, work):
    assert pluribus(f"{TRAIN} --method mimo:members=2").code == 0
    assert pluribus("calibrate run --coverage 0.8 --risk 0.9 --false-alarms 0.3").code == 0
    assert pluribus("export run --out model.onnx").code == 0
    images = load("digits").test.x[:48]
    npz("new.npz", x=images.numpy())(work)
    expected = [json.loads(line) for line in pluribus("predict run new.npz --json").out.splitlines()]
    with start_server("model.onnx --max-wait-ms 20", work) as (process, client):

        def send(start):
            """Rows start to start + 3: the first two as JSON, the third as a picture."""
            rows = client.post("/predict", json={"rows": images[start : start + 2].tolist()})
            picture = client.post("/predict", content=encode_png(images[start + 2]), headers={"content-type": "image/png"})
            assert (rows.status_code, picture.status_code) == (200, 200)
            return rows.json()["answers"] + picture.json()["answers"]

        with ThreadPoolExecutor(8) as pool:
            found = [answer for part in pool.map(send, range(0, 48, 3)) for answer in part]
        for answer, right in zip(found, expected, strict=True):
            check_same(answer | {"row": right["row"]}, right)
        counted = client.get("/metrics").text
        assert 'pluribus_requests_total{status="200"} 32.0' in counted
        runs = float(re.search(r"^pluribus_run_rows_count (\S+)", counted, re.MULTILINE)[1])
        assert runs < 32  # some requests shared a run
        assert stop(process) == 0


def test_requests_under_way_are_answered_when_the_server_is_stopped(work):
    export_classifier(work / "model.onnx")
    with start_server("model.onnx --max-wait-ms 1500", work) as (process, client), ThreadPoolExecutor(1) as pool:
        row = {"rows": [[[[0] * 4] * 4]]}
        answer = pool.submit(client.post, "/predict", json=row)
        while "pluribus_waiting_rows 1.0" not in httpx.get(f"{client.base_url}/metrics", trust_env=False).text:
            assert not answer.done()
        process.send_signal(signal.SIGTERM)
        assert answer.result(WAIT).status_code == 200
        assert process.wait(WAIT) == 0


def test_a_taken_port_and_wrong_files_end_with_one_sentence(pluribus, work):
    export_classifier(work / "model.pt2")
    (work / "broken.onnx").write_bytes(b"no model")
    with socket_in_use() as port:
        for line, message in (
            (f"model.pt2 --trust --port {port}", f"cannot listen on 127.0.0.1, port {port}"),
            ("model.pt2 --trust --host no.such.host.invalid", "cannot listen on no.such.host.invalid"),
            ("model.pt2", "may hold pickles"),
            ("broken.onnx", "ONNX Runtime cannot read broken.onnx"),
            ("missing.onnx", "there is no file missing.onnx"),
            ("model.pt2 --trust --max-rows 2000", "max_rows must be at most max_waiting"),
            ("model.pt2 --max-batch 0", "max-batch"),
        ):
            answer = pluribus(f"serve {line}")
            assert answer.code == 2, line
            assert message in answer.err
            assert "Traceback" not in answer.err


@contextlib.contextmanager
def socket_in_use():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


@pytest.mark.parametrize("package", ["fastapi", "uvicorn", "prometheus_client", "python_multipart", "swagger_ui_bundle"])
def test_a_missing_package_is_named_with_the_command_that_installs_it(package, pluribus, work, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("pluribus.serving.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    answer = pluribus("serve model.onnx")
    assert answer.code == 2
    assert "pip install 'pluribus[serve]'" in answer.err
