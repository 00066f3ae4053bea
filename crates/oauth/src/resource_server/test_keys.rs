//! Keys that sign tokens in tests.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RSA_PSS_SHA256, RsaKeyPair,
};
use serde_json::{Value, json};

/// A public test key of 2048 bits (PKCS #1), made with `openssl genpkey` for these tests and used for nothing else: `ring` cannot
/// generate RSA keys.
const RSA_TEST_KEY: &str = "MIIEpAIBAAKCAQEAwrtuiI6fU+wvS+QZZJUx0dS/apLBnm79xodROWpmtlfJDBB42IPmyqNPKOGeP43KGTeU+r5FKi6YLPJRSR0C\
    WPZFFHGhHFin3n6vqhZG7Y6nlFVDibCUJ/4zvfAjn09C2qypg999fz/AmGKCaAhR/9jK3j3RL1AyH2lL7zgKhgZ8/jUMTkQAY3mL\
    piBNkn1gafPzBIACWBgvUfXJQJ/e7LkeyZx7IwSwOXkRF4X4Na7+Ci/f3m62WJai1zF3gP8laLsgC8isXKjtkME9xaPjzHi9yigN\
    wDQ/VuMn2TxRtSzI3dsj5MO3wr90U5O0V0fVt0agNQKll48ETEX28ct86QIDAQABAoIBAAPhtVZ4xFWJjNhODdEG1dFFVML4ta4V\
    L48WabCzraQ3HAF27xe+yloR9w0dMTi6WHPX+yrj4dBRUTR9KJBk6QPxtccObEwaus7pNtJ0wvlviWjgKbpcCBoDe8/OkoE1lOMz\
    w6XGrdNcZ5gKB6gv+UV4snOLZyjyp+sfH9W/B9uryshT3aJrkRe3i6jRaQJ65u+hmLfQh89K4+8FiAdioW6Ibl/H/tN71WwDjfWL\
    NzqVDijnNLnhbshF5ZRkYrP19eha6tQQ8EOQr7NY+1a3BYCY+d+QfQ63/pEUmfYNQNGLFMizSbULqYoIbXSZTlG/H1Apr9HK+Epg\
    6Vt+LgofXBECgYEA5rWscb2kwdzfv6CK810odybstr/xKuZlUCQDkwH2IO6OYBxd+/dRkq9B/S8nwLpy0Lh8izVfcbpgNho8kpvh\
    OUCTnpA9yRB+axM5jwyWcpYXtqJbfneyJUJUtp1zpz4SBCRZ4Xd6A+5owiiSW0AJyjowiyZ085UHwKRj6U8O/FkCgYEA2BQiOJOr\
    RNbFbDkbmH8tfYApfB6wRxqN6cESULdLpIji0gkNrmCNusfGv23CbCMFW7Jil+6SELih481NQSARxi0i/Li0Mhkaacrf85CjYlhP\
    JvFALY42KNxbF5NJtTWl/AEXKgNlXZFgB+u1D7FUOdOnDHaHNlanjUIfVYTfMxECgYB4vTdER1WER42pgeF2P5i/0tUrRwR1ySHY\
    cSCVvP8MeQx17CKbjPFZ7PKCCD2rtWgFJ6e2SvZqVHmpls2AhKe4CL24zBApu8INU4BaBuJtkXNTl2B+rTHEIhSnhXtTWT6ggE2x\
    m491oz2b7xO5Qahd91oUWMn3+FSYUvAe18sl8QKBgQCgU1gM6Ky0uDLmGP17yimDrDubx9199JsFrWccktRCcfryYxtOnn+q7h5u\
    3U7cE6QfJJ35I2Anngco0qUWxGfLxqPmJlo1reCmTIyc2V4RU3rvZyP6aUGQUegY9wVCulq9QEXiu4BTy9EYL3E6ApZ/DacuHSg4\
    TlWl/0DmoF9IMQKBgQC4oVG96YCXivATNzfREAv6doFRWvtp4TWB7BD+aN4A5mCeghysMk/vPnJuYGjsXtolqVexzRYk6EGHSyR5\
    f2XAVEcOy3FEemTAqih2vN4Sp55u0ItT9m/+NwkYtkuWFxpMwEc9S4H6Boe0ErRJ11SaBzKLwOBx5gdJ0J/6OiOi8w==";

/// A key of a test issuer.
pub(super) struct TestKey {
    pub(super) id: String,
    pair: Pair,
}

enum Pair {
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
    Rsa(Box<RsaKeyPair>),
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Header and payload as they are signed.
pub(super) fn signing_input(header: &str, payload: &str) -> String {
    format!("{}.{}", encode(header), encode(payload))
}

impl TestKey {
    pub(super) fn ed25519(id: &str) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
        Self { id: id.to_owned(), pair: Pair::Ed25519(pair) }
    }

    pub(super) fn p256(id: &str) -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        Self { id: id.to_owned(), pair: Pair::P256(pair) }
    }

    pub(super) fn rsa(id: &str) -> Self {
        let pair = RsaKeyPair::from_der(&STANDARD.decode(RSA_TEST_KEY).unwrap()).unwrap();
        Self { id: id.to_owned(), pair: Pair::Rsa(Box::new(pair)) }
    }

    /// The public key in the issuer's set.
    pub(super) fn jwk(&self) -> Value {
        match &self.pair {
            Pair::Ed25519(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "kid": self.id, "x": encode(pair.public_key())})
            }
            Pair::P256(pair) => {
                let point = pair.public_key().as_ref();
                json!({"kty": "EC", "crv": "P-256", "kid": self.id, "x": encode(&point[1..33]), "y": encode(&point[33..])})
            }
            Pair::Rsa(pair) => {
                let public = PublicKeyComponents::<Vec<u8>>::from(pair.public_key());
                json!({"kty": "RSA", "kid": self.id, "n": encode(public.n), "e": encode(public.e)})
            }
        }
    }

    /// The public RSA key in DER, which an attacker may use as a symmetric key.
    pub(super) fn public_bytes(&self) -> Vec<u8> {
        match &self.pair {
            Pair::Ed25519(pair) => pair.public_key().as_ref().to_vec(),
            Pair::P256(pair) => pair.public_key().as_ref().to_vec(),
            Pair::Rsa(pair) => pair.public_key().as_ref().to_vec(),
        }
    }

    /// The algorithm that this key signs with by default.
    pub(super) fn algorithm(&self) -> &'static str {
        match &self.pair {
            Pair::Ed25519(_) => "EdDSA",
            Pair::P256(_) => "ES256",
            Pair::Rsa(_) => "RS256",
        }
    }

    /// Signs a token with these exact texts. An RSA key uses PSS for `PS256`, and PKCS #1 for every other name.
    pub(super) fn sign_text(&self, header: &str, payload: &str) -> String {
        let input = signing_input(header, payload);
        let (message, random) = (input.as_bytes(), SystemRandom::new());
        let signature = match &self.pair {
            Pair::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
            Pair::P256(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let padding: &dyn ring::signature::RsaEncoding =
                    if header.contains("PS256") { &RSA_PSS_SHA256 } else { &RSA_PKCS1_SHA256 };
                pair.sign(padding, &random, message, &mut signature).unwrap();
                signature
            }
        };
        format!("{input}.{}", encode(signature))
    }

    /// The header of an access token.
    pub(super) fn header(&self) -> Value {
        json!({"alg": self.algorithm(), "typ": "at+jwt", "kid": self.id})
    }

    /// Signs an access token.
    pub(super) fn sign(&self, claims: &Value) -> String {
        self.sign_text(&self.header().to_string(), &claims.to_string())
    }

    /// Signs a token with further or changed header parameters.
    pub(super) fn sign_with(&self, changes: &Value, claims: &Value) -> String {
        self.sign_text(&merge(&self.header(), changes).to_string(), &claims.to_string())
    }
}

/// The object with the members of another; `null` removes a member.
pub(super) fn merge(object: &Value, changes: &Value) -> Value {
    let mut members = object.as_object().unwrap().clone();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            members.remove(name);
        } else {
            members.insert(name.clone(), value.clone());
        }
    }
    Value::Object(members)
}
