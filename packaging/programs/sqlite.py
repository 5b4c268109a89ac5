"""SQLite: a table, transactions with a rollback journal and with a WAL, VACUUM."""

import os
import random
import sqlite3
from pathlib import Path

draw = random.Random(1)
db = sqlite3.connect("shop.db", isolation_level=None)
db.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, stock INTEGER)")
db.execute("CREATE INDEX by_name ON item (name)")
db.execute("BEGIN")
for n in range(60000):
    db.execute("INSERT INTO item VALUES (?, ?, 100)", (n, f"{draw.random():.12f}" * 4))
db.execute("COMMIT")
os.sync()
Path("/proc/sys/vm/drop_caches").write_text("3")
for mode in ("DELETE", "WAL"):
    db.execute(f"PRAGMA journal_mode={mode}")
    for _ in range(1200):
        db.execute("BEGIN")
        for _ in range(draw.randrange(1, 5)):
            item = (draw.randrange(60000),)
            db.execute("SELECT name FROM item WHERE id = ?", item).fetchone()
            db.execute("UPDATE item SET stock = stock - 1 WHERE id = ?", item)
        db.execute("COMMIT")
db.execute("VACUUM")
