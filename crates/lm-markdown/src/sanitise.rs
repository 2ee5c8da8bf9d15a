//! Sanitiser of the HTML: the second lock, after the renderer that escapes all text.

use std::collections::HashSet;
use std::sync::OnceLock;

use ammonia::{Builder, UrlRelative};

/// Elements of HTML that the renderer writes.
const TAGS: [&str; 34] = [
    "a",
    "b",
    "blockquote",
    "br",
    "code",
    "del",
    "div",
    "em",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "i",
    "kbd",
    "li",
    "mark",
    "ol",
    "p",
    "pre",
    "s",
    "span",
    "strong",
    "sub",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "u",
    "ul",
];

/// Elements of MathML Core.
const MATH_TAGS: [&str; 26] = [
    "math",
    "merror",
    "mfrac",
    "mi",
    "mmultiscripts",
    "mn",
    "mo",
    "mover",
    "mpadded",
    "mphantom",
    "mprescripts",
    "mroot",
    "mrow",
    "ms",
    "mspace",
    "msqrt",
    "mstyle",
    "msub",
    "msubsup",
    "msup",
    "mtable",
    "mtd",
    "mtext",
    "mtr",
    "munder",
    "munderover",
];

/// Attributes of MathML Core, without those that link or run.
const MATH_ATTRIBUTES: [&str; 24] = [
    "accent",
    "accentunder",
    "class",
    "columnalign",
    "depth",
    "display",
    "displaystyle",
    "fence",
    "form",
    "height",
    "largeop",
    "linethickness",
    "lspace",
    "mathvariant",
    "maxsize",
    "minsize",
    "movablelimits",
    "rspace",
    "scriptlevel",
    "separator",
    "stretchy",
    "symmetric",
    "voffset",
    "width",
];

const CODE_CLASSES: [&str; 10] = [
    "box",
    "c-comment",
    "c-constant",
    "c-deleted",
    "c-function",
    "c-inserted",
    "c-keyword",
    "c-string",
    "c-type",
    "formula",
];

/// HTML of which only the elements and attributes above remain; links open without a referrer.
pub(crate) fn sanitised(html: &str) -> String {
    static SANITISER: OnceLock<Builder<'static>> = OnceLock::new();
    SANITISER.get_or_init(builder).clean(html).to_string()
}

fn builder() -> Builder<'static> {
    let mut builder = Builder::empty();
    builder
        .tags(TAGS.into_iter().chain(MATH_TAGS).collect())
        .generic_attributes(HashSet::from(["dir"]))
        .url_schemes(HashSet::from(["http", "https", "mailto"]))
        .url_relative(UrlRelative::Deny)
        .link_rel(Some("noopener noreferrer"))
        .set_tag_attribute_value("a", "target", "_blank")
        .add_tag_attributes("a", ["href"])
        .add_tag_attributes("ol", ["start"])
        .add_tag_attributes("span", ["role", "aria-label"])
        .add_allowed_classes("span", CODE_CLASSES)
        .add_allowed_classes("div", ["code", "code-head", "footnote", "table"])
        .add_allowed_classes("sup", ["footnote"])
        .add_allowed_classes("li", ["task"]);
    for cell in ["td", "th"] {
        builder.add_allowed_classes(cell, ["align-center", "align-left", "align-right"]);
    }
    for tag in MATH_TAGS {
        builder.add_tag_attributes(tag, MATH_ATTRIBUTES);
    }
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_beyond_the_renderers_is_removed() {
        for (html, expected) in [
            ("<p dir=\"auto\" style=\"x\" onclick=\"x\">a</p>", "<p dir=\"auto\">a</p>"),
            ("<script>x</script><style>x</style>b", "b"),
            ("<img src=x onerror=x>c", "c"),
            ("<a href=\"javascript:x\">d</a>", "<a target=\"_blank\" rel=\"noopener noreferrer\">d</a>"),
            ("<span class=\"c-string evil\">e</span>", "<span class=\"c-string\">e</span>"),
            ("<math><mi href=\"http://x\">f</mi></math>", "<math><mi>f</mi></math>"),
            ("<math><mtext><img src=x onerror=x></mtext></math>", "<math><mtext></mtext></math>"),
        ] {
            assert_eq!(sanitised(html), expected);
        }
    }
}
