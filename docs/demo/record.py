"""Records `lm chat --tools demo` in a real terminal: demo.cast (asciicast v2), demo.txt and demo.svg (the last screen).

    cargo build --release && python docs/demo/record.py target/release/lm

Needs pyte (a terminal emulator in Python). What is typed stands in SCRIPT; the rest is what the program did.
"""

import html
import json
import os
import pty
import select
import struct
import sys
import termios
import time
from fcntl import ioctl
from pathlib import Path

import pyte

COLUMNS, LINES = 96, 26
# (text to type, seconds to watch afterwards); ^C is Ctrl-C.
SCRIPT = [
    ("How is the weather in Paris?\r", 2.0),
    ("And in London?\r", 2.0),
    ("What is the stock price of GOOGL?\r", 2.0),
    ("How is the weather in Rome?\r^C", 1.5),
    ("How is the weather in Rome?\r", 2.0),
    ("/quit\r", 0.5),
]
CTRL_C_AFTER = 0.02  # seconds: in the middle of the reply
COLOURS = {
    "default": "#d0d4dc", "black": "#20242c", "red": "#e06c75", "green": "#98c379", "brown": "#d7a65f",
    "blue": "#61afef", "magenta": "#c678dd", "cyan": "#56b6c2", "white": "#d0d4dc", "brightblack": "#7f8795",
}


def record(command):
    """Runs the script; returns the events [(seconds, bytes)]."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color")
        os.execvp(command[0], command)
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    events, start = [], time.time()

    def watch(seconds):
        end = time.time() + seconds
        while (left := end - time.time()) > 0:
            if select.select([terminal], [], [], left)[0]:
                try:
                    data = os.read(terminal, 65536)
                except OSError:
                    return
                events.append((time.time() - start, data))

    watch(1.5)
    for text, seconds in SCRIPT:
        line, cancel, _ = text.partition("^C")
        for key in line:
            os.write(terminal, key.encode())
            watch(0.0 if key == "\r" else 0.03)
        if cancel:
            watch(CTRL_C_AFTER)
            os.write(terminal, b"\x03")
        watch(seconds)
    os.waitpid(pid, 0)
    return events


def screen_of(events):
    screen = pyte.HistoryScreen(COLUMNS, LINES, history=1000)
    stream = pyte.ByteStream(screen)
    for _, data in events:
        stream.feed(data)
    rows = [*screen.history.top, *(screen.buffer[y] for y in range(screen.lines))]
    rows = [[row[x] for x in range(COLUMNS)] for row in rows]
    while rows and not "".join(cell.data for cell in rows[-1]).strip():
        rows.pop()
    return rows


def svg(rows):
    width, height = COLUMNS * 8.43 + 32, len(rows) * 19 + 32
    lines = []
    for y, row in enumerate(rows):
        spans, x = [], 0
        while x < COLUMNS:
            cell, begin = row[x], x
            style = (cell.fg, cell.bold, cell.italics)
            while x < COLUMNS and (row[x].fg, row[x].bold, row[x].italics) == style:
                x += 1
            text = html.escape("".join(c.data for c in row[begin:x]))
            fill = COLOURS.get(cell.fg, f"#{cell.fg}" if len(cell.fg) == 6 else COLOURS["default"])
            weight = ' font-weight="bold"' if cell.bold else ""
            spans.append(f'<tspan fill="{fill}"{weight}>{text}</tspan>')
        lines.append(f'<text x="16" y="{y * 19 + 30}" xml:space="preserve">{"".join(spans)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" '
        f'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">'
        f'<rect width="100%" height="100%" rx="8" fill="#20242c"/>{"".join(lines)}</svg>\n'
    )


def main():
    here = Path(__file__).parent
    events = record([sys.argv[1], "chat", "--tools", "demo"])
    header = {"version": 2, "width": COLUMNS, "height": LINES, "title": "lm chat --tools demo"}
    cast = [json.dumps(header)]
    cast += [json.dumps([round(t, 3), "o", data.decode(errors="replace")]) for t, data in events]
    (here / "demo.cast").write_text("\n".join(cast) + "\n")
    rows = screen_of(events)
    (here / "demo.txt").write_text("\n".join("".join(c.data for c in row).rstrip() for row in rows) + "\n")
    (here / "demo.svg").write_text(svg(rows))


main()
