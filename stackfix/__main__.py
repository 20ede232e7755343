"""`python -m stackfix`: the same as the console script."""

import sys

if __name__ == "__main__":
    try:
        from stackfix.cli import main

        main()
    except KeyboardInterrupt:           # before or after the command itself catches it
        sys.stderr.write("interrupted\n")
        sys.exit(130)
