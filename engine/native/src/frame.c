// Draws, and the fast AR's passes of a frame with the draws between them. Compiled for each instruction set.
#include <math.h>
#include "native.h"
#include "simd.h"

void NAME(transformer_steps)(const Transformer *, const Steps *, int lane);

// As `draw` of engine/model/host_sampling.py.
int NAME(draw)(const float *logits, int32_t count, const Draw *how, int which) {
    float best[MOST_RANKS + 8];  // in order, equal ones by index
    int32_t index[MOST_RANKS], kept = 0, ranks = how->top_k < MOST_RANKS ? how->top_k : MOST_RANKS;
    for (int32_t i = 0; i < count; i++) {
        float value = logits[i];
        if (kept == ranks ? !(value > best[kept - 1]) : value != value) continue;
        int32_t at = kept < ranks ? kept++ : kept - 1;
        for (; at > 0 && best[at - 1] < value; at--) best[at] = best[at - 1], index[at] = index[at - 1];
        best[at] = value, index[at] = i;
    }
    if (!kept) return 0;  // all are NaN
    if (how->temperature == 0) return index[0];
    f8 first = all(best[0]), sums = all(0);
    int32_t i = 0;
    for (; i + 8 <= count; i += 8) sums += exp8(load(logits + i) - first);
    float total = sum8(sums);
    for (; i < count; i++) total += exp8(all(logits[i]) - first)[0];
    for (i = 0; i < 8; i++) best[kept + i] = -INFINITY;
    const float *noise = how->noise + (int64_t)which * how->top_k;
    f8 heat = all(how->temperature > 1e-5f ? how->temperature : 1e-5f);
    float cumulative = 0, most = -1;
    int32_t chosen = 0;
    for (i = 0; i < kept; i += 8) {
        f8 shares = exp8(load(best + i) - first), chances = exp8((load(best + i) - first) / heat);
        for (int j = 0; j < 8 && i + j < kept; j++) {
            cumulative += shares[j] / total;
            if (i + j && cumulative > how->top_p) return index[chosen];
            float chance = chances[j] / noise[i + j];
            if (chance > most) most = chance, chosen = i + j;
        }
    }
    return index[chosen];
}

void NAME(residual)(const Residual *r, int lane) {
    int32_t rows = r->rows, books = r->books, *slots = r->places, *positions = slots + 2 * rows;
    int64_t dim = r->fast->dim, bytes = dim * sizeof(float);
    // Positions 0 (the hidden state, whose output is unused) and 1 (code 0) go in one pass.
    for (int32_t row = rows - 1; row >= 0; row--) {
        memmove(r->x + 2 * row * dim, r->x + row * dim, bytes);
        memcpy(r->x + (2 * row + 1) * dim, r->table + r->codes[row * books] * dim, bytes);
        for (int32_t step = 0; step < 2; step++) slots[2 * row + step] = row, positions[2 * row + step] = step;
    }
    for (int32_t book = 1; book < books; book++) {
        int32_t steps = book == 1 ? 2 : 1;
        Steps s = {r->angles, slots, positions, positions, steps * rows, steps, r->x, NULL, r->logits};
        NAME(transformer_steps)(r->fast, &s, lane);
        for (int32_t row = 0; row < rows; row++) {
            const float *logits = r->logits + (int64_t)row * r->fast->head.outputs;
            int code = NAME(draw)(logits, r->outputs, &r->draws[row], book + 1);
            r->codes[row * books + book] = code;
            memcpy(r->x + row * dim, r->table + code * dim, bytes);
            slots[row] = row, positions[row] = book + 1;
        }
    }
}
