"""Threads with every kind of lock, a pool of them, thread-local data and a timer."""

import queue
import threading
from concurrent.futures import ThreadPoolExecutor

total = 0
lock = threading.Lock()
barrier = threading.Barrier(8)
local = threading.local()
done = queue.Queue()


def add(number):
    global total
    local.number = number
    barrier.wait(timeout=10)
    for _ in range(1000):
        with lock:
            total += local.number
    done.put(number)


threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
fired = threading.Event()
threading.Timer(0.01, fired.set).start()
assert fired.wait(10)
with ThreadPoolExecutor(32) as pool:
    squares = sum(pool.map(lambda number: number * number, range(1000)))
print(total, sorted(done.queue), squares)
