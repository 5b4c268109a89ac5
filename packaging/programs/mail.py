"""A mail spool (Maildir): mails are delivered durably, read, moved, and some removed."""

import os
import random
from pathlib import Path

draw = random.Random(1)
for name in ("tmp", "new", "cur"):
    os.mkdir(name)


def synced(folder: str) -> None:
    """Make the renames in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


for n in range(2000):
    with open(f"tmp/{n}", "wb") as mail:
        mail.write(draw.randbytes(int(draw.lognormvariate(8.5, 1))))
        mail.flush()
        os.fsync(mail.fileno())
    os.rename(f"tmp/{n}", f"new/{n}")
    synced("new")
    if n > 50 and draw.random() < 0.6:
        read = draw.choice(os.listdir("new"))
        Path(f"new/{read}").read_bytes()
        os.rename(f"new/{read}", f"cur/{read}")
    if n > 200 and draw.random() < 0.4 and os.listdir("cur"):
        os.remove(f"cur/{draw.choice(os.listdir('cur'))}")
    if n % 500 == 499:
        os.sync()
        Path("/proc/sys/vm/drop_caches").write_text("3")
