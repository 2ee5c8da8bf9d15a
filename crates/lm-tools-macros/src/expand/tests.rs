use super::*;
use quote::ToTokens;
use syn::{Item, parse_quote};

fn expand(item: TokenStream) -> String {
    tool(TokenStream::new(), item).to_string()
}

/// Formats tokens as a string, so that the expected code can be written as code.
fn code(tokens: TokenStream) -> String {
    tokens.to_string()
}

#[test]
fn function_loses_only_its_argument_docs() {
    let expanded = tool(
        TokenStream::new(),
        quote! {
            /// Multiply a and b.
            #[inline]
            pub fn multiply(#[doc = " first int"] mut a: i64, b: i64) -> i64 { a *= b; a }
        },
    );
    let file: syn::File = syn::parse2(expanded).expect("items");
    let expected: ItemFn = parse_quote! {
        /// Multiply a and b.
        #[inline]
        pub fn multiply(mut a: i64, b: i64) -> i64 { a *= b; a }
    };
    assert_eq!(file.items[0].to_token_stream().to_string(), expected.to_token_stream().to_string());
    assert!(matches!(&file.items[1], Item::Struct(tool) if tool.ident == "multiply"));
}

#[test]
fn docs_types_and_names_reach_the_declaration() {
    let expanded = expand(quote! {
        /// Get the temperature.
        ///
        /// # Arguments
        /// - `unit`: The unit. (choices: ["celsius", "fahrenheit"])
        fn temperature(#[doc = " The place."] r#in: String, unit: Option<String>) -> f64 { 22.0 }
    });
    for part in [
        quote!(Declaration::new("temperature", "Get the temperature.")),
        quote!(Argument::<String>::new("in", "The place.")),
        quote!(Argument::<String>::new("unit", "The unit.").texts(&["celsius", "fahrenheit"]).optional()),
        quote!(CallArguments::new(arguments, &["in", "unit"])),
        quote!(value(temperature(
            arguments.required::<String>("in")?,
            arguments.optional::<String>("unit")?
        ))),
    ] {
        assert!(expanded.contains(&code(part.clone())), "{part} is not in {expanded}");
    }
}

#[test]
fn options_replace_name_and_description() {
    let options = quote!(name = "get-time", description = "The time.");
    let expanded = tool(
        options,
        quote!(
            fn now() -> String {
                String::new()
            }
        ),
    )
    .to_string();
    assert!(expanded.contains(&code(quote!(Declaration::new("get-time", "The time.")))), "{expanded}");
}

#[test]
fn result_is_recognized_by_type_name() {
    for (output, outcome) in [
        (quote!(-> Result<i64, String>), "__tool_result !"),
        (quote!(-> anyhow::Result<i64>), "__tool_result !"),
        (quote!(-> i64), "__private :: value"),
        (quote!(), "__private :: value"),
    ] {
        let expanded = expand(quote!(#[doc = "D"] fn f() #output { loop {} }));
        let call = format!("{outcome} (f ())");
        assert!(expanded.contains(&call), "{call} is not in {expanded}");
    }
}

#[test]
fn misuse_errors_suggest_a_replacement() {
    for (item, advice) in [
        (
            quote!(
                struct Multiply;
            ),
            "`tool` expects a function",
        ),
        (
            quote!(
                fn f() {}
            ),
            "write a doc comment on the function",
        ),
        (
            quote!(
                #[doc = "D"]
                unsafe fn f() {}
            ),
            "cannot be `unsafe`",
        ),
        (
            quote!(
                #[doc = "D"]
                fn f<T>(a: T) {}
            ),
            "concrete types in place of generics",
        ),
        (
            quote!(
                #[doc = "D"]
                fn f(a: impl Into<String>) {}
            ),
            "concrete type in place of `impl`",
        ),
        (
            quote!(
                #[doc = "D"]
                fn f(&self) {}
            ),
            "write `#[tools]` on the `impl` block",
        ),
        (
            quote!(
                #[doc = "D"]
                fn f((a, b): (i64, i64)) {}
            ),
            "take it by name",
        ),
        (
            quote!(
                #[doc = "D"]
                fn f(context: CallContext) {}
            ),
            "take `&CallContext`",
        ),
        (
            quote!(
                #[doc = "D"]
                fn f(state: Option<State<Db>>) {}
            ),
            "without `Option`",
        ),
        (
            quote!(
                #[doc = "D"]
                fn f(_: i64) {}
            ),
            "take it by name",
        ),
        (
            quote!(
                #[doc = "D"]
                fn f(a: &str) {}
            ),
            "take `String` in place of `&str`",
        ),
        (
            quote!(
                #[doc = "D\n# Arguments\n- `b`: gone"]
                fn f(a: i64) {}
            ),
            "which this function does not have",
        ),
        (
            quote!(
                #[doc = "D\n# Arguments\n- `a`: x"]
                fn f(#[doc = "y"] a: i64) {}
            ),
            "described twice",
        ),
        (
            quote!(
                #[doc = "D"]
                fn f(#[doc = "(choices: [1])"] a: i64) {}
            ),
            "not a list of strings",
        ),
    ] {
        let expanded = expand(item.clone());
        assert!(expanded.contains("compile_error"), "{item}: {expanded}");
        assert!(expanded.replace("\\\"", "\"").contains(advice), "{item}: {expanded}");
    }
}

#[test]
fn times_are_in_milliseconds_seconds_and_minutes() {
    let expanded = |time: &str| {
        let item = quote!(
            #[doc = "D"]
            fn f() {}
        );
        tool(quote!(timeout = #time), item).to_string()
    };
    for (time, milliseconds) in [("500ms", 500_u64), ("5s", 5_000), ("1m", 60_000), ("90m", 5_400_000)] {
        let expected = code(quote!(from_millis(#milliseconds)));
        assert!(expanded(time).contains(&expected), "{time}: {}", expanded(time));
    }
    for time in ["5", "s", "0s", "-1s", "1.5s", "1h", "1 m", "400000000000000m"] {
        assert!(expanded(time).contains("expected a time such as"), "{time}: {}", expanded(time));
    }
}

#[test]
fn sequential_option_reaches_the_tool() {
    for (options, expected) in
        [(quote!(sequential), true), (quote!(sequential = true), true), (quote!(sequential = false), false)]
    {
        let item = quote!(
            #[doc = "D"]
            fn f() {}
        );
        let expanded = tool(options, item).to_string();
        let method = code(quote!(
            fn is_sequential(&self) -> bool {
                #expected
            }
        ));
        assert!(expanded.contains(&method), "{method} is not in {expanded}");
    }
    let plain = expand(quote!(
        #[doc = "D"]
        fn f() {}
    ));
    assert!(!plain.contains("is_sequential"), "{plain}");
}

#[test]
fn wrong_options_are_errors() {
    for (options, advice) in [
        (quote!(titel = "x"), "unknown option"),
        (quote!(name = "two words"), "1 to 64 ASCII"),
        (quote!(name = ""), "1 to 64 ASCII"),
        (quote!(name = "a", name = "b"), "given twice"),
    ] {
        let expanded = tool(
            options.clone(),
            quote!(
                #[doc = "D"]
                fn f() {}
            ),
        )
        .to_string();
        assert!(expanded.contains(advice), "{options}: {expanded}");
    }
}
