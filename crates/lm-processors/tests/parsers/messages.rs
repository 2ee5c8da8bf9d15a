//! Invalid calls in messages.

use lm_processors::{CallFault, Error, MessageBuilder, OnMalformed, ParserOptions, ProcessorEvent};
use lm_template::Content;

#[test]
fn unfinished_and_malformed_calls_follow_their_options() {
    for (fault, is_text) in [
        (CallFault::Unfinished, [false, true]),
        (CallFault::Malformed, [true, false]),
        (CallFault::Undeclared, [true, false]),
    ] {
        for ((on_malformed, on_unfinished), is_text) in
            [(OnMalformed::Text, OnMalformed::Error), (OnMalformed::Error, OnMalformed::Text)]
                .into_iter()
                .zip(is_text)
        {
            let options = ParserOptions { on_malformed, on_unfinished, ..ParserOptions::default() };
            let mut builder = MessageBuilder::new(&options);
            let (text, reason) = ("<tool_call>".to_owned(), "a reason".to_owned());
            let pushed = builder.push(ProcessorEvent::Malformed {
                index: None,
                fault,
                text: text.clone(),
                reason: reason.clone(),
            });
            match is_text {
                true => {
                    assert_eq!((pushed, builder.finish().content), (Ok(()), Content::Text(text)), "{fault:?}")
                }
                false => assert_eq!(pushed, Err(Error::MalformedToolCall { text, reason }), "{fault:?}"),
            }
        }
    }
}
