// Does what its arguments say: act VERB ARGS [, VERB ARGS]... and prints what came of each, a line each (test/languages.sh).
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';

const waitForever = () => new Promise(() => setInterval(() => {}, 1e6));

function foreign() {
  const targets = fs.readdirSync('/proc/self/fd').map((fd) => {
    try {
      return fs.readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return '';
    }
  });
  return targets.filter(
    (target) =>
      target.startsWith('/') && !/^\/(dev|proc|plugin|usr)\//.test(target) && target !== process.execPath,
  ).length;
}

function fill(path) {
  const file = fs.openSync(path, 'w');
  for (;;) fs.writeSync(file, Buffer.alloc(65536));
}

function connect(name) {
  return new Promise((resolve, reject) => net.connect({ path: `\0${name}` }, resolve).on('error', reject));
}

async function bomb() {
  for (;;) {
    spawn('sleep', ['1000']).on('error', () => {});
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

function hog() {
  const kept = [];
  for (;;) kept.push(Buffer.alloc(1e6, 'x'));
}

const verbs = {
  read: (path) => {
    const file = fs.openSync(path, 'r');
    if (!fs.fstatSync(file).isDirectory()) fs.readSync(file, Buffer.alloc(1));
  },
  write: (path) => {
    fs.openSync(path, fs.constants.O_WRONLY);
  },
  create: (path) => {
    fs.openSync(path, 'wx');
  },
  chmod: (path) => fs.chmodSync(path, 0o777),
  remove: (path) => fs.unlinkSync(path),
  rename: (from, to) => fs.renameSync(from, to),
  link: (from, to) => fs.linkSync(from, to),
  symlink: (to, path) => fs.symlinkSync(to, path),
  fifo: (path) => {
    spawnSync('mkfifo', [path]);
  },
  sparse: (path) => {
    fs.ftruncateSync(fs.openSync(path, 'w'), 2 ** 40);
  },
  kill: (pid, number) => {
    process.kill(Number(pid), Number(number));
  },
  limit: (pid) => (spawnSync('prlimit', ['--pid', pid, '--nofile=0:0']).status ? 'EPERM' : 'ok'),
  setuid: (uid) => process.setuid(Number(uid)),
  spawn: (program, ...words) =>
    spawnSync(program, words, { stdio: ['ignore', 'pipe', 'ignore'] })
      .stdout.toString()
      .trim(),
  environment: (name) => process.env[name] ?? 'unset',
  foreign,
  connect,
  'open-many': (count) => {
    for (let i = 0; i < count; i++) fs.openSync('/dev/null', 'r');
  },
  fill,
  exit: (code) => process.exit(Number(code)),
  die: (number) => {
    process.kill(process.pid, Number(number));
    return waitForever();
  },
  sleep: waitForever,
  spin: () => {
    for (;;);
  },
  hog,
  flood: () => {
    for (;;) fs.writeSync(1, 'y'.repeat(4096));
  },
  bomb,
  daemon: () => {
    spawn('sleep', ['1000'], { detached: true, stdio: 'ignore' }).unref();
  },
};

for (const action of process.argv.slice(2).join(' ').split(' , ')) {
  const [verb, ...words] = action.split(' ');
  let found;
  try {
    found = (await verbs[verb](...words)) ?? 'ok';
  } catch (error) {
    found = error.code ?? String(error);
  }
  fs.writeSync(1, `${found}\n`);
}
