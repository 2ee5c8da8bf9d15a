//! Bodies with fields of wrong types, sizes and signs, to every route of the document that reads one: none is
//! the server's fault, and each is answered.

use crate::support::operations::{Document, serve};
use crate::support::values;

/// Number of requests.
const REQUESTS: usize = 1_500;

#[test]
fn no_body_is_a_server_error() {
    let server = serve();
    let document = Document::of(&server);
    let operations = document.operations(&server);
    let cases: Vec<_> = operations
        .iter()
        .filter(|operation| operation.example().is_some())
        .flat_map(|operation| document.fields(operation).into_iter().map(move |(name, _)| (operation, name)))
        .collect();
    let (values, mut accepted, mut refused) = (values(), 0, 0);
    let all = cases.len() * values.len();
    // A stride without a common factor visits different cases, of all routes, fields and values.
    for case in (0..REQUESTS).map(|number| number * 7_919 % all) {
        let (operation, field) = &cases[case % cases.len()];
        let mut body = operation.example().expect("a body").clone();
        body[field] = values[case / cases.len()].clone();
        let response = server.post(&operation.path, &body);
        match response.status {
            200 => accepted += 1,
            400..500 => refused += 1,
            status => panic!("{} with {field} {}: {status} {}", operation.path, body[field], response.body),
        }
    }
    assert!(accepted > 100 && refused > 100, "{accepted} accepted, {refused} refused");
    assert_eq!(server.get("/ready").status, 200);
}
