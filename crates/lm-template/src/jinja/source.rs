//! A template's source, made ready for the engine.

/// Line ends as Jinja2 reads them, and `{% generation %}` blocks as the filter that marks their text.
pub(super) fn prepare(template: &str) -> String {
    let template = template.replace("\r\n", "\n").replace('\r', "\n");
    let mut prepared = String::with_capacity(template.len());
    let mut rest = template.as_str();
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start + 2);
        prepared.push_str(before);
        rest = tag;
        let word = tag.trim_start_matches(['-', '+']).trim_start();
        for (name, replacement) in [("generation", "filter generation_span"), ("endgeneration", "endfilter")]
        {
            let Some(end) = word.strip_prefix(name) else { continue };
            if end.trim_start().trim_start_matches(['-', '+']).starts_with("%}") {
                prepared.push_str(&tag[..tag.len() - word.len()]);
                prepared.push_str(replacement);
                rest = end;
            }
        }
    }
    prepared + rest
}

#[cfg(test)]
mod tests {
    use super::prepare;

    #[test]
    fn rewrites_generation_blocks_and_line_ends() {
        let cases = [
            ("a\r\nb\rc", "a\nb\nc"),
            ("{%- generation -%}x{% endgeneration %}", "{%- filter generation_span -%}x{% endfilter %}"),
            ("{% generation_config %}{% if generation %}", "{% generation_config %}{% if generation %}"),
        ];
        for (source, expected) in cases {
            assert_eq!(prepare(source), expected);
        }
    }
}
