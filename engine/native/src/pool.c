// One pool of threads for all native work, and the choice of the instruction set.
//
// A call is divided into tiles whose results do not depend on who computes them, so a take is the same for any number of
// threads. Each thread has a share of the tiles and then takes those of others: a slow core holds up no more than its
// own. Each running call leaves one thread less to help, so there are never more active threads than cores.
#if !defined(_WIN32)
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
#endif
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "native.h"

#if defined(_WIN32)
#include <windows.h>
typedef SRWLOCK Mutex;
typedef CONDITION_VARIABLE Condition;
#define MUTEX SRWLOCK_INIT
#define CONDITION CONDITION_VARIABLE_INIT
static void lock(Mutex *m) { AcquireSRWLockExclusive(m); }
static void unlock(Mutex *m) { ReleaseSRWLockExclusive(m); }
static void wait_for(Condition *c, Mutex *m) { SleepConditionVariableSRW(c, m, INFINITE, 0); }
static void wake_all(Condition *c) { WakeAllConditionVariable(c); }
static void yield(void) { SwitchToThread(); }
#else
typedef pthread_mutex_t Mutex;
typedef pthread_cond_t Condition;
#define MUTEX PTHREAD_MUTEX_INITIALIZER
#define CONDITION PTHREAD_COND_INITIALIZER
static void lock(Mutex *m) { pthread_mutex_lock(m); }
static void unlock(Mutex *m) { pthread_mutex_unlock(m); }
static void wait_for(Condition *c, Mutex *m) { pthread_cond_wait(c, m); }
static void wake_all(Condition *c) { pthread_cond_broadcast(c); }
static void yield(void) { sched_yield(); }
#endif

#if defined(__x86_64__)
static void pause_briefly(void) { __builtin_ia32_pause(); }
#else
static void pause_briefly(void) { __asm__ volatile("yield"); }
#endif

enum { MOST_THREADS = 64 };
// Pauses before a waiting thread yields its core, some 20 µs: stages follow each other within a few.
enum { PAUSES = 1000 };
// Yields of a worker without work before it sleeps: a frame's passes are 0.1 ms apart, in which tokens are drawn.
enum { YIELDS = 200 };
// Tiles that a thread takes at once, some 50 µs: a thread that loses its core holds up no more.
enum { MOST_TAKEN = 16 };

// A share of the current tiles: 32 bits that count pool_run, 16 of the share's end, 16 of its next tile.
typedef struct {
    _Atomic uint64_t state;
    char padding[56];
} Share;

typedef struct {
    Mutex busy;
    Share shares[MOST_THREADS];
    _Atomic int n_shares, done;
    Work work;
    void *context;
    void *scratch;
    int64_t scratch_bytes;
    char padding[64];
} Lane;

static Lane lanes[LANES] = {{.busy = MUTEX}, {.busy = MUTEX}, {.busy = MUTEX}};
static Mutex changing = MUTEX;
static Condition changed = CONDITION;
static _Atomic int threads = 1, callers;
static int workers, sleeping;  // guarded by `changing`

static int may_work(int worker) {
    int active = atomic_load(&callers);
    return active > 0 && worker < atomic_load(&threads) - active;
}

// Takes some tiles of a share and does them; 0 if there is none left.
//
// While many are left a thread takes several, whose weights it then reads in one go; towards the end, single ones.
static int do_share(Lane *lane, Share *share) {
    uint64_t state = atomic_load_explicit(&share->state, memory_order_acquire);
    for (;;) {
        int next = (int)(state & 0xffff), end = (int)(state >> 16 & 0xffff);
        if (next >= end) return 0;
        int some = (end - next) / 3, count = some < 1 ? 1 : some < MOST_TAKEN ? some : MOST_TAKEN;
        if (atomic_compare_exchange_weak_explicit(
                &share->state, &state, state + count, memory_order_acquire, memory_order_acquire)) {
            for (int tile = next; tile < next + count; tile++) lane->work(lane->context, tile);
            atomic_fetch_add_explicit(&lane->done, count, memory_order_release);
            return 1;
        }
    }
}

// Takes some tiles of the lane, of the thread's own share if it can: in the next layer it then finds the rows that it
// wrote itself, and not in another core's cache.
static int do_tiles(Lane *lane, int thread) {
    int shares = atomic_load_explicit(&lane->n_shares, memory_order_relaxed);
    for (int each = 0; each < shares; each++)
        if (do_share(lane, &lane->shares[(thread + each) % shares])) return 1;
    return 0;
}

static void work_forever(int worker) {
    for (;;) {
        lock(&changing);
        sleeping++;
        while (!may_work(worker)) wait_for(&changed, &changing);
        sleeping--;
        unlock(&changing);
        for (int idle = 0; idle < PAUSES + YIELDS;) {
            if (atomic_load_explicit(&callers, memory_order_relaxed) && !may_work(worker)) break;
            int found = 0;
            for (int lane = 0; lane < LANES && !found; lane++) found = do_tiles(&lanes[lane], worker + 1);
            if (found) {
                idle = 0;
            } else if (idle++ < PAUSES) {
                pause_briefly();
            } else {
                yield();
                if (may_work(worker)) idle = PAUSES;
            }
        }
    }
}

#if defined(_WIN32)
static DWORD WINAPI begin(void *worker) {
    work_forever((int)(intptr_t)worker);
    return 0;
}
static int start(int worker) {
    HANDLE thread = CreateThread(NULL, 1 << 20, begin, (void *)(intptr_t)worker, 0, NULL);
    if (thread) CloseHandle(thread);
    return thread != NULL;
}
#else
static void *begin(void *worker) {
    work_forever((int)(intptr_t)worker);
    return NULL;
}
static int start(int worker) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, 1 << 20);
    int is_started = pthread_create(&thread, &attributes, begin, (void *)(intptr_t)worker) == 0;
    pthread_attr_destroy(&attributes);
    return is_started;
}

// A forked process has none of the threads, and locks in any state.
static void begin_again(void) {
    pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t fresh = PTHREAD_COND_INITIALIZER;
    changing = unlocked;
    changed = fresh;
    workers = sleeping = 0;
    atomic_store(&callers, 0);
    for (int lane = 0; lane < LANES; lane++) {
        lanes[lane].busy = unlocked;
        atomic_store(&lanes[lane].n_shares, 0);
    }
}
#endif

// Sets how many threads compute at once, callers included.
EXPORT void native_set_threads(int count) {
    atomic_store(&threads, count < 1 ? 1 : count > MOST_THREADS ? MOST_THREADS : count);
    lock(&changing);
    wake_all(&changed);
    unlock(&changing);
}

EXPORT int native_threads(void) { return atomic_load(&threads); }

void pool_enter(int lane) {
#if !defined(_WIN32)
    static _Atomic int process;
    int now = getpid(), before = atomic_exchange(&process, now);
    if (before && before != now) begin_again();
#endif
    lock(&lanes[lane].busy);
    atomic_fetch_add(&callers, 1);
    if (atomic_load(&threads) == 1) return;
    lock(&changing);
    while (workers < atomic_load(&threads) - 1 && start(workers)) workers++;
    if (sleeping) wake_all(&changed);
    unlock(&changing);
}

void pool_leave(int lane) {
    int others = atomic_fetch_sub(&callers, 1) - 1;
    if (others) {  // one more worker may help them
        lock(&changing);
        if (sleeping) wake_all(&changed);
        unlock(&changing);
    }
    unlock(&lanes[lane].busy);
}

void pool_run(int index, Work work, void *context, int tiles) {
    if (tiles == 1 || atomic_load_explicit(&threads, memory_order_relaxed) == 1) {
        for (int tile = 0; tile < tiles; tile++) work(context, tile);
        return;
    }
    Lane *lane = &lanes[index];
    lane->work = work, lane->context = context;
    int shares = atomic_load_explicit(&threads, memory_order_relaxed);
    atomic_store_explicit(&lane->done, 0, memory_order_relaxed);
    atomic_store_explicit(&lane->n_shares, shares, memory_order_relaxed);
    for (int each = 0, first = 0; each < shares; each++) {
        int end = (int)((int64_t)tiles * (each + 1) / shares);
        uint64_t count = (atomic_load_explicit(&lane->shares[each].state, memory_order_relaxed) >> 32) + 1;
        atomic_store_explicit(
            &lane->shares[each].state, count << 32 | (uint64_t)end << 16 | (uint64_t)first, memory_order_release);
        first = end;
    }
    while (do_tiles(lane, 0)) {}
    for (int waits = 0; atomic_load_explicit(&lane->done, memory_order_acquire) != tiles; waits++) {
        if (waits < PAUSES) pause_briefly();
        else yield();
    }
}

void *pool_scratch(int index, int64_t bytes) {
    Lane *lane = &lanes[index];
    if (lane->scratch_bytes < bytes) {
        free(lane->scratch);
        lane->scratch = malloc((size_t)bytes + 64);
        lane->scratch_bytes = lane->scratch ? bytes : 0;
    }
    return lane->scratch ? (void *)(((intptr_t)lane->scratch + 63) & ~(intptr_t)63) : NULL;
}

// Asks for large pages, which a core translates faster; weights are read from end to end for every frame.
EXPORT void native_use_large_pages(void *memory, int64_t bytes) {
#if defined(__linux__)
    const intptr_t page = 1 << 21;
    intptr_t first = ((intptr_t)memory + page - 1) & -page, end = ((intptr_t)memory + bytes) & -page;
    if (end > first) madvise((void *)first, (size_t)(end - first), MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

typedef struct {
    const char *name;
    int (*is_supported)(void);
    void (*transformer_steps)(const Transformer *, const Steps *, int lane);
    int (*draw)(const float *, int32_t count, const Draw *, int which);
    void (*residual)(const Residual *, int lane);
    void (*codec_frames)(const Layers *, const float *, float *, int32_t frames, float *, int lane);
} Isa;

#if defined(__x86_64__)
#include <cpuid.h>
enum { LEAF_1_C, LEAF_7_B, LEAF_7_C, LEAF_71_A };
static int has(int leaf, int bit, unsigned states) {
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return 0;  // the system does not keep wide registers
    unsigned first = c;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & states) != states) return 0;
    if (leaf == LEAF_1_C) return first >> bit & 1;
    if (!__get_cpuid_count(7, leaf == LEAF_71_A, &a, &b, &c, &d)) return 0;
    return (leaf == LEAF_7_B ? b : leaf == LEAF_7_C ? c : a) >> bit & 1;
}
static int always(void) { return 1; }
static int has_avx2(void) { return has(LEAF_7_B, 5, 6) && has(LEAF_1_C, 12, 6); }  // and FMA
static int has_avx_vnni(void) { return has_avx2() && has(LEAF_71_A, 4, 6); }
static int has_avx512_vnni(void) {  // F, BW, VL and VNNI
    return has_avx2() && has(LEAF_7_B, 16, 0xe6) && has(LEAF_7_B, 30, 0xe6) && has(LEAF_7_B, 31, 0xe6) &&
           has(LEAF_7_C, 11, 0xe6);
}
FRAME_OF(base) FRAME_OF(avx2) FRAME_OF(avxvnni) FRAME_OF(avx512vnni)
CODEC_OF(base) CODEC_OF(avx2) CODEC_OF(avx512vnni)
// The codec is all float32, to which AVX-512 adds wider vectors and AVX-VNNI nothing.
#define ISA(isa, codec, is_supported) \
    {#isa, is_supported, transformer_steps_##isa, draw_##isa, residual_##isa, codec_frames_##codec}
static const Isa ISAS[] = {
    ISA(avx512vnni, avx512vnni, has_avx512_vnni), ISA(avxvnni, avx2, has_avx_vnni), ISA(avx2, avx2, has_avx2),
    ISA(base, base, always)};
#else
#if defined(__linux__)
#include <sys/auxv.h>
static int has_dotprod(void) { return getauxval(AT_HWCAP) >> 20 & 1; }
#else
static int has_dotprod(void) { return 1; }  // every Mac with such a processor
#endif
static int always(void) { return 1; }
FRAME_OF(base) FRAME_OF(dotprod) CODEC_OF(base)
// The codec is all float32, to which dot products of whole numbers add nothing.
#define ISA(isa, codec, is_supported) \
    {#isa, is_supported, transformer_steps_##isa, draw_##isa, residual_##isa, codec_frames_##codec}
static const Isa ISAS[] = {ISA(dotprod, base, has_dotprod), ISA(base, base, always)};
#endif

static _Atomic(const Isa *) chosen;

static const Isa *isa(void) {
    const Isa *current = atomic_load(&chosen);
    if (current) return current;
    const Isa *best = ISAS;
    while (!best->is_supported()) best++;
    atomic_store(&chosen, best);
    return best;
}

// Uses this instruction set from now on; 0 if the processor lacks it.
EXPORT int native_use_isa(const char *name) {
    for (unsigned index = 0; index < sizeof ISAS / sizeof *ISAS; index++)
        if (!strcmp(ISAS[index].name, name) && ISAS[index].is_supported()) {
            atomic_store(&chosen, &ISAS[index]);
            return 1;
        }
    return 0;
}

EXPORT const char *native_isa(void) { return isa()->name; }

EXPORT void native_transformer_steps(const Transformer *transformer, const Steps *steps, int lane) {
    pool_enter(lane);
    isa()->transformer_steps(transformer, steps, lane);
    pool_leave(lane);
}

// An index into the logits; which: the number of the draw in its frame.
EXPORT int native_draw(const float *logits, int32_t count, const Draw *how, int which) {
    return isa()->draw(logits, count, how, which);
}

EXPORT void native_residual(const Residual *residual, int lane) {
    pool_enter(lane);
    isa()->residual(residual, lane);
    pool_leave(lane);
}

// Rows of the first buffer → rows of the last one (frames · its rows, width), continuing the stream of this state.
EXPORT void native_codec_frames(
    const Layers *layers, const float *inputs, float *state, int32_t frames, float *outputs, int lane) {
    pool_enter(lane);
    isa()->codec_frames(layers, inputs, state, frames, outputs, lane);
    pool_leave(lane);
}
