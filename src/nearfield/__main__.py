"""The command ``nearfield``, and ``python -m nearfield``."""

import sys

from nearfield._extras import import_extra


def main() -> None:
    """Run the command line; without the extra that it needs, say so in one line."""
    try:
        import_extra("typer")
    except ImportError as error:
        sys.exit(f"Error: {error}")
    from nearfield.cli import main as run

    run()


if __name__ == "__main__":
    main()
