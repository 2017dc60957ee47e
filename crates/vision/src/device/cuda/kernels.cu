// Kernels of the operations of `Device`, in their order; GEMMs are those of cuBLAS. Compiled by NVRTC when the program starts.
// Every sum has one order, so that the same device gives the same bits every time.

#define WARP 32
#define ALL 0xffffffffu

__device__ float warp_sum(float v) {
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(ALL, v, d);
    return v;
}

__device__ float warp_max(float v) {
    for (int d = 16; d > 0; d >>= 1) v = fmaxf(v, __shfl_xor_sync(ALL, v, d));
    return v;
}

__device__ int element() { return blockIdx.x * blockDim.x + threadIdx.x; }
// A warp per row.
__device__ int row_of_warp() { return (blockIdx.x * blockDim.x + threadIdx.x) / WARP; }

extern "C" __global__ void add(int n, const float* x, float* y) {
    int i = element();
    if (i < n) y[i] += x[i];
}

extern "C" __global__ void add_row(int n, int rows, int columns, const float* bias, float* y) {
    int i = element();
    if (i < n) y[i] += bias[i / columns / rows * columns + i % columns];
}

// The same with four numbers per thread: n and columns count fours.
extern "C" __global__ void add_row4(int n, int rows, int columns, const float4* bias, float4* y) {
    int i = element();
    if (i >= n) return;
    float4 b = bias[i / columns / rows * columns + i % columns], v = y[i];
    y[i] = make_float4(v.x + b.x, v.y + b.y, v.z + b.z, v.w + b.w);
}

// Blocks of 32 x 8 threads; grid: tiles of columns, chunks of rows, models. Sums of a chunk go to partial[chunk][model][column].
extern "C" __global__ void sum_rows(int rows, int columns, int chunk, const float* x, float* partial) {
    __shared__ float tile[8][WARP];
    int column = blockIdx.x * WARP + threadIdx.x, model = blockIdx.z;
    int first = blockIdx.y * chunk, last = min(first + chunk, rows);
    float sum = 0.f;
    if (column < columns)
        for (int r = first + threadIdx.y; r < last; r += 8) sum += x[(model * rows + r) * columns + column];
    tile[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < columns) {
        for (int t = 1; t < 8; t++) sum += tile[t][threadIdx.x];
        partial[(blockIdx.y * gridDim.z + model) * columns + column] = sum;
    }
}

// The same for the scale of a norm: sums of dy times the normalised x.
extern "C" __global__ void sum_affine(int rows, int columns, int chunk, const float* x, const float* moments,
                                      const float* dy, float* partial) {
    __shared__ float tile[8][WARP];
    int column = blockIdx.x * WARP + threadIdx.x, model = blockIdx.z;
    int first = blockIdx.y * chunk, last = min(first + chunk, rows);
    float sum = 0.f;
    if (column < columns)
        for (int r = first + threadIdx.y; r < last; r += 8) {
            int row = model * rows + r;
            sum += dy[row * columns + column] * (x[row * columns + column] - moments[2 * row]) * moments[2 * row + 1];
        }
    tile[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && column < columns) {
        for (int t = 1; t < 8; t++) sum += tile[t][threadIdx.x];
        partial[(blockIdx.y * gridDim.z + model) * columns + column] = sum;
    }
}

extern "C" __global__ void sum_chunks(int n, int chunks, const float* partial, float* out) {
    int i = element();
    if (i >= n) return;
    double sum = 0.0;
    for (int c = 0; c < chunks; c++) sum += partial[c * n + i];
    out[i] = (float)(out[i] + sum);
}

// A product over long sums was done in parts: c[batch] += the sum of partial[batch][part], matrices of `size` numbers.
extern "C" __global__ void sum_parts(int n, int size, int parts, int stride, const float* partial, float* c) {
    int i = element();
    if (i >= n) return;
    int batch = i / size, place = i % size;
    partial += (size_t)batch * parts * size + place;
    float sum = 0.f;
    for (int p = 0; p < parts; p++) sum += partial[(size_t)p * size];
    c[(size_t)batch * stride + place] += sum;
}

extern "C" __global__ void normalise(int all, int rows, int columns, const float* x, const float* scale,
                                     const float* shift, float epsilon, float* y, float* moments) {
    int row = row_of_warp(), lane = threadIdx.x % WARP;
    if (row >= all) return;
    x += row * columns;
    y += row * columns;
    int place = row / rows * columns;
    float mean = 0.f, square = 0.f;
    for (int c = lane; c < columns; c += WARP) mean += x[c];
    mean = warp_sum(mean) / columns;
    for (int c = lane; c < columns; c += WARP) square += (x[c] - mean) * (x[c] - mean);
    float inverse = 1.f / sqrtf(warp_sum(square) / columns + epsilon);
    for (int c = lane; c < columns; c += WARP) y[c] = (x[c] - mean) * inverse * scale[place + c] + shift[place + c];
    if (lane == 0) {
        moments[2 * row] = mean;
        moments[2 * row + 1] = inverse;
    }
}

extern "C" __global__ void normalise_backward(int all, int rows, int columns, const float* x, const float* moments,
                                              const float* scale, const float* dy, float* dx) {
    int row = row_of_warp(), lane = threadIdx.x % WARP;
    if (row >= all) return;
    x += row * columns;
    dy += row * columns;
    dx += row * columns;
    scale += row / rows * columns;
    float mean = moments[2 * row], inverse = moments[2 * row + 1], sum = 0.f, along = 0.f;
    for (int c = lane; c < columns; c += WARP) {
        float g = dy[c] * scale[c];
        sum += g;
        along += g * (x[c] - mean) * inverse;
    }
    sum = warp_sum(sum) / columns;
    along = warp_sum(along) / columns;
    for (int c = lane; c < columns; c += WARP)
        dx[c] += inverse * (dy[c] * scale[c] - sum - (x[c] - mean) * inverse * along);
}

// The distribution function of a normal variable: its error is a rounding of 1, which is what a product with x needs.
__device__ float below(float x) { return 0.5f + 0.5f * erff(0.7071067812f * x); }
__device__ float gelu_of(float x) { return x * below(x); }
__device__ float gelu_slope(float x) { return below(x) + x * 0.3989422804f * expf(-0.5f * x * x); }

// Four numbers per thread, and the rest by the last threads.
extern "C" __global__ void gelu(int n, const float* x, float* y) {
    int i = 4 * element();
    if (i + 4 <= n) {
        float4 v = *(const float4*)(x + i);
        *(float4*)(y + i) = make_float4(gelu_of(v.x), gelu_of(v.y), gelu_of(v.z), gelu_of(v.w));
    } else
        for (; i < n; i++) y[i] = gelu_of(x[i]);
}

extern "C" __global__ void gelu_backward(int n, const float* x, float* dy) {
    int i = 4 * element();
    if (i + 4 <= n) {
        float4 v = *(const float4*)(x + i), d = *(float4*)(dy + i);
        *(float4*)(dy + i) =
            make_float4(d.x * gelu_slope(v.x), d.y * gelu_slope(v.y), d.z * gelu_slope(v.z), d.w * gelu_slope(v.w));
    } else
        for (; i < n; i++) dy[i] *= gelu_slope(x[i]);
}

extern "C" __global__ void softmax(int rows, int columns, float scale, float* x) {
    int row = row_of_warp(), lane = threadIdx.x % WARP;
    if (row >= rows) return;
    x += row * columns;
    float largest = -3.4e38f, sum = 0.f;
    for (int c = lane; c < columns; c += WARP) largest = fmaxf(largest, x[c]);
    largest = warp_max(largest);
    for (int c = lane; c < columns; c += WARP) sum += expf(scale * (x[c] - largest));
    float inverse = 1.f / warp_sum(sum);
    for (int c = lane; c < columns; c += WARP) x[c] = expf(scale * (x[c] - largest)) * inverse;
}

extern "C" __global__ void softmax_backward(int rows, int columns, float scale, const float* p, float* dp) {
    int row = row_of_warp(), lane = threadIdx.x % WARP;
    if (row >= rows) return;
    p += row * columns;
    dp += row * columns;
    float sum = 0.f;
    for (int c = lane; c < columns; c += WARP) sum += p[c] * dp[c];
    sum = warp_sum(sum);
    for (int c = lane; c < columns; c += WARP) dp[c] = scale * p[c] * (dp[c] - sum);
}

// x[sequence][token][part][head][i] and by head [part][sequence][head][token][i]; `split` says which way.
extern "C" __global__ void move_heads(int n, int sequences, int tokens, int parts, int heads, int width, int split,
                                      const float* x, float* out) {
    int i = element();
    if (i >= n) return;
    int rest = i, inner = rest % width;
    rest /= width;
    int head = rest % heads;
    rest /= heads;
    int part = rest % parts;
    rest /= parts;
    int token = rest % tokens, sequence = rest / tokens;
    int by_head = (((part * sequences + sequence) * heads + head) * tokens + token) * width + inner;
    if (split) out[by_head] = x[i];
    else out[i] = x[by_head];
}

// The same with four numbers per thread: n and width count fours.
extern "C" __global__ void move_heads4(int n, int sequences, int tokens, int parts, int heads, int width, int split,
                                       const float4* x, float4* out) {
    int i = element();
    if (i >= n) return;
    int rest = i, inner = rest % width;
    rest /= width;
    int head = rest % heads;
    rest /= heads;
    int part = rest % parts;
    rest /= parts;
    int token = rest % tokens, sequence = rest / tokens;
    int by_head = (((part * sequences + sequence) * heads + head) * tokens + token) * width + inner;
    if (split) out[by_head] = x[i];
    else out[i] = x[by_head];
}

extern "C" __global__ void mean_rows(int n, int tokens, int columns, const float* x, float* out) {
    int i = element();
    if (i >= n) return;
    x += i / columns * tokens * columns + i % columns;
    float sum = 0.f;
    for (int t = 0; t < tokens; t++) sum += x[t * columns];
    out[i] = sum / tokens;
}

extern "C" __global__ void mean_rows_backward(int n, int tokens, int columns, const float* dout, float* dx) {
    int i = element();
    if (i < n) dx[i] = dout[i / (tokens * columns) * columns + i % columns] / tokens;
}

extern "C" __global__ void patches(int n, int channels, int side, int patch, float m0, float m1, float m2, float d0,
                                   float d1, float d2, const unsigned char* images, const unsigned int* indices,
                                   int first, float* out) {
    int i = element();
    if (i >= n) return;
    int area = side * side, size = channels * area, across = side / patch;
    int number = i / size, within = i % size;
    unsigned int index = indices[first + number];
    if (index == 0xffffffffu) {
        out[i] = 0.f;
        return;
    }
    int width = channels * patch * patch, token = within / width, place = within % width;
    int channel = place / (patch * patch), pixel = place % (patch * patch);
    int y = token / across * patch + pixel / patch, x = token % across * patch + pixel % patch;
    float mean = channel == 0 ? m0 : channel == 1 ? m1 : m2, deviation = channel == 0 ? d0 : channel == 1 ? d1 : d2;
    float value = images[(size_t)index * size + channel * area + y * side + x] / 255.f;
    out[i] = (value - mean) / deviation;
}

extern "C" __global__ void cross_entropy(int rows, int classes, float scale, const float* logits,
                                         const unsigned int* labels, const unsigned int* indices, int first,
                                         float* dlogits, float* scores) {
    int row = element();
    if (row >= rows) return;
    logits += row * classes;
    dlogits += row * classes;
    unsigned int index = indices[first + row];
    if (index == 0xffffffffu) {
        for (int c = 0; c < classes; c++) dlogits[c] = 0.f;
        scores[2 * row] = scores[2 * row + 1] = 0.f;
        return;
    }
    int label = labels[index], best = 0;
    for (int c = 1; c < classes; c++)
        if (logits[c] > logits[best]) best = c;
    float largest = logits[best], sum = 0.f;
    for (int c = 0; c < classes; c++) sum += expf(logits[c] - largest);
    for (int c = 0; c < classes; c++)
        dlogits[c] = scale * (expf(logits[c] - largest) / sum - (c == label ? 1.f : 0.f));
    scores[2 * row] = logf(sum) + largest - logits[label];
    scores[2 * row + 1] = best == label ? 1.f : 0.f;
}

extern "C" __global__ void adamw(int n, float rate, float kept, float first, float second, float rest1, float rest2,
                                 float c1, float c2, float epsilon, const float* gradient, float* m, float* v,
                                 float* parameters) {
    int i = element();
    if (i >= n) return;
    float g = gradient[i];
    float new_m = first * m[i] + rest1 * g, new_v = second * v[i] + rest2 * g * g;
    m[i] = new_m;
    v[i] = new_v;
    parameters[i] = parameters[i] * kept - rate * (new_m / c1) / (sqrtf(new_v / c2) + epsilon);
}
