"""Reply bodies end their work exactly once, whatever becomes of them."""

import falcon
import pytest
from falcon import testing

from gateway.routes import CHAT
from gateway.service.work import start_work
from gateway.web.streaming import ReplyBody, guarded, remember_body


class Resource:
    """Sets a stream, and then does what the test asks."""

    def __init__(self, then):
        self.then = then
        self.records = []

    def on_get(self, req, resp):
        """A reply of two frames."""
        work = start_work(CHAT, "r", [self.records.append])
        body = ReplyBody(iter([b"a", b"b"]), work)
        remember_body(req.env, body)
        resp.stream = body
        self.then(resp)

    on_head = on_get


class Middleware:
    """Fails after the responder."""

    def process_response(self, req, resp, resource, req_succeeded):
        """Raises."""
        raise RuntimeError


def nothing(resp):
    """Leaves the stream to Falcon."""


def fail(resp):
    """Fails after the stream was set."""
    raise ValueError


def replace(resp):
    """Answers with something else after all."""
    resp.text = "x"


def drop_stream(req, resp, error, params):
    """Answers with an error, as the gateway's own handlers do."""
    resp.stream = None


CASES = {
    "sent": ("GET", nothing, None, "ok", 2),
    "HEAD": ("HEAD", nothing, None, "client_gone", 0),
    "responder raises": ("GET", fail, None, "client_gone", 0),
    "middleware raises": ("GET", nothing, Middleware(), "client_gone", 0),
    "replaced": ("GET", replace, None, "client_gone", 0),
}


@pytest.mark.parametrize(
    ("method", "then", "middleware", "outcome", "sent"), CASES.values(), ids=CASES
)
def test_closed_once(method, then, middleware, outcome, sent):
    """Every body that was made is closed once, also where Falcon drops it."""
    resource = Resource(then)
    app = falcon.App(middleware=middleware)
    app.add_route("/", resource)
    app.add_error_handler(Exception, drop_stream)
    testing.TestClient(guarded(app)).simulate_request(method, "/")
    (record,) = resource.records
    assert (record.outcome, record.bytes_out) == (outcome, sent)


def test_start_response_fails():
    """A server that refuses the headers leaves the body to be closed as well."""
    resource = Resource(nothing)
    app = falcon.App()
    app.add_route("/", resource)

    def refuse(status, headers, exc_info=None):
        raise ConnectionError

    with pytest.raises(ConnectionError):
        guarded(app)(testing.create_environ("/"), refuse)
    assert len(resource.records) == 1


def test_work_is_closed_once():
    """Closing twice logs once and gives back once, the last held first."""
    order = []
    work = start_work(CHAT, "r", [lambda _: order.append("log")])
    work.hold(lambda: order.append("slot"))
    work.hold(lambda: order.append("engine"))
    work.close()
    work.close()
    assert order == ["engine", "slot", "log"]
