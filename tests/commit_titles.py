"""A check of the titles of commits: `area: imperative`, at most 72 characters.

python3 tests/commit_titles.py              the commits since FIRST, in this history
python3 tests/commit_titles.py --message F  the message in a file, as a hook of git hands it over
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

FIRST = "64441861"
"""The last commit before titles were checked."""

COLUMNS = 72
TITLE = re.compile(r"[a-z][a-z0-9_.-]*: [a-z`].*[^.]")


def fault(title: str) -> str | None:
    """Return the fault of a title, or ``None``."""
    if len(title) > COLUMNS:
        return f"{len(title)} characters, at most {COLUMNS}"
    if not TITLE.fullmatch(title):
        return "expected `area: imperative`: one area, small letters, no full stop"
    return None


def titles() -> list[str]:
    """Return the titles since FIRST without merges; none if the history does not reach it."""
    known = ["git", "cat-file", "-e", f"{FIRST}^{{commit}}"]
    if subprocess.run(known, capture_output=True, check=False).returncode:
        print(f"the history does not reach back to {FIRST}: titles were not checked")
        return []
    command = ["git", "log", "--no-merges", "--format=%s", f"{FIRST}..HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def main() -> None:
    """Print each title that breaks the rule; if there is any, exit with code 1."""
    if sys.argv[1:2] == ["--message"]:
        checked = Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()[:1]
    else:
        checked = titles()
    faults = [f"{title}: {why}" for title in checked if (why := fault(title))]
    print("\n".join(faults), end="\n" if faults else "")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
