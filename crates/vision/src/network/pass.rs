//! Forward and backward through the networks, and the arrays that this needs.

use super::layout::Lora;
use super::{ModelGroup, VisionNetwork};
use crate::device::{Device, DeviceError, Done, Heads, Operand, Patches, Product, RowBlock};

/// What a block keeps for its derivatives.
struct BlockState<B> {
    /// Input of the block.
    x: B,
    moments1: B,
    /// Normalised.
    h: B,
    /// Queries, keys, values by head.
    split: B,
    /// Weights of attention.
    p: B,
    /// Output of attention, heads side by side.
    a: B,
    /// After attention.
    y: B,
    moments2: B,
    h2: B,
    /// Before and after the activation.
    f: B,
    g: B,
    /// A h of the adapters of q and v.
    low: Option<[B; 2]>,
}

/// A batch of images per model, by their indices.
pub struct ImageBatch<'a, D: Device> {
    /// Pixels of all images, colour by colour.
    pub images: &'a D::Bytes,
    /// A label per image.
    pub labels: &'a D::Words,
    /// Which images: those of the first model, of the second, …
    pub indices: (&'a D::Words, usize),
    /// Images per model that are there; places beyond them are empty. The loss is their mean.
    pub count: usize,
    /// What is subtracted from pixels.
    pub mean: [f32; 3],
    /// By what they are divided.
    pub deviation: [f32; 3],
}

/// The arrays of one pass, for a number of images per model.
pub struct Pass<D: Device> {
    images: usize,
    patches: D::Buffer,
    blocks: Vec<BlockState<D::Buffer>>,
    /// Output of the last block.
    x: D::Buffer,
    moments: D::Buffer,
    normed: D::Buffer,
    pooled: D::Buffer,
    /// The scores of the classes, per model and image.
    pub logits: D::Buffer,
    dlogits: D::Buffer,
    /// Loss and correctness of every image.
    scores: D::Buffer,
    /// Sums of these per model, until they are cleared.
    pub totals: D::Buffer,
    qkv: D::Buffer,
    attended: D::Buffer,
    dx: D::Buffer,
    dh: D::Buffer,
    dpooled: D::Buffer,
    dhidden: D::Buffer,
    dp: D::Buffer,
    dsplit: D::Buffer,
    dlow: Option<D::Buffer>,
}

/// Lengths of a linear map: rows per model, inputs, outputs.
#[derive(Clone, Copy)]
struct Linear {
    models: usize,
    rows: usize,
    inputs: usize,
    outputs: usize,
}

/// The parts of queries, keys and values that LoRA changes: q is the first, v the third.
const ADAPTED: [usize; 2] = [0, 2];

impl<D: Device> Pass<D> {
    /// Arrays for so many images per model.
    pub fn new(device: &D, network: &VisionNetwork<D>, images: usize) -> Result<Self, DeviceError> {
        let a = &network.architecture;
        let sequences = network.models * images;
        let rows = sequences * a.tokens();
        let zeros = |columns: usize| device.zeros(rows * columns);
        let rank = network.adapters.as_ref().map(|(lora, _)| lora.rank);
        let mut blocks = Vec::new();
        for _ in 0..a.depth {
            blocks.push(BlockState {
                x: zeros(a.width)?,
                moments1: zeros(2)?,
                h: zeros(a.width)?,
                split: zeros(3 * a.width)?,
                p: zeros(a.heads * a.tokens())?,
                a: zeros(a.width)?,
                y: zeros(a.width)?,
                moments2: zeros(2)?,
                h2: zeros(a.width)?,
                f: zeros(a.hidden())?,
                g: zeros(a.hidden())?,
                low: match rank {
                    Some(rank) => Some([zeros(rank)?, zeros(rank)?]),
                    None => None,
                },
            });
        }
        Ok(Self {
            images,
            patches: zeros(a.patch_width())?,
            blocks,
            x: zeros(a.width)?,
            moments: zeros(2)?,
            normed: zeros(a.width)?,
            pooled: device.zeros(sequences * a.width)?,
            logits: device.zeros(sequences * network.classes)?,
            dlogits: device.zeros(sequences * network.classes)?,
            scores: device.zeros(sequences * 2)?,
            totals: device.zeros(network.models * 2)?,
            qkv: zeros(3 * a.width)?,
            attended: zeros(a.width)?,
            dx: zeros(a.width)?,
            dh: zeros(a.width)?,
            dpooled: device.zeros(sequences * a.width)?,
            dhidden: zeros(a.hidden())?,
            dp: zeros(a.heads * a.tokens())?,
            dsplit: zeros(3 * a.width)?,
            dlow: match rank {
                Some(rank) => Some(zeros(rank)?),
                None => None,
            },
        })
    }

    /// Scores of the classes, and their losses, which are added to `totals`.
    pub fn forward(&mut self, device: &D, network: &VisionNetwork<D>, batch: &ImageBatch<D>) -> Done {
        let a = network.architecture;
        let (models, images) = (network.models, self.images);
        let rows = RowBlock { models, rows: images * a.tokens(), columns: a.width };
        let linear = |inputs, outputs| Linear { models, rows: rows.rows, inputs, outputs };
        let sequences = models * images;
        let backbone = &network.backbone;
        let patches = Patches {
            count: sequences,
            channels: a.channels,
            side: a.side,
            patch: a.patch,
            mean: batch.mean,
            deviation: batch.deviation,
        };
        device.patches(&patches, batch.images, batch.indices, &mut self.patches)?;
        let parts = &network.parts;
        let first = self.blocks.first_mut().map_or(&mut self.x, |block| &mut block.x);
        apply(device, linear(a.patch_width(), a.width), backbone, parts.embed, &self.patches, first)?;
        let positions = (&backbone.values, backbone.layout.offset(parts.positions, models));
        let images_rows = RowBlock { models, rows: images, columns: a.tokens() * a.width };
        device.add_row(images_rows, positions, first)?;

        let heads =
            Heads { sequences, tokens: a.tokens(), parts: 3, heads: a.heads, width: a.width / a.heads };
        for (index, of) in parts.blocks.iter().enumerate() {
            let (block, rest) = self.blocks[index..].split_first_mut().expect("a block per depth");
            let next = rest.first_mut().map_or(&mut self.x, |block| &mut block.x);
            let affine = |norm: usize| (&backbone.values, backbone.layout.offset(norm, models));
            device.normalise(rows, &block.x, affine(of.norm1), &mut block.h, &mut block.moments1)?;
            apply(device, linear(a.width, 3 * a.width), backbone, of.qkv, &block.h, &mut self.qkv)?;
            if let (Some((lora, group)), Some(low)) = (&network.adapters, &mut block.low) {
                for (slot, part) in ADAPTED.into_iter().enumerate() {
                    let adapter = Adapter::new(group, lora, (index, slot, part), linear(a.width, a.width));
                    device.product(&adapter.down(), &block.h, &group.values, &mut low[slot])?;
                    device.product(&adapter.up(), &low[slot], &group.values, &mut self.qkv)?;
                }
            }
            device.split_heads(heads, &self.qkv, &mut block.split)?;
            let attention = Attention::new(heads);
            device.product(&attention.scores(), &block.split, &block.split, &mut block.p)?;
            device.softmax(attention.rows(), a.tokens(), attention.scale(), &mut block.p)?;
            device.product(&attention.output(), &block.p, &block.split, &mut self.attended)?;
            device.merge_heads(Heads { parts: 1, ..heads }, &self.attended, &mut block.a)?;
            apply(device, linear(a.width, a.width), backbone, of.out, &block.a, &mut block.y)?;
            device.add(rows.len(), &block.x, &mut block.y)?;

            device.normalise(rows, &block.y, affine(of.norm2), &mut block.h2, &mut block.moments2)?;
            apply(device, linear(a.width, a.hidden()), backbone, of.up, &block.h2, &mut block.f)?;
            device.gelu(rows.models * rows.rows * a.hidden(), &block.f, &mut block.g)?;
            apply(device, linear(a.hidden(), a.width), backbone, of.down, &block.g, next)?;
            device.add(rows.len(), &block.y, next)?;
        }
        let affine = (&backbone.values, backbone.layout.offset(parts.norm, models));
        device.normalise(rows, &self.x, affine, &mut self.normed, &mut self.moments)?;
        let pool = RowBlock { models: sequences, rows: a.tokens(), columns: a.width };
        device.mean_rows(pool, &self.normed, &mut self.pooled)?;
        let out = Linear { models, rows: images, inputs: a.width, outputs: network.classes };
        apply(device, out, &network.head, 0, &self.pooled, &mut self.logits)?;
        let sizes = (sequences, network.classes, 1.0 / batch.count as f64);
        let labels = (batch.labels, batch.indices);
        device.cross_entropy(sizes, &self.logits, labels, &mut self.dlogits, &mut self.scores)?;
        device.sum_rows(RowBlock { models, rows: images, columns: 2 }, &self.scores, (&mut self.totals, 0))
    }

    /// Adds the derivatives of the mean loss of the last forward pass to the gradients of all that is trained.
    pub fn backward(&mut self, device: &D, network: &mut VisionNetwork<D>) -> Done {
        let a = network.architecture;
        let (models, images) = (network.models, self.images);
        let rows = RowBlock { models, rows: images * a.tokens(), columns: a.width };
        let linear = |inputs, outputs| Linear { models, rows: rows.rows, inputs, outputs };
        let sequences = models * images;
        let VisionNetwork { backbone, head, adapters, parts, .. } = network;
        let whole = backbone.training.is_some();

        let out = Linear { models, rows: images, inputs: a.width, outputs: network.classes };
        weights(device, out, head, 0, &self.dlogits, &self.pooled)?;
        device.product(
            &out.back(offset(head, 0, models), false),
            &self.dlogits,
            &head.values,
            &mut self.dpooled,
        )?;
        let pool = RowBlock { models: sequences, rows: a.tokens(), columns: a.width };
        device.mean_rows_backward(pool, &self.dpooled, &mut self.dh)?;
        device.clear(&mut self.dx)?;
        norm(device, rows, backbone, parts.norm, (&self.x, &self.moments), &self.dh, &mut self.dx)?;

        let heads =
            Heads { sequences, tokens: a.tokens(), parts: 3, heads: a.heads, width: a.width / a.heads };
        let attention = Attention::new(heads);
        for (index, of) in parts.blocks.iter().enumerate().rev() {
            let block = &self.blocks[index];
            // x ← y + W_2 gelu(W_1 norm y): dx is the derivative with respect to the output, and then to y.
            let down = linear(a.hidden(), a.width);
            weights(device, down, backbone, of.down, &self.dx, &block.g)?;
            device.product(
                &down.back(offset(backbone, of.down, models), false),
                &self.dx,
                &backbone.values,
                &mut self.dhidden,
            )?;
            device.gelu_backward(rows.models * rows.rows * a.hidden(), &block.f, &mut self.dhidden)?;
            let up = linear(a.width, a.hidden());
            weights(device, up, backbone, of.up, &self.dhidden, &block.h2)?;
            device.product(
                &up.back(offset(backbone, of.up, models), false),
                &self.dhidden,
                &backbone.values,
                &mut self.dh,
            )?;
            norm(device, rows, backbone, of.norm2, (&block.y, &block.moments2), &self.dh, &mut self.dx)?;

            // y ← x + W_o attention(norm x).
            let wide = linear(a.width, a.width);
            weights(device, wide, backbone, of.out, &self.dx, &block.a)?;
            device.product(
                &wide.back(offset(backbone, of.out, models), false),
                &self.dx,
                &backbone.values,
                &mut self.dh,
            )?;
            device.split_heads(Heads { parts: 1, ..heads }, &self.dh, &mut self.attended)?;
            device.product(&attention.weights_back(), &self.attended, &block.split, &mut self.dp)?;
            device.product(&attention.values_back(), &block.p, &self.attended, &mut self.dsplit)?;
            device.softmax_backward(
                attention.rows(),
                a.tokens(),
                attention.scale(),
                &block.p,
                &mut self.dp,
            )?;
            device.product(&attention.queries_back(), &self.dp, &block.split, &mut self.dsplit)?;
            device.product(&attention.keys_back(), &self.dp, &block.split, &mut self.dsplit)?;
            device.merge_heads(heads, &self.dsplit, &mut self.qkv)?;
            let qkv = linear(a.width, 3 * a.width);
            weights(device, qkv, backbone, of.qkv, &self.qkv, &block.h)?;
            // Below the first block nothing is trained but the backbone.
            let deeper = whole || index > 0;
            if deeper {
                device.product(
                    &qkv.back(offset(backbone, of.qkv, models), false),
                    &self.qkv,
                    &backbone.values,
                    &mut self.dh,
                )?;
            }
            if let (Some((lora, group)), Some(low), Some(dlow)) = (&mut *adapters, &block.low, &mut self.dlow)
            {
                for (slot, part) in ADAPTED.into_iter().enumerate() {
                    let adapter = Adapter::new(group, lora, (index, slot, part), wide);
                    device.product(&adapter.low_back(), &self.qkv, &group.values, dlow)?;
                    if deeper {
                        device.product(&adapter.input_back(), dlow, &group.values, &mut self.dh)?;
                    }
                    if let Some(trained) = &mut group.training {
                        device.product(&adapter.b_back(), &self.qkv, &low[slot], &mut trained.gradient)?;
                        device.product(&adapter.a_back(), dlow, &block.h, &mut trained.gradient)?;
                    }
                }
            }
            if deeper {
                norm(device, rows, backbone, of.norm1, (&block.x, &block.moments1), &self.dh, &mut self.dx)?;
            }
        }
        if let Some(trained) = &mut backbone.training {
            let at = backbone.layout.offset(parts.positions, models);
            let image_rows = RowBlock { models, rows: images, columns: a.tokens() * a.width };
            device.sum_rows(image_rows, &self.dx, (&mut trained.gradient, at))?;
        }
        weights(device, linear(a.patch_width(), a.width), backbone, parts.embed, &self.dx, &self.patches)
    }
}

fn offset<D: Device>(group: &ModelGroup<D>, tensor: usize, models: usize) -> usize {
    group.layout.offset(tensor, models)
}

/// y = x Wᵀ + b.
fn apply<D: Device>(
    device: &D,
    linear: Linear,
    group: &ModelGroup<D>,
    weight: usize,
    x: &D::Buffer,
    y: &mut D::Buffer,
) -> Done {
    let Linear { models, rows, outputs, .. } = linear;
    device.product(&linear.forward(offset(group, weight, models)), x, &group.values, y)?;
    let bias = (&group.values, offset(group, weight + 1, models));
    device.add_row(RowBlock { models, rows, columns: outputs }, bias, y)
}

/// Adds the derivatives with respect to weight and bias, where they are trained.
fn weights<D: Device>(
    device: &D,
    linear: Linear,
    group: &mut ModelGroup<D>,
    weight: usize,
    dy: &D::Buffer,
    x: &D::Buffer,
) -> Done {
    let Linear { models, rows, inputs, outputs } = linear;
    let (at, bias) = (offset(group, weight, models), offset(group, weight + 1, models));
    let Some(trained) = &mut group.training else { return Ok(()) };
    let product = Product {
        batches: models,
        m: outputs,
        n: inputs,
        k: rows,
        a: Operand::dense(rows, outputs).transposed(),
        b: Operand::dense(rows, inputs),
        c: Operand::dense(outputs, inputs).at(at),
        scale: 1.0,
        accumulate: true,
    };
    device.product(&product, dy, x, &mut trained.gradient)?;
    device.sum_rows(RowBlock { models, rows, columns: outputs }, dy, (&mut trained.gradient, bias))
}

/// Backward through a norm: adds to dx, and to the gradients of scale and shift where they are trained.
fn norm<D: Device>(
    device: &D,
    rows: RowBlock,
    group: &mut ModelGroup<D>,
    tensor: usize,
    (x, moments): (&D::Buffer, &D::Buffer),
    dy: &D::Buffer,
    dx: &mut D::Buffer,
) -> Done {
    let at = offset(group, tensor, rows.models);
    if let Some(trained) = &mut group.training {
        device.normalise_affine(rows, (x, moments), dy, (&mut trained.gradient, at))?;
    }
    device.normalise_backward(rows, (x, moments), (&group.values, at), dy, dx)
}

impl Linear {
    fn forward(self, weight: usize) -> Product {
        let Self { models, rows, inputs, outputs } = self;
        Product {
            batches: models,
            m: rows,
            n: outputs,
            k: inputs,
            a: Operand::dense(rows, inputs),
            b: Operand::dense(outputs, inputs).at(weight).transposed(),
            c: Operand::dense(rows, outputs),
            scale: 1.0,
            accumulate: false,
        }
    }

    /// dx = dy W.
    fn back(self, weight: usize, accumulate: bool) -> Product {
        let Self { models, rows, inputs, outputs } = self;
        Product {
            batches: models,
            m: rows,
            n: inputs,
            k: outputs,
            a: Operand::dense(rows, outputs),
            b: Operand::dense(outputs, inputs).at(weight),
            c: Operand::dense(rows, inputs),
            scale: 1.0,
            accumulate,
        }
    }
}

/// The products of one adapter: u = A h, q ← q + factor B u, where q is a third of the rows of queries, keys and values.
struct Adapter {
    linear: Linear,
    rank: usize,
    factor: f64,
    /// Where A and B begin.
    at: [usize; 2],
    /// A column of q, or v, in a row of all three.
    part: Operand,
}

impl Adapter {
    fn new<D: Device>(
        group: &ModelGroup<D>,
        lora: &Lora,
        (block, slot, part): (usize, usize, usize),
        linear: Linear,
    ) -> Self {
        let first = 4 * block + 2 * slot;
        let width = linear.outputs;
        Self {
            linear,
            rank: lora.rank,
            factor: lora.factor(),
            at: [first, first + 1].map(|tensor| offset(group, tensor, linear.models)),
            part: Operand::dense(linear.rows, 3 * width).at(part * width),
        }
    }

    fn product(&self, [m, n, k]: [usize; 3], [a, b, c]: [Operand; 3]) -> Product {
        Product { batches: self.linear.models, m, n, k, a, b, c, scale: 1.0, accumulate: false }
    }

    fn a(&self) -> Operand {
        Operand::dense(self.rank, self.linear.inputs).at(self.at[0])
    }

    fn b(&self) -> Operand {
        Operand::dense(self.linear.outputs, self.rank).at(self.at[1])
    }

    fn low(&self) -> Operand {
        Operand::dense(self.linear.rows, self.rank)
    }

    fn input(&self) -> Operand {
        Operand::dense(self.linear.rows, self.linear.inputs)
    }

    /// u = h Aᵀ.
    fn down(&self) -> Product {
        let Linear { rows, inputs, .. } = self.linear;
        self.product([rows, self.rank, inputs], [self.input(), self.a().transposed(), self.low()])
    }

    /// q ← q + factor u Bᵀ.
    fn up(&self) -> Product {
        let Linear { rows, outputs, .. } = self.linear;
        let product =
            self.product([rows, outputs, self.rank], [self.low(), self.b().transposed(), self.part]);
        Product { scale: self.factor, accumulate: true, ..product }
    }

    /// du = factor dq B.
    fn low_back(&self) -> Product {
        let Linear { rows, outputs, .. } = self.linear;
        let product = self.product([rows, self.rank, outputs], [self.part, self.b(), self.low()]);
        Product { scale: self.factor, ..product }
    }

    /// dh ← dh + du A.
    fn input_back(&self) -> Product {
        let Linear { rows, inputs, .. } = self.linear;
        let product = self.product([rows, inputs, self.rank], [self.low(), self.a(), self.input()]);
        Product { accumulate: true, ..product }
    }

    /// dB ← dB + factor dqᵀ u.
    fn b_back(&self) -> Product {
        let Linear { rows, outputs, .. } = self.linear;
        let product =
            self.product([outputs, self.rank, rows], [self.part.transposed(), self.low(), self.b()]);
        Product { scale: self.factor, accumulate: true, ..product }
    }

    /// dA ← dA + duᵀ h.
    fn a_back(&self) -> Product {
        let Linear { rows, inputs, .. } = self.linear;
        let product =
            self.product([self.rank, inputs, rows], [self.low().transposed(), self.input(), self.a()]);
        Product { accumulate: true, ..product }
    }
}

/// The products of attention, head by head.
struct Attention {
    batches: usize,
    tokens: usize,
    width: usize,
}

impl Attention {
    fn new(heads: Heads) -> Self {
        Self { batches: heads.sequences * heads.heads, tokens: heads.tokens, width: heads.width }
    }

    fn rows(&self) -> usize {
        self.batches * self.tokens
    }

    fn scale(&self) -> f64 {
        1.0 / (self.width as f64).sqrt()
    }

    /// Queries (0), keys (1) or values (2), by head.
    fn part(&self, part: usize) -> Operand {
        Operand::dense(self.tokens, self.width).at(part * self.batches * self.tokens * self.width)
    }

    fn square(&self) -> Operand {
        Operand::dense(self.tokens, self.tokens)
    }

    fn product(&self, [n, k]: [usize; 2], [a, b, c]: [Operand; 3]) -> Product {
        Product { batches: self.batches, m: self.tokens, n, k, a, b, c, scale: 1.0, accumulate: false }
    }

    /// S = Q Kᵀ.
    fn scores(&self) -> Product {
        self.product([self.tokens, self.width], [self.part(0), self.part(1).transposed(), self.square()])
    }

    /// O = P V.
    fn output(&self) -> Product {
        self.product([self.width, self.tokens], [self.square(), self.part(2), self.part(0)])
    }

    /// dP = dO Vᵀ.
    fn weights_back(&self) -> Product {
        self.product([self.tokens, self.width], [self.part(0), self.part(2).transposed(), self.square()])
    }

    /// dV = Pᵀ dO.
    fn values_back(&self) -> Product {
        self.product([self.width, self.tokens], [self.square().transposed(), self.part(0), self.part(2)])
    }

    /// dQ = dS K.
    fn queries_back(&self) -> Product {
        self.product([self.width, self.tokens], [self.square(), self.part(1), self.part(0)])
    }

    /// dK = dSᵀ Q.
    fn keys_back(&self) -> Product {
        self.product([self.width, self.tokens], [self.square().transposed(), self.part(0), self.part(1)])
    }
}
