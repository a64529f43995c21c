"""A headless Chromium, for pictures and for tests of pages."""

import contextlib
import importlib.util
import shutil
from collections.abc import Iterator
from typing import Any

from azjax._commands import command

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_QUIET = (  # Chromium runs as root, without a graphics card and without any dialog.
    *("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


@contextlib.contextmanager
def open_browser() -> Iterator[Any]:
    """Starts Chromium and yields Playwright's `Browser`; closes it at the end.

    Raises:
      ValueError: if Chromium or Playwright is missing.
    """
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    if path is None:
        raise ValueError("Chromium is missing: install it (Debian: apt-get install chromium)")
    if importlib.util.find_spec("playwright") is None:
        raise ValueError(
            f"Playwright is missing: install it with {command('pip', 'install', 'playwright')}"
        )
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_QUIET))
        try:
            yield browser
        finally:
            browser.close()
