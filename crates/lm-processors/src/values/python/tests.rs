use serde_json::Value;

use super::super::incremental::whole_and_by_character;
use super::*;

/// Converts arguments to JSON text.
fn read(text: &str, names: &[&str]) -> Result<String, String> {
    let new = || PythonArguments::new(names.iter().map(|name| (*name).to_owned()).collect(), Vec::new());
    whole_and_by_character(text, new, PythonArguments::follow, PythonArguments::certain)
}

#[test]
fn arguments_become_json() {
    let cases = [
        (")", "{}"),
        ("a=1)", r#"{"a": 1}"#),
        (" a = 1 , b = 'x' , )", r#"{"a": 1, "b": "x"}"#),
        ("a=True, b=false, c=None, d=null)", r#"{"a": true, "b": false, "c": null, "d": null}"#),
        (
            "a=07, b=-1_000, c=0xff, d=.5, e=1e-3, f=-2E+4)",
            r#"{"a": 7, "b": -1000, "c": 255, "d": 0.5, "e": 1e-3, "f": -2e+4}"#,
        ),
        ("a=[1, [2, 'x'], []])", r#"{"a": [1, [2, "x"], []]}"#),
        (
            "a={'k': {\"n\": 1}, 2: 'two', None: [],}, b={})",
            r#"{"a": {"k": {"n": 1}, "2": "two", "null": []}, "b": {}}"#,
        ),
        (
            "a=(1, 2), b=(1,), c=(1), d=(), e=((1, 2)))",
            r#"{"a": [1, 2], "b": [1], "c":  1, "d": [], "e":  [1, 2]}"#,
        ),
        ("a={1}, b={'x', 'y'})", r#"{"a": [1], "b": ["x", "y"]}"#),
        ("a-b.c=1)", r#"{"a-b.c": 1}"#),
    ];
    for (text, json) in cases {
        assert_eq!(read(text, &[]).as_deref(), Ok(json), "{text}");
        serde_json::from_str::<Value>(json).unwrap();
    }
}

#[test]
fn strings_are_decoded() {
    let cases = [
        (r#"a='')"#, r#"{"a": ""}"#),
        (r#"a='it\'s', b="a \"b\"")"#, r#"{"a": "it's", "b": "a \"b\""}"#),
        (r#"a='\n\t\\ \q \/')"#, r#"{"a": "\n\t\\ \\q /"}"#),
        (r#"a='\x41\u00e9\U0001F642\101\0')"#, r#"{"a": "Aé🙂A\u0000"}"#),
        (r#"a='\ud83d\ude42 \ud83d \ude42')"#, r#"{"a": "🙂 � �"}"#),
        (r#"a='\x4 \u12 \N{DASH}')"#, r#"{"a": "\\x4 \\u12 \\N{DASH}"}"#),
        (r#"a=r'\d+\'', b=b"x", c=f'{y}')"#, r#"{"a": "\\d+\\'", "b": "x", "c": "{y}"}"#),
        ("a='''it's\n\"so\"''', b=\"\"\"\"\"\")", r#"{"a": "it's\n\"so\"", "b": ""}"#),
        ("a='two\\\nlines\nhere')", r#"{"a": "twolines\nhere"}"#),
        ("a='sed -n '1,5p' f')", r#"{"a": "sed -n '1,5p' f"}"#),
        ("a='grep 'x' 'y' f' , b=1)", r#"{"a": "grep 'x' 'y' f", "b": 1}"#),
    ];
    for (text, json) in cases {
        assert_eq!(read(text, &[]).as_deref(), Ok(json), "{text}");
        serde_json::from_str::<Value>(json).unwrap();
    }
}

#[test]
fn positional_arguments_get_declared_names() {
    assert_eq!(read("1, 'x')", &["n", "s"]).as_deref(), Ok(r#"{"n": 1, "s": "x"}"#));
    assert_eq!(read("[1], s=True)", &["n", "s"]).as_deref(), Ok(r#"{"n": [1], "s": true}"#));
    assert_eq!(read("1, 2)", &["n"]).unwrap_err(), "an argument has no name");
    assert_eq!(read("1)", &[]).unwrap_err(), "an argument has no name");
}

#[test]
fn non_literals_are_rejected() {
    let deep = format!("a={}", "[".repeat(200));
    let texts = [
        "a=",
        "a=)",
        "a=,",
        "a=x)",
        "a=inf)",
        "a=1 2)",
        "a=1]",
        "a=[1}",
        "a={'k'})x",
        "a={'k': })",
        "a={'k': 1, 'j'})",
        "a={[1]: 2})",
        "a={1, 2: 3})",
        "a=1:2)",
        "a=f(1))",
        "a=@)",
        "a==1)",
        "a=b=1)",
        "A=\t)",
        &deep,
    ];
    for text in texts {
        assert!(read(text, &["a"]).is_err(), "{text}");
    }
}

#[test]
fn certain_text_is_emitted_early() {
    let mut arguments = PythonArguments::new(Vec::new(), Vec::new());
    let mut certain = |text: &str| {
        arguments.follow(text).unwrap();
        arguments.certain().to_owned()
    };
    assert_eq!(certain("a="), r#"{"a": "#);
    assert_eq!(certain("a='some te"), r#"{"a": "some te"#);
    assert_eq!(certain("a='some te', b={'k'"), r#"{"a": "some te", "b": "#);
    assert_eq!(certain("a='some te', b={'k': [1"), r#"{"a": "some te", "b": {"k": ["#);
}

#[test]
fn literals() {
    assert_eq!(python_literal("{'a': (1, None)}"), Some(serde_json::json!({"a": [1, null]})));
    for text in ["", "1, 2", "]", "[", "1]", "x"] {
        assert_eq!(python_literal(text), None, "{text}");
    }
}
