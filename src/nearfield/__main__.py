"""The command line, as ``python -m nearfield``."""

from nearfield.cli import main

if __name__ == "__main__":
    main()
