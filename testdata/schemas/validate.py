"""Validates the calls of a matrix run with the Python package `jsonschema`: a second opinion beside the Rust crate.

    cargo xtask matrix                      # writes target/matrix.jsonl
    python3 testdata/schemas/validate.py target/matrix.jsonl

Needs `jsonschema[format]`; formats are asserted. Prints the calls that do not fit, and counts.
"""

import json
import pathlib
import sys

import jsonschema

SCHEMAS = json.loads((pathlib.Path(__file__).parent / "keywords.json").read_text())


def main(path):
    validator_of = {
        name: jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
        for name, schema in SCHEMAS.items()
    }
    cells = calls = unfit = 0
    for line in open(path):
        cell = json.loads(line)
        cells += 1
        for arguments in cell["calls"]:
            calls += 1
            error = next(validator_of[cell["schema"]].iter_errors(arguments), None)
            if error is not None:
                unfit += 1
                print(f"{cell['dialect']}, {cell['schema']}: {error.message[:200]}: {json.dumps(arguments)[:200]}")
    print(f"{cells} cells, {calls} calls, {unfit} do not fit")
    return 1 if unfit or not calls else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
