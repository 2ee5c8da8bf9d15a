//! Markers of a dialect.

use std::collections::BTreeSet;

use super::{CallBody, CallSyntax, Dialect, MessageSyntax, NamedId, ParameterCall, Tags};

impl Dialect {
    /// Texts with a meaning for the family's parser, except names, keys and layout.
    pub fn markers(&self) -> BTreeSet<&'static str> {
        let mut found = BTreeSet::new();
        let answer = &self.answer;
        let tags = self.stripped.iter().chain([&answer.tags]);
        let channels = self.channels.iter().map(|channel| &channel.tags);
        found.extend(answer.dropped);
        found.extend(tags.chain(channels).flat_map(both));
        self.calls.iter().for_each(|syntax| add_calls(syntax, &mut found));
        found.remove("");
        found
    }
}

impl MessageSyntax {
    /// Texts around headers and messages.
    pub(crate) fn markers(&self) -> BTreeSet<&'static str> {
        let mut found: BTreeSet<_> = [self.start, self.channel, self.recipient, self.text].into();
        found.extend(self.ends);
        found.remove("");
        found
    }
}

fn both(tags: &Tags) -> [&'static str; 2] {
    [tags.open, tags.close]
}

fn add_calls(syntax: &CallSyntax, found: &mut BTreeSet<&'static str>) {
    found.extend([&syntax.section, &syntax.call].into_iter().flat_map(both));
    found.insert(syntax.separator.trim());
    match syntax.body {
        CallBody::Json(_) | CallBody::Python(_) => {}
        CallBody::Named(named) => {
            found.extend([named.before_name, named.after_name, named.after_arguments].map(str::trim));
            if let NamedId::After(marker) = named.id {
                found.insert(marker);
            }
        }
        CallBody::Braces(braces) => found.extend([braces.before_name, braces.quote]),
        CallBody::Parameters(call) => add_parameters(call, found),
    }
}

fn add_parameters(call: &ParameterCall, found: &mut BTreeSet<&'static str>) {
    let number = call.number.iter();
    found.extend([&call.name, &call.key, &call.value].into_iter().chain(number).flat_map(both));
    found.insert(call.end);
    found.extend(call.type_attribute.iter().flat_map(|attribute| [attribute.open, attribute.close]));
}
