"""Does what its arguments say: act VERB ARGS [, VERB ARGS]... and prints what came of each, a line each (test/languages.sh)."""
import ctypes, errno, os, resource, signal, socket, subprocess, sys, time


def number_or_text(word):
    try:
        return ctypes.c_long(int(word, 0))
    except ValueError:
        return ctypes.c_char_p(word.encode())


def system_call(number, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(int(number, 0), *map(number_or_text, arguments)) < 0:
        raise OSError(ctypes.get_errno(), '')


def write(path):
    os.close(os.open(path, os.O_WRONLY))


def create(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))


def read(path):
    file = os.open(path, os.O_RDONLY)
    os.read(file, 1)


def spawn(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode().strip()


def foreign():
    targets = [os.readlink(f'/proc/self/fd/{fd}') for fd in os.listdir('/proc/self/fd') if os.path.exists(f'/proc/self/fd/{fd}')]
    own = ('/dev/', '/proc/', '/plugin/', '/usr/')
    return len([target for target in targets if target.startswith('/') and not target.startswith(own)])


def connect(name):
    socket.socket(socket.AF_UNIX).connect('\0' + name)


def open_many(count):
    for _ in range(int(count)):
        os.open('/dev/null', os.O_RDONLY)


def fill(path):
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    while True:
        os.write(file, bytes(65536))


def spin():
    while True:
        pass


def hog():
    kept = []
    while True:
        kept.append(b'x' * 1000000)


def flood():
    while True:
        os.write(1, b'y' * 4096)


def bomb():
    while True:
        try:
            if os.fork() == 0:
                time.sleep(1000)
        except OSError:
            time.sleep(0.01)


def daemon():
    if os.fork() == 0:
        os.setsid()
        time.sleep(1000)


verbs = {
    'read': read, 'write': write, 'create': create, 'chmod': lambda path: os.chmod(path, 0o777), 'remove': os.remove,
    'rename': os.rename, 'link': os.link, 'symlink': os.symlink, 'fifo': os.mkfifo,
    'sparse': lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 1 << 40),
    'kill': lambda pid, number: os.kill(int(pid), int(number)),
    'limit': lambda pid: resource.prlimit(int(pid), resource.RLIMIT_NOFILE, (0, 0)),
    'syscall': system_call, 'setuid': lambda uid: os.setuid(int(uid)), 'spawn': spawn,
    'environment': lambda name: os.environ.get(name, 'unset'), 'foreign': foreign, 'connect': connect,
    'open-many': open_many, 'fill': fill, 'exit': lambda code: sys.exit(int(code)),
    'die': lambda number: (os.kill(os.getpid(), int(number)), time.sleep(5)),
    'sleep': lambda: time.sleep(1000), 'spin': spin, 'hog': hog, 'flood': flood, 'bomb': bomb, 'daemon': daemon,
}


def act(verb, *arguments):
    try:
        found = verbs[verb](*arguments)
        return 'ok' if found is None else found
    except OSError as error:
        return errno.errorcode[error.errno]


words = ' '.join(sys.argv[1:]).split(' , ')
for action in words:
    print(act(*action.split()), flush=True)
