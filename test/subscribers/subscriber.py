#!/usr/bin/env python3
"""Reads the audit stream with nothing but a NATS client and an Avro reader: the schemas come from the server.

    subscriber.py --url nats://127.0.0.1:4222 --credentials deployment.nk --inbox _INBOX_deployment operator
    subscriber.py --url nats://127.0.0.1:4222 --credentials acme.nk --tenant acme tenant

An operator reads the stream AUDIT, whatever is in it, and takes schemas from the KV bucket `schemas`. A tenant has no
JetStream: it subscribes to its own records as they are committed, catches up by `audit-read`, and asks that for schemas.
Each record is printed as one line of JSON; the program ends after --count records.
"""

import argparse
import asyncio
import io
import json
import re
import sys

import fastavro
import nats
from nats.js.errors import NotFoundError

# Avro single-object encoding: C3 01, then the fingerprint of the schema (CRC-64-AVRO, little-endian), then the value.
MAGIC = b"\xc3\x01"
HEADER_BYTES = 10


class Decoder:
    """Decodes any message, and asks for the schema of a fingerprint once."""

    def __init__(self, fetch_schema):
        self._fetch_schema = fetch_schema
        self._schemas = {}

    async def decode(self, data):
        if data[:2] != MAGIC:
            raise ValueError("no single-object encoding")
        fingerprint = data[2:HEADER_BYTES].hex()
        if fingerprint not in self._schemas:
            text = await self._fetch_schema(fingerprint)
            self._schemas[fingerprint] = fastavro.parse_schema(json.loads(text))
        schema = self._schemas[fingerprint]
        value = fastavro.schemaless_reader(io.BytesIO(data[HEADER_BYTES:]), schema, None)
        return schema["name"].split(".")[-1], value


async def print_record(decoder, data):
    """One line: where the record stands, and the event in it."""
    _, record = await decoder.decode(data)
    name, event = (None, None) if record["payload"] is None else await decoder.decode(record["payload"])
    line = {
        "sequence": record["sequence"],
        "tenantSequence": record["tenantSequence"],
        "kind": record["kind"],
        "jobId": record["jobId"],
        "signer": record["signer"],
        "leafHash": record["leafHash"].hex(),
        "name": name,
        "event": event,
    }
    print(json.dumps(line, default=plain), flush=True)


def plain(value):
    return value.hex() if isinstance(value, bytes) else str(value)


async def read_as_operator(nc, count):
    """Message by message, by sequence: no consumer need be made."""
    js = nc.jetstream()
    schemas = await js.key_value("schemas")

    async def from_bucket(fingerprint):
        return (await schemas.get(fingerprint)).value

    decoder = Decoder(from_bucket)
    sequence = 1
    while count > 0:
        try:
            message = await js.get_msg("AUDIT", seq=sequence, next=True, subject="audit.>")
        except NotFoundError:
            await asyncio.sleep(0.2)
            continue
        await print_record(decoder, message.data)
        sequence = message.seq + 1
        count -= 1


async def read_as_tenant(nc, count, tenant):
    """Live records wake; what is read, and in which order, `audit-read` says: a live one may be lost on the way."""
    woken = asyncio.Event()

    async def wake(_message):
        woken.set()

    await nc.subscribe(f"audit.{tenant}.>", cb=wake)
    await nc.flush()

    async def ask(body):
        reply = await nc.request(f"audit-read.{tenant}", json.dumps(body).encode(), timeout=10)
        fault = (reply.headers or {}).get("Sandbus-Error")
        if fault is not None:
            raise RuntimeError(f"{fault}: {reply.data.decode()}")
        return reply.data

    async def by_request(fingerprint):
        return await ask({"what": "schema", "fingerprint": fingerprint})

    decoder = Decoder(by_request)
    after = -1
    while count > 0:
        woken.clear()
        _, page = await decoder.decode(await ask({"what": "records", "after": after, "limit": min(count, 100)}))
        for item in page["items"]:
            await print_record(decoder, item["bytes"])
            count -= 1
        after = page["next"]
        if not page["items"]:
            try:
                await asyncio.wait_for(woken.wait(), timeout=3)
            except asyncio.TimeoutError:
                pass


def seed_in(file):
    """The file has the seed between two marks, as NATS tools write it."""
    with open(file, encoding="ascii") as lines:
        return re.search(r"^SU[A-Z2-7]{56}$", lines.read(), re.MULTILINE).group(0)


async def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--url", required=True)
    parser.add_argument("--credentials", required=True, help="file with an nkey seed")
    parser.add_argument("--inbox", default="_INBOX", help="where replies may come")
    parser.add_argument("--tenant", default="default")
    parser.add_argument("--count", type=int, default=sys.maxsize)
    parser.add_argument("role", choices=["operator", "tenant"])
    options = parser.parse_args()
    nc = await nats.connect(
        options.url,
        nkeys_seed_str=seed_in(options.credentials),
        inbox_prefix=options.inbox.encode(),
        max_reconnect_attempts=3,
    )
    try:
        if options.role == "operator":
            await read_as_operator(nc, options.count)
        else:
            await read_as_tenant(nc, options.count, options.tenant)
    finally:
        await nc.close()


asyncio.run(main())
