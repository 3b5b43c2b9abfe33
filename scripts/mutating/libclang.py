"""Python's side of libclang: Debian's python3-clang, which another python3 than Debian's does not find by itself."""

import sys

try:
    from clang import cindex
except ImportError:
    sys.path.append("/usr/lib/python3/dist-packages")
    try:
        from clang import cindex
    except ImportError:
        sys.exit("error: libclang was not found for Python. On Debian: apt-get install python3-clang")

__all__ = ["cindex"]
