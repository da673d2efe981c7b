//! The comparison itself: what it must refuse.

use serde_json::{Value, json};

use super::{Description, Sent};

/// A change of a request that makes it wrong.
type Spoil = fn(&mut Sent);

/// Asserts that a request that makes a check run is as described, and is not once anything in it is changed.
pub(crate) fn each_is_refused(description: &Description, check_run: &Sent) {
    description.check(check_run).expect("it is as described");
    let spoilt: [(&str, Spoil); 5] = [
        ("there is no", |sent| sent.path.push('s')),
        ("there is no", |sent| "DELETE".clone_into(&mut sent.method)),
        ("the query has no `head`", |sent| {
            sent.query.push(("head".into(), "main".into()));
        }),
        ("it has no body", |sent| sent.body.clear()),
        ("its body", |sent| sent.body.truncate(9)),
    ];
    for (why, spoil) in spoilt {
        let mut sent = check_run.clone();
        spoil(&mut sent);
        assert_refused(description, &sent, why);
    }
    let in_body = [
        ("head_sha", "/head_sha", None),
        ("sumary", "/output/sumary", Some(json!("misspelt"))),
        ("/name", "/name", Some(json!(12))),
        ("/status", "/status", Some(json!("stale"))),
        ("/started_at", "/started_at", Some(json!("yesterday"))),
    ];
    for (why, pointer, value) in in_body {
        let mut sent = check_run.clone();
        sent.body = with(&sent.body, pointer, value);
        assert_refused(description, &sent, why);
    }
}

fn assert_refused(description: &Description, sent: &Sent, why: &str) {
    let refused = description.check(sent).expect_err(why);
    assert!(refused.contains(why), "{why}: {refused}");
}

/// Returns a body with a member that is another, or is not there.
fn with(body: &[u8], pointer: &str, value: Option<Value>) -> Vec<u8> {
    let mut body: Value = serde_json::from_slice(body).expect("JSON");
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    let parent = body.pointer_mut(parent).and_then(Value::as_object_mut);
    let parent = parent.expect("it is there");
    match value {
        Some(value) => parent.insert(name.into(), value),
        None => parent.remove(name),
    };
    serde_json::to_vec(&body).expect("plain data")
}

/// A description in the dialect of OpenAPI 3.0, so that the comparison is tried without GitHub's, too.
fn small() -> Description {
    Description::new(json!({
        "openapi": "3.0.3",
        "components": {
            "parameters": { "limit": { "name": "limit", "in": "query", "schema": { "type": "integer", "maximum": 9 } } },
            "schemas": {
                "text": { "type": "string", "nullable": true, "maxLength": 4 },
                "base": { "type": "object", "properties": { "a": { "$ref": "#/components/schemas/text" } }, "required": ["a"] },
                "whole": { "allOf": [
                    { "$ref": "#/components/schemas/base", "nullable": true },
                    { "type": "object", "properties": { "at": { "type": "string", "format": "date-time" } }, "required": ["at"] },
                ] },
            },
        },
        "paths": {
            "/x/{id}": { "get": {
                "operationId": "x/get",
                "parameters": [
                    { "name": "id", "in": "path", "required": true, "schema": { "type": "integer" } },
                    { "$ref": "#/components/parameters/limit" },
                    { "name": "must", "in": "query", "required": true, "schema": { "type": "string" } },
                ],
                "responses": { "200": { "content": { "application/json": { "schema": { "$ref": "#/components/schemas/whole" } } } } },
            } },
            "/x/all": { "post": {
                "operationId": "x/all",
                "requestBody": { "required": true, "content": { "application/json": { "schema": { "$ref": "#/components/schemas/base" } } } },
                "responses": {},
            } },
            "/compare/{base}...{head}": { "get": {
                "operationId": "compare",
                "parameters": [
                    { "name": "base", "in": "path", "schema": { "type": "integer" } },
                    { "name": "head", "in": "path", "schema": { "type": "string" } },
                ],
                "responses": {},
            } },
            "/files/{path}/raw": { "get": { "operationId": "one", "responses": {} } },
            "/files/{path}": { "get": {
                "operationId": "many",
                "parameters": [{ "name": "path", "in": "path", "x-multi-segment": true, "schema": { "type": "string" } }],
                "responses": {},
            } },
        },
    }))
}

fn sent(method: &str, path: &str, query: &[(&str, &str)], body: &Value) -> Sent {
    Sent {
        method: method.into(),
        path: path.into(),
        query: query
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect(),
        body: match body.is_null() {
            true => Vec::new(),
            false => serde_json::to_vec(body).expect("plain data"),
        },
    }
}

#[test]
fn paths_and_parameters_are_held_to_a_description() {
    let asked = |path: &str, query: &[(&str, &str)]| small().check(&sent("GET", path, query, &Value::Null));
    assert_eq!(
        asked("/x/12", &[("must", "7"), ("limit", "9")]).as_deref(),
        Ok("x/get")
    );
    assert_eq!(asked("/files/a/b/c", &[]).as_deref(), Ok("many"));
    assert_eq!(
        asked("/files/a/raw", &[]).as_deref(),
        Ok("one"),
        "the one with the most words"
    );
    assert_eq!(asked("/compare/1...b", &[]).as_deref(), Ok("compare"));
    let refused = [
        ("`base`", asked("/compare/a...b", &[])),
        ("there is no", asked("/compare/1..b", &[])),
        ("`id`", asked("/x/twelve", &[("must", "7")])),
        ("lacks `must`", asked("/x/12", &[])),
        ("`limit`", asked("/x/12", &[("must", "7"), ("limit", "10")])),
        ("`page`", asked("/x/12", &[("must", "7"), ("page", "1")])),
        ("there is no", asked("/x/12/y", &[("must", "7")])),
        ("there is no", asked("/files/", &[])),
    ];
    for (why, came) in refused {
        let came = came.expect_err(why);
        assert!(came.contains(why), "{why}: {came}");
    }
}

#[test]
fn bodies_are_held_to_a_description_and_null_is_one_only_where_it_may_be() {
    let post = |body: Value| small().check(&sent("POST", "/x/all", &[], &body));
    assert_eq!(post(json!({ "a": "abcd" })).as_deref(), Ok("x/all"));
    assert_eq!(post(json!({ "a": null })).as_deref(), Ok("x/all"));
    for wrong in [
        json!({}),
        json!({ "a": "abcde" }),
        json!({ "a": 1 }),
        json!({ "a": "b", "c": 1 }),
        Value::Null,
    ] {
        assert!(post(wrong.clone()).is_err(), "{wrong}");
    }
    let with_body = sent("GET", "/x/12", &[("must", "7")], &json!({}));
    assert!(small().check(&with_body).is_err(), "no body is described");
}

#[test]
fn a_part_of_an_answer_is_held_to_a_description() {
    let answered = |status: u16, body: Value| small().check_answer("GET", "/x/12", status, &body);
    for part in [
        json!({}),
        json!({ "a": null }),
        json!({ "a": "b", "at": "2026-01-02T03:04:05Z" }),
    ] {
        assert_eq!(answered(200, part.clone()), Ok(()), "{part}");
    }
    for wrong in [
        json!([]),
        json!({ "a": 1 }),
        json!({ "at": "yesterday" }),
        Value::Null,
    ] {
        assert!(answered(200, wrong.clone()).is_err(), "{wrong}");
    }
    assert!(answered(201, json!({})).is_err(), "it is never answered so");
}
