"""Run the command as `python -m equipoise`."""

from .cli.main import main

if __name__ == "__main__":
    main()
