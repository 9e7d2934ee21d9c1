"""The base URL of a server: one spelling, and clear words for what is none."""

import pytest

from gateway.engine.base_url import parse_base_url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://10.0.0.5:30000", "http://10.0.0.5:30000"),
        ("http://h:1/", "http://h:1"),
        ("http://h:1//", "http://h:1"),
        ("http://h:1/v1", "http://h:1"),
        ("http://h:1/v1/", "http://h:1"),
        ("http://h:1/prefix/", "http://h:1/prefix"),
        ("http://h:1/prefix/v1", "http://h:1/prefix"),
        ("http://h:1/prefixv1", "http://h:1/prefixv1"),
        ("http://h:1/V1", "http://h:1/V1"),
        ("HTTPS://Engine.Example.COM", "https://engine.example.com"),
        ("http://h:80/Path", "http://h/Path"),
        ("https://h:443", "https://h"),
        ("https://h:80", "https://h:80"),
        ("http://[::1]:30000", "http://[::1]:30000"),
        ("http://[fe80::1%eth0]", "http://[fe80::1%eth0]"),
        ("http://sgl_a-1.svc.:1", "http://sgl_a-1.svc.:1"),
        ("http://h:65535", "http://h:65535"),
    ],
)
def test_one_spelling(text: str, url: str) -> None:
    """Trailing `/` and `/v1` are folded away, a prefix stays, the scheme's port is left out."""
    assert parse_base_url(text) == url


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("h:1", "does not begin with http:// or https://"),
        ("//h:1", "does not begin with"),
        ("http:/h", "does not begin with"),
        ("ftp://h", "does not begin with"),
        ("http://", "names no host"),
        ("http:///x", "names no host"),
        ("http://:80", "names no host"),
        ("http://h:", "a colon and no port"),
        ("http://h:0", "port 0"),
        ("http://h:65536", "cannot be read"),
        ("http://h:x", "cannot be read"),
        ("http://[::1", "cannot be read"),
        ("http://h h", "white space"),
        (" http://h", "white space"),
        ("http://h\n", "white space"),
        ("http://h/?a=b", "a query"),
        ("http://h?", "a query"),
        ("http://h/#x", "a fragment"),
        ("http://bücher.example", "no usable host"),
        ("http://h,i", "no usable host"),
        ("http://${HOST}", "no usable host"),
        ("http://a/../b", "a path that cannot be used"),
        ("http://a/ä", "a path that cannot be used"),
        ("http://u:secret@h", "names a user"),
        ("u:secret@h", "does not begin with"),
    ],
)
def test_what_is_no_base_url(text: str, message: str) -> None:
    """The message says what is wrong; a password is never shown."""
    with pytest.raises(ValueError, match=message) as error:
        parse_base_url(text)
    assert "secret" not in str(error.value)
