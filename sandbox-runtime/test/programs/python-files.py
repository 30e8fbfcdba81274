"""What a program does to files: temporary ones, modes, links, times, locks, maps, sparse files, attributes, watching, walking."""

import fcntl
import mmap
import os
import pathlib
import shutil
import tempfile

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder, "ä file")
    path.write_text("text")
    path.chmod(0o640)
    os.link(path, path.with_name("hard"))
    os.symlink(path.name, path.with_name("soft"))
    shutil.copytree(folder, "copy", symlinks=True)
    with open(path, "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.truncate(file.fileno(), 1 << 30)
        os.posix_fallocate(file.fileno(), 0, 8192)
        with mmap.mmap(file.fileno(), 8192) as pages:
            pages[4096:4100] = b"page"
        os.sendfile(os.open("out/sent", os.O_CREAT | os.O_WRONLY, 0o600), file.fileno(), 4096, 4)
    os.utime(path, ns=(1_000_000_000, 2_000_000_000))
    status = path.stat()
    found = oct(status.st_mode), status.st_nlink, status.st_mtime_ns, status.st_size, status.st_blocks <= 32
names = sorted(os.listdir("copy"))
shutil.rmtree("copy")
print(*found, names, pathlib.Path("out/sent").read_text(), os.path.exists(folder))
