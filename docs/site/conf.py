"""The documentation site: README, docs, papers, and a reference generated from the registries.

``make docs`` builds it into ``out/site``. The sources are the whole tree, so that the links of the
pages work in the tree, on a forge and on the site alike.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))

import flashatlas  # noqa: E402
import generate  # noqa: E402

project = "FlashAtlas"
author = "the FlashAtlas developers"
copyright = "the FlashAtlas developers, MIT or Apache-2.0"
version = release = flashatlas.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
include_patterns = [
    "docs/index.md",
    "docs/*.md",
    "docs/howto/*.md",
    "docs/adr/*.md",
    "docs/reference/*.md",
    "papers/*/README.md",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "HACKING.md",
    "SECURITY.md",
]
root_doc = "docs/index"
source_suffix = {".md": "markdown"}

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
# comments in code blocks say to the tests how to run them, and `...` stands for lines left out
suppress_warnings = ["misc.highlighting_failure"]
nitpicky = False

html_theme = "furo"
html_title = "FlashAtlas"
html_extra_path = ["../../out/gallery"]
html_show_sphinx = False
html_copy_source = False
templates_path: list[str] = []

autodoc_member_order = "bysource"
autodoc_typehints = "description"
napoleon_google_docstring = True
napoleon_numpy_docstring = False

man_pages = [
    ("docs/reference/command-line", "flashatlas", "the atlas of a flash drive's maps", "", 1)
]


def _to_files(app, docname, source):
    """Turn links to files that are no pages (code, folders, data) into plain text."""
    source[0] = generate.links_to_pages(source[0], Path(app.env.doc2path(docname)), ROOT)


def setup(app):
    """Generate the reference before the pages are read."""
    generate.reference(ROOT / "docs/reference")
    app.connect("source-read", _to_files)
