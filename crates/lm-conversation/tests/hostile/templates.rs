//! Templates that need much time or memory.

use lm_template::{GenerationPrompt, PromptTemplate, RenderInput, Value};
use serde_json::{Map, json};

/// Templates by name.
pub fn all() -> Vec<(&'static str, String)> {
    let looped = |body: &str| format!("{{% for i in range(100000) %}}{body}{{% endfor %}}");
    let grown = |body: &str| {
        format!(
            "{{% set ns = namespace(x='0123456789', y=[1]) %}}{{% for i in range(64) %}}{body}{{% endfor %}}"
        )
    };
    let variables: String = (0..20_000).map(|i| format!("{{% set variable_{i} = {i} %}}")).collect();
    let read: String = (0..20_000).map(|i| format!("{{{{ variable_{i} }}}}")).collect();
    vec![
        ("strip with a long set", "{{ ('a' * 1000000).strip('b' * 1000000 ~ 'a') | length }}".to_owned()),
        ("split into 20 million", "{{ ('a,' * 20000000).split(',') | length }}".to_owned()),
        ("rsplit into 20 million", "{{ ('a,' * 20000000).rsplit(',') | length }}".to_owned()),
        ("split into words", "{{ ('a ' * 20000000).split() | length }}".to_owned()),
        ("splitlines into 40 million", "{{ ('\\n' * 40000000).splitlines() | length }}".to_owned()),
        ("indent of 40 million lines", "{{ ('\\n' * 40000000) | indent(1) | length }}".to_owned()),
        ("characters as a list", "{{ ('a' * 40000000) | list | length }}".to_owned()),
        ("20,000 variables", variables + &looped("{{ variable_19999 }}") + &read),
        ("truth of a long text", format!("{{% set x = 'ä' * 20000000 %}}{}", looped("{% if x and not (x == '') %}{% endif %}"))),
        ("a path of points", "{{ [[1]] | map(attribute='.' * 40000000) | list }}".to_owned()),
        ("a missing name of 40 MB", format!("{{% set x = 'x' * 40000000 %}}{}", looped("{% set y = i[x] %}"))),
        ("a text doubled", grown("{% set ns.x = ns.x ~ ns.x %}")),
        ("a list doubled", grown("{% set ns.y = ns.y + ns.y %}")),
        ("a text replaced by itself", grown("{% set ns.x = ns.x | replace('0', ns.x) %}")),
        ("a value in itself, printed", grown("{% set ns.y = [ns.y, ns.y] %}") + "{{ ns.y | tojson | length }}"),
        ("escapes of a long text", "{{ (('\\'' * 60000000) | e) | length }}".to_owned()),
        ("a filter on a long list, often", format!("{{% set x = range(100000) | list %}}{}", looped("{% set y = x | map('string') %}"))),
        ("long texts sorted", "{% set x = 'x' * 1000000 %}{% set ns = namespace(y=[]) %}{% for i in range(300) %}{% set ns.y = ns.y + [x ~ (300 - i)] %}{% endfor %}{{ ns.y | sort | length }}".to_owned()),
        ("a macro that calls itself", "{% macro m(n) %}{{ m(n + 1) }}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}".to_owned()),
        ("loops in loops", looped(&looped("{% set x = i %}"))),
        ("keys of a dict", "{% set x = dict.fromkeys(range(100000)) %}".to_owned() + &looped("{% set y = x.keys() | list %}")),
        ("many arguments by name", format!("{{% set d = dict.fromkeys(('a' * 500000) | list) %}}{}", looped("{% set y = '{a}'.format(**d) %}"))),
        ("the time, at length", format!("{{% set x = '%255d' * 10000000 %}}{}", looped("{{ strftime_now(x) }}"))),
        ("a million lists", format!("{{{{ {}1{} }}}}", "[1],".repeat(800_000), "")),
    ]
}

/// Renders one of them.
pub fn render(name: &str) -> String {
    let (_, source) = all().into_iter().find(|(known, _)| *known == name).expect("a template of this name");
    let template = match PromptTemplate::new(&source) {
        Ok(template) => template,
        Err(error) => return error.to_string(),
    };
    let extra_context = Map::new();
    let input = RenderInput {
        messages: &[json!({"role": "user", "content": "hi"})],
        tools: &Value::Null,
        generation_prompt: GenerationPrompt::Add,
        extra_context: &extra_context,
    };
    match template.render(&input) {
        Ok(rendered) => format!("{} bytes", rendered.text().len()),
        Err(error) => error.to_string(),
    }
}
