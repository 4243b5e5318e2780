// Vectors of eight floats on every processor, so that sums have the same order on all of them.
#pragma once
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#else
#include <arm_neon.h>
#endif

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(name) JOIN(name, ISA)
#define INLINE static inline __attribute__((always_inline))

typedef float f8 __attribute__((vector_size(32)));
typedef int32_t i8 __attribute__((vector_size(32)));
typedef float f8u __attribute__((vector_size(32), aligned(4)));
// For sums that are outputs of their own, which any width of vectors adds up alike.
typedef float f16 __attribute__((vector_size(64)));
typedef float f16u __attribute__((vector_size(64), aligned(4)));

INLINE f8 load(const float *p) { return *(const f8u *)p; }
INLINE f8 load_bfloat16(const uint16_t *p) {
    typedef uint16_t u16 __attribute__((vector_size(16), aligned(2)));
    typedef uint32_t u32 __attribute__((vector_size(32)));
    u32 bits = __builtin_convertvector(*(const u16 *)p, u32) << 16;
    f8 v;
    memcpy(&v, &bits, sizeof v);
    return v;
}
INLINE void store(float *p, f8 v) { *(f8u *)p = v; }
INLINE f16 load16(const float *p) { return *(const f16u *)p; }
INLINE void store16(float *p, f16 v) { *(f16u *)p = v; }
INLINE f8 all(float v) { return (f8){v, v, v, v, v, v, v, v}; }
INLINE f16 all16(float v) { return (f16){v, v, v, v, v, v, v, v, v, v, v, v, v, v, v, v}; }
INLINE f8 to_floats(i8 v) { return __builtin_convertvector(v, f8); }

INLINE f8 load_short(const int16_t *p) {
    typedef int16_t s8 __attribute__((vector_size(16), aligned(2)));
    return to_floats(__builtin_convertvector(*(const s8 *)p, i8));
}

// a · b + c, rounded once where the processor can.
#if defined(__FMA__) || defined(__aarch64__)
INLINE f8 fma8(f8 a, f8 b, f8 c) { return __builtin_elementwise_fma(a, b, c); }
INLINE f16 fma16(f16 a, f16 b, f16 c) { return __builtin_elementwise_fma(a, b, c); }
#else
INLINE f8 fma8(f8 a, f8 b, f8 c) { return a * b + c; }
INLINE f16 fma16(f16 a, f16 b, f16 c) { return a * b + c; }
#endif

INLINE float sum8(f8 v) {
    float a = v[0] + v[4], b = v[1] + v[5], c = v[2] + v[6], d = v[3] + v[7];
    return (a + c) + (b + d);
}

INLINE float largest8(f8 v) {
    float a = v[0];
    for (int i = 1; i < 8; i++) a = v[i] > a ? v[i] : a;
    return a;
}

INLINE f8 larger(f8 a, f8 b) { return __builtin_elementwise_max(a, b); }
INLINE f8 smaller(f8 a, f8 b) { return __builtin_elementwise_min(a, b); }

// To the nearest whole number, |v| < 2²².
INLINE f8 round8(f8 v) {
    const f8 shift = all(12582912.0f);
    return (v + shift) - shift;
}

// eˣ with a relative error of some 1e-7; 0 below −87.
INLINE f8 exp8(f8 x) {
    x = smaller(larger(x, all(-87.0f)), all(88.0f));
    f8 n = round8(x * all(1.44269504f));
    f8 r = fma8(n, all(-0.693359375f), x);
    r = fma8(n, all(2.12194440e-4f), r);
    f8 p = all(1.9875691500e-4f);
    p = fma8(p, r, all(1.3981999507e-3f));
    p = fma8(p, r, all(8.3334519073e-3f));
    p = fma8(p, r, all(4.1665795894e-2f));
    p = fma8(p, r, all(1.6666665459e-1f));
    p = fma8(p, r, all(5.0000001201e-1f));
    p = fma8(p, r * r, r) + all(1.0f);
    i8 power = (__builtin_convertvector(n, i8) + 127) << 23;
    f8 scale;
    memcpy(&scale, &power, sizeof scale);
    return p * scale;
}

// x + sin²(αx) / α; sin by a polynomial after taking off multiples of π.
INLINE f8 snake8(f8 x, f8 alpha, f8 inverse) {
    f8 z = x * alpha, n = round8(z * all(0.318309886f));
    z = fma8(n, all(-3.140625f), z);
    z = fma8(n, all(-9.67653589793e-4f), z);
    f8 q = z * z, p = all(-2.3889859e-8f);
    p = fma8(p, q, all(2.7525562e-6f));
    p = fma8(p, q, all(-1.9840874e-4f));
    p = fma8(p, q, all(8.3333310e-3f));
    p = fma8(p, q, all(-1.6666667e-1f));
    f8 sine = fma8(p * q, z, z);
    return fma8(sine * sine, inverse, x);
}

// x Φ(x); Φ by Abramowitz and Stegun's 7.1.26, whose error is 1.5e-7.
INLINE f8 gelu8(f8 x) {
    f8 z = larger(x, -x) * all(0.70710678f), t = all(1.0f) / fma8(z, all(0.3275911f), all(1.0f));
    f8 p = fma8(t, all(1.061405429f), all(-1.453152027f));
    p = fma8(p, t, all(1.421413741f));
    p = fma8(p, t, all(-0.284496736f));
    p = fma8(p, t, all(0.254829592f));
    f8 rest = p * t * exp8(-z * z) * all(0.5f);  // of the distribution beyond |x|
    f8 share;
    for (int i = 0; i < 8; i++) share[i] = x[i] < 0 ? rest[i] : 1.0f - rest[i];
    return x * share;
}

INLINE f8 tanh8(f8 x) { return all(1.0f) - all(2.0f) / (exp8(x + x) + all(1.0f)); }

// Adds to each sum the products of four weights (of eight rows, 32 bytes) and four activations.
// With VNNI weights count as unsigned, so 128 times the sum of the activations must be taken off: see UNSIGNED_WEIGHTS.
#if defined(__x86_64__) && defined(__AVX2__)
INLINE i8 dot4(i8 sums, const int8_t *weights, const int8_t *x) {
    int32_t four;
    memcpy(&four, x, 4);
    __m256i w = _mm256_loadu_si256((const __m256i *)weights), v = _mm256_set1_epi32(four);
#if defined(__AVX512VNNI__)
#define UNSIGNED_WEIGHTS
    return (i8)_mm256_dpbusd_epi32((__m256i)sums, _mm256_xor_si256(w, _mm256_set1_epi8(-128)), v);
#elif defined(__AVXVNNI__)
#define UNSIGNED_WEIGHTS
    return (i8)_mm256_dpbusd_avx_epi32((__m256i)sums, _mm256_xor_si256(w, _mm256_set1_epi8(-128)), v);
#else
    __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(v, w));
    return sums + (i8)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#endif
}
#elif defined(__ARM_FEATURE_DOTPROD)
INLINE i8 dot4(i8 sums, const int8_t *weights, const int8_t *x) {
    int32_t four;
    memcpy(&four, x, 4);
    int8x16_t v = vreinterpretq_s8_s32(vdupq_n_s32(four));
    int32x4_t low, high;
    memcpy(&low, &sums, 16);
    memcpy(&high, (char *)&sums + 16, 16);
    low = vdotq_s32(low, vld1q_s8(weights), v);
    high = vdotq_s32(high, vld1q_s8(weights + 16), v);
    memcpy(&sums, &low, 16);
    memcpy((char *)&sums + 16, &high, 16);
    return sums;
}
#else
INLINE i8 dot4(i8 sums, const int8_t *weights, const int8_t *x) {
    for (int row = 0; row < 8; row++)
        for (int i = 0; i < 4; i++) sums[row] += weights[4 * row + i] * x[i];
    return sums;
}
#endif
