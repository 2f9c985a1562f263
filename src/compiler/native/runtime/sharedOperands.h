/* sharedOperands.h: internal to the runtime: packed operands that programs share. */
#ifndef LUTHIER_SHARED_OPERANDS_H
#define LUTHIER_SHARED_OPERANDS_H

#include "program.h"

/* A right operand in memory, and how it is packed. */
typedef struct {
  lt_matrix from;
  int32_t precision;
  int64_t k, n;
} lt_operand;

typedef struct lt_shared lt_shared;

/* Points each of `count` entries to the packed operand that all programs share, instead of what it pointed to, if
   anything. What is shared for the first time is not packed yet. Returns 0 where memory is short; entries may be NULL
   then. */
int lt_share(lt_shared **shared, const lt_operand *operands, int64_t count);

/* Ends the use of what the entries point to. The last user's end frees it. */
void lt_unshare(lt_shared **shared, int64_t count);

void *lt_shared_data(const lt_shared *shared);

#endif
