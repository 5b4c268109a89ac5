"""RocksDB: fill a database in random order, then run four readers and a writer, as db_bench does.

Files are smaller than by default, so that compactions are as frequent as in a larger database. The
log is not synced, which is the default.
"""

import os
import random
import threading
from pathlib import Path

from rocksdict import Options, Rdict

ROWS = 300_000
READERS = 4

options = Options(raw_mode=True)
options.create_if_missing(True)
options.set_write_buffer_size(4 << 20)
options.set_target_file_size_base(4 << 20)
options.set_max_bytes_for_level_base(16 << 20)


def row(draw: random.Random) -> tuple[bytes, bytes]:
    """Return a key of 16 bytes and a value of 400 bytes, half of which compresses."""
    return b"%016d" % draw.randrange(ROWS), draw.randbytes(200) * 2


draw = random.Random(1)
database = Rdict("rocks", options)
for _ in range(ROWS):
    key, value = row(draw)
    database[key] = value
database.close()
os.sync()
Path("/proc/sys/vm/drop_caches").write_text("3")

database = Rdict("rocks", options)


def read(seed: int) -> None:
    """Look up one reader's share of the rows."""
    drawn = random.Random(seed)
    for _ in range(ROWS // READERS):
        database.get(b"%016d" % drawn.randrange(ROWS))


readers = [threading.Thread(target=read, args=(2 + n,)) for n in range(READERS)]
for reader in readers:
    reader.start()
while any(reader.is_alive() for reader in readers):
    key, value = row(draw)
    database[key] = value
database.close()
