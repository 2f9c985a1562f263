/* collectives.h: what programs ask of other ranks, and the functions by which a transport answers. */
#ifndef LUTHIER_COLLECTIVES_H
#define LUTHIER_COLLECTIVES_H

#include <stdint.h>

/* Reductions, of float32 and of int32: those of integers come 3 later. */
enum { LT_SUM = 0, LT_LARGEST = 1, LT_LEAST = 2, LT_OF_INTS = 3 };

/* Functions of a transport. All members of a group call the same ones in the same order, with sizes equal to each other's;
   calls of one rank never overlap. Each returns 0, or a code that the transport can explain; none may be called after that.
   Blocks are as many as members, one behind the other in their order. */
typedef struct {
  /* The reduction of all members' data, of `size` elements of four bytes, in place of each one's own. The members' parts
     are combined in pairs, ((0 1) (2 3)), the lower number on the left. */
  int (*all_reduce)(void *group, void *data, int64_t size, int32_t reduction);
  /* The same, bit for bit, for the member's own block of `size` elements, in its place; the others are scratch. */
  int (*reduce_scatter)(void *group, void *data, int64_t size, int32_t reduction);
  /* Fills in the blocks of the other members, of `bytes` each. */
  int (*all_gather)(void *group, void *data, int64_t bytes);
  /* Block j of `from` becomes block i of member j's `to`, for member i; the two do not overlap. */
  int (*all_to_all)(void *group, const void *from, void *to, int64_t bytes);
  /* `from` becomes `to` of the member that is `by` further in the ring of members, 1 or -1; the two do not overlap. */
  int (*permute)(void *group, const void *from, void *to, int64_t bytes, int32_t by);
} lt_transport;

/* A rank's place among those that it shares a collective with. Groups of one member have no transport. */
typedef struct {
  const lt_transport *transport;
  void *context;
  int64_t member, members;
} lt_group;

/* Operations that can fail. */
enum { LT_ALL_REDUCE, LT_REDUCE_SCATTER, LT_ALL_GATHER, LT_ALL_TO_ALL, LT_PERMUTE };

/* The groups of a program, by the numbers in its code, and the first collective that failed. */
typedef struct {
  const lt_group *groups;
  int64_t error; /* the transport's code; 0 where none failed */
  int64_t operation, group, bytes;
} lt_ranks;

/* Elements in memory of either type. */
typedef float lt_f32 __attribute__((may_alias));
typedef int32_t lt_i32 __attribute__((may_alias));

#define LT_REDUCING(name, type, expression)                                            \
  static inline void name(type *to, const type *left, const type *right, int64_t size) { \
    _Pragma("omp simd") for (int64_t i = 0; i < size; i++) {                           \
      const type a = left[i], b = right[i];                                            \
      to[i] = expression;                                                              \
    }                                                                                  \
  }
LT_REDUCING(lt_add_f32, lt_f32, a + b)
LT_REDUCING(lt_largest_f32, lt_f32, a != a || a > b ? a : b) /* NaN on either side wins */
LT_REDUCING(lt_least_f32, lt_f32, a != a || a < b ? a : b)
LT_REDUCING(lt_add_i32, lt_i32, (int32_t)((uint32_t)a + (uint32_t)b))
LT_REDUCING(lt_largest_i32, lt_i32, a > b ? a : b)
LT_REDUCING(lt_least_i32, lt_i32, a < b ? a : b)
#undef LT_REDUCING

/* to = the reduction of left and right, of which either may be `to`. */
static inline void lt_reduce_pair(int32_t reduction, void *to, const void *left, const void *right, int64_t size) {
  switch (reduction) {
    case LT_SUM: lt_add_f32(to, left, right, size); break;
    case LT_LARGEST: lt_largest_f32(to, left, right, size); break;
    case LT_LEAST: lt_least_f32(to, left, right, size); break;
    case LT_OF_INTS + LT_SUM: lt_add_i32(to, left, right, size); break;
    case LT_OF_INTS + LT_LARGEST: lt_largest_i32(to, left, right, size); break;
    case LT_OF_INTS + LT_LEAST: lt_least_i32(to, left, right, size); break;
    default: break;
  }
}

#endif
