"""The content hash of conda-lock.yml: by it `conda-lock --check-input-hash` knows whether its source has changed.

The source is our environment.yml of the same target, whether it is written or not. The formula is that of conda-lock
4.0.3, `content_hash.py`: a sha256 over the sorted JSON of channels, of what was asked, and of its default virtual
packages.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from stackfix.conda.records import CondaRecord, CondaTarget
from stackfix.resolve.records import LockedPackage
from stackfix.write.clean import locked_sha256, locked_url
from stackfix.write.environment import channel_name, conda_requirement, pip_packages

# conda-lock 4.0.3, default-virtual-packages.yaml; its hash still takes the build strings of version 2, with the `_0`
ARCHSPEC = {"linux-64": "x86_64", "linux-aarch64": "aarch64"}
VIRTUAL = (("__unix", "0"), ("__linux", "5.10"), ("__glibc", "2.28"), ("__cuda", "11.4"))
TIMESTAMP = 1577854800000


def content_hash(target: CondaTarget) -> str:
    """The hash for the target's platform."""
    platform = target.target.platform
    specs = [conda_spec(record, target) for record in target.records]
    pip = pip_packages(target)
    if pip:
        # its reader adds `pip` for the pip section, and of two lines about one name the last one counts
        specs = [spec for spec in specs if spec["name"] != "pip"] + [spec_of("pip", "conda", version="*")]
        specs += [pip_spec(package) for package in pip]
    asked = {
        "channels": [compact({"url": channel_name(channel), "used_env_vars": []}) for channel in target.channels],
        "specs": sorted(specs, key=lambda spec: (spec["manager"], spec["name"])),
        "virtual_package_hash": {
            "noarch": {"info": {"subdir": "noarch"}, "packages": {}},
            platform: {"info": {"subdir": platform}, "packages": virtual_packages(platform)},
        },
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def compact(value: object) -> str:
    """JSON without blanks: each channel is hashed as text of its own."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def spec_of(name: str, manager: str, *, version: str, **more: Any) -> dict[str, Any]:
    """A spec with a version, the fields that it always has."""
    return {"name": name, "manager": manager, "category": "main", "extras": [], "version": version, "build": None,
            "conda_channel": None, "hash": None, **more}


def conda_spec(record: CondaRecord, target: CondaTarget) -> dict[str, Any]:
    """What its reader makes of one conda line."""
    channel, found, _ = conda_requirement(record, target.channels).partition("::")
    return spec_of(record.name, "conda", version=record.version, build=record.build,
                   conda_channel=channel if found else None)


def pip_spec(package: LockedPackage) -> dict[str, Any]:
    """What its reader makes of one line of the pip section."""
    extras = sorted(set(package.extras))
    file = package.files[0]
    if package.direct:
        return {"name": package.name, "manager": "pip", "category": "main", "extras": extras,
                "url": locked_url(file.url), "hashes": [f"sha256:{locked_sha256(file)}"]}
    return spec_of(package.name, "pip", version=f"=={package.version}", extras=extras,
                   hash=f"sha256:{locked_sha256(file)}")


def virtual_packages(platform: str) -> dict[str, Any]:
    """The packages of the platform's stand-in channel, by file name."""
    machine = ARCHSPEC.get(platform, re.sub(r"^linux-", "", platform))
    rows = [(name, version, "0", "") for name, version in VIRTUAL]
    rows.append(("__archspec", "1", f"{machine}_0", machine))
    return {
        f"{name}-{version}-{build}.tar.bz2": {
            "name": name, "version": version, "build_string": build_string, "build_number": 0, "noarch": "",
            "depends": [], "timestamp": TIMESTAMP, "package_type": "virtual_system", "build": build,
            "subdir": platform,
        }
        for name, version, build, build_string in rows
    }
