"""The asynchronous clients, against a gateway that runs as operators run it."""

import asyncio
import os
import re
import subprocess
import sys
import threading

import anthropic
import openai
import pytest
from recorded import ANSWERS

from gateway.demo.engine import Canned, DemoEngine

USER = [{"role": "user", "content": "hi"}]
HELLO = "Hello, friend. ☀️"
STREAM = {"content-type": "text/event-stream; charset=utf-8"}


@pytest.fixture(scope="module")
def served():
    """An engine with a gateway in front of it; gives the engine and the gateway's URL."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SGL_GATEWAY_", "SGLANG_ROUTER_", "GUNICORN_"))
    }
    with DemoEngine(model="m") as engine:
        command = [sys.executable, "-m", "gateway", "serve", "--port", "0", "--model-id", "m"]
        process = subprocess.Popen(
            [*command, "--worker-urls", engine.url],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            env=inherited,
        )
        reader = threading.Thread(target=process.stderr.read)
        try:
            lines = iter(process.stderr.readline, "")
            found = (re.search(r"Listening at: (http://[0-9.:]+)", line) for line in lines)
            url = next(match.group(1) for match in found if match)
            reader.start()
            yield engine, url
        finally:
            process.terminate()
            process.wait(20)
            if reader.is_alive():
                reader.join()
            process.stderr.close()


async def _hear_openai(url):
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        whole = await client.chat.completions.create(model="m", messages=USER)
        async with client.chat.completions.stream(model="m", messages=USER) as stream:
            chat = await stream.get_final_completion()
        async with client.responses.stream(model="m", input="hi") as stream:
            response = await stream.get_final_response()
    said = (whole.choices[0].message.content, chat.choices[0].message.content)
    return *said, response.output_text


async def _hear_anthropic(url):
    async with anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as client:
        whole = await client.messages.create(model="m", messages=USER, max_tokens=9)
        async with client.messages.stream(model="m", messages=USER, max_tokens=9) as stream:
            message = await stream.get_final_message()
    return whole.content[0].text, message.content[0].text


def script(engine, ways):
    """Has the engine say the same thing, whole or as a stream."""
    answer = ANSWERS["text"]
    for way in ways:
        kind = {"content-type": "application/json"} if way == "buffered" else STREAM
        engine.canned.append(Canned(200, getattr(answer, way)["chat"], kind))


@pytest.mark.parametrize(
    ("hear", "ways"),
    [
        (_hear_openai, ["buffered", "streamed", "streamed"]),
        (_hear_anthropic, ["buffered", "streamed"]),
    ],
    ids=["openai", "anthropic"],
)
def test_asynchronous_clients(served, hear, ways):
    """Whole replies and streams, one after the other on one connection."""
    engine, url = served
    script(engine, ways)
    assert asyncio.run(hear(url)) == (HELLO,) * len(ways)


async def _hear_many(url, count):
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:

        async def hear():
            async with client.chat.completions.stream(model="m", messages=USER) as stream:
                return (await stream.get_final_completion()).choices[0].message.content

        return await asyncio.gather(*(hear() for _ in range(count)))


def test_many_streams_at_once(served):
    """Each is whole."""
    engine, url = served
    script(engine, ["streamed"] * 12)
    assert asyncio.run(_hear_many(url, 12)) == [HELLO] * 12
