"""Uses the page of skipstep-web in Chromium, as a user would.

    web-page.py URL         tries each view and each action, for test-web.sh
    web-page.py URL story   looks at a dropped packet and the rules, for the story in tests/packages

Tokens, files and commands are in the environment. Prints each check, and exits with 1 if one fails.
"""

import os
import subprocess
import sys
import threading
import time

from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

url = sys.argv[1]
failed = False


def same(name, expected, seen):
    """Compares a value with the expected one."""
    global failed
    if expected == seen:
        print(f"as expected: {name}: {seen}")
    else:
        print(f"NOT AS EXPECTED: {name}: expected {expected}, seen {seen}")
        failed = True


def holds(name, condition, seconds=8):
    """Waits until a condition is true."""
    global failed
    end = time.monotonic() + seconds
    while True:
        try:
            if condition():
                print(f"as expected: {name}")
                return
        except (NoSuchElementException, StaleElementReferenceException):
            pass
        if time.monotonic() > end:
            print(f"NOT AS EXPECTED: {name}: {text('main')[:600]}")
            failed = True
            return
        time.sleep(0.05)


def open_browser():
    options = webdriver.ChromeOptions()
    for word in ["--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900",
                 "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking"]:
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


browser = open_browser()


def find(selector):
    return browser.find_element(By.CSS_SELECTOR, selector)


def all_of(selector):
    return browser.find_elements(By.CSS_SELECTOR, selector)


def text(selector):
    try:
        return find(selector).text
    except (NoSuchElementException, StaleElementReferenceException):
        return ""


def press(*keys):
    """Presses keys wherever the focus is."""
    browser.switch_to.active_element.send_keys(*keys)


def picture(name):
    folder = os.environ.get("PICTURES")
    if folder:
        time.sleep(0.3)
        browser.save_screenshot(f"{folder}/web-{name}.png")


def pfctl(*words):
    return subprocess.run([os.environ["PFCTL"], *words], capture_output=True, text=True).stdout


def log_in(token):
    browser.get(url)
    holds("the login", lambda: find("#token").is_displayed())
    press("guess", Keys.ENTER)
    holds("a wrong token is refused", lambda: "nobody has this token" in text(".login .wrong"))
    press(token, Keys.ENTER)
    holds("the overview", lambda: text("h1") == "Overview")


def view(key, title):
    """Shows a view by its key."""
    press(Keys.ESCAPE)
    press(key)
    holds(f"key {key}", lambda: text("h1") == title)


def as_reader():
    log_in(os.environ["READER"])
    same("the user", "screen (may only look)", text("#user"))
    view("4", "States")
    holds("states", lambda: all_of("#states tbody tr"))
    same("a reader cannot kill", False, find("#states tbody button").is_enabled())
    view("8", "Load")
    same("a reader cannot load", False, find("#load").is_enabled())
    status = browser.execute_async_script("""
        const done = arguments[0];
        fetch("/api/session").then((answer) => answer.json()).then((session) =>
            fetch("/api/confirm", {method: "POST", body: "{}", headers:
                {"content-type": "application/json", "x-skipstep-proof": session.proof}}))
            .then((answer) => done(answer.status));""")
    same("the server says so, too", 403, status)
    find("#logout").click()
    holds("the logout", lambda: find("#token").is_displayed())


def overview():
    view("1", "Overview")
    holds("the status", lambda: text("#status").startswith("enabled, 20,0"))
    holds("curves", lambda: len(all_of("path.curve")) == 7 and
          all("L" in curve.get_attribute("d") for curve in all_of("path.curve")), 15)
    holds("reasons", lambda: "match" in text("#reasons"))
    picture("overview")
    find("#theme").click()
    find("#theme").click()
    picture("overview-dark")
    find("#theme").click()


def states():
    view("4", "States")
    holds("20,000 states", lambda: "of 20,0" in text("#counts") and "1 to 100 shown" in text("#counts"))
    find("#next").click()
    holds("the next 100", lambda: "101 to 200 shown" in text("#counts"))
    press(Keys.ESCAPE)
    press("/")
    press("tcp established lan0")
    holds("a filter", lambda: text("#counts").startswith("0 of"))
    find("#filter").clear()
    find("#filter").send_keys("tcp in established:established :80")
    holds("another filter", lambda: text("#counts").startswith("1 of"))
    picture("states")
    kill = find("#states tbody button")
    kill.click()
    same("killing asks", "Really kill?", kill.text)
    kill.click()
    holds("the state is gone", lambda: text("#counts").startswith("0 of"))
    holds("a message", lambda: "killed 1 states" in text("#messages"))
    same("pfctl sees the same", 0, pfctl("-ss").count("in tcp") + pfctl("-ss").count(":80 <- "))


def rules():
    view("5", "Rules")
    holds("the rules", lambda: len(all_of("#rules tbody tr")) == 6)
    holds("hits", lambda: "10,0" in text("#rules"))
    picture("rules")
    press("/")
    press("@1")
    holds("a rule", lambda: len(all_of("#rules tbody tr")) == 1)
    find("#filter").clear()
    find("#filter").send_keys("x", Keys.BACKSPACE, Keys.ESCAPE)
    find("#never").click()
    holds("rules that never matched", lambda: all_of("#rules tbody tr") and
          all("never matched" in row.text for row in all_of("#rules tbody tr")))
    find("#never").click()
    holds("a rule's states", lambda: [link for link in all_of("#rules a") if link.text.startswith("10,0")])
    [link for link in all_of("#rules a") if link.text.startswith("10,0")][0].click()
    holds("lead to the states of the rule", lambda: text("h1") == "States" and "10,001 of" in text("#counts"))


def tables():
    view("6", "Tables")
    holds("a table", lambda: "guessers" in text("#tables"))
    find("#tables a").click()
    holds("its addresses", lambda: "198.51.100.0/24" in text("#addresses"))
    find("#address").send_keys("203.0.113.7", Keys.ENTER)
    holds("an address is added", lambda: "203.0.113.7" in text("#addresses"))
    same("pfctl sees it", True, "203.0.113.7" in pfctl("-t", "guessers", "-T", "show"))
    picture("tables")
    button = find("[aria-label='Delete 203.0.113.7']")
    button.click()
    button.click()
    holds("an address is deleted", lambda: "203.0.113.7" not in text("#addresses"))
    same("pfctl no longer sees it", False, "203.0.113.7" in pfctl("-t", "guessers", "-T", "show"))
    find("#address").clear()
    find("#address").send_keys("example.com", Keys.ENTER)
    holds("a name is refused", lambda: "is no address" in text("#messages"))


def explain():
    view("7", "Explain")
    holds("interfaces", lambda: "lan0" in text("#interface"))
    line = find("#packet")
    line.clear()
    line.send_keys("in lan0 tcp 192.168.100.2:4000 > 192.168.10.2:23 S", Keys.ENTER)
    holds("a verdict", lambda: text("#verdict h2") == "Verdict: block")
    same("its rule", True, 'label "rest"' in text("#verdict"))
    picture("explain")
    line.clear()
    line.send_keys("in lan0 tcp", Keys.ENTER)
    holds("an error", lambda: text("#verdict .wrong") != "")


def write_rules(lines):
    browser.execute_script("""const area = document.getElementById("text");
        area.value = arguments[0]; area.dispatchEvent(new Event("input"));""", lines)


def load():
    view("8", "Load")
    holds("the file", lambda: "guessers" in find("#text").get_attribute("value"))
    old = find("#text").get_attribute("value")
    write_rules(old + "pass in on\n")
    find("#compare").click()
    holds("an error names the line", lambda: text("#result button") == "line 8")
    find("#result button").click()
    same("and leads to it", "pass in on", browser.execute_script(
        "const area = document.getElementById('text'); return area.value.slice(area.selectionStart, area.selectionEnd)"))
    write_rules(old + "pass in on lan0 proto tcp to port 8443\n")
    find("#compare").click()
    holds("a comparison", lambda: "port = 8443" in text("#result .added"))
    holds("packets with another fate", lambda: all_of("#packets tbody tr"))
    picture("load")
    seconds = find("#seconds")
    seconds.clear()
    seconds.send_keys("30")
    find("#load").click()
    holds("a trial", lambda: "Rules on trial" in text("#trial"))
    same("pfctl has the new rules", True, "port = 8443" in pfctl("-sr"))
    first = int(text("#seconds-left").split()[0])
    holds("a countdown", lambda: int(text("#seconds-left").split()[0]) < first)
    picture("trial")
    find("#revert").click()
    holds("the trial is over", lambda: not find("#trial").is_displayed())
    same("pfctl has the old rules", False, "port = 8443" in pfctl("-sr"))
    # with the keyboard alone
    find("#text").click()
    press(Keys.TAB, Keys.TAB, Keys.TAB, Keys.TAB, Keys.TAB)
    same("the tabulator leads to the button", "load", browser.switch_to.active_element.get_attribute("id"))
    press(Keys.ENTER)
    holds("another trial", lambda: find("#trial").is_displayed() and
          browser.switch_to.active_element.get_attribute("id") == "confirm")
    press(Keys.ENTER)
    holds("confirmed", lambda: not find("#trial").is_displayed())
    same("pfctl keeps the new rules", True, "port = 8443" in pfctl("-sr"))


def log():
    view("2", "Log")
    time.sleep(1)
    probe()
    holds("a logged packet", lambda: ":8080 S" in text("#records"))
    holds("its rule and action", lambda: "block" in text("#records") and "lan0" in text("#records"))
    picture("log")
    [button for button in all_of("#records button") if button.text == "lan0"][0].click()
    holds("a value becomes a condition", lambda: "interface lan0" in text(".chip"))
    find("#freeze").click()
    before = text("#records")
    probe()
    time.sleep(1)
    same("a frozen log stays", before, text("#records"))
    find("#freeze").click()
    find(".chip").click()
    flood()


def flood():
    """Adds 5,000 records a second to the log, and measures how long the page does not react."""
    file = open(os.environ["LOG"], "rb").read()
    length = int.from_bytes(file[32:36], "little")
    record = file[24:40 + length]
    browser.execute_script("""window.longest = 0; let last = performance.now();
        window.ticks = setInterval(() => { const now = performance.now();
            window.longest = Math.max(window.longest, now - last); last = now; }, 20);""")

    def add():
        with open(os.environ["LOG"], "ab") as out:
            for _ in range(50):
                out.write(record * 500)
                out.flush()
                time.sleep(0.1)

    thread = threading.Thread(target=add)
    thread.start()
    time.sleep(2)
    press("/")
    started = time.monotonic()
    press("lan0")
    same("typing in the flood", "lan0", find("#filter").get_attribute("value"))
    print(f"typing took {time.monotonic() - started:.2f} s")
    thread.join()
    received = lambda: int(text("#counts").split()[0].replace(",", "") or 0)
    holds("25,000 records are counted", lambda: received() >= 25000, 15)
    print(text("#counts"))
    longest = browser.execute_script("clearInterval(window.ticks); return window.longest")
    same(f"the page never stops for a second (longest {longest:.0f} ms)", True, longest < 1000)


def drops():
    view("3", "Drops")
    time.sleep(1.5)
    probe()
    holds("a dropped packet", lambda: ":8080" in text("#records"))
    holds("its rule's place", lambda: "pf.conf:3" in text("#records"))
    picture("drops")


def page():
    press(Keys.ESCAPE)
    press("?")
    holds("the keys", lambda: find("#help").is_displayed())
    press(Keys.ESCAPE)
    holds("are closed", lambda: not find("#help").is_displayed())
    browser.set_window_size(400, 800)
    for key in "12345678":
        press(Keys.ESCAPE)
        press(key)
        time.sleep(0.4)
        wide = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
        same(f"view {key} fits a narrow window", True, wide <= 0)
    picture("narrow")
    errors = [entry["message"] for entry in browser.get_log("browser")
              if entry["level"] == "SEVERE" and not any(code in entry["message"] for code in ["401", "403", "422"])]
    same("errors of the page", [], errors)


def probe():
    """Sends a packet that the filter drops."""
    subprocess.run(os.environ["PROBE"].split())


def whole():
    as_reader()
    log_in(os.environ["WRITER"])
    same("the user", "anna (may change the filter)", text("#user"))
    for part in [overview, states, rules, tables, explain, load, log, drops, page]:
        part()


def story():
    log_in(os.environ["READER"])
    view("3", "Drops")
    time.sleep(1.5)
    probe()
    holds("the dropped packet", lambda: "192.0.2.2:" in text("#records") and
          "> 192.0.2.1:23 S" in text("#records"))
    holds("the place of its rule", lambda: "pf.conf:2" in text("#records"))
    picture("story")
    view("5", "Rules")
    holds("the rule with its hits", lambda: any("block drop log all" in row.text and
          "never matched" not in row.text for row in all_of("#rules tbody tr")))


try:
    story() if sys.argv[2:] == ["story"] else whole()
finally:
    browser.quit()
sys.exit(failed)
