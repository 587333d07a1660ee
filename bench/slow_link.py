"""slow_link.py PORT DELAY RATE WINDOW: a link to a server, on the loopback interface.

Prints the number of its port. Bytes arrive DELAY seconds after they were sent. All connections
share RATE bytes per second in each direction; of each connection at most WINDOW bytes are on the
way, as a receiver's buffer of TCP allows. Connections begin at full speed: there is no slow start.
"""
import asyncio
import sys

CHUNK = 64 << 10


class Link:
    """One direction of the line that all connections share, and when it is free again."""

    def __init__(self, delay, rate, window):
        self.delay, self.rate, self.window, self.free_at = delay, rate, window, 0.0

    def arrival(self, size):
        """Return when these bytes arrive that are sent now."""
        now = asyncio.get_running_loop().time()
        self.free_at = max(now, self.free_at) + size / self.rate
        return self.free_at + self.delay

    async def carry(self, reader, writer):
        """Carry the bytes of one direction of one connection."""
        on_the_way = asyncio.Queue(max(1, self.window // CHUNK))
        delivery = asyncio.create_task(self.deliver(on_the_way, writer))
        try:
            while chunk := await reader.read(CHUNK):
                await on_the_way.put((self.arrival(len(chunk)), chunk))
        except ConnectionError:
            pass
        await on_the_way.put((0, b""))
        await delivery

    async def deliver(self, on_the_way, writer):
        loop = asyncio.get_running_loop()
        try:
            while True:
                at, chunk = await on_the_way.get()
                if not chunk:
                    break
                await asyncio.sleep(max(0, at - loop.time()))
                writer.write(chunk)
                await writer.drain()
        except ConnectionError:
            while (await on_the_way.get())[1]:
                pass
        writer.close()


async def serve(port, delay, rate, window):
    requests, answers = (Link(delay, rate, window) for _ in range(2))

    async def accept(reader, writer):
        from_server, to_server = await asyncio.open_connection("127.0.0.1", port, limit=CHUNK)
        await asyncio.gather(requests.carry(reader, to_server), answers.carry(from_server, writer))

    server = await asyncio.start_server(accept, "127.0.0.1", 0, limit=CHUNK)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), *map(float, sys.argv[2:4]), int(sys.argv[4])))
