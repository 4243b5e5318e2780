// The codec's encoder and decoder: lists of convolutions over frames, channels last, with a stream's state between them.
//
// Each output is the sum of its products in one order, whatever else is computed with it, and tiles are aligned to frames,
// so a stream in chunks of any sizes equals the whole bit for bit. Compiled for each instruction set.
#include <math.h>
#include "native.h"
#include "simd.h"

enum { PANEL = 16 };  // outputs that are computed together, in one vector or two
#if defined(__AVX512F__)
enum { ROWS = 12 };  // rows that are: fewer sums would wait for each other
#else
enum { ROWS = 6 };  // 12 sums, two weights and an input are fifteen of sixteen registers
#endif
enum { SPAN = 48 };  // most rows of a tile; weights of a panel are read from the cache for each ROWS of them
enum { TILE_PRODUCTS = 1 << 18 };  // of a tile, some ten microseconds
enum { AHEAD = 2048 };  // bytes of weights that are asked for before they are needed
enum { KEPT_BYTES = 1 << 20 };  // that a core's own cache keeps
enum { TILES_PER_THREAD = 6 };  // of large tiles at least, so that no thread waits long for the last ones

void NAME(transformer_steps)(const Transformer *, const Steps *, int lane);

typedef struct {
    const Convolution *c;
    const Buffer *buffers;
    int32_t frames, rows, panels_per_tile, panel_groups, span, spans, first, count, per_frame;
    int32_t point_rows;  // of memory for a Winograd point; odd, or all points would lie in the same lines of a cache
    int32_t by_panels;  // whether tiles of the same panels follow each other, or those of the same rows
    int32_t is_whole;  // whether a Winograd tile has all panels and transforms its own inputs
} Pass;

static float *rows_of(const Buffer *b) { return b->memory + (int64_t)b->context * b->channels; }

// The weights of a panel.
static const char *weights_of(const Convolution *c, int64_t panel, int64_t products) {
    return (const char *)c->weights + panel * products * PANEL * (c->scales ? sizeof(int16_t) : sizeof(float));
}

INLINE f16 load_weights(const char *w, int is_short) {
    typedef int16_t s16 __attribute__((vector_size(32), aligned(2)));
    return is_short ? __builtin_convertvector(*(const s16 *)w, f16) : *(const f16u *)w;
}

// Sums of `count` rows of PANEL outputs.
INLINE void sum_rows(
    const float *x, int64_t row, int64_t tap, int taps, int inputs, const char *w, int is_short, int count, float *out) {
    f16 sums[ROWS] = {0};
    for (int k = 0; k < taps; k++) {
        const float *from = x + k * tap;
        for (int i = 0; i < inputs; i++, w += PANEL * (is_short ? sizeof(int16_t) : sizeof(float))) {
            __builtin_prefetch(w + AHEAD);
            f16 weights = load_weights(w, is_short);
            for (int r = 0; r < count; r++) sums[r] = fma16(weights, all16(from[r * row + i]), sums[r]);
        }
    }
    for (int r = 0; r < count; r++) *(f16u *)(out + r * PANEL) = sums[r];
}

INLINE void sum_count(
    const float *x, int64_t row, int64_t tap, int taps, int inputs, const char *w, int is_short, int count, float *out) {
#define COUNT(n) case n: if (n <= ROWS) sum_rows(x, row, tap, taps, inputs, w, is_short, n, out); break;
    switch (count) {
        COUNT(1) COUNT(2) COUNT(3) COUNT(4) COUNT(5) COUNT(6)
        COUNT(7) COUNT(8) COUNT(9) COUNT(10) COUNT(11) COUNT(12)
    }
}

// As many of the rows that are left as leaves no small rest: few sums at a time wait for each other.
static int some_rows(
    const float *x, int64_t row, int64_t tap, int taps, int inputs, const char *w, int is_short, int left, float *out) {
    int groups = (left + ROWS - 1) / ROWS, count = (left + groups - 1) / groups;
    if (is_short) sum_count(x, row, tap, taps, inputs, w, 1, count, out);
    else sum_count(x, row, tap, taps, inputs, w, 0, count, out);
    return count;
}

// Stores the activation of eight sums.
INLINE void activate(const Pass *d, int64_t row, int32_t at, f8 sums) {
    const Convolution *c = d->c;
    if (c->activated < 0) return;
    float *target = rows_of(&d->buffers[c->activated]) + row * c->outputs + at;
    switch (c->activation) {
        case SNAKE: store(target, snake8(sums, load(c->alpha + at), load(c->inverse + at))); break;
        case GELU: store(target, gelu8(sums)); break;
        case TANH: store(target, tanh8(sums)); break;
        default: store(target, sums);
    }
}

// Stores eight sums: bias, what is added, activation.
INLINE void finish(const Pass *d, int64_t row, int32_t at, f8 sums) {
    const Convolution *c = d->c;
    sums += load(c->bias + at);
    if (c->output >= 0) {
        float *target = rows_of(&d->buffers[c->output]) + row * c->outputs + at;
        if (c->is_added) sums += load(target);
        store(target, sums);
    }
    activate(d, row, at, sums);
}

// First panel and span of rows of a tile.
INLINE int32_t place_of(const Pass *d, int tile, int32_t *span) {
    *span = d->by_panels ? tile % d->spans : tile / d->panel_groups;
    return (d->by_panels ? tile / d->spans : tile % d->panel_groups) * d->panels_per_tile;
}

static void convolution_tile(void *context, int tile) {
    const Pass *d = context;
    const Convolution *c = d->c;
    const Buffer *in = &d->buffers[c->input];
    int32_t span, panel = place_of(d, tile, &span), panels = c->outputs / PANEL, last = panel + d->panels_per_tile;
    int32_t begin = span * d->span, end = begin + d->span < d->rows ? begin + d->span : d->rows;
    const float *x = rows_of(in) - (int64_t)(c->taps - 1) * c->dilation * in->channels;
    float sums[ROWS * PANEL];
    for (; panel < last && panel < panels; panel++) {
        const char *w = weights_of(c, panel, (int64_t)c->taps * c->inputs);
        for (int count, row = begin; row < end; row += count) {
            count = some_rows(
                x + (int64_t)row * in->channels, in->channels, (int64_t)c->dilation * in->channels, c->taps, c->inputs, w,
                c->scales != NULL, end - row, sums);
            for (int r = 0; r < count; r++)
                for (int half = 0; half < PANEL; half += 8) {
                    f8 sum = load(sums + r * PANEL + half);
                    if (c->scales) sum *= load(c->scales + panel * PANEL + half);
                    finish(d, row + r, panel * PANEL + half, sum);
                }
        }
    }
}

// Divides rows × panels into tiles and returns how many; ``products`` of an output, whose inputs take ``bytes`` in all.
static int divide(Pass *d, int32_t rows, int32_t products, int64_t bytes) {
    int64_t per_panel = (int64_t)(rows < SPAN ? rows : SPAN) * products * PANEL;
    int32_t panels = d->c->outputs / PANEL;
    d->span = SPAN, d->spans = (rows + SPAN - 1) / SPAN, d->is_whole = 0;
    d->panels_per_tile = per_panel >= TILE_PRODUCTS ? 1 : (int32_t)(TILE_PRODUCTS / per_panel);
    if (d->panels_per_tile > panels) d->panels_per_tile = panels;
    d->panel_groups = (panels + d->panels_per_tile - 1) / d->panels_per_tile;
    d->by_panels = bytes <= KEPT_BYTES;
    return d->spans * d->panel_groups;
}

// The same for tiles with all panels, where the weights stay in a core's cache.
static int divide_rows(Pass *d, int32_t rows) {
    d->panels_per_tile = d->c->outputs / PANEL, d->panel_groups = 1, d->is_whole = 1, d->by_panels = 0;
    for (d->span = SPAN; d->span > 2 * ROWS && rows < d->span * TILES_PER_THREAD * native_threads(); d->span -= ROWS) {}
    return d->spans = (rows + d->span - 1) / d->span;
}

// Row and first stored output of a tile, counted over all frames.
static int32_t start_of(const Pass *d, int32_t tile, int32_t *stored) {
    const int32_t *start = d->c->starts + 2 * (tile % d->per_frame);
    *stored = start[1];
    return tile / d->per_frame * d->buffers[d->c->input].rows + start[0];
}

INLINE void transform_in(const Pass *d, int index, int points) {
    const Convolution *c = d->c;
    const Buffer *in = &d->buffers[c->input];
    int32_t stored, row = start_of(d, d->first + index, &stored);
    int64_t step = (int64_t)c->dilation * in->channels, point = (int64_t)d->point_rows * c->inputs;
    const float *x = rows_of(in) + (int64_t)row * in->channels - (c->taps - 1) * step;
    float *to = c->memory + (int64_t)index * c->inputs;
    for (int32_t i = 0; i < c->inputs; i += 8) {
        f8 values[MOST_POINTS], first = all(0), last = all(0);
        for (int k = 0; k < points; k++) values[k] = load(x + k * step + i);
        const float *factors = c->in;
        for (int k = 0; k < points; k += 2) {
            first = fma8(all(factors[k]), values[k], first);
            last = fma8(all(factors[(points - 1) * points + k + 1]), values[k + 1], last);
        }
        store(to + i, first);
        store(to + (points - 1) * point + i, last);
        for (int p = 1; p < points - 1; p += 2) {  // a point and its negative
            f8 even = all(0), odd = all(0);
            factors += p == 1 ? points : 2 * points;
            for (int k = 1; k < points - 1; k += 2) {
                odd = fma8(all(factors[k]), values[k], odd);
                even = fma8(all(factors[k + 1]), values[k + 1], even);
            }
            store(to + p * point + i, even + odd);
            store(to + (p + 1) * point + i, even - odd);
        }
    }
}

// Eight outputs of each row of a tile from their sums.
INLINE void transform_out(const Pass *d, const float *sums, int32_t row, int32_t stored, int32_t at, int points, int rows) {
    const Convolution *c = d->c;
    f8 outputs[MOST_POINTS];
    for (int j = 0; j < rows; j++) outputs[j] = j ? all(0) : load(sums);
    outputs[rows - 1] = load(sums + (points - 1) * SPAN * PANEL);
    for (int p = 1; p < points - 1; p += 2) {  // a point and its negative
        f8 one = load(sums + p * SPAN * PANEL), other = load(sums + (p + 1) * SPAN * PANEL);
        f8 even = one + other, odd = one - other;
        for (int j = 0; j < rows; j++) outputs[j] = fma8(all(c->out[j * points + p]), j % 2 ? odd : even, outputs[j]);
    }
    for (int j = stored; j < rows; j++) finish(d, row + j * c->dilation, at, outputs[j]);
}

static void winograd_in(void *context, int index) {
    const Pass *d = context;
    switch (d->c->points) {
        case 4: transform_in(d, index, 4); break;
        case 10: transform_in(d, index, 10); break;
        case MOST_POINTS: transform_in(d, index, MOST_POINTS); break;
    }
}

static void winograd_out(const Pass *d, const float *sums, int index, int32_t at) {
    int32_t stored, row = start_of(d, d->first + index, &stored);
    switch (d->c->points) {
        case 4: transform_out(d, sums, row, stored, at, 4, 3); break;
        case 10: transform_out(d, sums, row, stored, at, 10, 4); break;
        case MOST_POINTS: transform_out(d, sums, row, stored, at, MOST_POINTS, 8); break;
    }
}

static void winograd_tile(void *context, int tile) {
    const Pass *d = context;
    const Convolution *c = d->c;
    int32_t span, panel = place_of(d, tile, &span), panels = c->outputs / PANEL, last = panel + d->panels_per_tile;
    int32_t begin = span * d->span, end = begin + d->span < d->count ? begin + d->span : d->count;
    float sums[MOST_POINTS * SPAN * PANEL];
    for (int32_t index = begin; d->is_whole && index < end; index++) winograd_in(context, index);
    for (; panel < last && panel < panels; panel++) {
        for (int p = 0; p < c->points; p++) {
            const char *w = weights_of(c, (int64_t)panel * c->points + p, c->inputs);
            const float *x = c->memory + (int64_t)p * d->point_rows * c->inputs;
            for (int count, row = begin; row < end; row += count)
                count = some_rows(
                    x + (int64_t)row * c->inputs, c->inputs, 0, 1, c->inputs, w, c->scales != NULL, end - row,
                    sums + (p * SPAN + row - begin) * PANEL);
        }
        for (int32_t index = begin; index < end; index++)
            for (int half = 0; half < PANEL; half += 8)
                winograd_out(d, sums + (index - begin) * PANEL + half, index, panel * PANEL + half);
    }
}

// Depthwise convolution and LayerNorm without gains, which are in the next weights.
static void depthwise_row(void *context, int row) {
    const Pass *d = context;
    const Convolution *c = d->c;
    const Buffer *in = &d->buffers[c->input];
    const float *x = rows_of(in) + ((int64_t)row - c->taps + 1) * in->channels;
    float *y = rows_of(&d->buffers[c->activated]) + (int64_t)row * c->outputs;
    f8 total = all(0), squares = all(0);
    for (int32_t i = 0; i < c->inputs; i += 8) {
        f8 sum = load(c->bias + i);
        for (int k = 0; k < c->taps; k++)
            sum = fma8(load((const float *)c->weights + k * c->inputs + i), load(x + (int64_t)k * in->channels + i), sum);
        store(y + i, sum);
        total += sum;
    }
    f8 mean = all(sum8(total) / (float)c->inputs);
    for (int32_t i = 0; i < c->inputs; i += 8) squares = fma8(load(y + i) - mean, load(y + i) - mean, squares);
    f8 factor = all(1.0f / sqrtf(sum8(squares) / (float)c->inputs + 1e-6f));
    for (int32_t i = 0; i < c->inputs; i += 8) store(y + i, (load(y + i) - mean) * factor);
}

static void activate_row(void *context, int row) {
    const Pass *d = context;
    const float *x = rows_of(&d->buffers[d->c->output]) + (int64_t)row * d->c->outputs;
    for (int32_t at = 0; at < d->c->outputs; at += 8) activate(d, row, at, load(x + at));
}

static void run(Pass *d, int lane) {
    const Convolution *c = d->c;
    const Buffer *in = &d->buffers[c->input];
    d->rows = d->frames * in->rows;
    if (c->kind == CONVOLUTION) {
        int64_t bytes = sizeof(float) * d->rows * c->inputs;
        pool_run(lane, convolution_tile, d, divide(d, d->rows, c->taps * c->inputs, bytes));
    } else if (c->kind == WINOGRAD) {
        d->per_frame = c->tiles;
        int32_t total = d->frames * c->tiles;
        for (d->first = 0; d->first < total; d->first += c->most_tiles) {
            d->count = total - d->first < c->most_tiles ? total - d->first : c->most_tiles;
            d->point_rows = d->count | 1;
            int32_t tiles, products = c->points * c->inputs;
            if (sizeof(float) * products * c->outputs <= 2 * KEPT_BYTES) {
                tiles = divide_rows(d, d->count);
            } else {
                pool_run(lane, winograd_in, d, d->count);
                tiles = divide(d, d->count, products, sizeof(float) * d->count * products);
            }
            pool_run(lane, winograd_tile, d, tiles);
        }
    } else if (c->kind == DEPTHWISE) {
        pool_run(lane, depthwise_row, d, d->rows);
    } else {
        Steps steps = *c->steps;
        steps.steps = d->rows, steps.every = 0;
        steps.x = rows_of(in), steps.normed = rows_of(&d->buffers[c->output]), steps.logits = NULL;
        NAME(transformer_steps)(c->transformer, &steps, lane);
        if (c->activated >= 0) pool_run(lane, activate_row, d, d->rows);
    }
}

void NAME(codec_frames)(
    const Layers *layers, const float *inputs, float *state, int32_t frames, float *outputs, int lane) {
    const Buffer *first = &layers->buffers[layers->first], *last = &layers->buffers[layers->last];
    Pass d = {.buffers = layers->buffers, .frames = frames};
    memcpy(rows_of(first), inputs, sizeof(float) * frames * first->rows * first->channels);
    for (int32_t index = 0; index < layers->n_convolutions; index++) {
        d.c = &layers->convolutions[index];
        const Buffer *in = &layers->buffers[d.c->input];
        int64_t context = (int64_t)in->context * in->channels;
        if (context) memcpy(in->memory, state + in->state, sizeof(float) * context);
        run(&d, lane);
        if (context)
            memcpy(state + in->state, in->memory + (int64_t)frames * in->rows * in->channels, sizeof(float) * context);
    }
    for (int64_t row = 0; row < (int64_t)frames * last->rows; row++)
        memcpy(outputs + row * layers->width, rows_of(last) + row * last->channels, sizeof(float) * layers->width);
}
