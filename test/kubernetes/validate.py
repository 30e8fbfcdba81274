"""Validates manifests (a stream of YAML on standard input) against the schemas that Kubernetes publishes, for each version that is
named: nothing unknown, nothing of a wrong type. Prints how many there were; each fault is a line on standard error."""
import sys

import kubernetes_validate
import yaml

manifests = [manifest for manifest in yaml.safe_load_all(sys.stdin) if manifest]
faults = 0
for version in sys.argv[1:]:
    for manifest in manifests:
        try:
            kubernetes_validate.validate(manifest, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            faults += 1
            where = f"{manifest.get('kind')} {manifest.get('metadata', {}).get('name')}"
            print(f"{version}: {where}: {'.'.join(map(str, error.path))}: {error.message}", file=sys.stderr)
print(len(manifests))
sys.exit(1 if faults else 0)
