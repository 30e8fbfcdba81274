"""Worker processes started in each of the three ways, with a pool, shared memory, a lock, a semaphore, a queue and a manager."""

import multiprocessing
from multiprocessing import shared_memory


def square(number):
    return number * number


def count(lock, value, memory_name):
    memory = shared_memory.SharedMemory(memory_name)
    for _ in range(500):
        with lock:
            value.value += 1
            memory.buf[0] = (memory.buf[0] + 1) % 251
    memory.close()


def report(queue, gate):
    with gate:
        queue.put(multiprocessing.current_process().name)


def shared_counts(context):
    memory = shared_memory.SharedMemory(create=True, size=4096)
    lock, value = context.Lock(), context.Value("i", 0, lock=False)
    workers = [context.Process(target=count, args=(lock, value, memory.name)) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    found = value.value, memory.buf[0]
    memory.close()
    memory.unlink()
    return found


def names(context):
    queue, gate = context.Queue(), context.BoundedSemaphore(2)
    workers = [context.Process(target=report, args=(queue, gate), name=f"w{number}") for number in range(3)]
    for worker in workers:
        worker.start()
    found = sorted(queue.get(timeout=20) for _ in workers)
    for worker in workers:
        worker.join()
    return " ".join(found)


def main():
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with context.Pool(3) as pool:
            squares = sum(pool.map(square, range(100)))
        print(method, squares, *shared_counts(context), names(context))
    with multiprocessing.Manager() as manager:
        shared = manager.dict(kept="by the manager")
        print(shared["kept"])


if __name__ == "__main__":
    main()
