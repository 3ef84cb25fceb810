"""The `explorer` command, also as `python -m explorer`."""

from explorer import signals


def main() -> None:
    """Runs the command line; the signals are handled first, since the rest takes a while."""
    signals.handle(signals.end_cancelled)
    from explorer.cli import cli

    cli(prog_name="explorer")


if __name__ == "__main__":
    main()
