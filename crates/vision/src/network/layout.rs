//! What a network is made of: names and lengths of its arrays, and where each lies in the one buffer that holds all of a group.

use serde::{Deserialize, Serialize};

/// The sizes of a vision transformer.
///
/// Pre-norm blocks (A. Dosovitskiy et al., 2021): x ← x + W_o attention(norm x), x ← x + W_2 gelu(W_1 norm x), with learned positions. The
/// class is read from the mean over the patches, through a last norm; there is no class token and no dropout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Architecture {
    /// Colours of an image.
    pub channels: usize,
    /// Pixels along its sides.
    pub side: usize,
    /// Pixels along the sides of a patch.
    pub patch: usize,
    /// Numbers per token.
    pub width: usize,
    /// Blocks.
    pub depth: usize,
    /// Heads of attention; divides `width`.
    pub heads: usize,
    /// Units of the hidden layer, in widths.
    pub expansion: usize,
}

impl Architecture {
    /// Patches per image.
    pub fn tokens(&self) -> usize {
        (self.side / self.patch).pow(2)
    }

    /// Numbers per patch.
    pub fn patch_width(&self) -> usize {
        self.channels * self.patch * self.patch
    }

    /// Units of the hidden layer.
    pub fn hidden(&self) -> usize {
        self.expansion * self.width
    }

    /// What is wrong with the sizes.
    pub fn check(&self) -> Result<(), String> {
        let sizes =
            [self.channels, self.side, self.patch, self.width, self.depth, self.heads, self.expansion];
        if sizes.contains(&0) {
            return Err("a size of the network is 0".into());
        }
        if !self.side.is_multiple_of(self.patch) {
            return Err(format!("patches of {} do not fill images of {}", self.patch, self.side));
        }
        if !self.width.is_multiple_of(self.heads) {
            return Err(format!("{} heads do not divide the width {}", self.heads, self.width));
        }
        Ok(())
    }
}

/// LoRA (E. J. Hu et al., 2022): W + (alpha / rank) B A on the projections q and v, with B = 0 at the start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Lora {
    /// Rows of A.
    pub rank: usize,
    /// Its factor is alpha / rank.
    pub alpha: f64,
}

impl Lora {
    /// alpha / rank.
    pub fn factor(&self) -> f64 {
        self.alpha / self.rank as f64
    }
}

/// How an array is drawn at the start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Draw {
    /// 0.
    Zeros,
    /// 1.
    Ones,
    /// N(0, σ²).
    Normal(f64),
    /// Uniform between −b and b.
    Uniform(f64),
}

/// One array of every model.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// `blocks.0.qkv.weight`.
    pub name: String,
    /// Lengths for one model.
    pub shape: Vec<usize>,
    /// How it is drawn.
    pub draw: Draw,
    /// Numbers of one model before it.
    before: usize,
}

impl Tensor {
    /// Numbers of one model.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The arrays of a group. In its buffer stand, array by array, the numbers of all models.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Layout {
    /// In their order.
    pub tensors: Vec<Tensor>,
    total: usize,
}

impl Layout {
    fn push(&mut self, name: impl Into<String>, shape: &[usize], draw: Draw) -> usize {
        let tensor = Tensor { name: name.into(), shape: shape.to_vec(), draw, before: self.total };
        self.total += tensor.len();
        self.tensors.push(tensor);
        self.tensors.len() - 1
    }

    /// Numbers of one model.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Where an array begins in the buffer of so many models.
    pub fn offset(&self, tensor: usize, models: usize) -> usize {
        self.tensors[tensor].before * models
    }
}

/// Scale and shift of a norm lie one after the other, as the operations of a device expect.
fn norm(layout: &mut Layout, name: &str, width: usize) -> usize {
    let first = layout.push(format!("{name}.weight"), &[width], Draw::Ones);
    layout.push(format!("{name}.bias"), &[width], Draw::Zeros);
    first
}

/// Weights (outputs × inputs, as PyTorch has them) and bias, drawn with variance 2 / (inputs + outputs).
fn linear(layout: &mut Layout, name: &str, outputs: usize, inputs: usize) -> usize {
    let deviation = (2.0 / (inputs + outputs) as f64).sqrt();
    let first = layout.push(format!("{name}.weight"), &[outputs, inputs], Draw::Normal(deviation));
    layout.push(format!("{name}.bias"), &[outputs], Draw::Zeros);
    first
}

/// Indices of the arrays of a block: the weight, or scale, of each part; its bias, or shift, is the next one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BlockParts {
    pub(super) norm1: usize,
    pub(super) qkv: usize,
    pub(super) out: usize,
    pub(super) norm2: usize,
    pub(super) up: usize,
    pub(super) down: usize,
}

/// Everything before the head.
#[derive(Debug, Clone, PartialEq)]
pub struct Backbone {
    /// The arrays.
    pub layout: Layout,
    pub(super) embed: usize,
    pub(super) positions: usize,
    pub(super) blocks: Vec<BlockParts>,
    pub(super) norm: usize,
}

impl Backbone {
    /// Of these sizes.
    pub fn new(a: &Architecture) -> Self {
        let mut l = Layout::default();
        let embed = linear(&mut l, "embed", a.width, a.patch_width());
        let positions = l.push("positions", &[a.tokens(), a.width], Draw::Normal(0.02));
        let blocks = (0..a.depth).map(|b| {
            let name = |part: &str| format!("blocks.{b}.{part}");
            let norm1 = norm(&mut l, &name("norm1"), a.width);
            // q, k and v are drawn as three matrices of width × width.
            let qkv = linear(&mut l, &name("qkv"), 3 * a.width, a.width);
            l.tensors[qkv].draw = Draw::Normal((1.0 / a.width as f64).sqrt());
            let out = linear(&mut l, &name("out"), a.width, a.width);
            let norm2 = norm(&mut l, &name("norm2"), a.width);
            let up = linear(&mut l, &name("up"), a.hidden(), a.width);
            let down = linear(&mut l, &name("down"), a.width, a.hidden());
            BlockParts { norm1, qkv, out, norm2, up, down }
        });
        let blocks: Vec<BlockParts> = blocks.collect();
        let norm = norm(&mut l, "norm", a.width);
        Self { layout: l, embed, positions, blocks, norm }
    }
}

/// The linear map to the classes.
pub fn head(a: &Architecture, classes: usize) -> Layout {
    let mut layout = Layout::default();
    linear(&mut layout, "head", classes, a.width);
    layout
}

/// The two factors beside q and v of every block: A of q, B of q, A of v, B of v.
pub fn adapters(a: &Architecture, lora: &Lora) -> Layout {
    let mut layout = Layout::default();
    for block in 0..a.depth {
        for part in ["q", "v"] {
            let bound = 1.0 / (a.width as f64).sqrt();
            layout.push(format!("blocks.{block}.lora.{part}.a"), &[lora.rank, a.width], Draw::Uniform(bound));
            layout.push(format!("blocks.{block}.lora.{part}.b"), &[a.width, lora.rank], Draw::Zeros);
        }
    }
    layout
}
