//! Templates that do not compile, fail, refuse, or never terminate.

use lm_jinja::{Error, RenderOptions, Template};
use serde_json::json;

fn render(source: &str) -> Result<String, Error> {
    let variables = json!({"messages": [{"role": "user", "content": "hi"}]});
    let variables = variables.as_object().expect("an object");
    Ok(Template::new(source)?.render(variables, &RenderOptions::default())?.text().to_owned())
}

#[test]
fn errors_name_the_line() {
    for (source, line) in [("{% if %}", 1), ("a\nb {{ }", 2), ("a\n\n{% endfor %}", 3), ("{{ 'x", 1)] {
        let error = Template::new(source).unwrap_err();
        assert!(matches!(error, Error::Syntax { line: got, .. } if got == line), "{source}: {error}");
    }
    let error = render("a\n{{ messages.nothing.there }}").unwrap_err();
    assert!(matches!(error, Error::Runtime { line: 2, .. }), "{error}");
    let error = render("{{ raise_exception('no') }}").unwrap_err();
    assert_eq!(error, Error::Raised { message: "no".to_owned() });
}

#[test]
fn stray_brace_is_an_error() {
    for format in ["}¶", "a } b", "}", "{", "¶{0"] {
        let error = render(&format!("{{% raw %}}x{{% endraw %}}{{{{ '{format}'.format(1) }}}}")).unwrap_err();
        assert!(matches!(error, Error::Runtime { .. }), "{format}: {error}");
    }
}

#[test]
fn endless_templates_stop() {
    let output = "{% for a in range(100) %}{{ 'x' * 1000000 }}{% endfor %}";
    assert!(matches!(render(output), Err(Error::Limit { resource: "bytes of text", .. })));
    let recursion = "{% macro again(n) %}{{ again(n + 1) }}{% endmacro %}{{ again(0) }}";
    assert!(matches!(render(recursion), Err(Error::Limit { resource: "nested calls", .. })));
    let caller = "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}";
    assert!(matches!(render(caller), Err(Error::Limit { resource: "nested calls", .. })));
    let looping = "{% for x in [[1]] recursive %}{{ loop([x]) }}{% endfor %}";
    assert!(matches!(render(looping), Err(Error::Limit { resource: "nested calls", .. })));
}

/// Templates nested too deeply to be traversed or dropped on the stack.
#[test]
fn deep_templates_are_errors() {
    let nested =
        "{% set ns = namespace(x=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% endfor %}";
    assert!(matches!(render(nested), Err(Error::Runtime { .. })));
    let itself = "{% set ns = namespace(x=1) %}{% set ns.x = {'ns': ns} %}{{ ns }}";
    assert!(matches!(render(itself), Err(Error::Runtime { .. })));
    let lazy = "{% set ns = namespace(x=[1]) %}{% for i in range(5000) %}{% set ns.x = ns.x | map('abs') %}{% endfor %}";
    assert!(matches!(render(lazy), Err(Error::Runtime { .. })));
    for (open, close) in
        [("(", ")"), ("[", "]"), ("{1:", "}"), ("-", ""), ("not ", ""), ("x[", "]"), ("x(", ")")]
    {
        let source = format!("{{{{ {}1{} }}}}", open.repeat(50_000), close.repeat(50_000));
        assert!(matches!(Template::new(&source), Err(Error::Syntax { .. })), "{open}");
    }
    for link in ["+1", "~1", ".x", "|abs", " if 1 else 1", " and 1", "**1"] {
        let source = format!("{{{{ 1{} }}}}", link.repeat(50_000));
        let fails = Template::new(&source).is_err();
        assert_eq!(fails, link != "~1", "{link}");
    }
    let blocks = "{% if 1 %}".repeat(50_000) + &"{% endif %}".repeat(50_000);
    assert!(matches!(Template::new(&blocks), Err(Error::Syntax { .. })));
}

/// Precisions beyond those of `std::fmt`, whose digits are zeros.
#[test]
fn precision_equals_python() {
    for (format, length) in
        [("%.65536f", 65_538), ("%.65535e", 65_541), ("%.65536g", 3), ("%#.65536g", 65_537)]
    {
        assert_eq!(
            render(&format!("{{{{ ('{format}' % 1.5) | length }}}}")),
            Ok(length.to_string()),
            "{format}"
        );
    }
    assert_eq!(render("{{ '{:.65535e}'.format(1.5)[-8:] }}"), Ok("0000e+00".to_owned()));
}

/// Costs that no written text counts: lengths of texts in loops, scopes around kept ones, values besides
/// their items.
#[test]
fn hidden_costs_are_charged() {
    let looped = |body: &str| format!("{{% for i in range(1000) %}}{body}{{% endfor %}}");
    let forever = |body: &str| looped(&looped(&looped(body)));
    let within = |body: &str| "{% with a = i %}".repeat(45) + body + &"{% endwith %}".repeat(45);
    let cases = [
        (
            "{% set x = 'x' * 30000000 %}".to_owned() + &looped("{% for c in x %}{% break %}{% endfor %}"),
            "steps",
        ),
        (forever(&within("{% macro m() %}{% endmacro %}")), "bytes of values"),
        (
            "{% set z = [0] * 100000 %}".to_owned()
                + &looped("{% set x = z | map('map', 'string') | list %}"),
            "bytes of values",
        ),
        (
            "{% set z = range(100000) | list %}".to_owned()
                + &looped("{% set x = z | map(attribute='x') | list %}"),
            "bytes of values",
        ),
        (forever("{% set x = '{:.65536}'.format(1.1e-300) %}"), "steps"),
        ("{% set f = '%' * 60000000 %}".to_owned() + &looped("{% set x = f % () %}"), "steps"),
    ];
    for (source, expected) in cases {
        let error = render(&source).expect_err(&source);
        assert!(matches!(error, Error::Limit { resource, .. } if resource == expected), "{source}: {error}");
    }
}
