/* share.h: how many of all cases a check takes: one in SHARE. */
#ifndef SHARE
#define SHARE 1
#endif
#define CASES(all) (((all) + SHARE - 1) / SHARE)
