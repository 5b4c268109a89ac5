"""The guide's Python runs as written, and prints what it shows."""

from __future__ import annotations

import contextlib
import io
import re

from conftest import ROOT

GUIDE = (ROOT / "docs/guide.md").read_text(encoding="utf-8")


def test_the_guide_runs_and_prints_what_it_shows():
    blocks = re.findall(r"^```(python|text)\n(.*?)^```", GUIDE, re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks[:2]] == ["python", "text"] and len(blocks) >= 14
    namespace: dict[str, object] = {}
    printed = ""
    for kind, text in blocks:
        if kind == "text":
            assert printed == text
            continue
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(text, "docs/guide.md", "exec"), namespace)
        printed = output.getvalue()
