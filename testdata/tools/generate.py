"""Writes get_json_schema.json: the declarations that transformers makes of the functions below.

    python generate.py        # transformers 5.23.0
"""

import json
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Optional, Union

import transformers
from transformers.utils import get_json_schema

assert transformers.__version__ == "5.23.0", transformers.__version__


class Color(Enum):
    RED = "red"
    GREEN = "green"


class Level(Enum):
    LOW = 1
    HIGH = 2


def now():
    """Returns the time."""


def ping(host: str):
    """
    Pings a host.

    Args:
        host: Name or address of the host.
    """


def add(a: int, b: int):
    """
    Adds two integers.

    Args:
        a: The first one.
        b: The second one.
    """


def scale(factor: float):
    """
    Scales a drawing.

    Args:
        factor: Above 1 enlarges it.
    """


def set_light(on: bool):
    """
    Switches the light.

    Args:
        on: True for on.
    """


def mixed(name: str, age: int, height: float, member: bool):
    """
    Adds a person.

    Args:
        name: Full name.
        age: Age in years.
        height: Height in metres.
        member: Whether they are a member.
    """


def convert(value: float, unit: str):
    """
    Converts a temperature.

    Args:
        value: The temperature.
        unit: The target unit. (choices: ["celsius", "fahrenheit"])
    """


def paint(color: Color):
    """
    Paints the wall.

    Args:
        color: The new color.
    """


def set_level(level: Level):
    """
    Sets the level.

    Args:
        level: The new level.
    """


def turn(direction: Literal["left", "right", "back"]):
    """
    Turns the robot.

    Args:
        direction: Seen from the robot.
    """


def dice(sides: Literal[4, 6, 8, 20]):
    """
    Rolls a die.

    Args:
        sides: Number of sides.
    """


def zoom(ratio: Literal[0.5, 1.0, 2.0]):
    """
    Zooms.

    Args:
        ratio: The ratio.
    """


def sum_all(numbers: list[float]):
    """
    Adds numbers.

    Args:
        numbers: The numbers.
    """


def tag(names: list[str]):
    """
    Tags the photo.

    Args:
        names: The tags.
    """


def vote(flags: list[bool]):
    """
    Counts votes.

    Args:
        flags: One for each voter.
    """


def determinant(matrix: list[list[float]]):
    """
    Computes a determinant.

    Args:
        matrix: The rows.
    """


def cube(cells: list[list[list[int]]]):
    """
    Reads a cube of cells.

    Args:
        cells: Planes of rows of cells.
    """


def colors(palette: list[Color]):
    """
    Sets the palette.

    Args:
        palette: Colors in order.
    """


def directions(path: list[Literal["n", "e", "s", "w"]]):
    """
    Follows a path.

    Args:
        path: The steps.
    """


def prices(table: dict[str, float]):
    """
    Stores prices.

    Args:
        table: Prices by name.
    """


def groups(members: dict[str, list[str]]):
    """
    Stores groups.

    Args:
        members: Names by group.
    """


def nested(table: dict[str, dict[str, int]]):
    """
    Stores a nested table.

    Args:
        table: Counts by row and column.
    """


def settings(values: dict):
    """
    Stores settings.

    Args:
        values: Anything by name.
    """


def store(value: Any):
    """
    Stores a value.

    Args:
        value: Anything.
    """


def collect(values: list[Any]):
    """
    Stores values.

    Args:
        values: Anything.
    """


def shown(value: Union[int, str]):
    """
    Shows a value.

    Args:
        value: A number or a text.
    """


def measured(value: Union[float, bool, str]):
    """
    Stores a measurement.

    Args:
        value: A number, a flag, or a text.
    """


def several(ids: Union[int, list[int]]):
    """
    Deletes rows.

    Args:
        ids: One id, or a list of ids.
    """


def mixed_list(values: list[Union[int, str]]):
    """
    Joins values.

    Args:
        values: Numbers and texts.
    """


def greet(name: str, greeting: str = "Hello"):
    """
    Greets somebody.

    Args:
        name: The person.
        greeting: The first word.
    """


def page(offset: int = 0, limit: int = 20):
    """
    Reads a page.

    Args:
        offset: The first row.
        limit: Number of rows.
    """


def search(query: str, site: Optional[str] = None):
    """
    Searches the web.

    Args:
        query: The words.
        site: Only on this site.
    """


def remind(text: str, minutes: Optional[int] = None, days: Optional[list[str]] = None):
    """
    Sets a reminder.

    Args:
        text: The text.
        minutes: Minutes from now.
        days: Days of the week.
    """


def locate(point: tuple[float, float]):
    """
    Shows a point on the map.

    Args:
        point: Longitude and latitude.
    """


def interval(bounds: tuple[int, str]):
    """
    Sets an interval.

    Args:
        bounds: A number and its unit.
    """


def describe(subject: str):
    """
    Describes a subject.

    It begins with the most important fact.
    It ends with a summary.

    Args:
        subject: The subject, which may be a person,
            a place, or a thing.
    """


def quote(text: str):
    """
    Quotes a text: "like this", with 'marks' and a backslash \\.

    Args:
        text: The text: it may contain colons, "quotes" and {braces}.
    """


def translate(text: str, language: str):
    """
    Übersetzt einen Text — 翻訳 🌍.

    Args:
        text: Le texte à traduire, par exemple « bonjour ».
        language: Die Sprache. (choices: ["deutsch", "français", "日本語"])
    """


def book(city: str, nights: int, breakfast: bool = False, stars: Literal["3", "4", "5"] = "3"):
    """
    Books a hotel.

    Args:
        city: The city.
        nights: Number of nights.
        breakfast: With breakfast.
        stars: The category.

    Returns:
        The number of the booking.
    """


def divide(numerator: float, denominator: float) -> float:
    """
    Divides two numbers.

    Args:
        numerator: The dividend.
        denominator: The divisor.

    Returns:
        The quotient.

    Raises:
        ZeroDivisionError: If the divisor is zero.
    """


def send_mail(to: list[str], subject: str, body: str, headers: dict[str, str], urgent: bool):
    """
    Sends a mail.

    Args:
        to: The recipients.
        subject: The subject.
        body: The text.
        headers: Further headers by name.
        urgent: Whether it is urgent.
    """


FUNCTIONS = [
    now, ping, add, scale, set_light, mixed, convert, paint, set_level, turn, dice, zoom, sum_all, tag, vote,
    determinant, cube, colors, directions, prices, groups, nested, settings, store, collect, shown, measured, several,
    mixed_list, greet, page, search, remind, locate, interval, describe, quote, translate, book, divide, send_mail,
]

declarations = []
for function in FUNCTIONS:
    declaration = get_json_schema(function)
    declaration["function"].pop("return", None)  # most templates leave it out; a result is described by `output_schema`
    declarations.append(declaration)
lines = ",\n".join(json.dumps(declaration, ensure_ascii=False) for declaration in declarations)
Path(__file__).with_name("get_json_schema.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
print(len(declarations), "declarations")
