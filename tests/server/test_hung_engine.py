"""An engine that accepts connections and never answers."""

import threading


def test_model_lists_leave_room_for_health(start_gateway, scripted, call):
    """Lists that wait for a hung engine are bounded as requests are; health always answers."""
    ended = threading.Event()
    engine = scripted(lambda conn: ended.wait(20))
    gateway = start_gateway(
        "--model-id=m", f"--worker-urls={engine.url}", "--workers=1", "--max-inflight=2"
    )
    lists = [
        call(gateway).send(b"GET /v1/models HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n")
        for _ in range(12)
    ]
    alive = call(gateway).send(b"GET /livez HTTP/1.1\r\nhost: g\r\n\r\n").until(b"\r\n\r\n")
    assert b"200 OK" in alive
    statuses = sorted(one.rest().split(b" ")[1] for one in lists)
    ended.set()
    assert statuses == [b"200"] * 2 + [b"503"] * 10


def test_a_draining_gateway_refuses_connections(start_gateway, scripted, call, wire):
    """With a stream still running, a new connection is refused, not left waiting for its end."""
    told = threading.Event()

    def script(conn):
        conn.read_request()
        conn.begin_stream()
        conn.chunk(wire.word)
        assert told.wait(20)
        conn.chunk(wire.stop + wire.done)
        conn.chunk(b"")

    gateway = start_gateway("--model-id=m", f"--worker-urls={scripted(script).url}", "--workers=1")
    stream = call(gateway).post(wire.chat_body(stream=True))
    stream.until(wire.word)
    gateway.process.terminate()
    gateway.wait_for("Worker stops accepting")
    try:
        refused = call(gateway).rest() == b""
    except ConnectionRefusedError:
        refused = True
    assert refused
    told.set()
    stream.until(wire.done)
    assert gateway.ended() == 0
