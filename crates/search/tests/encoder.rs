//! Tests of the sentence encoder with a small model with random weights, which each test writes itself.
#![expect(clippy::unwrap_used, reason = "a test that cannot write its files has failed")]

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use tempfile::TempDir;
use toolhub_search::{Embedder as _, EmbeddingError, SentenceEncoder};

const HIDDEN: usize = 8;
const INTERMEDIATE: usize = 16;
const PIECES: &[&str] =
    &["[PAD]", "[UNK]", "[CLS]", "[SEP]", "read", "##er", "file", "cafe", ",", "文", "件", "a", "##a"];

/// A pseudorandom number generator with a fixed seed.
struct Rng(u64);

impl Rng {
    fn next_f32(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f32::from(u16::try_from(self.0 >> 48).unwrap()) / 65536.0 - 0.5
    }
}

/// The names and shapes of all tensors, in the order of the file.
fn tensors() -> Vec<(String, Vec<usize>)> {
    let mut tensors = vec![
        ("embeddings.word_embeddings.weight".to_owned(), vec![PIECES.len(), HIDDEN]),
        ("embeddings.position_embeddings.weight".to_owned(), vec![12, HIDDEN]),
        ("embeddings.token_type_embeddings.weight".to_owned(), vec![2, HIDDEN]),
        ("embeddings.LayerNorm.weight".to_owned(), vec![HIDDEN]),
        ("embeddings.LayerNorm.bias".to_owned(), vec![HIDDEN]),
    ];
    for layer in 0..2 {
        for (part, shape) in [
            ("attention.self.query", vec![HIDDEN, HIDDEN]),
            ("attention.self.key", vec![HIDDEN, HIDDEN]),
            ("attention.self.value", vec![HIDDEN, HIDDEN]),
            ("attention.output.dense", vec![HIDDEN, HIDDEN]),
            ("attention.output.LayerNorm", vec![HIDDEN]),
            ("intermediate.dense", vec![INTERMEDIATE, HIDDEN]),
            ("output.dense", vec![HIDDEN, INTERMEDIATE]),
            ("output.LayerNorm", vec![HIDDEN]),
        ] {
            tensors.push((format!("encoder.layer.{layer}.{part}.bias"), vec![shape[0]]));
            tensors.push((format!("encoder.layer.{layer}.{part}.weight"), shape));
        }
    }
    tensors
}

fn safetensors(dtype: &str, number: impl Fn(f32) -> Vec<u8>) -> Vec<u8> {
    let (mut list, mut data, mut dice) = (Map::new(), Vec::new(), Rng(7));
    list.insert("__metadata__".to_owned(), json!({"format": "pt"}));
    for (name, shape) in tensors() {
        let from = data.len();
        (0..shape.iter().product()).for_each(|_| data.extend(number(dice.next_f32())));
        list.insert(name, json!({"dtype": dtype, "shape": shape, "data_offsets": [from, data.len()]}));
    }
    let list = Value::Object(list).to_string();
    [&u64::try_from(list.len()).unwrap().to_le_bytes(), list.as_bytes(), &data].concat()
}

fn config() -> Value {
    json!({
        "model_type": "bert", "hidden_act": "gelu", "hidden_size": HIDDEN, "num_attention_heads": 2,
        "num_hidden_layers": 2, "intermediate_size": INTERMEDIATE, "vocab_size": PIECES.len(),
        "max_position_embeddings": 12, "type_vocab_size": 2, "layer_norm_eps": 1e-12
    })
}

fn model() -> TempDir {
    let folder = TempDir::new().unwrap();
    let path = folder.path();
    fs::write(path.join("config.json"), config().to_string()).unwrap();
    fs::write(path.join("vocab.txt"), PIECES.join("\n")).unwrap();
    let weights = safetensors("F32", |number| number.to_le_bytes().to_vec());
    fs::write(path.join("model.safetensors"), weights).unwrap();
    folder
}

fn vectors(folder: &Path, texts: &[&str]) -> Vec<Box<[f32]>> {
    SentenceEncoder::open(folder).unwrap().embed(texts).unwrap()
}

#[test]
fn returns_unit_vectors_independent_of_batch() {
    let folder = model();
    let texts =
        ["read file", "reader, reader", "", "文件", "nothing of this is known", "a file a reader reads"];
    let made = vectors(folder.path(), &texts);
    assert_eq!(made.len(), texts.len());
    for vector in &made {
        assert_eq!(vector.len(), HIDDEN);
        assert!((vector.iter().map(|number| number * number).sum::<f32>() - 1.0).abs() < 1e-5);
    }
    let turned: Vec<&str> = texts.iter().rev().copied().collect();
    let repeated: Vec<_> = vectors(folder.path(), &turned).into_iter().rev().collect();
    assert_eq!(made, repeated);
    for (text, vector) in texts.iter().zip(&made) {
        assert_eq!(vectors(folder.path(), &[text]), std::slice::from_ref(vector));
    }
    for (at, vector) in made.iter().enumerate() {
        assert!(!made[at + 1..].contains(vector), "{} is like another", texts[at]);
    }
    assert!(vectors(folder.path(), &[]).is_empty());
}

#[test]
fn tokenizes_like_uncased_bert() {
    let folder = model();
    let long = "a ".repeat(11);
    let (word, longer) = ("a".repeat(100), "a".repeat(101));
    for (one, other) in [
        ("Café, FILE", "cafe , file"),
        ("文件", "  文\t件\n"),
        ("read\u{ad}er\u{200b}", "reader"),
        ("readfile", "unknown"),
        // Truncated to twelve tokens, including the special tokens at both ends.
        (long.as_str(), "a a a a a a a a a a"),
        (word.as_str(), "aaaaaaaaaa"),
        (longer.as_str(), "unknown"),
    ] {
        let made = vectors(folder.path(), &[one, other]);
        assert_eq!(made[0], made[1], "{one} | {other}");
    }
    let order = vectors(folder.path(), &["read file", "file read"]);
    assert_ne!(order[0], order[1]);
}

#[test]
fn accepts_json_vocabulary_and_half_precision_weights() {
    let folder = model();
    let usual = vectors(folder.path(), &["reader, file"]);
    fs::remove_file(folder.path().join("vocab.txt")).unwrap();
    let pieces: Map<String, Value> =
        PIECES.iter().enumerate().map(|(at, piece)| ((*piece).to_owned(), at.into())).collect();
    let json = json!({"model": {"type": "WordPiece", "vocab": pieces}});
    fs::write(folder.path().join("tokenizer.json"), json.to_string()).unwrap();
    assert_eq!(vectors(folder.path(), &["reader, file"]), usual);

    let short = safetensors("BF16", |number| number.to_le_bytes()[2..].to_vec());
    fs::write(folder.path().join("model.safetensors"), short).unwrap();
    let short = vectors(folder.path(), &["reader, file"]);
    let similarity = short[0].iter().zip(&usual[0]).map(|(a, b)| a * b).sum::<f32>();
    assert!(similarity > 0.99 && short != usual, "{similarity}");
}

#[test]
fn uses_configured_pooling() {
    let folder = model();
    let mean = vectors(folder.path(), &["read file"]);
    fs::create_dir(folder.path().join("1_Pooling")).unwrap();
    let write =
        |modes: Value| fs::write(folder.path().join("1_Pooling/config.json"), modes.to_string()).unwrap();
    write(json!({"pooling_mode_mean_tokens": true, "pooling_mode_cls_token": false}));
    assert_eq!(vectors(folder.path(), &["read file"]), mean);
    write(json!({"pooling_mode_mean_tokens": false, "pooling_mode_cls_token": true}));
    assert_ne!(vectors(folder.path(), &["read file"]), mean);
    write(json!({"pooling_mode_max_tokens": true}));
    assert!(SentenceEncoder::open(folder.path()).is_err());
}

#[test]
fn rejects_model_file_truncated_at_any_byte() {
    let folder = model();
    let path = folder.path().join("model.safetensors");
    let bytes = fs::read(&path).unwrap();
    let places = (0..bytes.len()).step_by(97).chain([7, 8, 9, bytes.len() - 1]);
    for length in places {
        fs::write(&path, &bytes[..length]).unwrap();
        let error = SentenceEncoder::open(folder.path()).unwrap_err();
        assert!(matches!(error, EmbeddingError::Model(_)), "{length}: {error}");
    }
}

#[test]
fn errors_name_file_and_cause() {
    let with = |key: &str, value: Value| {
        let mut config = config();
        config[key] = value;
        config.to_string()
    };
    let cases: Vec<(&str, Option<String>, &str)> = vec![
        ("config.json", None, "config.json` of the model cannot be read"),
        ("config.json", Some("{".to_owned()), "EOF"),
        ("config.json", Some(with("model_type", json!("xlm-roberta"))), "only `bert` can be run"),
        ("config.json", Some(with("hidden_size", json!(0))), "expected 1 to 8192"),
        ("config.json", Some(with("num_attention_heads", json!(3))), "not divisible by 3 heads"),
        (
            "config.json",
            Some(with("intermediate_size", json!(9))),
            "intermediate.dense.weight` has the shape [16, 8], expected [9, 8]",
        ),
        (
            "config.json",
            Some(with("num_hidden_layers", json!(3))),
            "`encoder.layer.2.attention.self.query.weight` is missing",
        ),
        ("config.json", Some(with("vocab_size", json!(9))), "knows only 9"),
        ("vocab.txt", None, "one of them is needed"),
        ("vocab.txt", Some("read\nfile".to_owned()), "has no `[UNK]`"),
        (
            "tokenizer_config.json",
            Some(json!({"do_lower_case": false}).to_string()),
            "uncased model is expected",
        ),
        ("model.safetensors", None, "model.safetensors` of the model cannot be read"),
        ("model.safetensors", Some("x".repeat(500)), "no safetensors file"),
    ];
    for (file, content, expected) in cases {
        let folder = model();
        let path = folder.path().join(file);
        match &content {
            Some(content) => fs::write(path, content).unwrap(),
            None => fs::remove_file(path).unwrap(),
        }
        let error = SentenceEncoder::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains(expected), "{file} {content:?}: {error}");
    }
}

#[test]
fn rejects_weights_that_are_not_finite() {
    let folder = model();
    let weights = safetensors("F32", |_| f32::NAN.to_le_bytes().to_vec());
    fs::write(folder.path().join("model.safetensors"), weights).unwrap();
    let error = SentenceEncoder::open(folder.path()).unwrap().embed(&["a", "file"]).unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
}
