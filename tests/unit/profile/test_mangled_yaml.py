"""Whatever bytes are in a file, checking it ends soon and in findings, never in an exception."""

from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.profile import ProfileError, check_file, load_file

CASES: Final = Path(__file__).parents[2] / "cases" / "profiles"
CORPUS: Final = tuple(
    data
    for path in sorted(CASES.rglob("*.y*ml"))
    if len(data := path.read_bytes()) < 4096  # the big ones are about size, and slow to mutate
)
SPICE: Final = (
    b": ", b"- ", b"\n", b"\t", b"  ", b"[", b"]", b"{", b"}", b", ", b"&a ", b"*a", b"<<: *a\n",
    b"!!int ", b"!", b"%", b"|", b">", b"'", b'"', b"#", b"---\n", b"...\n", b"? ", b"~", b"null",
    b".nan", b"1e999", b"0o", b"0x", b"-", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xe2\x80\xa8",
    b'"\\ud800"', b"sampling:", b"params:", b"n: ", b"extends: ", b"9" * 399, b"1e" + b"9" * 40,
    b"1e-" + b"9" * 40,
)  # fmt: skip

SPICED: Final = st.sampled_from(SPICE) | st.binary(max_size=8)


@st.composite
def mangled(draw: st.DrawFn) -> bytes:
    """A file of the corpus after a few accidents: cut, doubled, spiced or joined to another."""
    data = draw(st.sampled_from(CORPUS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 40)))
        middle = data[start:end]
        other = draw(
            st.sampled_from((b"", middle * 2))
            | SPICED
            | st.sampled_from(CORPUS)
            | st.lists(SPICED, max_size=6).map(b"".join)
        )
        data = data[:start] + other + data[end:]
    return data


ANYTHING: Final = (
    mangled()
    | st.binary(max_size=200)
    | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))
    | st.lists(SPICED, max_size=30).map(b"".join)
)


@given(data=ANYTHING)
@settings(deadline=1000, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_file_breaks_the_check(tmp_path: Path, data: bytes) -> None:
    """A file is valid and loads, or has findings and is refused with the same findings."""
    file = tmp_path / "profile.yaml"
    file.write_bytes(data)

    findings = check_file(str(file))

    if not findings:
        load_file(str(file))
        return
    with pytest.raises(ProfileError) as refused:
        load_file(str(file))
    assert set(refused.value.findings) <= set(findings)
    for finding in findings:
        assert finding.line >= 1
        assert finding.column >= 1
        assert finding.message.isprintable()
