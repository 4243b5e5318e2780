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
enum { SPAN = 24 };  // most rows of a tile; weights of a panel are read from the cache for each ROWS of them
enum { TILE_PRODUCTS = 1 << 18 };  // of a tile, some ten microseconds
enum { AHEAD = 8192 };  // bytes of weights that a single group of rows asks for before they are needed
enum { KEPT_BYTES = 1 << 20 };  // that a core's own cache keeps
enum { MOST_FUSED = 192 };  // channels of a residual unit whose convolutions are computed in the same tiles

void NAME(transformer_steps)(const Transformer *, const Steps *, int lane);

typedef struct {
    const Convolution *c;
    const Convolution *then;  // the 1-tap convolution that a tile applies to its own outputs; null: none
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
    return is_short ? __builtin_convertvector(*(const s16 *)w, f16) : load16((const float *)w);
}

// Sums of `count` rows of PANEL outputs. While the weights are multiplied, later ones are asked for, `hop` bytes each time.
INLINE void sum_rows(
    const float *x, int64_t row, int64_t tap, int taps, int inputs, const char *w, int is_short, const char *ahead,
    int64_t hop, int count, float *out) {
    f16 sums[ROWS] = {0};
    for (int k = 0; k < taps; k++) {
        const float *from = x + k * tap;
        for (int i = 0; i < inputs; i++, w += PANEL * (is_short ? sizeof(int16_t) : sizeof(float)), ahead += hop) {
            __builtin_prefetch(ahead, 0, 2);
            f16 weights = load_weights(w, is_short);
            for (int r = 0; r < count; r++) sums[r] = fma16(weights, all16(from[r * row + i]), sums[r]);
        }
    }
    for (int r = 0; r < count; r++) store16(out + r * PANEL, sums[r]);
}

INLINE void sum_count(
    const float *x, int64_t row, int64_t tap, int taps, int inputs, const char *w, int is_short, const char *ahead,
    int64_t hop, int count, float *out) {
#define COUNT(n) \
    case n: if (n <= ROWS) sum_rows(x, row, tap, taps, inputs, w, is_short, ahead, hop, n, out); break;
    switch (count) {
        COUNT(1) COUNT(2) COUNT(3) COUNT(4) COUNT(5) COUNT(6)
        COUNT(7) COUNT(8) COUNT(9) COUNT(10) COUNT(11) COUNT(12)
    }
}

// Sums of all rows of a tile, in groups without a small one: few sums at a time wait for each other. Only the first group
// waits for the memory, so all of them share in asking for the next weights.
static void sum_tile(
    const float *x, int64_t row, int64_t tap, int taps, int inputs, const char *w, int is_short, int rows, float *out) {
    int64_t line = PANEL * (is_short ? sizeof(int16_t) : sizeof(float)), bytes = line * taps * inputs;
    for (int groups = (rows + ROWS - 1) / ROWS, group = 0, first = 0; group < groups; group++) {
        int count = (rows - first + groups - group - 1) / (groups - group);
        const char *ahead = w + (groups == 1 ? AHEAD : bytes + bytes * group / groups);
        if (is_short) sum_count(x, row, tap, taps, inputs, w, 1, ahead, line / groups, count, out);
        else sum_count(x, row, tap, taps, inputs, w, 0, ahead, line / groups, count, out);
        first += count, x += count * row, out += count * PANEL;
    }
}

// Where a panel's outputs go, and what it takes to finish them; a copy, or every store would make it be read again.
typedef struct {
    float *output, *activated;  // of the first row; null: none
    f8 bias[2], alpha[2], inverse[2];
    int32_t outputs, is_added, activation;
} Ends;

INLINE Ends ends_of(const Pass *d, int32_t panel) {
    const Convolution *c = d->c;
    int32_t at = panel * PANEL;
    Ends e = {.outputs = c->outputs, .is_added = c->is_added, .activation = c->activation};
    if (c->output >= 0) e.output = rows_of(&d->buffers[c->output]) + at;
    if (c->activated >= 0) e.activated = rows_of(&d->buffers[c->activated]) + at;
    for (int half = 0; half < 2; half++, at += 8) {
        e.bias[half] = load(c->bias + at);
        if (c->activation == SNAKE) e.alpha[half] = load(c->alpha + at), e.inverse[half] = load(c->inverse + at);
    }
    return e;
}

// Stores the sums of a row: bias, what is added, activation.
INLINE void finish(const Ends *e, int64_t row, const float *sums) {
    for (int half = 0; half < 2; half++) {
        f8 sum = load(sums + 8 * half) + e->bias[half];
        int64_t at = row * e->outputs + 8 * half;
        if (e->output) {
            if (e->is_added) sum += load(e->output + at);
            store(e->output + at, sum);
        }
        if (!e->activated) continue;
        switch (e->activation) {
            case SNAKE: sum = snake8(sum, e->alpha[half], e->inverse[half]); break;
            case GELU: sum = gelu8(sum); break;
            case TANH: sum = tanh8(sum); break;
        }
        store(e->activated + at, sum);
    }
}

// Asks for what `finish` reads and writes, before the products: another core may have it.
INLINE void ask_for(const Ends *e, int64_t row) {
    if (e->output) __builtin_prefetch(e->output + row * e->outputs, 1);
    if (e->activated) __builtin_prefetch(e->activated + row * e->outputs, 1);
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
    float sums[SPAN * PANEL];
    for (; panel < last && panel < panels; panel++) {
        Ends ends = ends_of(d, panel);
        for (int32_t row = begin; row < end; row++) ask_for(&ends, row);
        sum_tile(
            x + (int64_t)begin * in->channels, in->channels, (int64_t)c->dilation * in->channels, c->taps, c->inputs,
            weights_of(c, panel, (int64_t)c->taps * c->inputs), c->scales != NULL, end - begin, sums);
        if (c->scales) {
            f16 scale = load16(c->scales + panel * PANEL);
            for (int32_t r = 0; r < end - begin; r++) store16(sums + r * PANEL, load16(sums + r * PANEL) * scale);
        }
        for (int32_t row = begin; row < end; row++) finish(&ends, row, sums + (row - begin) * PANEL);
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

// The same for tiles with all panels, where the weights stay in a core's cache; as many for each thread.
static int divide_rows(Pass *d, int32_t rows) {
    int32_t threads = native_threads(), tiles = threads * ((rows + threads * SPAN - 1) / (threads * SPAN));
    d->panels_per_tile = d->c->outputs / PANEL, d->panel_groups = 1, d->is_whole = 1, d->by_panels = 0;
    d->span = (rows + tiles - 1) / tiles;
    return d->spans = (rows + d->span - 1) / d->span;
}

// Row and first stored output of a tile, counted over all frames.
static int32_t start_of(const Pass *d, int32_t tile, int32_t *stored) {
    const int32_t *start = d->c->starts + 2 * (tile % d->per_frame);
    *stored = start[1];
    return tile / d->per_frame * d->buffers[d->c->input].rows + start[0];
}

// Winograd's rule for `points` products of a tile: 0, pairs of a number and its negative, and ∞. Rows of the matrix are
// divided by their largest entry, and the weights multiplied by it.
INLINE void transform_in(const Pass *d, int index, int points) {
    const Convolution *c = d->c;
    const Buffer *in = &d->buffers[c->input];
    int32_t stored, row = start_of(d, d->first + index, &stored);
    int64_t step = (int64_t)c->dilation * in->channels, point = (int64_t)d->point_rows * c->inputs;
    const float *x = rows_of(in) + (int64_t)row * in->channels - (c->taps - 1) * step;
    float *to = c->memory + (int64_t)index * c->inputs;
    for (int32_t i = 0; i < c->inputs; i += PANEL, x += PANEL, to += PANEL) {
        const float *factors = c->in;
        f16 first = all16(0), last = all16(0);
        for (int k = 0; k < points; k += 2) {
            first = fma16(all16(factors[k]), load16(x + k * step), first);
            last = fma16(all16(factors[(points - 1) * points + k + 1]), load16(x + (k + 1) * step), last);
        }
        store16(to, first);
        store16(to + (points - 1) * point, last);
        factors += points;
        for (int p = 1; p < points - 1; p += 2, factors += 2 * points) {
            f16 even = all16(0), odd = all16(0);
            for (int k = 1; k < points - 1; k += 2) {
                odd = fma16(all16(factors[k]), load16(x + k * step), odd);
                even = fma16(all16(factors[k + 1]), load16(x + (k + 1) * step), even);
            }
            store16(to + p * point, even + odd);
            store16(to + (p + 1) * point, even - odd);
        }
    }
}

// A panel of the `rows` rows of each of some tiles from its sums. If there is another convolution, they are not stored
// where they belong but after each other.
INLINE void transform_out(
    const Pass *d, const float *sums, int32_t begin, int32_t end, Ends ends, int points, int rows) {
    const Convolution *c = d->c;
    const float *factors = c->out;
    for (int32_t index = begin, row, stored = 0, step = 1; index < end; index++, sums += PANEL) {
        float results[MOST_POINTS][PANEL];
        for (int odd = 0; odd < 2; odd++) {  // rows: as many sums at a time as there are registers for
            f16 outputs[MOST_POINTS / 2] = {odd ? all16(0) : load16(sums)};
            for (int j = odd + 2; j < rows; j += 2) outputs[j / 2] = all16(0);
            if (rows % 2 != odd) outputs[(rows - 1) / 2] = load16(sums + (points - 1) * SPAN * PANEL);
            for (int p = 1; p < points - 1; p += 2) {
                f16 one = load16(sums + p * SPAN * PANEL), other = load16(sums + (p + 1) * SPAN * PANEL);
                f16 both = odd ? one - other : one + other;
                for (int j = odd; j < rows; j += 2)
                    outputs[j / 2] = fma16(all16(factors[j * points + p]), both, outputs[j / 2]);
            }
            for (int j = odd; j < rows; j += 2) store16(results[j], outputs[j / 2]);
        }
        row = (index - begin) * rows;
        if (!d->then) row = start_of(d, d->first + index, &stored), step = c->dilation;
        for (int j = stored; j < rows; j++) finish(&ends, row + j * step, results[j]);
    }
}

static void winograd_in(void *context, int index) {
    const Pass *d = context;
    switch (d->c->points) {
        case 4: transform_in(d, index, 4); break;
        case 10: transform_in(d, index, 10); break;
        case MOST_POINTS: transform_in(d, index, MOST_POINTS); break;
    }
}

static void winograd_out(const Pass *d, const float *sums, int32_t begin, int32_t end, Ends ends) {
    switch (d->c->points) {
        case 4: transform_out(d, sums, begin, end, ends, 4, 3); break;
        case 10: transform_out(d, sums, begin, end, ends, 10, 4); break;
        case MOST_POINTS: transform_out(d, sums, begin, end, ends, MOST_POINTS, MOST_ROWS); break;
    }
}

// The 1-tap convolution of the rows of some Winograd tiles, `per_tile` of each.
static void point_rows(const Pass *d, const float *x, int32_t begin, int32_t end, int32_t per_tile) {
    Pass then = *d;
    const Convolution *c = then.c = d->then;
    float sums[SPAN * PANEL];
    for (int32_t first = begin * per_tile, count; first < end * per_tile; first += count, x += count * c->inputs) {
        int32_t rows[SPAN], places[SPAN], n = 0;  // that are stored, and their places among the sums
        count = end * per_tile - first < SPAN ? end * per_tile - first : SPAN;
        for (int32_t r = 0, stored; r < count; r++) {
            int32_t row = start_of(d, d->first + (first + r) / per_tile, &stored), j = (first + r) % per_tile;
            if (j >= stored) places[n] = r * PANEL, rows[n++] = row + j * d->c->dilation;
        }
        for (int32_t panel = 0; panel < c->outputs / PANEL; panel++) {
            Ends ends = ends_of(&then, panel);
            for (int32_t r = 0; r < n; r++) ask_for(&ends, rows[r]);
            sum_tile(x, c->inputs, 0, 1, c->inputs, weights_of(c, panel, c->inputs), 0, count, sums);
            for (int32_t r = 0; r < n; r++) finish(&ends, rows[r], sums + places[r]);
        }
    }
}

static void winograd_tile(void *context, int tile) {
    const Pass *d = context;
    const Convolution *c = d->c;
    int32_t span, panel = place_of(d, tile, &span), panels = c->outputs / PANEL, last = panel + d->panels_per_tile;
    int32_t begin = span * d->span, end = begin + d->span < d->count ? begin + d->span : d->count;
    float sums[MOST_POINTS * SPAN * PANEL], middle[SPAN * MOST_ROWS * MOST_FUSED];
    for (int32_t index = begin; d->is_whole && index < end; index++) winograd_in(context, index);
    for (; panel < last && panel < panels; panel++) {
        for (int p = 0; p < c->points; p++)
            sum_tile(
                c->memory + ((int64_t)p * d->point_rows + begin) * c->inputs, c->inputs, 0, 1, c->inputs,
                weights_of(c, (int64_t)panel * c->points + p, c->inputs), 0, end - begin, sums + p * SPAN * PANEL);
        Ends ends = ends_of(d, panel);
        if (d->then) ends.activated = middle + panel * PANEL;
        winograd_out(d, sums, begin, end, ends);
    }
    if (d->then) point_rows(d, middle, begin, end, c->points - c->taps + 1);
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

// The activation of a transformer's outputs, which have no bias.
static void activate_row(void *context, int row) {
    const Pass *d = context;
    for (int32_t panel = 0; panel < d->c->outputs / PANEL; panel++) {
        Ends ends = ends_of(d, panel);
        finish(&ends, row, ends.output + (int64_t)row * ends.outputs);
    }
}

// Whether the next layer can be computed in the same tiles: it is a 1-tap convolution of this one's activated outputs,
// of which it needs no others, and writes no inputs of this one.
static int is_fused(const Pass *d) {
    const Convolution *c = d->c, *next = c + 1;
    return c->kind == WINOGRAD && next->kind == CONVOLUTION && next->taps == 1 && next->input == c->activated &&
        c->output < 0 && !next->scales && c->inputs <= MOST_FUSED && c->outputs <= MOST_FUSED &&
        next->activated >= 0 && d->buffers[next->activated].memory != d->buffers[c->input].memory;
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
            if (d->then || sizeof(float) * products * c->outputs <= KEPT_BYTES + KEPT_BYTES / 2) {
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
        d.then = index + 1 < layers->n_convolutions && is_fused(&d) ? d.c + 1 : NULL;
        const Buffer *in = &layers->buffers[d.c->input];
        int64_t context = (int64_t)in->context * in->channels;
        if (context) memcpy(in->memory, state + in->state, sizeof(float) * context);
        run(&d, lane);
        if (context)
            memcpy(state + in->state, in->memory + (int64_t)frames * in->rows * in->channels, sizeof(float) * context);
        if (d.then) index++;
    }
    for (int64_t row = 0; row < (int64_t)frames * last->rows; row++)
        memcpy(outputs + row * layers->width, rows_of(last) + row * last->channels, sizeof(float) * layers->width);
}
