"""A real browser without a window: Debian's chromium, by its own driver."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions, ChromeService
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

PROGRAMS = ("chromium", "chromedriver")
PHONE, DESKTOP = (390, 844), (1280, 900)
SECONDS = 30


def missing() -> list[str]:
    """Programs that are not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


@dataclass(frozen=True, slots=True)
class Browser:
    driver: Chrome

    def show(self, size: tuple[int, int], scheme: str) -> None:
        """From now on as on a screen of that size, for people who prefer `light` or `dark`."""
        width, height = size
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def run(self, script: str, *arguments: object) -> Any:
        return self.driver.execute_script(script, *arguments)

    def wait(self, reached: Callable[[], object]) -> None:
        WebDriverWait(self.driver, SECONDS, poll_frequency=0.05).until(lambda _: reached())

    def wait_for_text(self, text: str) -> None:
        self.wait(lambda: text in self.text())

    def text(self) -> str:
        return str(self.run("return document.body.innerText"))

    def focused(self) -> WebElement:
        return self.driver.switch_to.active_element

    def complaints(self) -> list[str]:
        """What the browser has said in its console since the last call: errors of scripts, and what the policy for
        content forbade."""
        return [str(line["message"]) for line in self.driver.get_log("browser")]

    def hosts(self) -> set[str]:
        """Hosts that were asked for anything since the page was opened."""
        urls = self.run("return performance.getEntries().map((entry) => entry.name)")
        return {url.split("/")[2] for url in urls if "://" in url}


@contextmanager
def browser() -> Iterator[Browser]:
    options = ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for argument in ("--headless=new", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb"):
        options.add_argument(argument)
    if os.geteuid() == 0:
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = Chrome(options, ChromeService(str(shutil.which("chromedriver"))))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
