"""``python -m localmed``."""

from localmed.cli.main import run

if __name__ == "__main__":
    run()
