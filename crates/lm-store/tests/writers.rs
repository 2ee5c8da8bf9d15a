//! Two programs that write at once.

use crate::support::{add, conversation, get, open, store};
use lm_store::{Change, Message, Owner, Role};

#[test]
fn writers_of_one_conversation_lose_nothing() {
    const EACH: usize = 40;
    let (folder, store) = store();
    let talk = conversation("Shared", &["one", "two"]);
    add(&store, &talk);
    let write = |name: usize| {
        // A connection of its own, as that of another program.
        let store = open(folder.path());
        let mut last = talk.messages[1].clone();
        for n in 0..EACH {
            let message = Message::new(Some(&last), Role::User, format!("writer {name} message {n}"));
            let change = Change {
                selected: [(last.id.clone(), message.id.clone())].into(),
                messages: vec![message.clone()],
                ..Change::default()
            };
            store.apply(&Owner::local(), &talk.id, &change).expect("is written");
            last = message;
        }
    };
    std::thread::scope(|scope| {
        for name in 0..3 {
            scope.spawn(move || write(name));
        }
    });
    let kept = get(&store, &talk.id);
    assert_eq!(kept.messages.len(), 2 + 3 * EACH);
    assert_eq!(kept.path().len(), 2 + EACH, "one branch is whole");
    assert_eq!(store.search(&Owner::local(), "writer 2 message 39", 9).expect("is searched").len(), 1);
}
