"""``python -m wanlat``: the command `wanlat`."""

from wanlat.start import main

if __name__ == "__main__":
    main()
