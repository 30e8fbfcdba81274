// Worker threads that share memory, pass messages and wait for one another.
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

if (isMainThread) {
  const shared = new Int32Array(new SharedArrayBuffer(8));
  const workers = [1, 2, 3, 4].map(
    (step) => new Worker(new URL(import.meta.url), { workerData: { shared, step } }),
  );
  const answers = await Promise.all(workers.map((worker) => once(worker, 'message')));
  Atomics.store(shared, 1, 1);
  Atomics.notify(shared, 1);
  const codes = await Promise.all(workers.map((worker) => once(worker, 'exit')));
  console.log(shared[0], answers.flat().join(), codes.flat().join());
} else {
  const { shared, step } = workerData;
  for (let i = 0; i < 1000; i++) Atomics.add(shared, 0, step);
  parentPort.postMessage(step * step);
  Atomics.wait(shared, 1, 0);
}
