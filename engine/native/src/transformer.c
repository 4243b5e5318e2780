// A few steps of a transformer: every layer, the final norm and the head, in one call. Compiled for each instruction set.
#include <math.h>
#include "native.h"
#include "simd.h"

enum { BLOCK = 32 };  // activations that share a scale
enum { TILE_BYTES = 1 << 15 };  // of weights; a core reads them in some 3 µs, thirty times the price of taking a tile
enum { KEYS = 64 };  // scores that are exponentiated together
enum { FEW = 2 };  // steps whose norms the caller computes itself

// Activations (steps, inputs) of a product, and in eight bits where the weights are.
typedef struct {
    float *x;
    int8_t *q;
    float *scales;  // (steps, inputs / BLOCK)
    int32_t *sums;  // of the whole numbers of a block
    int32_t inputs;
} Activations;

typedef struct {
    const Transformer *t;
    const Steps *s;
    const Layer *layer;
    const Matrix *matrix;
    const Activations *a;
    Activations normed, heads, hidden;
    float *qkv, *out;
    int32_t qkv_width, per_tile, is_added;
    const float *norm, *scale;
} Pass;

static void quantise_block(const Activations *a, int64_t block) {
    const float *x = a->x + block * BLOCK;
    f8 largest = all(0);
    for (int i = 0; i < BLOCK; i += 8) largest = larger(largest, larger(load(x + i), -load(x + i)));
    float most = largest8(largest), ratio = most > 0 ? 127.0f / most : 0;
    i8 sum = {0};
    for (int i = 0; i < BLOCK; i += 8) {
        i8 numbers = __builtin_convertvector(round8(load(x + i) * all(ratio)), i8);
        sum += numbers;
        for (int j = 0; j < 8; j++) a->q[block * BLOCK + i + j] = (int8_t)numbers[j];
    }
    a->scales[block] = most / 127.0f;
    int32_t total = 0;
    for (int j = 0; j < 8; j++) total += sum[j];
    a->sums[block] = total;
}

static void quantise(const Activations *a, int64_t step) {
    if (!a->q) return;
    int64_t blocks = a->inputs / BLOCK;
    for (int64_t block = step * blocks; block < (step + 1) * blocks; block++) quantise_block(a, block);
}

// Eight outputs of `count` steps, of which the compiler knows the number.
INLINE void eight_bit_outputs(const Matrix *m, const Activations *a, int64_t group, int64_t step, int count, f8 *out) {
    int64_t blocks = m->inputs / BLOCK;
    const int8_t *weights = (const int8_t *)m->values + group * 8 * m->inputs;
    f8 totals[4];
    for (int s = 0; s < count; s++) totals[s] = all(0);
    for (int64_t block = 0; block < blocks; block++, weights += 8 * BLOCK) {
        for (int line = 0; line < 4; line++) __builtin_prefetch(weights + 2048 + 64 * line);
        for (int s = 0; s < count; s++) {
            int64_t index = (step + s) * blocks + block;
            const int8_t *x = a->q + index * BLOCK;
            i8 even = {0}, odd = {0};
            for (int four = 0; four < 8; four += 2) {
                even = dot4(even, weights + 32 * four, x + 4 * four);
                odd = dot4(odd, weights + 32 * four + 32, x + 4 * four + 4);
            }
            i8 sums = even + odd;
#if defined(UNSIGNED_WEIGHTS)
            sums -= 128 * a->sums[index];
#endif
            totals[s] = fma8(to_floats(sums), all(a->scales[index]), totals[s]);
        }
    }
    for (int s = 0; s < count; s++) out[s] = totals[s] * load(m->scales + group * 8);
}

// The same sums, inputs in turns in two sums, from sixteen-bit weights.
INLINE void short_outputs(const Matrix *m, const Activations *a, int64_t group, int64_t step, int count, f8 *out) {
    const int16_t *w = (const int16_t *)m->values + group * 8 * m->inputs;
    const float *x = a->x + step * m->inputs;
    f8 even[4], odd[4];
    for (int s = 0; s < count; s++) even[s] = odd[s] = all(0);
    for (int32_t i = 0; i < m->inputs; i += 4, w += 32) {
        __builtin_prefetch(w + 4096, 0, 2);  // 8 KB ahead: with 4, some runs took a sixth longer
        f8 w0 = load_short(w), w1 = load_short(w + 8), w2 = load_short(w + 16), w3 = load_short(w + 24);
        for (int s = 0; s < count; s++) {
            const float *v = x + s * m->inputs + i;
            even[s] = fma8(w0, all(v[0]), even[s]);
            odd[s] = fma8(w1, all(v[1]), odd[s]);
            even[s] = fma8(w2, all(v[2]), even[s]);
            odd[s] = fma8(w3, all(v[3]), odd[s]);
        }
    }
    for (int s = 0; s < count; s++) out[s] = (even[s] + odd[s]) * load(m->scales + group * 8);
}

INLINE f8 load_weights(const Matrix *m, int64_t at, int bits) {
    return bits == 16 ? load_bfloat16((const uint16_t *)m->values + at) : load((const float *)m->values + at);
}

INLINE void float_outputs(const Matrix *m, const Activations *a, int64_t group, int64_t step, int bits, f8 *out) {
    const float *x = a->x + step * m->inputs;
    f8 totals[8];
    for (int row = 0; row < 8; row++) totals[row] = all(0);
    int64_t row_bytes = (int64_t)m->inputs * (bits / 8);
    const char *next = (const char *)m->values + (group + 1) * 8 * row_bytes;
    for (int32_t i = 0; i < m->inputs; i += 8) {
        f8 v = load(x + i);
        // Rows are too short for the processor to foresee the next ones. A line holds two vectors or more.
        for (int row = i / 8 % 2; row < 8; row += 2) __builtin_prefetch(next + row * row_bytes + i * (bits / 8), 0, 2);
        for (int row = 0; row < 8; row++)
            totals[row] = fma8(load_weights(m, (group * 8 + row) * m->inputs + i, bits), v, totals[row]);
    }
    for (int row = 0; row < 8; row++) (*out)[row] = sum8(totals[row]);
}

// The same sums of `count` steps, four rows at a time: as many as there are registers for.
INLINE void float_outputs_of(
    const Matrix *m, const Activations *a, int64_t group, int64_t step, int bits, int count, f8 *out) {
    const float *x = a->x + step * m->inputs;
    for (int first = 0; first < 8; first += 4) {
        f8 totals[4][3];
        for (int row = 0; row < 4; row++)
            for (int s = 0; s < count; s++) totals[row][s] = all(0);
        for (int32_t i = 0; i < m->inputs; i += 8)
            for (int row = 0; row < 4; row++) {
                f8 w = load_weights(m, (group * 8 + first + row) * m->inputs + i, bits);
                for (int s = 0; s < count; s++) totals[row][s] = fma8(w, load(x + s * m->inputs + i), totals[row][s]);
            }
        for (int row = 0; row < 4; row++)
            for (int s = 0; s < count; s++) out[s][first + row] = sum8(totals[row][s]);
    }
}

INLINE int floats(const Matrix *m, const Activations *a, int64_t group, int64_t step, int64_t left, int bits, f8 *out) {
    if (left >= 3) return float_outputs_of(m, a, group, step, bits, 3, out), 3;
    if (left == 2) return float_outputs_of(m, a, group, step, bits, 2, out), 2;
    return float_outputs(m, a, group, step, bits, out), 1;
}

INLINE int whole_numbers(const Matrix *m, const Activations *a, int64_t group, int64_t step, int count, f8 *out) {
    if (m->bits == 16) short_outputs(m, a, group, step, count, out);
    else eight_bit_outputs(m, a, group, step, count, out);
    return count;
}

// Eight outputs of up to four steps; a step's do not depend on the others.
static int outputs(const Matrix *m, const Activations *a, int64_t group, int64_t step, int64_t end, f8 *out) {
    int64_t left = end - step;
    if (!m->scales && m->bits == 16) return floats(m, a, group, step, left, 16, out);
    if (!m->scales) return floats(m, a, group, step, left, 32, out);
    if (left >= 4) return whole_numbers(m, a, group, step, 4, out);
    return left >= 2 ? whole_numbers(m, a, group, step, 2, out) : whole_numbers(m, a, group, step, 1, out);
}

static void product_tile(void *context, int tile) {
    const Pass *p = context;
    const Matrix *m = p->matrix;
    int32_t groups = m->outputs / 8, end = (tile + 1) * p->per_tile;
    for (int32_t group = tile * p->per_tile; group < end && group < groups; group++) {
        f8 out[4];
        for (int count, step = 0; step < p->s->steps; step += count) {
            count = outputs(m, p->a, group, step, p->s->steps, out);
            for (int s = 0; s < count; s++) {
                float *target = p->out + (int64_t)(step + s) * m->outputs + group * 8;
                f8 sums = p->scale ? out[s] * load(p->scale + group * 8) : out[s];
                store(target, p->is_added ? load(target) + sums : sums);
            }
        }
    }
}

static void multiply(
    Pass *p, int lane, const Matrix *m, const Activations *a, float *out, int is_added, const float *scale) {
    int32_t row_bytes = m->inputs * m->bits / 8, groups = m->outputs / 8;
    int32_t per_tile = TILE_BYTES / (8 * row_bytes);
    p->matrix = m, p->a = a, p->out = out, p->is_added = is_added, p->scale = scale;
    p->per_tile = per_tile < 1 ? 1 : per_tile;
    pool_run(lane, product_tile, p, (groups + p->per_tile - 1) / p->per_tile);
}

static void normalise(const float *x, const float *gain, float *y, int32_t size, float eps) {
    f8 squares = all(0), more = all(0);
    int32_t i = 0;
    for (; i + 16 <= size; i += 16) {
        squares = fma8(load(x + i), load(x + i), squares);
        more = fma8(load(x + i + 8), load(x + i + 8), more);
    }
    for (; i < size; i += 8) squares = fma8(load(x + i), load(x + i), squares);
    f8 factor = all(1.0f / sqrtf(sum8(squares + more) / (float)size + eps));
    for (i = 0; i < size; i += 8) store(y + i, load(x + i) * factor * load(gain + i));
}

static void norm_step(void *context, int step) {
    const Pass *p = context;
    int32_t dim = p->t->dim;
    normalise(p->s->x + (int64_t)step * dim, p->norm, p->normed.x + (int64_t)step * dim, dim, p->t->eps);
    quantise(&p->normed, step);
}

static void quantise_step(void *context, int step) {
    const Pass *p = context;
    quantise(&p->heads, step);
}

static int64_t cell(const Pass *p, int step, int32_t position) {
    const Transformer *t = p->t;
    if (t->window) position %= t->capacity;
    return p->s->slots[step] * t->slot_stride + (int64_t)position * t->n_kv_head * t->head_dim;
}

// Bias, norms and rotation of a step's queries and keys; then its keys and values go to the cache.
static void store_step(void *context, int step) {
    const Pass *p = context;
    const Transformer *t = p->t;
    int32_t width = t->head_dim, turned = t->n_head + t->n_kv_head;
    float *heads = p->qkv + (int64_t)step * p->qkv_width;
    if (p->layer->qkv_bias)
        for (int32_t i = 0; i < p->qkv_width; i += 8) store(heads + i, load(heads + i) + load(p->layer->qkv_bias + i));
    const float *angles = p->s->angles + (int64_t)p->s->rotations[step] * width;
    for (int32_t head = 0; head < turned; head++) {
        float *x = heads + head * width;
        const float *gain = head < t->n_head ? p->layer->q_norm : p->layer->k_norm;
        if (gain) normalise(x, gain, x, width, t->eps);
        for (int32_t i = 0; i < width; i += 2) {
            float a = x[i], b = x[i + 1], cosine = angles[i], sine = angles[i + 1];
            x[i] = a * cosine - b * sine;
            x[i + 1] = a * sine + b * cosine;
        }
    }
    int64_t to = cell(p, step, p->s->positions[step]);
    memcpy(p->layer->keys + to, heads + t->n_head * width, sizeof(float) * t->n_kv_head * width);
    memcpy(p->layer->values + to, heads + turned * width, sizeof(float) * t->n_kv_head * width);
}

// One head of one step over the keys that it sees.
static void attend_tile(void *context, int tile) {
    const Pass *p = context;
    const Transformer *t = p->t;
    int32_t step = tile / t->n_head, head = tile % t->n_head, width = t->head_dim;
    int64_t line = (int64_t)(head / (t->n_head / t->n_kv_head)) * width;
    const float *q = p->qkv + (int64_t)step * p->qkv_width + head * width;
    float *out = p->heads.x + (int64_t)step * p->heads.inputs + head * width;
    int32_t last = p->s->positions[step], first = t->window && last >= t->window ? last - t->window + 1 : 0;
    f8 scale = all(1.0f / sqrtf((float)width)), total = all(0), mix[32];
    float most = -INFINITY;
    for (int32_t i = 0; i < width / 8; i++) mix[i] = all(0);
    for (int32_t from = first; from <= last; from += KEYS) {
        float scores[KEYS];
        int32_t count = last + 1 - from < KEYS ? last + 1 - from : KEYS;
        f8 best = all(most);
        for (int32_t k = 0; k < KEYS; k++) scores[k] = -INFINITY;
        for (int32_t k = 0; k < count; k++) {
            const float *key = p->layer->keys + cell(p, step, from + k) + line;
            f8 sum = all(0);
            for (int32_t i = 0; i < width; i += 8) sum = fma8(load(q + i), load(key + i), sum);
            scores[k] = sum8(sum);
        }
        for (int32_t k = 0; k < KEYS; k += 8) {
            store(scores + k, load(scores + k) * scale);
            best = larger(best, load(scores + k));
        }
        float now = largest8(best);
        f8 fade = exp8(all(most - now));
        if (from == first) fade = all(0);
        most = now, total *= fade;
        for (int32_t i = 0; i < width / 8; i++) mix[i] *= fade;
        for (int32_t k = 0; k < KEYS; k += 8) {
            f8 weights = exp8(load(scores + k) - all(most));
            for (int j = 0; j < 8; j++) weights[j] = k + j < count ? weights[j] : 0;
            total += weights;
            store(scores + k, weights);
        }
        for (int32_t k = 0; k < count; k++) {
            const float *value = p->layer->values + cell(p, step, from + k) + line;
            f8 weight = all(scores[k]);
            for (int32_t i = 0; i < width / 8; i++) mix[i] = fma8(weight, load(value + 8 * i), mix[i]);
        }
    }
    f8 share = all(1.0f / sum8(total));
    for (int32_t i = 0; i < width / 8; i++) store(out + 8 * i, mix[i] * share);
}

// BLOCK gates and ups of every step, and silu(gate) · up.
static void gate_tile(void *context, int tile) {
    const Pass *p = context;
    const Layer *layer = p->layer;
    int32_t inner = p->hidden.inputs, first = tile * BLOCK, end = first + BLOCK < inner ? first + BLOCK : inner;
    for (int32_t at = first; at < end; at += 8) {
        f8 gates[4], ups[4];
        for (int count, step = 0; step < p->s->steps; step += count) {
            count = outputs(&layer->gate, &p->normed, at / 8, step, p->s->steps, gates);
            outputs(&layer->up, &p->normed, at / 8, step, p->s->steps, ups);
            for (int s = 0; s < count; s++) {
                f8 gate = gates[s] / (all(1.0f) + exp8(-gates[s]));
                store(p->hidden.x + (int64_t)(step + s) * inner + at, gate * ups[s]);
            }
        }
    }
    if (p->hidden.q)
        for (int step = 0; step < p->s->steps; step++)
            quantise_block(&p->hidden, (int64_t)step * (inner / BLOCK) + tile);
}

static void every_step(Pass *p, int lane, Work work) {
    if (p->s->steps > FEW) pool_run(lane, work, p, p->s->steps);
    else
        for (int step = 0; step < p->s->steps; step++) work(p, step);
}

static void norm_steps(Pass *p, int lane, const float *gain) {
    p->norm = gain;
    every_step(p, lane, norm_step);
}

static void *take(char **memory, int64_t bytes) {
    void *start = *memory;
    *memory += (bytes + 63) & ~(int64_t)63;
    return start;
}

static Activations activations(char **memory, int64_t steps, int32_t inputs, const Matrix *weights) {
    Activations a = {take(memory, steps * inputs * 4), 0, 0, 0, inputs};
    if (weights->bits == 8) {
        int64_t blocks = steps * (inputs / BLOCK);
        a.q = take(memory, steps * inputs);
        a.scales = take(memory, blocks * 4);
        a.sums = take(memory, blocks * 4);
    }
    return a;
}

static void logits_of(Pass *p, int lane) {
    const Steps *s = p->s;
    if (!p->t->head.outputs || !s->logits) return;
    Steps few = *s;
    few.steps = s->steps / s->every;
    int64_t dim = p->t->dim;
    if (s->every > 1)  // the inputs that count, moved together
        for (int step = 0; step < few.steps; step++) {
            memmove(p->normed.x + step * dim, p->normed.x + ((step + 1) * s->every - 1) * dim, dim * 4);
            quantise(&p->normed, step);
        }
    p->s = &few;
    multiply(p, lane, &p->t->head, &p->normed, s->logits, 0, NULL);
    p->s = s;
}

void NAME(transformer_steps)(const Transformer *t, const Steps *s, int lane) {
    int64_t steps = s->steps;
    int32_t width = (t->n_head + 2 * t->n_kv_head) * t->head_dim, mixed = t->n_head * t->head_dim;
    const Layer *first = t->layers;
    int64_t floats = (int64_t)t->dim + width + mixed + t->intermediate;
    char *memory = pool_scratch(lane, steps * floats * 6 + 16 * 64);
    Pass p = {.t = t, .s = s, .qkv_width = width};
    p.normed = activations(&memory, steps, t->dim, &first->qkv);
    p.heads = activations(&memory, steps, mixed, &first->output);
    p.hidden = activations(&memory, steps, t->intermediate, &first->down);
    p.qkv = take(&memory, steps * width * 4);
    for (int32_t index = 0; index < t->n_layer; index++) {
        const Layer *layer = p.layer = &t->layers[index];
        norm_steps(&p, lane, layer->attention_norm);
        multiply(&p, lane, &layer->qkv, &p.normed, p.qkv, 0, NULL);
        every_step(&p, lane, store_step);
        pool_run(lane, attend_tile, &p, (int)steps * t->n_head);
        every_step(&p, lane, quantise_step);
        multiply(&p, lane, &layer->output, &p.heads, s->x, 1, layer->attention_scale);
        norm_steps(&p, lane, layer->ffn_norm);
        pool_run(lane, gate_tile, &p, (t->intermediate + BLOCK - 1) / BLOCK);
        multiply(&p, lane, &layer->down, &p.hidden, s->x, 1, layer->ffn_scale);
    }
    if (!t->norm) return;
    norm_steps(&p, lane, t->norm);
    if (s->normed) memcpy(s->normed, p.normed.x, steps * t->dim * 4);
    logits_of(&p, lane);
}
