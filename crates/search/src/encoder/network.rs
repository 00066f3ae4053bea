//! The forward pass of BERT: embeddings, layers of attention and feed-forward, and pooling into one vector.

use ndarray::linalg::general_mat_mul;
use ndarray::{Array1, Array2, Axis, Slice, concatenate};

use super::activation::{Norm, gelu, softmax};
use super::folder::Folder;
use super::shape::{Pooling, Shape};
use super::tensors::Tensors;
use crate::embedding::EmbeddingError;

/// The weights. Their shapes are checked when they are loaded, so that all products below are valid.
pub(super) struct Network {
    words: Array2<f32>,
    /// Includes the embedding of token type 0, which all tokens of a single text have.
    positions: Array2<f32>,
    norm: Norm,
    layers: Vec<Layer>,
    heads: usize,
    pooling: Pooling,
}

struct Layer {
    /// Query, key and value concatenated: one matrix product instead of three.
    attention: Dense,
    attention_output: Dense,
    attention_norm: Norm,
    feed_forward_in: Dense,
    feed_forward_out: Dense,
    feed_forward_norm: Norm,
}

/// A linear layer. The weight is transposed compared with the file, with a row per input, so that the product reads
/// it sequentially.
struct Dense {
    weight: Array2<f32>,
    bias: Array1<f32>,
}

impl Network {
    pub(super) fn read(folder: &Folder, shape: &Shape) -> Result<Self, EmbeddingError> {
        let tensors = Tensors::open(folder)?;
        // Files of models with a task head prefix the names of the encoder.
        let prefix = if tensors.has("bert.embeddings.word_embeddings.weight") { "bert." } else { "" };
        let mut weights = Weights { tensors, shape, prefix };
        let table = |kind: &str| format!("embeddings.{kind}_embeddings.weight");
        let words = weights.matrix(&table("word"), shape.vocabulary, shape.hidden)?;
        let mut positions = weights.matrix(&table("position"), shape.positions, shape.hidden)?;
        let types = weights.matrix(&table("token_type"), shape.types, shape.hidden)?;
        positions += &types.row(0);
        let norm = weights.norm("embeddings.LayerNorm")?;
        let layers = (0..shape.layers).map(|number| weights.layer(number)).collect::<Result<_, _>>()?;
        Ok(Self { words, positions, norm, layers, heads: shape.heads, pooling: shape.pooling })
    }

    /// The vector of a text. `tokens` has at least one token, and at most as many as there are positions.
    pub(super) fn run(&self, tokens: &[usize]) -> Box<[f32]> {
        let mut rows = self.words.select(Axis(0), tokens);
        rows += &self.positions.slice_axis(Axis(0), Slice::from(..tokens.len()));
        self.norm.apply(&mut rows);
        for layer in &self.layers {
            rows = layer.run(&rows, self.heads);
        }
        match self.pooling {
            Pooling::Mean => (rows.sum_axis(Axis(0)) / tokens.len() as f32).to_vec().into(),
            Pooling::First => rows.row(0).to_vec().into(),
        }
    }
}

impl Layer {
    fn run(&self, rows: &Array2<f32>, heads: usize) -> Array2<f32> {
        let mut attention_output = self.attention_output.apply(&self.attend(rows, heads));
        attention_output += rows;
        self.attention_norm.apply(&mut attention_output);
        let mut wide = self.feed_forward_in.apply(&attention_output);
        wide.mapv_inplace(gelu);
        let mut feed_forward_out = self.feed_forward_out.apply(&wide);
        feed_forward_out += &attention_output;
        self.feed_forward_norm.apply(&mut feed_forward_out);
        feed_forward_out
    }

    fn attend(&self, rows: &Array2<f32>, heads: usize) -> Array2<f32> {
        let (count, hidden) = rows.dim();
        let size = hidden / heads;
        let scale = 1.0 / (size as f32).sqrt();
        let parts = self.attention.apply(rows);
        let mut result = Array2::zeros((count, hidden));
        let mut shares = Array2::zeros((count, count));
        for head in 0..heads {
            let columns = |from: usize| Slice::from(from..from + size);
            let part = |number: usize| parts.slice_axis(Axis(1), columns(number * hidden + head * size));
            let (query, key, value) = (part(0), part(1), part(2));
            general_mat_mul(scale, &query, &key.t(), 0.0, &mut shares);
            shares.axis_iter_mut(Axis(0)).for_each(softmax);
            let mut own = result.slice_axis_mut(Axis(1), columns(head * size));
            general_mat_mul(1.0, &shares, &value, 0.0, &mut own);
        }
        result
    }
}

impl Dense {
    fn apply(&self, rows: &Array2<f32>) -> Array2<f32> {
        let mut result = rows.dot(&self.weight);
        result += &self.bias;
        result
    }
}

/// The weights by their names in BERT.
struct Weights<'a> {
    tensors: Tensors<'a>,
    shape: &'a Shape,
    prefix: &'static str,
}

impl Weights<'_> {
    fn matrix(&mut self, name: &str, rows: usize, columns: usize) -> Result<Array2<f32>, EmbeddingError> {
        self.tensors.matrix(&format!("{}{name}", self.prefix), rows, columns)
    }

    fn row(&mut self, name: &str, length: usize) -> Result<Array1<f32>, EmbeddingError> {
        self.tensors.row(&format!("{}{name}", self.prefix), length)
    }

    fn norm(&mut self, name: &str) -> Result<Norm, EmbeddingError> {
        let hidden = self.shape.hidden;
        let gain = self.row(&format!("{name}.weight"), hidden)?;
        let shift = self.row(&format!("{name}.bias"), hidden)?;
        Ok(Norm { gain, shift, epsilon: self.shape.epsilon })
    }

    fn dense(&mut self, name: &str, inputs: usize, outputs: usize) -> Result<Dense, EmbeddingError> {
        let weight = self.matrix(&format!("{name}.weight"), outputs, inputs)?;
        let bias = self.row(&format!("{name}.bias"), outputs)?;
        Ok(Dense { weight: weight.t().as_standard_layout().into_owned(), bias })
    }

    fn layer(&mut self, number: usize) -> Result<Layer, EmbeddingError> {
        let (hidden, wide) = (self.shape.hidden, self.shape.intermediate);
        let named = |part: &str| format!("encoder.layer.{number}.{part}");
        let query = self.dense(&named("attention.self.query"), hidden, hidden)?;
        let key = self.dense(&named("attention.self.key"), hidden, hidden)?;
        let value = self.dense(&named("attention.self.value"), hidden, hidden)?;
        Ok(Layer {
            attention: stack_projections([&query, &key, &value])?,
            attention_output: self.dense(&named("attention.output.dense"), hidden, hidden)?,
            attention_norm: self.norm(&named("attention.output.LayerNorm"))?,
            feed_forward_in: self.dense(&named("intermediate.dense"), hidden, wide)?,
            feed_forward_out: self.dense(&named("output.dense"), wide, hidden)?,
            feed_forward_norm: self.norm(&named("output.LayerNorm"))?,
        })
    }
}

/// Concatenates linear layers with the same inputs.
fn stack_projections(maps: [&Dense; 3]) -> Result<Dense, EmbeddingError> {
    let unequal = |error: ndarray::ShapeError| EmbeddingError::Model(error.to_string());
    let weight = concatenate(Axis(1), &maps.map(|map| map.weight.view())).map_err(unequal)?;
    let bias = concatenate(Axis(0), &maps.map(|map| map.bias.view())).map_err(unequal)?;
    Ok(Dense { weight: weight.as_standard_layout().into_owned(), bias })
}
