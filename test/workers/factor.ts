/** @file An enum: syntax that node alone cannot strip. */

export enum Factor {
  Two = 2,
}
