"""A plan applied in a process of its own: `python -m tests.apply_faults.apply_child`, plan and installer on stdin."""

from __future__ import annotations

import json
import sys

from stackfix.apply.transaction import apply_plan
from stackfix.apply.wheels import WheelInstaller
from stackfix.inspect.plain import from_json, to_json
from stackfix.plan.records import Plan


def as_input(plan: Plan, installer: WheelInstaller) -> bytes:
    """What `main` reads."""
    return json.dumps({"plan": to_json(plan), "installer": to_json(installer)}).encode()


def main() -> int:
    """130 after an interrupt, 0 once all is applied."""
    asked = json.loads(sys.stdin.buffer.read())
    plan = from_json(asked["plan"], Plan)
    try:
        apply_plan(plan, plan.prefix, installer=from_json(asked["installer"], WheelInstaller))
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
