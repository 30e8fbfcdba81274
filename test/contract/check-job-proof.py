#!/usr/bin/env python3
"""Checks a proof that `sandbus audit prove` has written, by what SECURITY.md says of it and nothing of ours.

    check-job-proof.py PROOF LOG_KEY

Python's standard library alone, and `openssl` for Ed25519. Says what is proved and exits with 0, or says what is wrong
and exits with 1.
"""

import base64
import hashlib
import json
import os
import subprocess
import sys
import tempfile

TERMINAL = ("finished", "rejected", "cancelled")
BY_TENANTS = ("submitted", "cancel-requested")
SPKI_PREFIX = bytes.fromhex("302a300506032b6570032100")


class NotProved(Exception):
    pass


def need(holds, what):
    if not holds:
        raise NotProved(what)


def sha256(data):
    return hashlib.sha256(data).digest()


def verify_ed25519(public_key, message, signature):
    with tempfile.TemporaryDirectory() as folder:
        names = [os.path.join(folder, name) for name in ("key", "message", "signature")]
        for name, data in zip(names, (SPKI_PREFIX + public_key, message, signature)):
            with open(name, "wb") as file:
                file.write(data)
        key, text, sig = names
        command = ["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", key]
        command += ["-rawin", "-in", text, "-sigfile", sig]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def read_checkpoint(note, log_key):
    """Size and root of the checkpoint, if the log has signed it (c2sp.org/signed-note, tlog-checkpoint)."""
    name, key_id, key = log_key.strip().split("+", 2)
    key = base64.b64decode(key, validate=True)
    need(key[0] == 1 and len(key) == 33, "the log's key is not Ed25519")
    need(sha256(name.encode() + b"\n" + key)[:4].hex() == key_id, "the log's key is damaged")
    text, signatures = note.rsplit("\n\n", 1)
    text += "\n"
    for line in signatures.splitlines():
        _, signer, encoded = line.split(" ")
        signature = base64.b64decode(encoded, validate=True)
        if signer == name and signature[:4].hex() == key_id:
            need(verify_ed25519(key[1:], text.encode(), signature[4:]), "the checkpoint's signature is wrong")
            origin, size, root = text.splitlines()[:3]
            need(origin == name, "the checkpoint is of another log")
            return int(size), base64.b64decode(root, validate=True)
    raise NotProved("the log has not signed the checkpoint")


class Avro:
    """As much of Avro's binary encoding as a leaf needs."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def long(self):
        shift = value = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)

    def bytes(self):
        length = self.long()
        found = self.data[self.at : self.at + length]
        need(0 <= length == len(found), "a leaf is cut off")
        self.at += length
        return found


def read_leaf(data):
    need(data[:2] == b"\xc3\x01", "a leaf is not in Avro's single-object encoding")
    reader = Avro(data[10:])
    leaf = {"sequence": reader.long(), "recorded_at": reader.long()}
    for field in ("subject", "event_id", "signer"):
        leaf[field] = reader.bytes().decode()
    for field in ("payload_hash", "previous"):
        leaf[field] = reader.bytes()
    need(reader.at == len(reader.data), "something stands behind a leaf")
    return leaf


def root_by_path(leaf_hash, index, size, path):
    """RFC 9162, section 2.1.3.2."""
    need(0 <= index < size, "a leaf is not in the tree")
    place, last, found = index, size - 1, leaf_hash
    for sibling in path:
        need(last > 0, "a path is too long")
        if place & 1 or place == last:
            found = sha256(b"\x01" + sibling + found)
            while not place & 1 and place:
                place, last = place >> 1, last >> 1
        else:
            found = sha256(b"\x01" + found + sibling)
        place, last = place >> 1, last >> 1
    need(last == 0, "a path is too short")
    return found


def kind_of(subject, job):
    tokens = subject.split(".")
    need(tokens[-2:] == job, f"{subject} is no event of this job")
    return "routed" if tokens[0] == "work" else tokens[1]


def check(proof, log_key):
    need(proof["format"] == "sandbus-job-proof/1", "not a proof of a job")
    size, root = read_checkpoint(proof["checkpoint"], log_key)
    kinds, previous, sequence = [], b"", -1
    for entry in proof["leaves"]:
        data = base64.b64decode(entry["leaf"], validate=True)
        leaf = read_leaf(data)
        leaf_hash = sha256(b"\x00" + data)
        path = [base64.b64decode(one, validate=True) for one in entry["inclusion"]]
        need(root_by_path(leaf_hash, leaf["sequence"], size, path) == root, "a leaf is not in the tree of the checkpoint")
        need(leaf["sequence"] > sequence and leaf["previous"] == previous, "events are missing or in disorder")
        if "payload" in entry:
            salt, payload = (base64.b64decode(entry[name], validate=True) for name in ("salt", "payload"))
            need(len(salt) == 16 and sha256(salt + payload) == leaf["payload_hash"], "a payload is not the recorded one")
        kinds.append(kind_of(leaf["subject"], [proof["tenant"], proof["jobId"]]))
        need((leaf["signer"] == "submitter") == (kinds[-1] in BY_TENANTS), "whose word an event is does not fit")
        previous, sequence = leaf_hash, leaf["sequence"]
    need(not any(kind in TERMINAL for kind in kinds[:-1]), "events after the terminal one")
    if kinds[-1] in TERMINAL:
        need("submitted" in kinds, "the job was never submitted")
    return kinds


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        proof = json.load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        log_key = file.read()
    try:
        kinds = check(proof, log_key)
    except (NotProved, KeyError, ValueError, IndexError) as fault:
        print(f"not proved: {fault}")
        return 1
    print(f"{'complete' if kinds[-1] in TERMINAL else 'not ended'}: {' '.join(kinds)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
