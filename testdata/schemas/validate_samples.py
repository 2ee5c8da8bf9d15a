"""Validates the texts of random schemas with the Python package `jsonschema`: a second opinion beside the Rust crate.

    LM_SAMPLES=/tmp/samples.jsonl LM_PROPERTY_CASES=5000 cargo test -p lm-processors --test integration grammar::differential
    python3 testdata/schemas/validate_samples.py /tmp/samples.jsonl

Needs `jsonschema`. An error is excused if the keyword at fault is listed as not enforced. Prints the other errors, and counts.
Python's own departures are left out: remainders of floats, and times that its formats do not know.
"""

import json
import sys
from fractions import Fraction

import jsonschema
from jsonschema import validators


def multiple_of(validator, divisor, instance, schema):
    """`multipleOf` by decimals, as written: Python divides floats."""
    if validator.is_type(instance, "number") and Fraction(str(instance)) % Fraction(str(divisor)) != 0:
        yield jsonschema.ValidationError(f"{instance!r} is not a multiple of {divisor}")


Validator = validators.extend(jsonschema.Draft202012Validator, {"multipleOf": multiple_of})


def excuses(at, keyword, path):
    place = f"{at.lstrip('#')}/{keyword}"
    return at.startswith("#/$defs/") or place.startswith(path) or path.startswith(place) or path.endswith(f"/{keyword}")


def main(path):
    texts = unfit = excused = endless = 0
    for line in open(path, encoding="utf-8"):
        case = json.loads(line)
        texts += 1
        value = json.loads(case["text"])
        checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
        try:
            errors = list(Validator(case["schema"], format_checker=checker).iter_errors(value))
        except RecursionError:  # A reference to itself, below a keyword that is not enforced.
            endless += 1
            continue
        for error in errors:
            place = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in error.absolute_schema_path)
            if any(excuses(at, keyword, place) for at, keyword in case["unenforced"]):
                excused += 1
                continue
            unfit += 1
            print(f"seed {case['seed']}: {error.message[:200]} at {place}: {case['text'][:300]}\n{json.dumps(case['schema'])}")
            break
    print(f"{texts} texts, {unfit} do not fit, {excused} errors of keywords that are not enforced, {endless} endless")
    return 1 if unfit or not texts else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
