//! Checkpoints: the hash of a record, signed with Ed25519, and the keys.

use std::fmt;
use std::time::Duration;

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use serde_json::{Map, Value};
use toolhub_core::hex;
use toolhub_core::lang::{Lang, Localize, LocalizedText};

use crate::chain::{Hash, LogId};
use crate::tampering::SignatureProblem;

/// A checkpoint is signed after this many records at the latest.
pub const CHECKPOINT_RECORDS: u64 = 1_000;
/// A checkpoint is signed at the latest this long after the previous one, if there are new records.
pub const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(3600);

/// Begins every signed text, so that no signature for another purpose fits.
const PURPOSE: &[u8] = b"toolhub audit checkpoint 1\0";

/// The purpose of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CheckpointKind {
    /// The log contains the record with this number and hash.
    Progress,
    /// All records up to this number were deleted because of their age: the log begins after it.
    Base,
}

impl CheckpointKind {
    /// Every kind.
    pub const ALL: [Self; 2] = [Self::Progress, Self::Base];

    /// Name in storage and exports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Progress => "progress",
            Self::Base => "base",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A signed statement about a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log.
    pub log: LogId,
    /// What is stated.
    pub kind: CheckpointKind,
    /// The number of a record.
    pub sequence: u64,
    /// Its hash.
    pub hash: Hash,
    /// When it was signed, in microseconds since 1970.
    pub micros: u64,
    /// The id of the key.
    pub key: String,
    /// The signature.
    pub signature: Vec<u8>,
}

impl Checkpoint {
    /// The signed text. All parts but the last have a fixed length.
    fn signed_text(&self) -> Vec<u8> {
        [
            PURPOSE,
            &self.log.0,
            &[self.kind as u8],
            &self.sequence.to_be_bytes(),
            &self.hash.0,
            &self.micros.to_be_bytes(),
            self.key.as_bytes(),
        ]
        .concat()
    }

    /// The checkpoint as one line of JSON.
    pub fn to_json(&self) -> String {
        Value::Object(self.to_members()).to_string()
    }

    /// Reads the checkpoint of a JSON text; `None` if it is none.
    pub fn from_json(text: &str) -> Option<Self> {
        Self::from_members(serde_json::from_str::<Value>(text).ok()?.as_object()?)
    }

    pub(crate) fn to_members(&self) -> Map<String, Value> {
        let mut members = Map::new();
        let mut put = |name: &str, value: Value| drop(members.insert(name.to_owned(), value));
        put("log", self.log.to_string().into());
        put("checkpoint", self.kind.name().into());
        put("sequence", self.sequence.into());
        put("hash", self.hash.to_string().into());
        put("time", self.micros.into());
        put("key", self.key.as_str().into());
        put("signature", hex::encode(&self.signature).into());
        members
    }

    pub(crate) fn from_members(members: &Map<String, Value>) -> Option<Self> {
        let text = |name: &str| members.get(name)?.as_str();
        Some(Self {
            log: LogId(hex::decode(text("log")?)?),
            kind: CheckpointKind::from_name(text("checkpoint")?)?,
            sequence: members.get("sequence")?.as_u64()?,
            hash: Hash(hex::decode(text("hash")?)?),
            micros: members.get("time")?.as_u64()?,
            key: text("key")?.to_owned(),
            signature: hex::decode::<64>(text("signature")?)?.to_vec(),
        })
    }
}

/// Why a key cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyError {
    /// The text is not a key.
    Malformed,
    /// The system has no random numbers.
    Random,
}

impl Localize for KeyError {
    fn localize(&self, lang: Lang) -> String {
        match self {
            Self::Malformed => LocalizedText::new(
                "it is not an audit key: 64 hexadecimal digits were expected",
                "这不是审计密钥：应为 64 位十六进制数字",
            ),
            Self::Random => LocalizedText::new("the system returned no random numbers", "系统未能提供随机数"),
        }
        .localize(lang)
    }
}

/// The key that signs checkpoints.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    public: PublicKey,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SigningKey").field(&self.public).finish()
    }
}

impl SigningKey {
    /// A new private key as text: 64 hexadecimal digits.
    pub fn generate() -> Result<String, KeyError> {
        let mut seed = [0_u8; 32];
        SystemRandom::new().fill(&mut seed).map_err(|_| KeyError::Random)?;
        Ok(hex::encode(&seed))
    }

    /// The key of a private text.
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        let seed: [u8; 32] = hex::decode(text.trim()).ok_or(KeyError::Malformed)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| KeyError::Malformed)?;
        let mut public = [0; 32];
        public.copy_from_slice(pair.public_key().as_ref());
        Ok(Self { pair, public: PublicKey(public) })
    }

    /// Its public key.
    pub fn public(&self) -> PublicKey {
        self.public
    }

    /// Signs a checkpoint; `key` and `signature` are replaced.
    pub fn sign(&self, mut checkpoint: Checkpoint) -> Checkpoint {
        checkpoint.key = self.public.id();
        checkpoint.signature = self.pair.sign(&checkpoint.signed_text()).as_ref().to_vec();
        checkpoint
    }
}

/// The public part of a signing key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey(pub [u8; 32]);

impl PublicKey {
    /// The key of a text of 64 hexadecimal digits.
    pub fn from_text(text: &str) -> Option<Self> {
        hex::decode(text.trim()).map(Self)
    }

    /// The id of the key: the beginning of its SHA-256.
    pub fn id(&self) -> String {
        hex::encode(&digest(&SHA256, &self.0).as_ref()[..8])
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(&self.0))
    }
}

/// The public keys whose checkpoints are accepted: the own one, earlier ones, and those of other hubs on the same
/// database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedKeys(Vec<PublicKey>);

impl TrustedKeys {
    /// Accepts these keys.
    pub fn new(keys: impl IntoIterator<Item = PublicKey>) -> Self {
        Self(keys.into_iter().collect())
    }

    /// Reads one key per line. Text after the key is a comment; other lines are ignored.
    pub fn from_lines(text: &str) -> Self {
        Self::new(text.lines().filter_map(|line| PublicKey::from_text(line.split_whitespace().next()?)))
    }

    /// The keys.
    pub fn keys(&self) -> &[PublicKey] {
        &self.0
    }

    /// Checks the signature of a checkpoint.
    pub(crate) fn check(&self, checkpoint: &Checkpoint) -> Result<(), SignatureProblem> {
        let Some(key) = self.0.iter().find(|key| key.id() == checkpoint.key) else {
            return Err(SignatureProblem::UnknownKey);
        };
        UnparsedPublicKey::new(&ED25519, &key.0)
            .verify(&checkpoint.signed_text(), &checkpoint.signature)
            .map_err(|_| SignatureProblem::Invalid)
    }
}
