"""`python -m azjax` runs the command `azjax`."""

from azjax.cli import main

if __name__ == "__main__":
    main()
