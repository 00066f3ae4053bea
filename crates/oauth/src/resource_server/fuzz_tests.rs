//! Property: only the exact text that an issuer has signed verifies. Everything else is refused, and nothing panics.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;

use super::test_issuer::{AUDIENCE, Fixture};
use super::test_keys::TestKey;

#[derive(Debug, Clone)]
enum Mutation {
    Replace(Index, u8),
    Insert(Index, u8),
    Remove(Index),
    Truncate(Index),
    Swap(Index, Index),
    /// Flips a bit of a part, after base64.
    FlipBit(Index, Index),
    /// Replaces a part by that of another valid token.
    Exchange(Index),
    Append(Vec<u8>),
}

fn mutations() -> impl Strategy<Value = Mutation> {
    let index = any::<Index>;
    prop_oneof![
        (index(), any::<u8>()).prop_map(|(at, byte)| Mutation::Replace(at, byte)),
        (index(), any::<u8>()).prop_map(|(at, byte)| Mutation::Insert(at, byte)),
        index().prop_map(Mutation::Remove),
        index().prop_map(Mutation::Truncate),
        (index(), index()).prop_map(|(one, other)| Mutation::Swap(one, other)),
        (index(), index()).prop_map(|(part, bit)| Mutation::FlipBit(part, bit)),
        index().prop_map(Mutation::Exchange),
        proptest::collection::vec(any::<u8>(), 1..8).prop_map(Mutation::Append),
    ]
}

fn mutate(token: &str, other: &str, mutation: &Mutation) -> String {
    let mut bytes = token.as_bytes().to_vec();
    let mut parts: Vec<String> = token.split('.').map(str::to_owned).collect();
    match mutation {
        _ if bytes.is_empty() => {}
        Mutation::Replace(at, byte) => bytes[at.index(token.len())] = *byte,
        Mutation::Insert(at, byte) => bytes.insert(at.index(token.len() + 1), *byte),
        Mutation::Remove(at) => drop(bytes.remove(at.index(token.len()))),
        Mutation::Truncate(at) => bytes.truncate(at.index(token.len())),
        Mutation::Swap(one, other) => bytes.swap(one.index(token.len()), other.index(token.len())),
        Mutation::FlipBit(part, bit) => {
            let part = part.index(parts.len());
            let Ok(mut decoded) = URL_SAFE_NO_PAD.decode(&parts[part]) else { return token.to_owned() };
            if !decoded.is_empty() {
                let bit = bit.index(decoded.len() * 8);
                decoded[bit / 8] ^= 1 << (bit % 8);
            }
            parts[part] = URL_SAFE_NO_PAD.encode(decoded);
            return parts.join(".");
        }
        Mutation::Exchange(part) => {
            let part = part.index(parts.len());
            parts[part] = other.split('.').nth(part).unwrap_or_default().to_owned();
            return parts.join(".");
        }
        Mutation::Append(more) => bytes.extend(more),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn mutated_and_random_tokens_never_verify() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fixture = Fixture::new();
    let keys = [TestKey::p256("two"), TestKey::rsa("three")];
    fixture.issuer.state().keys.extend(keys.iter().map(TestKey::jwk));
    // The exchanged parts come from a token with other claims and an expired one with its own signature.
    let claims = fixture.claims(&json!({}));
    let other_claims = fixture.claims(&json!({"sub": "root", "exp": 1}));
    let signers = [&fixture.key, &keys[0], &keys[1]];
    let valid: Vec<String> = signers.iter().map(|key| key.sign(&claims)).collect();
    let others: Vec<String> = signers.iter().rev().map(|key| key.sign(&other_claims)).collect();
    let verify = |token: &str| runtime.block_on(fixture.verifier.verify(token, AUDIENCE));
    for token in &valid {
        verify(token).unwrap();
    }
    let changed = (0..valid.len(), proptest::collection::vec(mutations(), 1..4));
    let mut runner = TestRunner::new(Config::with_cases(3000));
    runner
        .run(&changed, |(which, mutations)| {
            let other = &others[which];
            let token = mutations
                .iter()
                .fold(valid[which].clone(), |token, mutation| mutate(&token, other, mutation));
            prop_assert_eq!(verify(&token).is_ok(), valid.contains(&token), "{}", token);
            Ok(())
        })
        .unwrap();
    let part = "[A-Za-z0-9_=-]{0,40}";
    let random = prop_oneof![
        "(?s).{0,200}".boxed(),
        "[A-Za-z0-9._~+/=-]{0,200}".boxed(),
        (part, part, part)
            .prop_map(|(header, payload, signature)| format!("{header}.{payload}.{signature}"))
            .boxed(),
        // Arbitrary JSON texts as header and payload.
        ("\\PC{0,60}", "\\PC{0,60}", part)
            .prop_map(|(header, payload, signature)| {
                let encode = |text: String| URL_SAFE_NO_PAD.encode(text);
                format!("{}.{}.{signature}", encode(header), encode(payload))
            })
            .boxed(),
    ];
    runner
        .run(&random, |token| {
            prop_assert!(verify(&token).is_err(), "{}", token);
            Ok(())
        })
        .unwrap();
    for token in &valid {
        verify(token).unwrap();
    }
}
