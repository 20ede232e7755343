"""Options -> wiring -> exit status. This package alone sees every stage."""

from __future__ import annotations


def main() -> None:
    """Run the command line of this process and exit with its status."""
    import gc
    import sys

    # A lock makes many records that live to its end: looking for garbage among them took 7 % of its processor time, and
    # at the end Python looks once more.
    gc.set_threshold(500_000, 50, 100)
    try:
        from stackfix.cli.early import answered

        status = answered(sys.argv[1:])
        if status is None:
            from stackfix.cli import early_ask

            early_ask.ask(sys.argv[1:])
            from stackfix.cli.app import run

            status = run(sys.argv[1:])
            early_ask.drop()
    except KeyboardInterrupt:       # while importing, or while something else was being told
        sys.stderr.write("interrupted\n")
        status = 130
    except MemoryError:
        sys.stderr.write("error: not enough memory: give the process more (ulimit -v, the container's limit)\n")
        status = 3
    except OSError as fault:        # run() tells those that come later: no more files can be opened, say
        sys.stderr.write(f"error: {fault.filename or 'the system'}: {fault.strerror or fault}\n")
        status = 3
    gc.freeze()
    sys.exit(status)
