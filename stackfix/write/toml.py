"""The TOML reader of this Python: tomllib is in the standard library from 3.11 on. Imported where a file is read."""

import sys

if sys.version_info >= (3, 11):
    from tomllib import loads
else:
    from tomli import loads

__all__ = ["loads"]
