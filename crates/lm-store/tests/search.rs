//! Full-text search.

use crate::support::{add, conversation, store};
use lm_store::Owner;

#[test]
fn words_are_found_in_messages_and_titles() {
    let (_folder, store) = store();
    let talks = [
        conversation("Sky", &["Why is the sky blue?", "Rayleigh scattering."]),
        conversation("Rezept", &["Wie backe ich Käsekuchen?", "Mit Quark."]),
        conversation("天気", &["明日の天気はどうですか", "晴れです"]),
        conversation("Code", &["fn main() { println!(\"hi\"); }", "it's `main`"]),
    ];
    for (n, talk) in talks.iter().enumerate() {
        add(&store, &lm_store::Conversation { updated: n as i64, created: 0, ..talk.clone() });
    }
    for (query, expected) in [
        ("rayleigh", &["Sky"][..]),
        ("RAYL", &["Sky"]),
        ("sky blue", &["Sky"]),
        ("blue sky", &["Sky"]),
        ("blue rayleigh", &[]),
        ("kasekuchen", &["Rezept"]),
        ("KÄSE", &["Rezept"]),
        ("天気", &["天気"]),
        ("晴れ", &["天気"]),
        ("println!(\"hi\")", &["Code"]),
        ("it's", &["Code"]),
        ("main", &["Code"]),
        ("i", &["Code", "Rezept", "Sky"]),
        ("\"", &[]),
        ("* OR NEAR(", &[]),
        ("", &[]),
        ("title:sky", &[]),
    ] {
        let found = store.search(&Owner::local(), query, 9).expect("is searched");
        let titles: Vec<_> = found.iter().map(|found| found.summary.title.as_str()).collect();
        assert_eq!(titles, expected, "{query}");
    }
    let found = store.search(&Owner::local(), "scatter", 9).expect("is searched");
    assert_eq!(found[0].excerpt, "Rayleigh scattering.");
    assert_eq!(found[0].message.as_ref(), Some(&talks[0].messages[1].id));
    let found = store.search(&Owner::local(), "rezept", 9).expect("is searched");
    assert_eq!((found[0].excerpt.as_str(), &found[0].message), ("Rezept", &None));
    assert_eq!(store.search(&Owner::local(), "i", 2).expect("is searched").len(), 2);
}

#[test]
fn changed_text_is_found_by_its_new_words() {
    let (_folder, store) = store();
    let mut talk = conversation("A", &["one", "two"]);
    add(&store, &talk);
    talk.messages[1].content = "three".to_owned();
    add(&store, &talk);
    let count = |query: &str| store.search(&Owner::local(), query, 9).expect("is searched").len();
    assert_eq!((count("one"), count("two"), count("three")), (1, 0, 1));
}
