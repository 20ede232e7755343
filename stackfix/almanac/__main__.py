"""`python -m stackfix.almanac PART` makes a part of `matrices/abi`, adds to it, or checks it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from stackfix.almanac import extensions, loading, nvidia, torch
from stackfix.errors import StackfixError, Unreachable
from stackfix.inspect.places import reason_of

PARTS = {"torch": torch, "nvidia": nvidia, "extensions": extensions, "loading": loading}
INTERRUPTED = 130


def main(words: Sequence[str] | None = None) -> int:
    """Exit status: 0, or that of the one error, which is told on stderr."""
    parser = argparse.ArgumentParser(prog="python -m stackfix.almanac", description=__doc__)
    parts = parser.add_subparsers(dest="part", required=True)
    for name, module in PARTS.items():
        text = module.__doc__ or ""
        module.add_arguments(parts.add_parser(name, help=text.partition("\n")[0], description=text,
                                              formatter_class=argparse.RawDescriptionHelpFormatter))
    asked = parser.parse_args(words)
    try:
        PARTS[asked.part].run(asked)
    except StackfixError as error:
        step = error.next_step()
        sys.stderr.write(f"error: {error.what()}\n" + (f"  {step}\n" if step else ""))
        return error.exit_status
    except OSError as error:        # the store or a scratch folder, taken away meanwhile
        sys.stderr.write(f"error: {error.filename or 'a file'}: {reason_of(error)}\n")
        return Unreachable.exit_status
    except KeyboardInterrupt:
        sys.stderr.write("interrupted: what was read is kept, the files are as they were\n")
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
