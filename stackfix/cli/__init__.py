"""Options -> wiring -> exit status. This package alone sees every stage."""

from __future__ import annotations


def main() -> None:
    """Run the command line of this process and exit with its status."""
    import sys

    from stackfix.cli.app import run

    sys.exit(run(sys.argv[1:]))
