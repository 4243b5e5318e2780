// Declarations shared by the pool, which is compiled once, and the kernels, which are compiled for each instruction set.
#pragma once
#include <stdint.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

enum { FRAMES, SOUND, CLIPS, LANES };  // callers of the pool: the autoregressive models come first, then the codec, then clips

typedef void (*Work)(void *context, int tile);

EXPORT int native_threads(void);
void pool_enter(int lane);
void pool_leave(int lane);
// Does all tiles, each once, on the calling thread and on workers that are free. Between pool_enter and pool_leave.
void pool_run(int lane, Work work, void *context, int tiles);
// Memory of the lane that stays until its next call; 64-byte aligned.
void *pool_scratch(int lane, int64_t bytes);

typedef struct {
    // Float32 or bfloat16 (outputs, inputs), int8 (outputs / 8, inputs / 4, 8 outputs, 4 inputs) or int16 (outputs / 8,
    // inputs, 8).
    const void *values;
    const float *scales;  // one per row of whole numbers; else null
    int32_t outputs, inputs;  // multiples of 8; int8: inputs a multiple of 32
    int32_t bits;
} Matrix;

typedef struct {
    const float *attention_norm, *ffn_norm, *qkv_bias, *q_norm, *k_norm;  // the last three may be null
    const float *attention_scale, *ffn_scale;  // of what is added to each channel; null: 1
    Matrix qkv, output, gate, up, down;
    float *keys, *values;  // (slots, positions, kv_heads, head_dim)
} Layer;

typedef struct {
    const Layer *layers;
    const float *norm;  // null: the hidden states are returned as they are
    Matrix head;  // no outputs: none
    int64_t slot_stride;  // floats between two slots of keys and values
    int32_t n_layer, dim, n_head, n_kv_head, head_dim, intermediate;
    int32_t window;  // positions that a step sees, its own included; 0: all
    int32_t capacity;  // positions of a slot; where there is a window they are used in turn
    float eps;
} Transformer;

typedef struct {
    const float *angles;  // (rotations, head_dim / 2, 2): cosine and sine
    const int32_t *slots, *positions, *rotations;  // of each step; a slot's steps are in order
    int32_t steps;
    int32_t every;  // logits of steps every − 1, 2 · every − 1, …
    float *x;  // (steps, dim): the inputs, then the hidden states before the final norm
    float *normed;  // (steps, dim)
    float *logits;  // (steps / every, head outputs)
} Steps;

enum { MOST_RANKS = 1024 };

// How a row's tokens are drawn.
typedef struct {
    float temperature, top_p;
    int32_t top_k;
    const float *noise;  // (draws, top_k)
} Draw;

// The codes of a frame after the first, whose draws are numbers 0 and 1.
typedef struct {
    const Transformer *fast;
    const float *angles, *table;  // table: the embeddings of codes
    const Draw *draws;  // of each row
    int64_t *codes;  // (rows, books), of which the first is given
    float *x;  // (2 · rows, dim): the first inputs, then what the passes leave
    float *logits;
    int32_t *places;  // room for 4 · rows
    int32_t rows, books, outputs;
} Residual;

// Activations (context + frames · rows, channels), in time order; channels are a multiple of 16, those beyond a layer's are 0.
typedef struct {
    float *memory;  // which several buffers may use one after the other
    int64_t state;  // where the last rows of earlier frames are in a stream's state
    int32_t rows, channels, context;
} Buffer;

enum { CONVOLUTION, WINOGRAD, DEPTHWISE, TRANSFORMER };
enum { NO_ACTIVATION, SNAKE, GELU, TANH };

typedef struct {
    int32_t kind, input, output, activated;  // buffers: of the sums, and of their activation; −1: none
    int32_t taps, dilation, inputs, outputs;  // outputs: a multiple of 16; a row of an upsampling convolution is several
    int32_t is_added, activation;  // is_added: to what is in the output buffer
    int32_t tiles, most_tiles, points;  // WINOGRAD: of a frame, those that memory has room for, and products of a tile
    const void *weights;  // (outputs / 16, taps, inputs, 16), points instead of taps; float32 or, of a CONVOLUTION, int16
    const float *scales;  // of int16 weights, one per output; else null
    const float *bias, *alpha, *inverse;  // of SNAKE: α and 1 / α
    const int32_t *starts;  // WINOGRAD: of a frame's tiles, the first row and the first of its outputs that is stored
    float *memory;  // WINOGRAD: (points, most_tiles + 1, inputs)
    const float *in, *out;  // WINOGRAD: matrices (points, points) and (points - taps + 1, points)
    const Transformer *transformer;
    const Steps *steps;  // TRANSFORMER: places of the frames' rows
} Convolution;

// The layers of an encoder or a decoder, in order.
typedef struct {
    const Convolution *convolutions;
    const Buffer *buffers;
    int32_t n_convolutions, first, last, width;  // the buffers of input and output, and how much of the output's rows counts
} Layers;

enum { MOST_POINTS = 14, MOST_ROWS = 8 };  // of Winograd's rules

#define FRAME_OF(isa)                                                            \
    void transformer_steps_##isa(const Transformer *, const Steps *, int lane); \
    int draw_##isa(const float *, int32_t count, const Draw *, int which);      \
    void residual_##isa(const Residual *, int lane);
#define CODEC_OF(isa) void codec_frames_##isa(const Layers *, const float *, float *, int32_t frames, float *, int lane);
