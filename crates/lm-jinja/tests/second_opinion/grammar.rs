//! Grammar of generated templates: expressions by their type, in statements that published templates use.

use lm_jinja::{Map, Value};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::json;

/// Variables of the generated templates.
pub fn variables() -> Map<String, Value> {
    let variables = json!({
        "s": " One two-three, one\n", "u": "ßtraße É 1²", "e": "", "t": "<a href='x'>&amp;</a>", "i": 7, "z": 0, "neg": -3,
        "f": 2.5, "yes": true, "none_": null, "words": ["b", "A", "c", "b"], "numbers": [3, 1, 2, 3], "empty": [],
        "d": {"b": 2, "a": [1, null], "items": "own", "nested": {"k": "v"}},
        "rows": [{"k": "b", "v": 1}, {"k": "A", "v": 3, "x": true}, {"k": "b", "v": 2, "x": null}],
        "messages": [{"role": "system", "content": "Be terse."}, {"role": "user", "content": "Hi <b> \"there\""},
                     {"role": "assistant", "content": null, "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}],
    });
    variables.as_object().cloned().expect("an object")
}

type Source = BoxedStrategy<String>;

/// Expressions of one depth, by the type of their value.
#[derive(Clone)]
struct Expressions {
    text: Source,
    number: Source,
    list: Source,
    truth: Source,
    any: Source,
}

/// Fills `%a`, `%b` and `%c` of one of the patterns with what the strategies give.
fn fill(patterns: &'static [&'static str], [a, b, c]: [&Source; 3]) -> Source {
    let parts = (select(patterns), a.clone(), b.clone(), c.clone());
    parts.prop_map(|(pattern, a, b, c)| pattern.replace("%a", &a).replace("%b", &b).replace("%c", &c)).boxed()
}

fn leaves() -> Expressions {
    let text = select(
        &[
            "s",
            "u",
            "e",
            "t",
            "'a'",
            "'x\\ny'",
            "\"it's\"",
            "d.nested.k",
            "messages[1].content",
            "rows[0]['k']",
        ][..],
    );
    let number = select(&["0", "1", "-1", "3", "i", "z", "neg", "numbers[0]", "d['b']", "rows[1].v"][..]);
    let list = select(
        &["words", "numbers", "empty", "rows", "[1, 'a', none]", "('x', 2)", "range(4)", "messages"][..],
    );
    let truth = select(&["yes", "true", "false", "none_", "d.missing", "missing"][..]);
    let other = select(&["d", "{}", "{'k': [1, {'x': none}]}", "none", "missing", "f", "1.0", "rows[0]"][..]);
    let [text, number, list, truth] =
        [text, number, list, truth].map(|leaf| leaf.prop_map(str::to_owned).boxed());
    let any =
        prop_oneof![text.clone(), number.clone(), list.clone(), truth.clone(), other.prop_map(str::to_owned)];
    Expressions { text, number, list, truth, any: any.boxed() }
}

fn deeper(of: &Expressions) -> Expressions {
    let Expressions { text, number, list, truth, any } = of;
    let texts = prop_oneof![
        2 => text.clone(),
        3 => fill(&["%a.upper()", "%a.lower()", "%a.strip()", "%a.lstrip('<b ')", "%a.rstrip('\\n')", "%a.title()", "%a.capitalize()",
            "(%a | trim)", "(%a | upper)", "(%a | lower)", "(%a | title)", "(%a | capitalize)", "(%a | e)", "(%a | string)",
            "(%a | first)", "(%a | last)", "(%a | reverse)", "%a[::-1]", "%a.splitlines()[0]", "(%a | list | join('.'))"], [text; 3]),
        3 => fill(&["(%a ~ %b)", "(%a + %b)", "%a.replace(%b, '_')", "(%a | replace(%b, '-'))", "%a.split(%b)[-1]",
            "%a.strip(%b)", "('%s|%s' % (%a, %b))", "'{}:{}'.format(%a, %b)", "%b.join([%a, 'q'])",
            "(%a if %a == %b else 'n')", "(%a | indent(2, true) ~ %b)"], [text, text, text]),
        2 => fill(&["(%a * 2)", "%a[%b:]", "%a[:%b]", "%a[%b]", "%a.split(' ', %b) | join('/')", "%a.split('o', 1) | last"], [text, number, text]),
        2 => fill(&["(%a | tojson)", "(%a | string)", "('' ~ %a)", "(%a | default('D'))", "(%a | default('D', true))", "('%s' % (%a,))"], [any; 3]),
        1 => fill(&["(%a | join(', '))", "(%a | map('string') | join('+'))", "(%a | map('upper') | join)", "(%a | tojson(indent=1))"], [list; 3]),
    ];
    let numbers = prop_oneof![
        2 => number.clone(),
        3 => fill(&["(%a + %b)", "(%a - %b)", "%a * %b", "(%a // 2)", "(%a % 3)", "(%a / 2)", "(%a | abs)", "(%a ** 2)", "-%a",
            "(%a | int + %b)", "(%a | float)", "(%a | round)", "[%a, %b] | max", "([%a, %b] | sum)"], [number; 3]),
        1 => fill(&["(%a | length)", "%a.find('o')", "%a.count('e')", "%a.rfind('t')", "(%a | int)", "(%a | wordcount)"], [text; 3]),
        1 => fill(&["(%a | length)", "(%a | count)"], [list; 3]),
    ];
    let lists = prop_oneof![
        2 => list.clone(),
        3 => fill(&["(%a | list)", "(%a | reverse | list)", "(%a | unique | list)", "%a[1:]", "%a[:-1]", "%a[::2]", "(%a | batch(2) | list)",
            "(%a | slice(2) | list)", "(%a | select | list)", "(%a | reject('none') | list)", "(%a | select('string') | list)",
            "(%a | map('string') | sort)", "(%a | selectattr('k') | list)", "(%a | map(attribute='k') | list)",
            "(%a | selectattr('role', 'equalto', 'user') | list)", "(%a | rejectattr('k', 'eq', 'b') | list)", "(%a | sort(attribute='v'))"], [list; 3]),
        1 => fill(&["(%a + %b)", "[%a, %b]", "(%a if %b else %a)"], [list; 3]),
        1 => fill(&["%a.split()", "%a.split('o')", "%a.splitlines()", "(%a | list)"], [text; 3]),
        1 => fill(&["[%a]", "[%a, 1]", "(%a, )", "{'a': %a}.keys() | list", "dict(a=%a) | list", "{'a': %a}.items() | list", "({'b': %a, 'a': 1} | dictsort)", "({'k': %a} | items | list)"], [any; 3]),
    ];
    let truths = prop_oneof![
        1 => truth.clone(),
        3 => fill(&["(%a == %b)", "(%a != %b)", "(not %a)", "(%a and %b)", "(%a or %b)", "%a is defined", "%a is none", "%a is string",
            "%a is mapping", "%a is sequence", "%a is iterable", "%a is number", "%a is boolean", "%a is not defined", "%a is undefined", "%a is integer", "%a is true"], [any; 3]),
        2 => fill(&["(%a < %b)", "(%a >= %b)", "%a is even", "%a is odd", "%a is divisibleby(2)", "(1 < %a < 5)", "%a in [1, 2, %b]"], [number; 3]),
        2 => fill(&["%a in %b", "%a not in %b", "%a.startswith(%b)", "%a.endswith(%b)", "(%a < %b)", "%a is lower", "%a is upper", "%a.isdigit()", "%a.isspace()", "%a.startswith(('a', %b))"], [text; 3]),
        1 => fill(&["%a in %b", "%a not in %b"], [any, list, any]),
    ];
    let [texts, numbers, lists, truths] = [texts.boxed(), numbers.boxed(), lists.boxed(), truths.boxed()];
    let anys = prop_oneof![
        texts.clone(),
        numbers.clone(),
        lists.clone(),
        truths.clone(),
        any.clone(),
        fill(
            &["(%a if %b else %a)", "(%a if %b)", "{'k': %a}", "(%a or %b)", "(%a and %b)"],
            [any, truth, any]
        ),
        fill(&["{%a: 1}", "{'k': %a}.k", "d.get(%a)", "d.get(%a, 'none')", "d[%a]"], [text, any, any]),
    ];
    Expressions { text: texts, number: numbers, list: lists, truth: truths, any: anys.boxed() }
}

/// Templates of one to four statements.
pub fn templates() -> Source {
    let one = deeper(&leaves());
    let two = deeper(&one);
    let simple = prop_oneof![
        4 => fill(&["{{ %a }}", "{{- %a -}}", "a {{ %a }}\n", "{{ %a }}\n\n"], [&two.any; 3]),
        1 => fill(&["{% set x = %a %}{{ x }}", "{% set x %}{{ %a }}!{% endset %}{{ x | trim }}", "{% with x = %a %}{{ x }}{% endwith %}{{ x }}",
            "{% set ns = namespace(v=%a) %}{% if true %}{% set ns.v = [ns.v, 1] %}{% endif %}{{ ns.v }}"], [&two.any; 3]),
        1 => select(&["text\n", "  ", "{# c #}", "  {#- c #}\n", "{% raw %}{{ x }}{% endraw %}", "\n", "é\t"][..]).prop_map(str::to_owned),
    ];
    let simple = simple.boxed();
    let block = prop_oneof![
        3 => simple.clone(),
        2 => fill(&["{% if %a %}%b{% else %}%c{% endif %}", "  {% if %a %}\n  %b\n  {% endif %}\n%c", "{%- if %a -%} %b {%- endif -%} %c",
            "{% if %a %}{% elif yes %}\n%b{%+ endif %}\n%c"], [&two.truth, &simple, &simple]),
        3 => fill(&["{% for x in %a %}%b{{ loop.index }}{{ loop.last }}{% endfor %}", "{% for x in %a -%}\n {{ x }}%c\n{% else %}none{% endfor %}",
            "{% for x in %a if x %}{{ loop.length }}{{ x }}{% endfor %}%b", "{% for x in %a %}{% if loop.first %}{% continue %}{% endif %}{{ x }}{% break %}{% endfor %}%c",
            "{% for x in %a %}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('o', 'e') }}{{ loop.index0 }}{{ loop.revindex }}{% endfor %}"], [&one.list, &simple, &simple]),
        1 => fill(&["{% macro m(p, q='d') %}[{{ p }}{{ q }}]%b{% endmacro %}{{ m(%a) }}{{ m(q=%a) }}", "{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}%b{{ %a }}{% endcall %}",
            "{% filter upper %}%b{{ %a }}{% endfilter %}", "{% for k, v in d.items() %}{{ k }}={{ v }}{{ %a }};{% endfor %}"], [&one.any, &simple, &simple]),
    ];
    proptest::collection::vec(block, 1..4).prop_map(|parts| parts.concat()).boxed()
}
