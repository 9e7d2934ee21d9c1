import re
from pathlib import Path

from gateway.errors import KINDS

DOCS = Path(__file__).parents[2] / "docs"
ROW = re.compile(r"\| `(\w+)` \| (\d{3}) \| `(\w+)` \| `(\w+)` \| \S.* \|")


def test_the_table_of_errors_is_the_codes() -> None:
    """The documented rows are those of `gateway.errors`, in its order, each spelled as there."""
    table = (DOCS / "errors.md").read_text(encoding="utf-8").partition("| code | status |")[2]
    rows = [ROW.fullmatch(line) for line in table.partition("\n\n")[0].splitlines()[2:]]
    documented = [row and (row[1], int(row[2]), row[3], row[4]) for row in rows]
    assert documented == [
        (kind.code, kind.status, kind.type, kind.anthropic_type) for kind in KINDS
    ]


def test_every_link_leads_somewhere() -> None:
    """A relative link in the documentation names a file that is there, and a heading in it."""
    broken = []
    for page in [*DOCS.rglob("*.md"), *DOCS.parent.glob("*.md")]:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            name, _, heading = target.partition("#")
            if "://" in target:
                continue
            file = page.parent / name if name else page
            if not file.exists() or (heading and heading not in _headings(file)):
                broken.append(f"{page.name}: {target}")
    assert broken == []


def _headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
