"""`python -m stackfix`: the same as the console script."""

from stackfix.cli import main

if __name__ == "__main__":
    main()
