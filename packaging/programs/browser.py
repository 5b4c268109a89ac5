"""Chromium and its profile: six sessions on pages with pictures, cookies, storage and a database.

The pages come from a server in this process, which allows the browser to cache them. From the
second session on, half of the pages were visited in the session before.
"""

import os
import random
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import sync_playwright

SESSIONS = 6
PAGES = 10
PICTURES = 12

PAGE = """<!doctype html><title>{0}</title>{1}<script>
localStorage.setItem("seen{0}", Date.now() + "x".repeat(2000));
const opened = indexedDB.open("shop", 1);
opened.onupgradeneeded = () => opened.result.createObjectStore("cart", {{autoIncrement: true}});
opened.onsuccess = () => {{
  const put = opened.result.transaction("cart", "readwrite", {{durability: "strict"}});
  for (let n = 0; n < 50; n++) put.objectStore("cart").add({{page: {0}, text: "y".repeat(500)}});
  put.oncomplete = () => document.body.id = "done";
}};
</script><body>"""


class Site(BaseHTTPRequestHandler):
    """A server of pages and pictures; the bytes of a picture depend only on its name."""

    def do_GET(self) -> None:
        """Answer with the page or the picture that the path names."""
        kind, _, number = self.path.strip("/").partition("-")
        if kind == "page":
            pictures = (f"<img src=/picture-{int(number) * PICTURES + n}>" for n in range(PICTURES))
            body = PAGE.format(number, "".join(pictures)).encode()
        else:
            drawn = random.Random(self.path)
            body = drawn.randbytes(int(drawn.lognormvariate(9.5, 1)))
        self.send_response(200)
        self.send_header("Content-Type", "text/html" if kind == "page" else "image/png")
        self.send_header("Cache-Control", "max-age=86400")
        self.send_header("Set-Cookie", f"last={number}; Max-Age=86400")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


site = ThreadingHTTPServer(("127.0.0.1", 0), Site)
threading.Thread(target=site.serve_forever, daemon=True).start()
with sync_playwright() as playwright:
    for session in range(SESSIONS):
        browser = playwright.chromium.launch_persistent_context(
            Path("profile").resolve(),
            executable_path=shutil.which("chromium"),
            args=["--no-sandbox", "--disable-gpu"],
        )
        page = browser.new_page()
        for number in range(PAGES):
            page.goto(f"http://127.0.0.1:{site.server_port}/page-{session * PAGES // 2 + number}")
            page.wait_for_selector("#done", state="attached")
            page.wait_for_timeout(400)
        browser.close()
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3")
