"""An event loop with servers over TCP and a UNIX socket, UDP, child processes, signals, threads, timers and a queue."""

import asyncio
import os
import signal
import socket


async def echo(reader, writer):
    writer.write(await reader.readline())
    await writer.drain()
    writer.close()


async def ask(reader, writer, word):
    writer.write(word + b"\n")
    answer = await reader.readline()
    writer.close()
    return answer.strip().decode()


async def over_tcp():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        asked = [ask(*await asyncio.open_connection("localhost", port), b"tcp%d" % number) for number in range(20)]
        return len(set(await asyncio.gather(*asked)))


async def over_unix():
    server = await asyncio.start_unix_server(echo, "/tmp/echo.sock")
    async with server:
        return await ask(*await asyncio.open_unix_connection("/tmp/echo.sock"), b"unix")


async def over_udp():
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as receiver, socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as sender:
        receiver.bind(("::1", 0))
        receiver.setblocking(False)
        sender.sendto(b"udp6", receiver.getsockname())
        return (await loop.sock_recv(receiver, 10)).decode()


async def by_child():
    child = await asyncio.create_subprocess_exec("cat", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    output, _ = await child.communicate(b"child")
    return output.decode(), child.returncode


async def by_signal():
    seen = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, seen.set)
    os.kill(os.getpid(), signal.SIGUSR1)
    await asyncio.wait_for(seen.wait(), 10)
    return "signal"


async def main():
    print(await over_tcp(), await over_unix(), await over_udp(), *await by_child(), await by_signal(),
          await asyncio.to_thread(lambda: "thread"))


asyncio.run(asyncio.wait_for(main(), 60))
