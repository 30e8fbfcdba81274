"""Pseudo terminals: one opened and resized, and a shell that runs in another one and finds that it has a terminal."""

import fcntl
import os
import pty
import struct
import termios

controller, terminal = pty.openpty()
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", 40, 132, 0, 0))
rows, columns = os.get_terminal_size(controller).lines, os.get_terminal_size(controller).columns
os.write(controller, b"line\n")
line = os.read(terminal, 100).decode().strip()
child, controller = pty.fork()
if child == 0:
    os.execv("/bin/sh", ["sh", "-c", "tty; test -t 0 && stty size && echo has a terminal >/dev/tty"])
said = b""
try:
    while part := os.read(controller, 1000):
        said += part
except OSError:
    pass  # Linux says EIO when the other side is closed.
print(rows, columns, line, said.decode().split(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
