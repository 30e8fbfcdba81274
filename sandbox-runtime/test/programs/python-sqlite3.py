"""A database file with a write-ahead log, written by two processes at one time, and one in memory."""

import multiprocessing
import sqlite3


def write(worker):
    with sqlite3.connect("numbers.db", timeout=20) as database:
        for number in range(200):
            database.execute("INSERT INTO numbers VALUES (?, ?)", (worker, number))
            database.commit()


if __name__ == "__main__":
    with sqlite3.connect("numbers.db") as database:
        mode = database.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        database.execute("CREATE TABLE numbers (worker, number)")
    workers = [multiprocessing.Process(target=write, args=(worker,)) for worker in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    database = sqlite3.connect("numbers.db")
    count, total = database.execute("SELECT count(*), sum(number) FROM numbers").fetchone()
    intact = database.execute("PRAGMA integrity_check").fetchone()[0]
    upper = sqlite3.connect(":memory:").execute("SELECT upper('memory')").fetchone()[0]
    print(mode, count, total, intact, upper)
