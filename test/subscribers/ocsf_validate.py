#!/usr/bin/env python3
"""Validates OCSF events, one JSON object a line on standard input, against the schema that OCSF publishes.

The class is found by `class_uid`, the release and the profiles are those that the event itself names in its metadata.
The trace object in `unmapped` is validated against the published object `trace`. Prints faults; exits with 1 if any.
"""

import json
import sys

from jsonschema import Draft202012Validator
from ocsf_json_schema import OcsfJsonSchemaEmbedded, get_ocsf_schema

published = {}


def validators(metadata, class_uid):
    key = (metadata["version"], class_uid, tuple(metadata.get("profiles", [])))
    if key not in published:
        schema = OcsfJsonSchemaEmbedded(get_ocsf_schema(version=metadata["version"]))
        name = schema.lookup_class_name_from_uid(class_uid)
        of_class = schema.get_class_schema(class_name=name, profiles=list(key[2]))
        published[key] = (
            Draft202012Validator(of_class),
            Draft202012Validator(schema.get_object_schema(object_name="trace", profiles=[])),
        )
    return published[key]


def faults_of(event):
    of_class, of_trace = validators(event["metadata"], event["class_uid"])
    yield from of_class.iter_errors(event)
    trace = event.get("unmapped", {}).get("trace")
    if trace is not None:
        yield from of_trace.iter_errors(trace)


failed = False
count = 0
for number, line in enumerate(sys.stdin, 1):
    count += 1
    for fault in faults_of(json.loads(line)):
        failed = True
        where = "/".join(str(step) for step in fault.absolute_path)
        print(f"line {number}: {where}: {fault.message[:300]}")
print(f"{count} events")
sys.exit(1 if failed or count == 0 else 0)
