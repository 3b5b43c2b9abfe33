"""Chromium without a window, by its DevTools protocol over a pipe: nothing but python3 and chromium is needed."""

import base64
import json
import os
import subprocess
import tempfile
import time


class Browser:
    """One page at a time. Everything that the page says to the console is kept in `messages`."""

    def __init__(self, program):
        read_commands, self.commands = os.pipe()
        self.answers, write_answers = os.pipe()
        self.profile = tempfile.TemporaryDirectory()

        def hand_over_pipes():
            # The numbers may be 3 or 4 already.
            first, second = os.dup(read_commands), os.dup(write_answers)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}", "about:blank"],
            preexec_fn=hand_over_pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read_commands)
        os.close(write_answers)
        self.number, self.buffer, self.session, self.messages, self.events = 0, b"", None, [], []
        pages = [each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page"]
        self.session = self.call("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def receive(self):
        while b"\0" not in self.buffer:
            more = os.read(self.answers, 1 << 16)
            assert more, "the browser has ended"
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.note(answer)

    def note(self, event):
        self.events.append(event.get("method"))
        if event.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
            self.messages.append(json.dumps(event["params"])[:600])

    def look_at(self, path, width=1280, height=900, dark=False):
        self.messages.clear()
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url=f"file://{path}")
        while "Page.loadEventFired" not in self.events:
            self.note(self.receive())
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key, code):
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def pdf(self):
        """The page on paper, as bytes. What its style for print lays out can be measured by run() with paper()."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])

    def paper(self, on, width=703):
        """Lays the page out as for print, on a sheet of this width within its margins, in pixels; or as before."""
        self.call("Emulation.setEmulatedMedia", media="print" if on else "")
        if on:
            self.call("Emulation.setDeviceMetricsOverride", width=width, height=1000, deviceScaleFactor=1, mobile=False)
        self.run(f"dispatchEvent(new Event('{'beforeprint' if on else 'afterprint'}'))")

    def picture(self, path, whole=True):
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def close(self):
        self.call("Browser.close")
        self.process.wait(timeout=30)
        os.close(self.commands)
        os.close(self.answers)
        for _ in range(20):
            try:
                self.profile.cleanup()
                return
            except OSError:
                time.sleep(0.1)
